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
//! reader waits for one that the collector gives back.

mod csv;
mod doubts;
mod fates;
mod preview;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{
    Receiver, RecvTimeoutError, Sender, TryRecvError, bounded, select, unbounded,
};

pub use self::preview::{Preview, choose, preview};

use self::csv::{End, fault_error, render_csv};
use self::doubts::{Same, note_doubts};
use self::fates::{check_fates, check_rejects, over_share, too_many};
use crate::config::{Config, Duplicates, MaxRejects, OnInvalid, Output};
use crate::error::{Error, Kind, Result};
use crate::read::block::Block;
use crate::read::{Batch, Source};
use crate::render::chunk::{Chunk, Pool};
use crate::render::family::Families;
use crate::render::plan::{Chosen, Plan};
use crate::render::row::{Renderer, Rules, check_constants};
use crate::shard::Packing;
use crate::shard::packer::{Limits, Shard};
use crate::shard::sort::Sorter;
use crate::shard::split::Splitter;
use crate::unique::{Seen, Unique};
use crate::variants::Variants;
use crate::write::Sink;
use crate::write::manifest::{Outcome, ShardEntry};
use crate::write::rejects::RejectFile;

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
}

/// What comes to the collector, in the order of `seq`.
enum Event {
    Rendered(Box<Rendered>),
    /// The reader could not go on.
    Failed(Error),
    /// Nothing comes after it.
    End,
}

/// A batch after rendering.
struct Rendered {
    input: Arc<Input>,
    chunk: Chunk,
    /// The block that it was made from, if it was CSV.
    block: Option<Block>,
    end: End,
}

/// Runs `sources` one after the other through all stages into `sink`; `seen` is that of the runs
/// before which belong to the same build.
///
/// # Errors
/// The first that happens, by the order of the rows where rows are to blame. Whatever the sink
/// has by then is of no use.
pub fn run(
    config: &Config,
    sources: Vec<Box<dyn Source>>,
    sink: &dyn Sink,
    rejects: PathBuf,
    progress: &Arc<Progress>,
    seen: &Seen,
) -> Result<Outcome> {
    let unique = (config.duplicates != Duplicates::Keep).then(|| seen.take());
    let shared = Arc::new(Rules::new(config, unique.as_ref().map(Unique::key))?);
    let families = config.mapping.alternate_group.as_ref().map(|_| {
        let x_default = config.mapping.x_default.clone().map(String::into_bytes);
        Families::new(x_default, config.max_bytes)
    });
    let workers = config.workers();
    let buffers = workers * 2 + 2;
    let (buffer_tx, buffer_rx) = bounded(buffers);
    for _ in 0..buffers {
        // there is room for all of them
        let _ = buffer_tx.send(Vec::new());
    }
    let (work_tx, work_rx) = bounded::<Work>(buffers);
    let (event_tx, event_rx) = unbounded::<(u64, Event)>();
    let (shard_tx, shard_rx) = bounded::<Shard>(1);
    let (done_tx, done_rx) = unbounded::<Result<ShardEntry>>();
    let pool = Pool::default();

    let result = thread::scope(|scope| {
        let rules = &*shared;
        let reader_events = event_tx.clone();
        let reader = Reader {
            config: config.clone(),
            rules: shared.clone(),
            buffers: buffer_rx,
            work: work_tx,
            progress: progress.clone(),
        };
        // Not of the scope: a source that does not return must not hold an error back. The reader
        // ends as soon as it does, since nobody takes its batches any more.
        thread::spawn(move || reader.read_all(sources, &reader_events));
        for _ in 0..workers {
            let worker = Worker {
                rules,
                sink,
                progress,
                shards: shard_rx.clone(),
                work: work_rx.clone(),
                events: event_tx.clone(),
                done: done_tx.clone(),
                pool: pool.clone(),
            };
            scope.spawn(move || worker.work());
        }
        drop((shard_rx, work_rx, event_tx, done_tx));
        let limits = Limits {
            urls: config.max_urls,
            bytes: config.max_bytes,
            text: config.output == Output::Text,
        };
        // beside the reject file, that is in the folder of the state
        let folder = rejects.parent().map(Path::to_owned).unwrap_or_default();
        let sorter = config
            .sort
            .then(|| Sorter::new(config, scope, folder.clone(), pool.clone(), &progress.stop));
        let splitter =
            config.split_by.as_ref().map(|column| Splitter::new(config, limits, column, folder));
        let collector = Collector {
            config,
            rules,
            progress,
            seen,
            unique,
            families,
            sorter,
            splitter,
            packing: Packing::new(config.layout, limits),
            shards: shard_tx,
            done: done_rx,
            buffers: buffer_tx,
            pool,
            rejects: RejectFile::new(rejects),
            outcome: Outcome::default(),
            variants: Variants::default(),
            lastmod: Same::Unknown,
            input: None,
            row: 0,
            open: None,
        };
        let result = collector.collect(&event_rx);
        if result.is_err() {
            progress.stop.store(true, Ordering::Relaxed);
        }
        result
    });
    let outcome = result?;
    sink.finish()?;
    Ok(outcome)
}

/// The thread that reads.
struct Reader {
    config: Config,
    rules: Arc<Rules>,
    buffers: Receiver<Vec<u8>>,
    work: Sender<Work>,
    progress: Arc<Progress>,
}

impl Reader {
    fn read_all(self, sources: Vec<Box<dyn Source>>, events: &Sender<(u64, Event)>) {
        let mut seq = 0;
        let mut spare = None;
        for source in sources {
            if let Err(error) = self.read(source, &mut seq, &mut spare) {
                // a collector that is gone has its own error
                let _ = events.send((seq, Event::Failed(error)));
                return;
            }
        }
        let _ = events.send((seq, Event::End));
    }

    /// Reads one source; a buffer that it has no more use for is `spare` for the next.
    fn read(
        &self,
        mut source: Box<dyn Source>,
        seq: &mut u64,
        spare: &mut Option<Vec<u8>>,
    ) -> Result<()> {
        let name = source.name().to_owned();
        let columns = source.open()?;
        let (plan, chosen) = Plan::new(&self.config, &columns).map_err(|e| e.in_input(&name))?;
        check_constants(&self.rules, &plan)?;
        source.select(&plan.columns);
        let input = Arc::new(Input { name, plan, chosen });
        let before = self.progress.bytes.load(Ordering::Relaxed);
        loop {
            let buffer = match spare.take() {
                Some(buffer) => buffer,
                None => self.buffers.recv().map_err(|_| Error::cancelled())?,
            };
            if self.progress.stop.load(Ordering::Relaxed) {
                return Err(Error::cancelled());
            }
            let Some(batch) = source.next(buffer)? else {
                *spare = Some(Vec::new());
                return Ok(());
            };
            self.progress.bytes.store(before + source.consumed(), Ordering::Relaxed);
            let work = Work { seq: *seq, input: input.clone(), batch };
            if self.work.send(work).is_err() {
                return Err(Error::cancelled());
            }
            *seq += 1;
        }
    }
}

/// A thread that renders and writes.
struct Worker<'r> {
    rules: &'r Rules,
    sink: &'r dyn Sink,
    progress: &'r Progress,
    shards: Receiver<Shard>,
    work: Receiver<Work>,
    events: Sender<(u64, Event)>,
    done: Sender<Result<ShardEntry>>,
    pool: Pool,
}

impl Worker<'_> {
    fn work(mut self) {
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
            shard.load().and_then(|()| self.sink.write(shard))
        };
        self.progress.shards.fetch_add(1, Ordering::Relaxed);
        // the collector may have left with an error of its own
        let _ = self.done.send(written);
    }

    fn render(&self, work: Work, masks: &mut Vec<u64>) {
        let mut chunk = Chunk::new(&self.pool);
        let mut renderer = Renderer::new(self.rules, &work.input.plan);
        let (block, end) = match work.batch {
            Batch::Csv(block) => {
                let end = render_csv(&block, &work.input.plan, masks, &mut renderer, &mut chunk);
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
                }
                (None, End::Clean)
            }
        };
        chunk.sum_up();
        self.progress.rows.fetch_add(chunk.rows, Ordering::Relaxed);
        let rendered = Rendered { input: work.input, chunk, block, end };
        let _ = self.events.send((work.seq, Event::Rendered(Box::new(rendered))));
    }
}

/// The thread that puts things in order.
struct Collector<'r> {
    config: &'r Config,
    rules: &'r Rules,
    progress: &'r Progress,
    seen: &'r Seen,
    unique: Option<Unique>,
    families: Option<Families>,
    sorter: Option<Sorter<'r>>,
    splitter: Option<Splitter>,
    packing: Packing,
    shards: Sender<Shard>,
    done: Receiver<Result<ShardEntry>>,
    buffers: Sender<Vec<u8>>,
    pool: Pool,
    rejects: RejectFile,
    outcome: Outcome,
    variants: Variants,
    /// The lastmod of all entries so far, where it is one.
    lastmod: Same,
    input: Option<Arc<Input>>,
    /// rows of the input at hand so far
    row: u64,
    /// the start of a row that the next block goes on with
    open: Option<Vec<u8>>,
}

impl Collector<'_> {
    fn collect(mut self, events: &Receiver<(u64, Event)>) -> Result<Outcome> {
        let mut early = BTreeMap::new();
        for seq in 0.. {
            let event = loop {
                if let Some(event) = early.remove(&seq) {
                    break event;
                }
                // a source that does not return must not hold back the wish to stop
                match events.recv_timeout(Duration::from_millis(100)) {
                    Ok((at, event)) => {
                        early.insert(at, event);
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        if self.progress.stop.load(Ordering::Relaxed) {
                            return Err(Error::cancelled());
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => return Err(Error::thread()),
                };
            };
            if self.progress.stop.load(Ordering::Relaxed) {
                return Err(Error::cancelled());
            }
            match event {
                Event::Rendered(rendered) => self.take(*rendered)?,
                Event::Failed(error) => return Err(error),
                Event::End => break,
            }
        }
        self.finish()
    }

    fn take(&mut self, rendered: Rendered) -> Result<()> {
        let Rendered { input, mut chunk, mut block, mut end } = rendered;
        if !self.input.as_ref().is_some_and(|at| Arc::ptr_eq(at, &input)) {
            if self.input.is_none() {
                self.outcome.mapping.clone_from(&input.chosen);
            }
            self.input = Some(input.clone());
            self.row = 0;
        }
        // the block did not begin where a row begins: scan it again, with what came before
        if let (Some(mut text), Some(wrong)) = (self.open.take(), block.as_mut()) {
            text.append(&mut wrong.text);
            wrong.text = text;
            chunk = Chunk::new(&self.pool);
            let mut renderer = Renderer::new(self.rules, &input.plan);
            end = render_csv(wrong, &input.plan, &mut Vec::new(), &mut renderer, &mut chunk);
        }
        self.account(&input, chunk)?;
        match end {
            End::Clean => {}
            End::Open(row) => self.open = block.as_ref().map(|block| block.text[row..].to_vec()),
            End::Fault(fault) => {
                let max_cell = self.config.max_cell;
                return Err(fault_error(&fault, max_cell, &input.name, self.row));
            }
        }
        // the buffer is the reader's leave to read on
        let _ = self.buffers.send(block.map(|block| block.text).unwrap_or_default());
        Ok(())
    }

    /// Counts what became of the rows of a chunk, and packs its elements.
    fn account(&mut self, input: &Input, mut chunk: Chunk) -> Result<()> {
        let outcome = &mut self.outcome;
        outcome.rows += chunk.rows;
        outcome.filtered += chunk.filtered;
        outcome.expanded += chunk.expanded;
        outcome.rejected += chunk.rejects.len() as u64;
        for (code, count) in &chunk.notes {
            *outcome.notes.entry(code).or_default() += count;
        }
        for reject in &chunk.rejects {
            let row = self.row + 1 + u64::from(reject.row);
            if self.config.on_invalid == OnInvalid::Fail {
                let shown = String::from_utf8_lossy(&reject.value);
                let mut error =
                    Error::new(Kind::Data, reject.code, format!("{shown:?} {}", reject.message));
                error.position.column.clone_from(&reject.column);
                return Err(error.in_input(&input.name).at_row(row));
            }
            *outcome.rejects_by_code.entry(reject.code).or_default() += 1;
            self.rejects.write(&input.name, row, reject)?;
        }
        if let MaxRejects::Count(most) = self.config.max_rejects
            && outcome.rejected > most
        {
            return Err(too_many(outcome, format!("{most}"), self.rejects.first()));
        }
        if let Some(unique) = &mut self.unique {
            let mut known = Vec::new();
            unique.insert(&chunk.keys, &mut known);
            if let Some(&first) = known.first()
                && self.config.duplicates == Duplicates::Fail
            {
                let row = self.row + 1 + u64::from(chunk.entries[first as usize].row);
                let message =
                    "its URL came before; drop such rows (--duplicates drop) or mend the data";
                let error = Error::new(Kind::Data, "duplicates.found", message);
                return Err(error.in_input(&input.name).at_row(row));
            }
            outcome.duplicates += known.len() as u64;
            chunk.remove(&known);
        }
        self.variants.add(&chunk.samples, &self.rules.rate);
        self.lastmod.add(&mut chunk);
        let urls = chunk.entries.len() as u64;
        outcome.urls += urls;
        self.progress.urls.fetch_add(urls, Ordering::Relaxed);
        let first = self.row + 1;
        self.row += chunk.rows + chunk.blank;
        let Some(families) = &mut self.families else { return self.pack(Arc::new(chunk)) };
        let whole = families.push(&chunk, first).map_err(|e| e.in_input(&input.name))?;
        self.pack_whole(whole)
    }

    /// Packs the elements of families that are complete.
    fn pack_whole(&mut self, chunk: Arc<Chunk>) -> Result<()> {
        for (code, count) in &chunk.notes {
            *self.outcome.notes.entry(code).or_default() += count;
        }
        self.pack(chunk)
    }

    fn pack(&mut self, chunk: Arc<Chunk>) -> Result<()> {
        match &mut self.sorter {
            Some(sorter) => sorter.push(chunk),
            None => self.place(&chunk),
        }
    }

    /// Packs elements that are in their order.
    fn place(&mut self, chunk: &Arc<Chunk>) -> Result<()> {
        let (shards, done, list) = (&self.shards, &self.done, &mut self.outcome.shards);
        let emit = &mut |shard| send(shard, shards, done, list);
        match &mut self.splitter {
            Some(splitter) => splitter.push(chunk, emit),
            None => self.packing.push(chunk, emit),
        }
    }

    fn finish(mut self) -> Result<Outcome> {
        if let Some(unique) = self.unique.take() {
            self.seen.give(unique);
        }
        if let Some(families) = &mut self.families {
            let last = families.finish()?;
            self.pack_whole(last)?;
        }
        if let Some(sorter) = self.sorter.take() {
            sorter.finish(&mut |chunk| self.place(&chunk))?;
        }
        if let Some(splitter) = self.splitter.take() {
            let (shards, done, list) = (&self.shards, &self.done, &mut self.outcome.shards);
            self.outcome.sets = splitter.finish(&mut |shard| send(shard, shards, done, list))?;
        }
        if let Some(shard) = self.packing.finish() {
            send(shard, &self.shards, &self.done, &mut self.outcome.shards)?;
        }
        // with the queue closed the workers end once it is empty
        drop(self.shards);
        for written in &self.done {
            self.outcome.shards.push(written?);
        }
        self.rejects.finish()?;
        check_rejects(self.rejects.rows(), self.outcome.rejected)?;
        let mut outcome = self.outcome;
        outcome
            .shards
            .sort_unstable_by_key(|shard| (shard.set.as_ref().map(|set| set.number), shard.number));
        check_fates(&outcome)?;
        note_doubts(&mut outcome, &self.variants, &self.lastmod);
        if let MaxRejects::Share(most) = self.config.max_rejects
            && over_share(outcome.rejected, outcome.rows, most)
        {
            // 29% is 28.999999999999996 when it comes back from 0.29
            let percent = (most * 1e8).round() / 1e6;
            return Err(too_many(&mut outcome, format!("{percent}%"), self.rejects.first()));
        }
        Ok(outcome)
    }
}

/// Hands a shard to the workers, and takes note of those that are done.
fn send(
    shard: Shard,
    shards: &Sender<Shard>,
    done: &Receiver<Result<ShardEntry>>,
    list: &mut Vec<ShardEntry>,
) -> Result<()> {
    for written in done.try_iter() {
        list.push(written?);
    }
    shards.send(shard).map_err(|_| Error::thread())
}
