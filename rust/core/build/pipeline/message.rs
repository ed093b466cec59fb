//! The messages between the threads of a run.

use std::sync::Arc;

use crate::build::pipeline::input::AnyBatch;
use crate::build::render::plan::Plan;
use crate::error::Error;
use crate::flow::chunk::Chunk;
use crate::flow::memory::Charge;
use crate::flow::outcome::Chosen;
use crate::flow::source::BatchEnd;

/// An input with its resolved mapping.
pub(crate) struct Input {
    pub name: String,
    pub plan: Plan,
    pub chosen: Vec<Chosen>,
}

/// A batch on its way to a worker.
pub(crate) struct Work {
    /// the number of the batch in the run
    pub number: u64,
    pub input: Arc<Input>,
    pub batch: Box<dyn AnyBatch>,
    /// counts its memory
    pub charge: Charge,
}

/// A message to the collector, which takes them in the order of the batches.
pub(crate) struct Event {
    /// the number of the batch
    pub batch: u64,
    pub kind: EventKind,
}

pub(crate) enum EventKind {
    /// Some rows of the batch.
    Rendered(Box<Rendered>),
    /// The reader failed where this batch would begin.
    Failed(Error),
    /// There is no such batch: all have been read.
    End,
}

/// Rendered rows of a batch.
pub(crate) struct Rendered {
    pub input: Arc<Input>,
    pub chunk: Chunk,
    /// the memory of the chunk, as counted by the gate
    pub memory: usize,
    /// with the last rows of the batch: the batch itself, and how it ended
    pub last: Option<Finished>,
}

/// A batch whose rows were rendered.
pub(crate) struct Finished {
    pub batch: Box<dyn AnyBatch>,
    pub end: BatchEnd,
}
