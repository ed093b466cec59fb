//! Elements in the order of the rows to shards: groups of languages, the sort, the sets, the packer.

use std::sync::Arc;

use crate::build::pipeline::dispatch::Dispatch;
use crate::build::pipeline::message::Input;
use crate::build::render::hreflang_groups::HreflangGroups;
use crate::build::shard::Packing;
use crate::build::shard::sort::Sorter;
use crate::build::shard::split::Splitter;
use crate::error::Result;
use crate::flow::chunk::{Chunk, Counts};
use crate::flow::outcome::{SetEntry, ShardEntry};

/// The steps that a build needs, in their order.
pub(crate) struct Assembly<'r> {
    /// inserts the alternates of groups of rows
    pub groups: Option<HreflangGroups>,
    pub sorter: Option<Sorter<'r>>,
    pub packer: SetPacker,
    pub dispatch: Dispatch<'r>,
}

/// Fills the shards of one set or of several.
pub(crate) enum SetPacker {
    One(Packing),
    Split(Splitter),
}

/// All shards and sets of a run.
pub(crate) struct Assembled {
    pub shards: Vec<ShardEntry>,
    pub sets: Vec<SetEntry>,
}

impl Assembly<'_> {
    /// Takes the elements of a chunk of `input`. `first_row` is the number of the first row of its
    /// batch, for errors; warnings are counted in `notes`.
    pub fn push(
        &mut self,
        chunk: Chunk,
        input: &Input,
        first_row: u64,
        notes: &mut Counts,
    ) -> Result<()> {
        let Some(mut groups) = self.groups.take() else { return self.sort(Arc::new(chunk)) };
        let pushed = groups.push(&chunk, first_row, &mut |done| self.grouped(done, notes));
        self.groups = Some(groups);
        pushed.map_err(|e| e.in_input(&input.name))
    }

    /// Takes the elements of complete groups.
    fn grouped(&mut self, chunk: Arc<Chunk>, notes: &mut Counts) -> Result<()> {
        for (code, count) in &chunk.notes {
            *notes.entry(code).or_default() += count;
        }
        self.sort(chunk)
    }

    fn sort(&mut self, chunk: Arc<Chunk>) -> Result<()> {
        match &mut self.sorter {
            Some(sorter) => sorter.push(chunk),
            None => self.pack(&chunk),
        }
    }

    /// Packs elements that are in order.
    fn pack(&mut self, chunk: &Arc<Chunk>) -> Result<()> {
        let emit = &mut |shard| self.dispatch.send(shard);
        match &mut self.packer {
            SetPacker::One(packing) => packing.push(chunk, emit),
            SetPacker::Split(splitter) => splitter.push(chunk, emit),
        }
    }

    /// Packs the remaining elements, and waits until all shards are written.
    pub fn finish(mut self, notes: &mut Counts) -> Result<Assembled> {
        if let Some(mut groups) = self.groups.take() {
            groups.finish(&mut |last| self.grouped(last, notes))?;
        }
        if let Some(sorter) = self.sorter.take() {
            sorter.finish(&mut |chunk| self.pack(&chunk))?;
        }
        let Assembly { packer, mut dispatch, .. } = self;
        let mut sets = Vec::new();
        match packer {
            SetPacker::Split(splitter) => {
                sets = splitter.finish(&mut |shard| dispatch.send(shard))?
            }
            SetPacker::One(packing) => {
                packing.finish().map_or(Ok(()), |last| dispatch.send(last))?;
            }
        }
        Ok(Assembled { shards: dispatch.finish()?, sets })
    }
}
