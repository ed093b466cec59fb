//! The whole run: the only module that knows all stages and the threads.
//!
//! ```text
//!   reader ──batches──> workers: render ──chunks──> collector: order, duplicates, pack
//!                       workers: write  <──shards──────────┘
//! ```
//!
//! One reader (which for Parquet has threads of its own from ten cores on), one collector, and as
//! many workers as cores; a worker takes a complete shard before
//! a batch, since that frees memory. Every queue is bounded by the number of block buffers: the
//! reader waits for one that the collector gives back. Rendered bytes are bounded as well, by
//! [`gate::Gate`] on their way to the collector and by [`dispatch::Dispatch`] behind it.

mod collector;
mod csv;
mod dispatch;
mod doubts;
mod fates;
mod gate;
mod preview;
mod reader;
mod worker;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crossbeam_channel::{bounded, unbounded};

pub use self::preview::{Preview, choose, preview};

use self::collector::Collector;
use self::csv::End;
use self::dispatch::Dispatch;
use self::doubts::Same;
use self::gate::Gate;
use self::reader::Reader;
use self::worker::Worker;
use crate::build::duplicates::seen::Seen;
use crate::build::duplicates::variants::Variants;
use crate::build::read::block::Block;
use crate::build::read::{Batch, Source};
use crate::build::render::hreflang_groups::HreflangGroups;
use crate::build::render::plan::Plan;
use crate::build::render::rules::Rules;
use crate::build::shard::Packing;
use crate::build::shard::packer::Limits;
use crate::build::shard::sort::Sorter;
use crate::build::shard::split::Splitter;
use crate::build::write::Sink;
use crate::build::write::rejects::RejectFile;
use crate::config::{Config, Duplicates, Output};
use crate::error::{Error, Result};
use crate::flow::chunk::Chunk;
use crate::flow::memory::{Charge, MemoryUse};
use crate::flow::outcome::Chosen;
use crate::flow::outcome::{Outcome, RunError, ShardEntry};
use crate::flow::pool::Pool;
use crate::flow::shard::Shard;
use crate::thread::{guard, start, start_scoped};

/// How far a run has come, and the wish that it stop. Shared with whoever watches.
#[derive(Debug, Default)]
pub struct Progress {
    /// Rows read.
    pub rows: AtomicU64,
    /// URLs packed.
    pub urls: AtomicU64,
    /// Shards written.
    pub shards: AtomicU64,
    /// Bytes of files consumed; of Parquet by the share of its rows.
    pub bytes: AtomicU64,
    /// Set it to end the run; it returns `cancelled` as soon as the source does.
    pub stop: AtomicBool,
}

/// An input, resolved.
struct Input {
    name: String,
    plan: Plan,
    chosen: Vec<Chosen>,
}

/// A batch on its way to a worker.
struct Work {
    seq: u64,
    input: Arc<Input>,
    batch: Batch,
    /// what it takes in memory
    charge: Charge,
}

/// What comes to the collector, in the order of `seq`.
enum Event {
    /// Rows, and the bytes that they were counted with at the gate.
    Rendered(usize, Box<Part>),
    /// The reader could not go on.
    Failed(Error),
    /// Nothing comes after it.
    End,
}

/// Rendered rows of a batch.
struct Part {
    input: Arc<Input>,
    chunk: Chunk,
    /// After the last row: the block that they were made from, if it was CSV, and its end.
    last: Option<(Option<Block>, End)>,
}

/// The first panic of any thread of a run: it goes before all other errors.
#[derive(Debug, Default)]
struct Fallen(Mutex<Option<Error>>);

impl Fallen {
    /// Takes note of it, and has all other threads stop.
    fn tell(&self, error: Error, progress: &Progress) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        progress.stop.store(true, Ordering::Relaxed);
    }

    fn take(&self) -> Option<Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Runs `sources` one after the other through all stages into `sink`; `seen` is that of the runs
/// before which belong to the same build.
///
/// # Errors
/// The first that happens, by the order of the rows where rows are to blame. Whatever the sink
/// has by then is of no use. A panic in any thread is `internal.panic`.
pub fn run(
    config: &Config,
    sources: Vec<Box<dyn Source>>,
    sink: &dyn Sink,
    rejects: PathBuf,
    progress: &Arc<Progress>,
    seen: &Seen,
) -> Result<Outcome, RunError> {
    let fallen = Arc::new(Fallen::default());
    let result = guard("run", || {
        let outcome = run_all(config, sources, sink, rejects, progress, seen, &fallen)?;
        sink.finish()?;
        Ok(outcome)
    });
    match fallen.take() {
        Some(error) => Err(error.into()),
        None => result?,
    }
}

fn run_all(
    config: &Config,
    sources: Vec<Box<dyn Source>>,
    sink: &dyn Sink,
    rejects: PathBuf,
    progress: &Arc<Progress>,
    seen: &Seen,
    fallen: &Arc<Fallen>,
) -> Result<Outcome, RunError> {
    let unique = (config.duplicates != Duplicates::Keep).then(|| seen.take());
    let shared = Arc::new(Rules::new(config, unique.as_ref().map(|seen| seen.key))?);
    let families = config.mapping.alternate_group.as_ref().map(|_| {
        let x_default = config.mapping.x_default.clone().map(String::into_bytes);
        HreflangGroups::new(x_default, config.max_bytes)
    });
    let workers = config.workers();
    let buffers = workers * 2 + 2;
    let pool = Pool::default();
    let gate = Gate::default();
    let failed = |error| fallen.tell(error, progress);

    thread::scope(|scope| {
        // they go with the closure, however it ends: then all threads of the scope end, too
        let (buffer_tx, buffer_rx) = bounded(buffers);
        for _ in 0..buffers {
            // there is room for all of them
            let _ = buffer_tx.send(Vec::new());
        }
        let (work_tx, work_rx) = bounded::<Work>(buffers);
        let (event_tx, event_rx) = unbounded::<(u64, Event)>();
        let (shard_tx, shard_rx) = bounded::<Shard>(1);
        let (done_tx, done_rx) = unbounded::<Result<ShardEntry>>();
        let rules = &*shared;
        let reader = Reader {
            config: config.clone(),
            rules: shared.clone(),
            buffers: buffer_rx,
            work: work_tx,
            events: event_tx.clone(),
            progress: progress.clone(),
            room: MemoryUse::default(),
        };
        // Not of the scope: a source that does not return must not hold an error back. The reader
        // ends as soon as it does, since nobody takes its batches any more.
        let (fallen, told, alive) = (fallen.clone(), progress.clone(), event_tx.clone());
        let reader_failed = move |error| {
            fallen.tell(error, &told);
            drop(alive); // not before the collector can know why nothing comes
        };
        start("reader", move || reader.read_all(sources), reader_failed)?;
        for number in 0..workers {
            let worker = Worker {
                rules,
                sink,
                progress,
                gate: &gate,
                shards: shard_rx.clone(),
                work: work_rx.clone(),
                events: event_tx.clone(),
                done: done_tx.clone(),
                pool: pool.clone(),
            };
            match start_scoped(scope, "worker", move || worker.work(), failed) {
                Ok(_) => {}
                Err(error) if number == 0 => return Err(error.into()),
                Err(_) => break, // those that there are do all the work
            }
        }
        drop((shard_rx, work_rx, event_tx, done_tx));
        let limits = Limits {
            urls: config.max_urls,
            bytes: config.max_bytes,
            text: config.output == Output::Text,
        };
        // beside the reject file, that is in the folder of the state
        let folder = rejects.parent().map(Path::to_owned).unwrap_or_default();
        let sorter = if config.sort {
            let (folder, pool) = (folder.clone(), pool.clone());
            Some(Sorter::new(config, scope, folder, pool, &progress.stop, failed)?)
        } else {
            None
        };
        let splitter =
            config.split_by.as_ref().map(|column| Splitter::new(config, limits, column, folder));
        let collector = Collector {
            config,
            rules,
            progress,
            gate: &gate,
            seen,
            unique,
            families,
            sorter,
            splitter,
            packing: Packing::new(config.layout, limits),
            dispatch: Dispatch::new(shard_tx, done_rx, &progress.stop, workers),
            buffers: buffer_tx,
            pool: pool.clone(),
            rejects: RejectFile::new(rejects),
            outcome: Outcome::default(),
            variants: Variants::default(),
            lastmod: Same::Unknown,
            input: None,
            row: 0,
            batch: 0,
            open: None,
        };
        let result = guard("collector", || collector.collect(&event_rx))?;
        if result.is_err() {
            progress.stop.store(true, Ordering::Relaxed);
        }
        result
    })
}
