//! A thread that renders batches and writes shards.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, never, select};

use crate::build::pipeline::gate::Gate;
use crate::build::pipeline::input::Rendering;
use crate::build::pipeline::message::{Event, EventKind, Finished, Rendered, Work};
use crate::build::pipeline::progress::Progress;
use crate::build::render::row::Renderer;
use crate::build::render::rules::Rules;
use crate::build::write::writer::ShardWriter;
use crate::error::Result;
use crate::flow::chunk::Chunk;
use crate::flow::outcome::ShardEntry;
use crate::flow::pool::Pool;
use crate::flow::shard::Shard;
use crate::thread::inject;

/// How long a worker waits for a shard before it offers its chunk to the gate again.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A thread that renders batches and writes shards.
#[derive(Clone)]
pub(crate) struct Worker<'r> {
    pub rules: &'r Rules,
    pub writer: &'r ShardWriter<'r>,
    pub progress: &'r Progress,
    pub gate: &'r Gate,
    pub shards: Receiver<Shard>,
    pub work: Receiver<Work>,
    pub events: Sender<Event>,
    pub written: Sender<Result<ShardEntry>>,
    pub pool: Pool,
}

impl Worker<'_> {
    /// Works until the collector closes the queue of shards.
    pub fn work(mut self) {
        let mut scratch = Vec::new();
        loop {
            // shards first: writing them frees memory
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
                    Ok(work) => self.render(work, &mut scratch),
                    Err(_) => self.work = never(),
                },
            }
        }
    }

    fn write(&self, mut shard: Shard) {
        let written = self.progress.check().and_then(|()| {
            inject("worker.write");
            shard.load()?;
            self.writer.write(shard)
        });
        self.progress.shards.fetch_add(1, Ordering::Relaxed);
        // the collector has ended with its own error
        let _ = self.written.send(written);
    }

    fn render(&self, work: Work, scratch: &mut Vec<u64>) {
        inject("worker.render");
        let Work { number, input, mut batch, charge } = work;
        let mut outlet = |mut chunk: Chunk| {
            inject("worker.part");
            self.rules.note_range(&mut chunk);
            self.progress.rows.fetch_add(chunk.rows, Ordering::Relaxed);
            let memory = chunk.memory();
            self.send(number, Rendered { input: input.clone(), chunk, memory, last: None })
        };
        let renderer = Renderer::new(self.rules, &input.plan).with_outlet(&mut outlet);
        let mut rendering = Rendering::new(renderer, Chunk::new(&self.pool));
        let end = batch.render(scratch, &mut rendering);
        let mut chunk = rendering.chunk;
        drop(charge); // a batch of Arrow has freed its rows
        chunk.sum_up(self.rules.ages.as_ref());
        self.rules.note_range(&mut chunk);
        self.progress.rows.fetch_add(chunk.rows, Ordering::Relaxed);
        let (memory, last) = (chunk.memory(), Some(Finished { batch, end }));
        self.send(number, Rendered { input: Arc::clone(&input), chunk, memory, last });
    }

    /// Sends a chunk to the collector when the gate lets it through. Returns false if the collector
    /// wants no more.
    fn send(&self, batch: u64, rendered: Rendered) -> bool {
        while !self.gate.enter(batch, rendered.memory) {
            if self.progress.stopped() {
                return false;
            }
            // writing shards meanwhile prevents a deadlock, see the gate
            match self.shards.recv_timeout(POLL_INTERVAL) {
                Ok(shard) => self.write(shard),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
        let kind = EventKind::Rendered(Box::new(rendered));
        self.events.send(Event { batch, kind }).is_ok()
    }
}
