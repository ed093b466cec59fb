//! The thread that puts batches in order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

use crate::build::duplicates::seen::Seen;
use crate::build::pipeline::accounting::Accounting;
use crate::build::pipeline::assembly::{Assembled, Assembly};
use crate::build::pipeline::dispatch::POLL_INTERVAL;
use crate::build::pipeline::gate::Gate;
use crate::build::pipeline::input::{AnyBatch, Rendering};
use crate::build::pipeline::message::{Event, EventKind, Finished, Input, Rendered};
use crate::build::pipeline::progress::Progress;
use crate::build::render::row::Renderer;
use crate::build::render::rules::Rules;
use crate::error::{Error, Result};
use crate::flow::chunk::Chunk;
use crate::flow::outcome::{Outcome, RunError};
use crate::flow::pool::Pool;
use crate::flow::source::BatchEnd;
use crate::thread::inject;

/// The thread that puts batches in order.
pub(crate) struct Collector<'r> {
    pub rules: &'r Rules,
    pub progress: &'r Progress,
    pub gate: &'r Gate,
    pub seen: &'r Seen,
    pub pool: Pool,
    /// Returning a buffer lets the reader read the next batch.
    pub buffers: Sender<Vec<u8>>,
    pub accounting: Accounting<'r>,
    pub assembly: Assembly<'r>,
    /// the input of the current batch
    pub input: Option<Arc<Input>>,
    /// the beginning of a row that the next batch continues
    pub open: Option<Vec<u8>>,
}

/// Events in the order of the batches.
struct InOrder<'e> {
    events: &'e Receiver<Event>,
    /// events of later batches
    early: BTreeMap<u64, VecDeque<EventKind>>,
    /// the current batch
    batch: u64,
}

impl InOrder<'_> {
    /// The next event of the current batch.
    fn next(&mut self, progress: &Progress) -> Result<EventKind> {
        loop {
            if let Some(kind) = self.early.get_mut(&self.batch).and_then(VecDeque::pop_front) {
                return Ok(kind);
            }
            match self.events.recv_timeout(POLL_INTERVAL) {
                Ok(event) if event.batch == self.batch => return Ok(event.kind),
                Ok(event) => self.early.entry(event.batch).or_default().push_back(event.kind),
                Err(RecvTimeoutError::Timeout) => progress.check()?,
                Err(RecvTimeoutError::Disconnected) => return Err(Error::thread()),
            }
        }
    }

    fn next_batch(&mut self) -> u64 {
        self.early.remove(&self.batch);
        self.batch += 1;
        self.batch
    }
}

impl Collector<'_> {
    /// Takes all chunks in order, and returns the outcome when all shards are written.
    ///
    /// # Errors
    /// The first in the order of the rows; `cancelled` soon after a stop, even if the source does
    /// not return.
    pub fn collect(mut self, events: &Receiver<Event>) -> Result<Outcome, RunError> {
        let mut events = InOrder { events, early: BTreeMap::new(), batch: 0 };
        loop {
            let event = events.next(self.progress)?;
            self.progress.check()?;
            inject("collector.event");
            match event {
                EventKind::Rendered(rendered) => {
                    self.gate.leave(rendered.memory);
                    if self.take(*rendered)? {
                        self.gate.advance(events.next_batch());
                    }
                }
                EventKind::Failed(error) => return Err(error.into()),
                EventKind::End => break,
            }
        }
        self.finish()
    }

    /// Takes a chunk. Returns whether it was the last one of its batch.
    fn take(&mut self, rendered: Rendered) -> Result<bool, RunError> {
        let Rendered { input, chunk, last, .. } = rendered;
        if !self.input.as_ref().is_some_and(|current| Arc::ptr_eq(current, &input)) {
            self.accounting.begin_input(&input);
            self.input = Some(input.clone());
        }
        let Some(Finished { mut batch, mut end }) = last else {
            // the rows of a batch that did not begin at the start of a row are wrong
            if self.open.is_none() {
                self.add(&input, chunk)?;
            }
            return Ok(false);
        };
        match self.open.take() {
            None => self.add(&input, chunk)?,
            Some(open) => {
                drop(chunk);
                batch.join(open);
                end = self.render(&input, &mut *batch)?;
            }
        }
        match end {
            BatchEnd::Complete => {}
            BatchEnd::Open(row) => self.open = Some(row),
            BatchEnd::Failed(error) => {
                let row = self.accounting.next_row();
                return Err(error.in_input(&input.name).at_row(row).into());
            }
        }
        self.accounting.end_batch();
        // a reader that has ended needs no buffer
        let _ = self.buffers.send(batch.into_buffer());
        Ok(true)
    }

    /// Renders a batch in this thread, and takes its chunks.
    fn render(&mut self, input: &Input, batch: &mut dyn AnyBatch) -> Result<BatchEnd, RunError> {
        let chunk = Chunk::new(&self.pool);
        let rules = self.rules;
        let mut failed = None;
        let mut outlet = |chunk| {
            failed = self.add(input, chunk).err();
            failed.is_none()
        };
        let renderer = Renderer::new(rules, &input.plan).with_outlet(&mut outlet);
        let mut rendering = Rendering::new(renderer, chunk);
        let end = batch.render(&mut Vec::new(), &mut rendering);
        let chunk = rendering.chunk;
        match failed {
            Some(error) => Err(error),
            None => self.add(input, chunk).map(|()| end),
        }
    }

    /// Accounts for the rows of a chunk, and passes its elements on.
    fn add(&mut self, input: &Input, mut chunk: Chunk) -> Result<(), RunError> {
        if chunk.range.is_none() {
            self.rules.note_range(&mut chunk); // this thread has rendered it, or it is empty
        }
        self.accounting.add(input, &mut chunk, self.rules)?;
        let first_row = self.accounting.first_row();
        let notes = &mut self.accounting.outcome.notes;
        Ok(self.assembly.push(chunk, input, first_row, notes)?)
    }

    fn finish(mut self) -> Result<Outcome, RunError> {
        self.accounting.end_rows(self.seen)?;
        inject("collector.finish");
        let notes = &mut self.accounting.outcome.notes;
        let Assembled { shards, sets } = self.assembly.finish(notes)?;
        self.accounting.finish(shards, sets)
    }
}
