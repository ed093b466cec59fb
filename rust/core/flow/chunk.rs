//! What a renderer makes of a batch: bytes of `<url>` elements and a small record for each.

use std::collections::BTreeMap;
use std::iter::once;
use std::mem::{replace, take};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use crate::build::render::family::Member;
use crate::build::variants::Sample;
use crate::flow::room::{Charge, Room};
use crate::sitemap::date::Order;
use crate::sitemap::namespaces;

/// No lastmod, in [`Entry::newest`].
pub const NO_LASTMOD: Order = Order::MIN;

/// What later stages need to know of one `<url>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Bytes in the chunk.
    pub len: u32,
    /// Which row of the batch it came from.
    pub row: u32,
    /// Its lastmod; [`NO_LASTMOD`] if it has none.
    pub newest: Order,
    /// The extension namespaces that it uses, a bit each.
    pub namespaces: u8,
}

/// What all entries of a chunk come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum {
    /// The namespaces that any of them uses.
    pub namespaces: u8,
    /// How many are news.
    pub news: u32,
    /// The newest lastmod.
    pub newest: Order,
    /// The oldest; [`NO_LASTMOD`] if one has none.
    pub oldest: Order,
}

/// A row that becomes no URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reject {
    /// Which row of the batch.
    pub row: u32,
    /// The column, if one is to blame.
    pub column: Option<String>,
    /// Such as `loc.too_long`.
    pub code: &'static str,
    /// What is wrong and what to do.
    pub message: String,
    /// The value, cut to [`REJECT_VALUE`] bytes.
    pub value: Vec<u8>,
}

/// Bytes of a value that the reject file shows at most.
pub const REJECT_VALUE: usize = 4096;

/// Bytes of elements after which a chunk is full: the rest of its batch goes into another one. A
/// batch of usual rows stays in one chunk.
pub const FULL: usize = 2 << 20;
/// Rejects after which a chunk is full; each may hold [`REJECT_VALUE`] bytes.
const FULL_REJECTS: usize = 1_024;

/// How often something happened, by code.
pub type Counts = BTreeMap<&'static str, u64>;

/// The rendered rows of one batch.
#[derive(Default)]
pub struct Chunk {
    /// The elements, one after the other.
    pub bytes: Vec<u8>,
    /// One entry an element, in the order of the rows.
    pub entries: Vec<Entry>,
    /// What they come to, where [`Chunk::sum_up`] was called since they last changed.
    pub sum: Option<Sum>,
    /// For each entry the keyed 128-bit hash of its loc, where duplicates or borders need it.
    pub keys: Vec<u128>,
    /// For each entry what its family needs to know, where rows are members of families.
    pub members: Vec<Member>,
    /// For each entry where its value stands in `split_text`, where the set is split by values.
    pub splits: Vec<(u32, u32)>,
    /// The values that the set is split by.
    pub split_text: Vec<u8>,
    /// For each entry a hash of its loc that is the same in every run, for the stable layout.
    pub borders: Vec<u64>,
    /// Rows that became no URL.
    pub rejects: Vec<Reject>,
    /// Rows seen.
    pub rows: u64,
    /// Blank lines between the rows, which count in their numbers.
    pub blank: u64,
    /// Rows that a filter left out.
    pub filtered: u64,
    /// URLs made from rows that were asked to become several, beyond the first.
    pub expanded: u64,
    /// What was written and is worth a word, by code.
    pub notes: Counts,
    /// The locs of the sample in which those that are nearly the same are found.
    pub samples: Vec<Sample>,
    /// The same of the row at hand, which may yet be rejected.
    row_notes: Vec<&'static str>,
    /// What it counts for in memory, where that is counted; shared by all pieces of it.
    charge: OnceLock<Charge>,
    /// Where the buffers go when the chunk is dropped.
    pub pool: Option<Pool>,
}

/// Buffers for reuse: fresh memory would cost a page fault every 4 KiB.
pub type Buffers = (Vec<u8>, Vec<Entry>, Vec<u128>, Vec<u64>);

/// Buffers that wait to be used again, the last first: what was touched last is still in a cache.
#[derive(Debug, Clone, Default)]
pub struct Pool(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    buffers: Vec<Buffers>,
    bytes: usize,
}

impl Pool {
    /// Bytes that wait at most; more are freed.
    const MOST: usize = 128 << 20;

    fn take(&self) -> Buffers {
        let Ok(mut waiting) = self.0.lock() else { return Buffers::default() };
        let buffers = waiting.buffers.pop().unwrap_or_default();
        waiting.bytes = waiting.bytes.saturating_sub(capacity(&buffers));
        buffers
    }

    fn give(&self, used: Buffers) {
        let bytes = capacity(&used);
        if bytes > 0
            && let Ok(mut waiting) = self.0.lock()
            && waiting.bytes + bytes <= Self::MOST
        {
            waiting.bytes += bytes;
            waiting.buffers.push(used);
        }
    }
}

fn capacity((bytes, entries, keys, borders): &Buffers) -> usize {
    bytes.capacity()
        + entries.capacity() * size_of::<Entry>()
        + keys.capacity() * size_of::<u128>()
        + borders.capacity() * size_of::<u64>()
}

impl Chunk {
    /// An empty chunk in used buffers, which go back to `pool` in the end.
    pub fn new(pool: &Pool) -> Chunk {
        let (bytes, entries, keys, borders) = pool.take();
        let mut chunk = Chunk::default();
        (chunk.bytes, chunk.entries) = (bytes, entries);
        (chunk.keys, chunk.borders) = (keys, borders);
        chunk.bytes.clear();
        chunk.entries.clear();
        chunk.keys.clear();
        chunk.borders.clear();
        chunk.pool = Some(pool.clone());
        chunk
    }

    /// Bytes that it takes, about.
    pub fn memory(&self) -> usize {
        size_of::<Chunk>()
            + self.bytes.capacity()
            + self.entries.capacity() * size_of::<Entry>()
            + self.keys.capacity() * size_of::<u128>()
            + self.borders.capacity() * size_of::<u64>()
            + self.splits.capacity() * size_of::<(u32, u32)>()
            + self.split_text.capacity()
            + self.samples.capacity() * size_of::<Sample>()
            + self.members.capacity() * size_of::<Member>()
            + self.rejects.iter().map(|r| size_of::<Reject>() + r.value.capacity()).sum::<usize>()
    }

    /// Whether the rest of the batch belongs into another chunk.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= FULL || self.rejects.len() >= FULL_REJECTS
    }

    /// Takes out what is complete, and goes on empty; the row at hand may go on, too.
    pub fn take_full(&mut self) -> Chunk {
        let mut next = self.pool.as_ref().map_or_else(Chunk::default, Chunk::new);
        next.row_notes = take(&mut self.row_notes);
        // the next one will be full as well; grown by doubling it would take twice the memory
        next.bytes.reserve_exact(FULL + FULL / 8);
        let mut full = replace(self, next);
        full.sum_up();
        full
    }

    /// Counts its bytes in `room` until it is dropped, however often this is called.
    pub fn charge(&self, room: &Room) {
        self.charge.get_or_init(|| room.charge(self.memory()));
    }

    /// Tells the value that the entry at hand is split by; values repeat in runs.
    pub fn push_split(&mut self, value: &[u8]) {
        if let Some(&(start, end)) = self.splits.last()
            && &self.split_text[start as usize..end as usize] == value
        {
            self.splits.push((start, end));
            return;
        }
        let start = self.split_text.len() as u32;
        self.split_text.extend_from_slice(value);
        self.splits.push((start, self.split_text.len() as u32));
    }

    /// The value that an entry is split by; empty where the set is not split.
    pub fn split_of(&self, entry: usize) -> &[u8] {
        match self.splits.get(entry) {
            Some(&(start, end)) => &self.split_text[start as usize..end as usize],
            None => b"",
        }
    }

    /// Sums the entries up, where they are still in the cache of who made them: the one that packs
    /// would wait for each of them (measured: 8 ns a row).
    pub fn sum_up(&mut self) {
        let mut sum = Sum { namespaces: 0, news: 0, newest: NO_LASTMOD, oldest: Order::MAX };
        for entry in &self.entries {
            sum.namespaces |= entry.namespaces;
            sum.news += u32::from(entry.namespaces & namespaces::NEWS != 0);
            sum.newest = sum.newest.max(entry.newest);
            sum.oldest = sum.oldest.min(entry.newest);
        }
        self.sum = Some(sum);
    }

    /// Takes elements out: those with the ascending indices `gone`.
    pub fn remove(&mut self, gone: &[u32]) {
        if gone.is_empty() {
            return;
        }
        self.sum = None;
        let indices = || gone.iter().map(|&index| index as usize..index as usize + 1);
        let (mut entries, mut at) = (self.entries.iter(), 0);
        let spans: Vec<_> = indices()
            .scan(0, |seen, index| {
                let before = entries.by_ref().take(index.start - *seen);
                let start = at + before.map(|entry| entry.len as usize).sum::<usize>();
                at = start + entries.next()?.len as usize;
                *seen = index.end;
                Some(start..at)
            })
            .collect();
        cut(&mut self.bytes, spans.into_iter());
        cut(&mut self.entries, indices());
        cut(&mut self.keys, indices());
        cut(&mut self.borders, indices());
        cut(&mut self.members, indices());
        cut(&mut self.splits, indices());
    }

    /// Counts one of something, once the row at hand is written.
    pub fn note(&mut self, code: &'static str) {
        self.row_notes.push(code);
    }

    /// The row at hand was written, or it was not: then nothing of it is worth a word.
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

/// Takes ascending ranges out of a list, unless it is empty: not every list is in use.
fn cut<T: Copy>(list: &mut Vec<T>, mut gone: impl Iterator<Item = Range<usize>>) {
    let Some(first) = gone.next().filter(|_| !list.is_empty()) else { return };
    let (mut kept, mut from) = (first.start, first.end);
    let end = list.len();
    for next in gone.chain(once(end..end)) {
        list.copy_within(from..next.start, kept);
        kept += next.start - from;
        from = next.end;
    }
    list.truncate(kept);
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.give((
                take(&mut self.bytes),
                take(&mut self.entries),
                take(&mut self.keys),
                take(&mut self.borders),
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_elements_are_gone_from_every_list_in_use() {
        let mut seed = 5_u64;
        let mut random = |below: u32| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as u32 % below
        };
        for round in 0..500 {
            let mut chunk = Chunk::default();
            let mut kept = Vec::new();
            let mut gone = Vec::new();
            let often = [1, 2, 30, 1_000][round % 4];
            let all = round % 8 < 4;
            for i in 0..random(60) {
                let text = format!("<{i}{}>", "x".repeat(random(9) as usize)).into_bytes();
                let value = random(3).to_string().into_bytes();
                chunk.bytes.extend_from_slice(&text);
                let len = text.len() as u32;
                chunk.entries.push(Entry { len, row: i, newest: NO_LASTMOD, namespaces: 0 });
                if all {
                    chunk.keys.push(i.into());
                    chunk.borders.push(i.into());
                    chunk.members.push(Member::new(i.into(), 0, b"en").unwrap());
                    chunk.push_split(&value);
                }
                if random(often) == 0 {
                    gone.push(i);
                } else {
                    kept.push((i, text, value));
                }
            }
            chunk.sum_up();
            chunk.remove(&gone);
            assert_eq!(chunk.sum.is_some(), gone.is_empty(), "a sum of what is gone");
            assert_eq!(chunk.bytes, kept.iter().flat_map(|k| k.1.clone()).collect::<Vec<_>>());
            assert_eq!(chunk.entries.len(), kept.len());
            let used = if all { kept.len() } else { 0 };
            assert_eq!(chunk.keys.len(), used);
            assert_eq!((chunk.borders.len(), chunk.members.len()), (used, used));
            for (n, (i, text, value)) in kept.iter().enumerate() {
                let entry = chunk.entries[n];
                assert_eq!((entry.row, entry.len as usize), (*i, text.len()));
                if all {
                    assert_eq!(chunk.keys[n], u128::from(*i));
                    assert_eq!(
                        (chunk.borders[n], chunk.members[n].key),
                        (u64::from(*i), u128::from(*i))
                    );
                    assert_eq!(chunk.split_of(n), value);
                }
            }
        }
    }
}
