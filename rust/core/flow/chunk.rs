//! The rendered rows of a batch: bytes of `<url>` elements and a small record for each.

use std::collections::BTreeMap;
use std::iter::once;
use std::mem::{replace, take};
use std::ops::Range;
use std::sync::OnceLock;

use crate::flow::entry::{Entry, NO_LASTMOD, Totals};
use crate::flow::member::Member;
use crate::flow::memory::{Charge, MemoryUse};
use crate::flow::order::LocRange;
use crate::flow::pool::{Buffers, Pool};
use crate::flow::sample::Sample;
use crate::flow::stamps::stamp::Stamped;
use crate::sitemap::age::{AgeBounds, Ages};
use crate::sitemap::date::Order;
use crate::sitemap::namespaces;

/// A row that becomes no URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reject {
    /// The row of the batch.
    pub row: u32,
    /// The column, if the value of one column is the reason.
    pub column: Option<String>,
    /// Such as `loc.too_long`.
    pub code: &'static str,
    /// What is wrong and what to do.
    pub message: String,
    /// The value, cut to [`MAX_REJECT_VALUE`] bytes.
    pub value: Vec<u8>,
}

/// Limit of the bytes of a value in the reject file.
pub const MAX_REJECT_VALUE: usize = 4096;

/// Bytes of elements from which on a chunk is full: the rest of its batch goes into another chunk.
/// A batch of usual rows fits into one chunk.
pub const FULL_BYTES: usize = 2 << 20;
/// Rejects from which on a chunk is full; each may have [`MAX_REJECT_VALUE`] bytes.
const FULL_REJECTS: usize = 1_024;

/// The number of occurrences of each code.
pub type Counts = BTreeMap<&'static str, u64>;

/// A part of [`Chunk::split_text`].
#[derive(Debug, Clone, Copy)]
pub struct SplitSpan {
    start: u32,
    end: u32,
}

/// The rendered rows of one batch.
#[derive(Default)]
pub struct Chunk {
    /// The elements, one after the other.
    pub bytes: Vec<u8>,
    /// One entry for each element, in the order of the rows.
    pub entries: Vec<Entry>,
    /// Their totals, if [`Chunk::sum_up`] was called since they last changed.
    pub totals: Option<Totals>,
    /// For each entry the keyed 128-bit hash of its loc, if duplicates are looked for.
    pub keys: Vec<u128>,
    /// For each entry its membership in a group of languages, if rows are members of groups.
    pub members: Vec<Member>,
    /// For each entry the place of its value in `split_text`, if the build is split by values.
    pub splits: Vec<SplitSpan>,
    /// The values that the build is split by.
    pub split_text: Vec<u8>,
    /// For each entry the boundary hash of its loc, under the stable layout.
    pub boundaries: Vec<u64>,
    /// The range of the locs, if a worker has determined it.
    pub range: Option<LocRange>,
    /// For each entry its stamp, with `--lastmod-from`.
    pub stamps: Vec<Stamped>,
    /// Rows that became no URL.
    pub rejects: Vec<Reject>,
    /// Rows seen.
    pub rows: u64,
    /// Blank lines between the rows; row numbers count them.
    pub blank: u64,
    /// Rows that a filter left out.
    pub filtered: u64,
    /// URLs beyond the first of rows that become several.
    pub expanded: u64,
    /// Warnings about written URLs, by code.
    pub notes: Counts,
    /// The locs of the sample in which near-duplicates are counted.
    pub samples: Vec<Sample>,
    /// The warnings of the current row, which may yet be rejected.
    row_notes: Vec<&'static str>,
    /// Its bytes in memory, if they are counted; all pieces of the chunk share it.
    charge: OnceLock<Charge>,
    /// Where the buffers go when the chunk is dropped.
    pub pool: Option<Pool>,
}

impl Chunk {
    /// An empty chunk in used buffers, which go back to `pool` when it is dropped.
    pub fn new(pool: &Pool) -> Chunk {
        let Buffers { bytes, entries, keys, boundaries, stamps } = pool.take();
        let mut chunk = Chunk::default();
        (chunk.bytes, chunk.entries) = (bytes, entries);
        (chunk.keys, chunk.boundaries, chunk.stamps) = (keys, boundaries, stamps);
        chunk.pool = Some(pool.clone());
        chunk
    }

    /// Bytes that it takes in memory, approximately.
    pub fn memory(&self) -> usize {
        size_of::<Chunk>()
            + self.bytes.capacity()
            + self.entries.capacity() * size_of::<Entry>()
            + self.keys.capacity() * size_of::<u128>()
            + self.boundaries.capacity() * size_of::<u64>()
            + self.stamps.capacity() * size_of::<Stamped>()
            + self.splits.capacity() * size_of::<SplitSpan>()
            + self.split_text.capacity()
            + self.samples.capacity() * size_of::<Sample>()
            + self.members.capacity() * size_of::<Member>()
            + self.rejects.iter().map(|r| size_of::<Reject>() + r.value.capacity()).sum::<usize>()
    }

    /// Whether the rest of the batch belongs into another chunk.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= FULL_BYTES || self.rejects.len() >= FULL_REJECTS
    }

    /// Takes out the complete entries and leaves an empty chunk; the current row may continue in it.
    pub fn take_full(&mut self, ages: Option<&AgeBounds>) -> Chunk {
        let mut next = self.pool.as_ref().map_or_else(Chunk::default, Chunk::new);
        next.row_notes = take(&mut self.row_notes);
        // the next chunk will be full as well; growing by doubling would take twice the memory
        next.bytes.reserve_exact(FULL_BYTES + FULL_BYTES / 8);
        let mut full = replace(self, next);
        full.sum_up(ages);
        full
    }

    /// Counts its bytes in `memory` until it is dropped; only the first call counts.
    pub fn charge(&self, memory: &MemoryUse) {
        self.charge.get_or_init(|| memory.charge(self.memory()));
    }

    /// Sets the value that the next entry is split by; values repeat in runs.
    pub fn push_split(&mut self, value: &[u8]) {
        if let Some(&last) = self.splits.last()
            && self.split_value(last) == value
        {
            self.splits.push(last);
            return;
        }
        let start = self.split_text.len() as u32;
        self.split_text.extend_from_slice(value);
        self.splits.push(SplitSpan { start, end: self.split_text.len() as u32 });
    }

    /// The value that an entry is split by; empty if the build is not split.
    pub fn split_of(&self, entry: usize) -> &[u8] {
        self.splits.get(entry).map_or(b"", |&span| self.split_value(span))
    }

    fn split_value(&self, span: SplitSpan) -> &[u8] {
        &self.split_text[span.start as usize..span.end as usize]
    }

    /// Computes the totals of the entries. The thread that made them does so, while they are in its
    /// cache: the packer would wait for memory (measured: 8 ns a row). With `ages` those of the
    /// lastmods are counted.
    pub fn sum_up(&mut self, ages: Option<&AgeBounds>) {
        let mut totals = Totals {
            namespaces: 0,
            news: 0,
            newest: NO_LASTMOD,
            oldest: Order::MAX,
            ages: Ages::default(),
        };
        for entry in &self.entries {
            totals.namespaces |= entry.namespaces;
            totals.news += u32::from(entry.namespaces & namespaces::NEWS != 0);
            totals.newest = totals.newest.max(entry.newest);
            totals.oldest = totals.oldest.min(entry.newest);
        }
        if let Some(bounds) = ages {
            self.entries.iter().for_each(|entry| bounds.count(entry.newest, &mut totals.ages));
        }
        self.totals = Some(totals);
    }

    /// Removes the elements with the ascending indices `removed`.
    pub fn remove(&mut self, removed: &[u32]) {
        if removed.is_empty() {
            return;
        }
        self.totals = None;
        let indices = || removed.iter().map(|&index| index as usize..index as usize + 1);
        let (mut entries, mut end) = (self.entries.iter(), 0);
        let spans: Vec<_> = indices()
            .scan(0, |seen, index| {
                let before = entries.by_ref().take(index.start - *seen);
                let start = end + before.map(|entry| entry.len as usize).sum::<usize>();
                end = start + entries.next()?.len as usize;
                *seen = index.end;
                Some(start..end)
            })
            .collect();
        cut(&mut self.bytes, spans.into_iter());
        cut(&mut self.entries, indices());
        cut(&mut self.keys, indices());
        cut(&mut self.boundaries, indices());
        cut(&mut self.stamps, indices());
        cut(&mut self.members, indices());
        cut(&mut self.splits, indices());
    }

    /// Counts a warning about the current row, if the row is written.
    pub fn note(&mut self, code: &'static str) {
        self.row_notes.push(code);
    }

    /// Ends the current row. The warnings of a row that was not written are dropped.
    #[inline]
    pub fn end_row(&mut self, written: bool) {
        if !self.row_notes.is_empty() {
            self.count_row_notes(written);
        }
    }

    #[cold]
    fn count_row_notes(&mut self, written: bool) {
        for code in self.row_notes.drain(..).filter(|_| written) {
            *self.notes.entry(code).or_default() += 1;
        }
    }
}

/// Removes ascending ranges from a list, unless it is empty: a build fills the lists that it needs.
fn cut<T: Copy>(list: &mut Vec<T>, mut removed: impl Iterator<Item = Range<usize>>) {
    let Some(first) = removed.next().filter(|_| !list.is_empty()) else { return };
    let (mut kept, mut from) = (first.start, first.end);
    let end = list.len();
    for next in removed.chain(once(end..end)) {
        list.copy_within(from..next.start, kept);
        kept += next.start - from;
        from = next.end;
    }
    list.truncate(kept);
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.give(Buffers {
                bytes: take(&mut self.bytes),
                entries: take(&mut self.entries),
                keys: take(&mut self.keys),
                boundaries: take(&mut self.boundaries),
                stamps: take(&mut self.stamps),
            });
        }
    }
}
