//! The thread that puts things in order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

use crate::build::duplicates::seen::{Seen, SeenUrls};
use crate::build::duplicates::variants::Variants;
use crate::build::pipeline::csv::{End, fault_error, render_csv};
use crate::build::pipeline::dispatch::{Dispatch, PATIENCE};
use crate::build::pipeline::doubts::{Same, note_doubts};
use crate::build::pipeline::fates::{check_fates, check_rejects, too_many};
use crate::build::pipeline::gate::Gate;
use crate::build::pipeline::{Event, Input, Part, Progress};
use crate::build::read::block::Block;
use crate::build::render::hreflang_groups::HreflangGroups;
use crate::build::render::row::Renderer;
use crate::build::render::rules::Rules;
use crate::build::shard::Packing;
use crate::build::shard::sort::Sorter;
use crate::build::shard::split::Splitter;
use crate::build::write::rejects::RejectFile;
use crate::config::{Config, Duplicates, MaxRejects, OnInvalid};
use crate::error::{Error, Kind, Result};
use crate::flow::chunk::Chunk;
use crate::flow::outcome::{Outcome, RunError};
use crate::flow::pool::Pool;
use crate::thread::inject;

/// The thread that puts things in order.
pub(crate) struct Collector<'r> {
    pub config: &'r Config,
    pub rules: &'r Rules,
    pub progress: &'r Progress,
    pub gate: &'r Gate,
    pub seen: &'r Seen,
    pub unique: Option<SeenUrls>,
    pub families: Option<HreflangGroups>,
    pub sorter: Option<Sorter<'r>>,
    pub splitter: Option<Splitter>,
    pub packing: Packing,
    pub dispatch: Dispatch<'r>,
    pub buffers: Sender<Vec<u8>>,
    pub pool: Pool,
    pub rejects: RejectFile,
    pub outcome: Outcome,
    pub variants: Variants,
    /// the lastmod of all entries so far, where it is one
    pub lastmod: Same,
    pub input: Option<Arc<Input>>,
    /// rows of the input at hand before the batch at hand
    pub row: u64,
    /// rows of the batch at hand so far
    pub batch: u64,
    /// the start of a row that the next block goes on with
    pub open: Option<Vec<u8>>,
}

impl Collector<'_> {
    /// Takes all chunks in their order; the outcome, once all shards are written.
    ///
    /// # Errors
    /// The first that happens, by the order of the rows; `cancelled` soon after a stop, even where
    /// the source does not return.
    pub fn collect(mut self, events: &Receiver<(u64, Event)>) -> Result<Outcome, RunError> {
        let mut early: BTreeMap<u64, VecDeque<Event>> = BTreeMap::new();
        let mut seq = 0;
        loop {
            let event = loop {
                if let Some(event) = early.get_mut(&seq).and_then(VecDeque::pop_front) {
                    break event;
                }
                match events.recv_timeout(PATIENCE) {
                    Ok((at, event)) if at == seq => break event,
                    Ok((at, event)) => early.entry(at).or_default().push_back(event),
                    Err(RecvTimeoutError::Timeout) => self.check()?,
                    Err(RecvTimeoutError::Disconnected) => return Err(Error::thread().into()),
                }
            };
            self.check()?;
            inject("collector.event");
            match event {
                Event::Rendered(bytes, part) => {
                    self.gate.leave(bytes);
                    if self.take(*part)? {
                        early.remove(&seq);
                        seq += 1;
                        self.gate.advance(seq);
                    }
                }
                Event::Failed(error) => return Err(error.into()),
                Event::End => break,
            }
        }
        self.finish()
    }

    fn check(&self) -> Result<()> {
        let stop = self.progress.stop.load(Ordering::Relaxed);
        if stop { Err(Error::cancelled()) } else { Ok(()) }
    }

    /// Takes a chunk; whether it was the last one of its batch.
    fn take(&mut self, part: Part) -> Result<bool, RunError> {
        let Part { input, chunk, last } = part;
        if !self.input.as_ref().is_some_and(|at| Arc::ptr_eq(at, &input)) {
            if self.input.is_none() {
                self.outcome.mapping.clone_from(&input.chosen);
            }
            self.input = Some(input.clone());
            self.row = 0;
        }
        let Some((mut block, mut end)) = last else {
            // of a block that did not begin where a row begins only the text is of use
            if self.open.is_none() {
                self.account(&input, chunk)?;
            }
            return Ok(false);
        };
        match (self.open.take(), block.as_mut()) {
            (Some(mut text), Some(wrong)) => {
                drop(chunk);
                // scan it again, with what came before
                text.append(&mut wrong.text);
                wrong.text = text;
                end = self.render(&input, wrong)?;
            }
            _ => self.account(&input, chunk)?,
        }
        self.row += std::mem::take(&mut self.batch);
        match end {
            End::Clean => {}
            End::Open(row) => self.open = block.as_ref().map(|block| block.text[row..].to_vec()),
            End::Fault(fault) => {
                let max_cell = self.config.max_cell;
                return Err(fault_error(&fault, max_cell, &input.name, self.row).into());
            }
        }
        // the buffer is the reader's leave to read on
        let _ = self.buffers.send(block.map(|block| block.text).unwrap_or_default());
        Ok(true)
    }

    /// Renders a block here, and accounts for its chunks.
    fn render(&mut self, input: &Arc<Input>, block: &Block) -> Result<End, RunError> {
        let mut chunk = Chunk::new(&self.pool);
        let mut failed = None;
        let rules = self.rules;
        let mut outlet = |chunk| {
            failed = self.account(input, chunk).err();
            failed.is_none()
        };
        let mut renderer = Renderer::new(rules, &input.plan).with_outlet(&mut outlet);
        let end = render_csv(block, &input.plan, &mut Vec::new(), &mut renderer, &mut chunk);
        match failed {
            Some(error) => Err(error),
            None => self.account(input, chunk).map(|()| end),
        }
    }

    /// Counts what became of the rows of a chunk, and packs its elements.
    fn account(&mut self, input: &Input, mut chunk: Chunk) -> Result<(), RunError> {
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
                return Err(error.in_input(&input.name).at_row(row).into());
            }
            *outcome.rejects_by_code.entry(reject.code).or_default() += 1;
            self.rejects.write(&input.name, row, reject)?;
        }
        if let MaxRejects::Count(most) = self.config.max_rejects
            && self.config.max_rejects.is_exceeded(outcome.rejected, outcome.rows)
        {
            return Err(too_many(outcome, format!("{most}"), self.rejects.first()));
        }
        if let Some(unique) = &mut self.unique {
            let mut known = Vec::new();
            unique.hashes.insert(&chunk.keys, &mut known);
            if let Some(&first) = known.first()
                && self.config.duplicates == Duplicates::Fail
            {
                let row = self.row + 1 + u64::from(chunk.entries[first as usize].row);
                let message =
                    "its URL came before; drop such rows (--duplicates drop) or mend the data";
                let error = Error::new(Kind::Data, "duplicates.found", message);
                return Err(error.in_input(&input.name).at_row(row).into());
            }
            outcome.duplicates += known.len() as u64;
            chunk.remove(&known);
        }
        self.variants.add(&chunk.samples, &self.rules.rate);
        self.lastmod.add(&mut chunk);
        let urls = chunk.entries.len() as u64;
        outcome.urls += urls;
        self.progress.urls.fetch_add(urls, Ordering::Relaxed);
        self.batch += chunk.rows + chunk.blank;
        let Some(mut families) = self.families.take() else {
            return Ok(self.pack(Arc::new(chunk))?);
        };
        let first = self.row + 1;
        let pushed = families.push(&chunk, first, &mut |whole| self.pack_whole(whole));
        self.families = Some(families);
        Ok(pushed.map_err(|e| e.in_input(&input.name))?)
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
        let dispatch = &mut self.dispatch;
        let emit = &mut |shard| dispatch.send(shard);
        match &mut self.splitter {
            Some(splitter) => splitter.push(chunk, emit),
            None => self.packing.push(chunk, emit),
        }
    }

    fn finish(mut self) -> Result<Outcome, RunError> {
        if let Some(unique) = self.unique.take() {
            self.seen.give(unique);
        }
        inject("collector.finish");
        if let Some(mut families) = self.families.take() {
            families.finish(&mut |last| self.pack_whole(last))?;
        }
        if let Some(sorter) = self.sorter.take() {
            sorter.finish(&mut |chunk| self.place(&chunk))?;
        }
        if let Some(splitter) = self.splitter.take() {
            let dispatch = &mut self.dispatch;
            self.outcome.sets = splitter.finish(&mut |shard| dispatch.send(shard))?;
        }
        if let Some(shard) = self.packing.finish() {
            self.dispatch.send(shard)?;
        }
        let mut outcome = self.outcome;
        outcome.shards = self.dispatch.finish()?;
        self.rejects.finish()?;
        check_rejects(self.rejects.rows(), outcome.rejected)?;
        outcome
            .shards
            .sort_unstable_by_key(|shard| (shard.set.as_ref().map(|set| set.number), shard.number));
        check_fates(&outcome)?;
        note_doubts(&mut outcome, &self.variants, &self.lastmod);
        if let MaxRejects::Share(most) = self.config.max_rejects
            && self.config.max_rejects.is_exceeded(outcome.rejected, outcome.rows)
        {
            // 29% is 28.999999999999996 when it comes back from 0.29
            let percent = (most * 1e8).round() / 1e6;
            return Err(too_many(&mut outcome, format!("{percent}%"), self.rejects.first()));
        }
        Ok(outcome)
    }
}
