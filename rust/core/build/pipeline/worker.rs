//! A thread that renders and writes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, select};

use crate::build::pipeline::csv::{End, render_csv};
use crate::build::pipeline::gate::Gate;
use crate::build::pipeline::{Event, Part, Progress, Work};
use crate::build::read::Batch;
use crate::build::render::row::Renderer;
use crate::build::render::rules::Rules;
use crate::build::write::Sink;
use crate::error::{Error, Result};
use crate::flow::chunk::Chunk;
use crate::flow::outcome::ShardEntry;
use crate::flow::pool::Pool;
use crate::flow::shard::Shard;
use crate::thread::inject;

/// How long a worker that may not hand its chunk on waits for a shard before it asks again.
const PAUSE: Duration = Duration::from_millis(1);

/// A thread that renders and writes.
pub(crate) struct Worker<'r> {
    pub rules: &'r Rules,
    pub sink: &'r dyn Sink,
    pub progress: &'r Progress,
    pub gate: &'r Gate,
    pub shards: Receiver<Shard>,
    pub work: Receiver<Work>,
    pub events: Sender<(u64, Event)>,
    pub done: Sender<Result<ShardEntry>>,
    pub pool: Pool,
}

impl Worker<'_> {
    /// Works until the collector wants no more shards.
    pub fn work(mut self) {
        let mut masks = Vec::new();
        loop {
            // shards first
            match self.shards.try_recv() {
                Ok(shard) => {
                    self.write(shard);
                    continue;
                }
                Err(TryRecvError::Disconnected) => return,
                Err(TryRecvError::Empty) => {}
            }
            select! {
                recv(self.shards) -> shard => match shard {
                    Ok(shard) => self.write(shard),
                    Err(_) => return,
                },
                recv(self.work) -> work => match work {
                    Ok(work) => self.render(work, &mut masks),
                    Err(_) => self.work = crossbeam_channel::never(),
                },
            }
        }
    }

    fn write(&self, mut shard: Shard) {
        let written = if self.progress.stop.load(Ordering::Relaxed) {
            Err(Error::cancelled())
        } else {
            inject("worker.write");
            shard.load().and_then(|()| self.sink.write(shard))
        };
        self.progress.shards.fetch_add(1, Ordering::Relaxed);
        // the collector may have left with an error of its own
        let _ = self.done.send(written);
    }

    fn render(&self, work: Work, masks: &mut Vec<u64>) {
        inject("worker.render");
        let Work { seq, input, batch, charge } = work;
        let mut chunk = Chunk::new(&self.pool);
        let mut outlet = |chunk: Chunk| {
            inject("worker.part");
            self.progress.rows.fetch_add(chunk.rows, Ordering::Relaxed);
            self.hand_over(seq, Part { input: input.clone(), chunk, last: None })
        };
        let mut renderer = Renderer::new(self.rules, &input.plan).with_outlet(&mut outlet);
        let last = match batch {
            Batch::Csv(block) => {
                let end = render_csv(&block, &input.plan, masks, &mut renderer, &mut chunk);
                (Some(block), end)
            }
            Batch::Skipped(rows) => {
                chunk.rows += rows;
                chunk.filtered += rows;
                (None, End::Clean)
            }
            Batch::Arrow(rows) => {
                for (number, row) in (rows.start..rows.end).enumerate() {
                    renderer.render(&rows.row(row), number as u32, &mut chunk);
                    if !renderer.hand_on(&mut chunk) {
                        break; // nobody looks at what would come
                    }
                }
                (None, End::Clean)
            }
        };
        // the rows were dropped
        drop(charge);
        chunk.sum_up();
        self.progress.rows.fetch_add(chunk.rows, Ordering::Relaxed);
        self.hand_over(seq, Part { input: Arc::clone(&input), chunk, last: Some(last) });
    }

    /// Gives a chunk to the collector, as soon as that may be; false where it wants no more.
    fn hand_over(&self, seq: u64, part: Part) -> bool {
        let bytes = part.chunk.memory();
        while !self.gate.enter(seq, bytes) {
            if self.progress.stop.load(Ordering::Relaxed) {
                return false;
            }
            // see there why nothing else would do
            match self.shards.recv_timeout(PAUSE) {
                Ok(shard) => self.write(shard),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
        self.events.send((seq, Event::Rendered(bytes, Box::new(part)))).is_ok()
    }
}
