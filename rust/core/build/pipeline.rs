//! The whole run: the only module that imports all stages and starts the threads.
//!
//! ```text
//!   reader ──batches──> workers: render ──chunks──> collector: order, duplicates, pack
//!                       workers: write  <──shards──────────┘
//! ```
//!
//! There is one reader (for Parquet with additional threads from ten cores on), one collector,
//! and as many workers as cores. A worker takes a complete shard before a batch, since that frees
//! memory. The number of block buffers bounds every queue: the reader waits for one that the
//! collector returns. Rendered bytes are bounded by [`gate::Gate`] on their way to the collector and
//! by [`dispatch::Dispatch`] behind it.

mod accounting;
mod assembly;
mod collector;
mod dispatch;
mod exclude;
mod gate;
mod input;
mod locs;
mod message;
mod preview;
mod progress;
mod reader;
mod warnings;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use crossbeam_channel::{bounded, unbounded};

pub use self::exclude::exclude;
pub use self::input::{AnyBatch, AnySource, Rendering};
pub use self::locs::{Locs, loc_columns, locs};
pub use self::preview::{Preview, choose, preview};
pub use self::progress::Progress;

use self::accounting::Accounting;
use self::assembly::{Assembly, SetPacker};
use self::collector::Collector;
use self::dispatch::Dispatch;
use self::gate::Gate;
use self::reader::Reader;
use self::worker::Worker;
use crate::build::duplicates::seen::Seen;
use crate::build::render::hreflang_groups::HreflangGroups;
use crate::build::render::rules::Rules;
use crate::build::shard::Packing;
use crate::build::shard::packer::Limits;
use crate::build::shard::sort::Sorter;
use crate::build::shard::split::Splitter;
use crate::build::stamps::digest::check_digest;
use crate::build::stamps::log::Log;
use crate::build::stamps::open::{Clock, OldFile, open};
use crate::build::write::rejects::RejectFile;
use crate::build::write::writer::{Destination, ShardWriter};
use crate::config::{Config, Duplicates, Output};
use crate::error::{Error, Result};
use crate::flow::memory::MemoryUse;
use crate::flow::outcome::{Outcome, RunError};
use crate::flow::pool::Pool;
use crate::thread::{FirstError, guard, start, start_scoped, start_several};

/// What a run reads and writes.
pub struct Run<'d> {
    /// The inputs, read one after the other.
    pub sources: Vec<Box<dyn AnySource>>,
    /// Where the shards go.
    pub destination: Destination<'d>,
    /// The reject file, which appears with the first rejected row. Temporary files are created in
    /// the same folder.
    pub rejects: PathBuf,
    /// The progress, which another thread may watch.
    pub progress: Arc<Progress>,
    /// The URLs of the previous runs of the same build.
    pub seen: &'d Seen,
    /// With `--lastmod-from`: the stamps of the last build, and the file for those of this one.
    pub stamps: Option<StampFiles>,
}

/// The stamps of URLs from build to build.
pub struct StampFiles {
    /// Those of the last build; `None` in a first build.
    pub old: Option<OldFile>,
    /// The file for those of this build; it must not exist.
    pub new: PathBuf,
}

/// Runs the sources through all stages into the sink.
///
/// # Errors
/// The first in the order of the rows, if rows are the reason. The files in the sink are then of no
/// use. A panic in any thread is `internal.panic`.
pub fn run(config: &Config, run: Run<'_>) -> Result<Outcome, RunError> {
    // a panic takes precedence over all other errors, which may be its consequences
    let panic = Arc::new(FirstError::default());
    let result = guard("run", || run_all(config, run, &panic));
    match panic.take() {
        Some(error) => Err(error.into()),
        None => result?,
    }
}

fn run_all(config: &Config, run: Run<'_>, panic: &Arc<FirstError>) -> Result<Outcome, RunError> {
    let Run { sources, destination, rejects, progress, seen, stamps } = run;
    let seen_urls = (config.duplicates != Duplicates::Keep).then(|| seen.take());
    let rules = Rules::new(config, seen_urls.as_ref().map(|seen| seen.key))?;
    let writer = ShardWriter::new(config, destination);
    let (pool, gate) = (Pool::default(), Gate::default());
    let failed = |error| {
        panic.report(error);
        progress.stop();
    };
    // spill files are created in the folder of the state
    let folder = rejects.parent().map(PathBuf::from).unwrap_or_default();
    let clock = Clock { now: config.mapping.now, forget: config.forget };
    let opened = stamps.map(|StampFiles { old, new }| {
        let stamps = open(old, clock, &folder, config.workers())?;
        Ok::<_, Error>((Arc::new(stamps), new))
    });
    let opened = opened.transpose()?;
    let rules = Arc::new(rules.with_stamps(opened.as_ref().map(|(stamps, _)| stamps.clone())));
    let log = opened.as_ref().map(|(stamps, new)| Log::new(stamps, new)).transpose()?;
    let known = opened.as_ref().and_then(|(stamps, _)| stamps.table.as_ref());

    let outcome = thread::scope(|scope| {
        // they are dropped with the closure, however it ends; then all threads of the scope end
        let count = config.workers() * 2 + 2;
        let (buffers, free_buffers) = bounded(count);
        for _ in 0..count {
            // the queue has room for all of them
            let _ = buffers.send(Vec::new());
        }
        let (batches, work) = bounded(count);
        let (event_sender, events) = unbounded();
        let (shard_sender, shards) = bounded(1);
        let (entries, written) = unbounded();
        let reader = Reader {
            config: config.clone(),
            rules: rules.clone(),
            buffers: free_buffers,
            work: batches,
            events: event_sender.clone(),
            progress: progress.clone(),
            memory: MemoryUse::default(),
        };
        start_reader(reader, sources, panic)?;
        if let Some(table) = known {
            start_scoped(scope, "stamps", || check_digest(table, &progress.stop), failed)?;
        }
        let worker = Worker {
            rules: &rules,
            writer: &writer,
            progress: &progress,
            gate: &gate,
            shards,
            work,
            events: event_sender,
            written: entries,
            pool: pool.clone(),
        };
        start_several(config.workers(), || {
            let worker = worker.clone();
            start_scoped(scope, "worker", move || worker.work(), failed)
        })?;
        drop(worker); // the threads have the queues
        let sorter = config.sort.then(|| {
            let (folder, pool) = (folder.clone(), pool.clone());
            Sorter::new(config, scope, folder, pool, &progress.stop, failed)
        });
        let collector = Collector {
            rules: &rules,
            progress: &progress,
            gate: &gate,
            seen,
            pool: pool.clone(),
            buffers,
            accounting: Accounting::new(
                config,
                &progress,
                seen_urls,
                RejectFile::new(rejects),
                log,
            )?,
            assembly: Assembly {
                groups: groups(config),
                sorter: sorter.transpose()?,
                packer: packer(config, folder),
                dispatch: Dispatch::new(shard_sender, written, &progress, config.workers()),
            },
            input: None,
            open: None,
        };
        let result = guard("collector", || collector.collect(&events))?;
        if result.is_err() {
            progress.stop();
        }
        result
    })?;
    if let Some(table) = known {
        table.check()?;
    }
    writer.finish()?;
    Ok(outcome)
}

/// Starts the reader outside of the scope: an error must not wait for a source that does not return.
/// The reader ends when the source returns, since its batches are no longer taken.
fn start_reader(
    reader: Reader,
    sources: Vec<Box<dyn AnySource>>,
    panic: &Arc<FirstError>,
) -> Result<()> {
    // the collector must know the reason before its queue of events is closed
    let (panic, watched, alive) = (panic.clone(), reader.progress.clone(), reader.events.clone());
    let failed = move |error| {
        panic.report(error);
        watched.stop();
        drop(alive);
    };
    start("reader", move || reader.read_all(sources), failed).map(drop)
}

fn groups(config: &Config) -> Option<HreflangGroups> {
    config.mapping.alternate_group.as_ref()?;
    let x_default = config.mapping.x_default.clone().map(String::into_bytes);
    Some(HreflangGroups::new(x_default, config.max_bytes))
}

fn packer(config: &Config, folder: PathBuf) -> SetPacker {
    let limits = Limits {
        urls: config.max_urls,
        bytes: config.max_bytes,
        text: config.output == Output::Text,
    };
    match &config.split_by {
        Some(column) => SetPacker::Split(Splitter::new(config, limits, column, folder)),
        None => SetPacker::One(Packing::new(config.layout, limits)),
    }
}
