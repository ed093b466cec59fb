//! What the last build recorded of each URL, for `--lastmod-from`: a hash of its loc, a hash of its
//! content, and the lastmod that it was given.
//!
//! The records are a file in the order of the input of the last build (`build/history`). A worker
//! looks up the first URL of a batch in the index, then reads on: where tonight's order is last
//! night's, the next record is that of the next row. If the next few are not, the index decides.
//!
//! # For maintainers
//!
//! **What must stay true.** The outcome of a lookup depends on the records alone, not on the position
//! of the cursor, on batches or threads: the same rows must give the same bytes. So a URL with several
//! records ([`Table::several`]) is always looked up in the index, and the last of the records that are
//! in question decides; the index sorts them by content, then by lastmod.
//!
//! **Hashes.** 48 bits each, with a secret key. Two of 10 million URLs share a hash with a probability
//! of 0.2; they are then treated as one URL with two rows, which is harmless. A change is missed
//! with a probability of 2⁻⁴⁸.
//!
//! **Trust.** The digest of the file was checked, and nothing here panics whatever it contains: a
//! position beyond the file or a lastmod that is no date is an error of the run.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, ErrorCode, Result, plain};
use crate::flow::entry::NO_LASTMOD;
use crate::flow::hash::HashKey;
use crate::flow::spill::Segment;
use crate::sitemap::date::Order;

/// Bytes of the record of a URL.
pub const RECORD: usize = 18;
/// Bytes of the record of a URL that is gone: that of a URL, and when it was first missing, in
/// seconds since 1970.
pub const GONE_RECORD: usize = RECORD + 8;
/// Bits of a hash.
pub const HASH_BITS: u32 = 48;
const HASH_MASK: u64 = (1 << HASH_BITS) - 1;
/// Records that are compared with a row before the index is asked: as many adjacent rows may have
/// been deleted. Comparing one takes 1 ns, the index 3 µs.
const AHEAD: u32 = 8;
/// Records that a cursor reads at once: at first, and where it reads on.
const WINDOW: (u32, u32) = (64, 4_096);
/// Records of a bucket of the index that are read at once; usual buckets have 4 to 8.
const BUCKET: usize = 64;
/// Lookups in the index on disk, besides one of 16 records, after which all records are read into
/// memory: the order is another one.
const PATIENCE: u64 = if cfg!(test) { 64 } else { 4_096 };
/// The content of a record that cannot be compared.
pub const UNKNOWN: u64 = 0;
/// No record, in [`Stamp::old`].
pub const NO_RECORD: u32 = u32::MAX;

/// The record of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The hash of its loc.
    pub key: u64,
    /// The hash of its content.
    pub content: u64,
    /// The lastmod that it was given, or [`NO_LASTMOD`].
    pub lastmod: Order,
}

impl Record {
    /// As the file has it.
    #[inline]
    pub fn to_bytes(self) -> [u8; RECORD] {
        let lastmod = if self.lastmod == NO_LASTMOD { 0 } else { self.lastmod as u64 };
        let mut bytes = [0; RECORD];
        // in whole words, each of which replaces the end of the one before
        bytes[..8].copy_from_slice(&self.key.to_le_bytes());
        bytes[6..14].copy_from_slice(&self.content.to_le_bytes());
        let end = self.content >> 32 & 0xffff | lastmod << 16;
        bytes[10..].copy_from_slice(&end.to_le_bytes());
        bytes
    }

    /// The hash of the loc in the bytes of a record.
    #[inline]
    pub fn key_of(bytes: &[u8; RECORD]) -> u64 {
        word(bytes, 0) & HASH_MASK
    }

    /// From the bytes of a file.
    #[inline]
    pub fn from_bytes(bytes: &[u8; RECORD]) -> Record {
        let lastmod = match word(bytes, 10) >> 16 {
            0 => NO_LASTMOD,
            order => order as Order,
        };
        let content = word(bytes, 6) & HASH_MASK;
        Record { key: Record::key_of(bytes), content, lastmod }
    }
}

/// Eight bytes at once: a copy of six would be read back before it is complete, which stalls.
#[inline]
fn word(bytes: &[u8; RECORD], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

/// What happened to a URL since the last build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Its content is the same.
    Kept,
    /// Its content is another one.
    Changed,
    /// Its content is another one, but its lastmod is later than now.
    ClockBehind,
    /// Its content cannot be compared, since the columns are others.
    Adopted,
    /// There is no record of it.
    Added,
}

/// The record that a URL gets if it is written.
#[derive(Debug, Clone, Copy)]
pub struct Stamp {
    /// The record as the file has it.
    pub record: [u8; RECORD],
    /// What happened.
    pub change: Change,
    /// A record of the same URL in the last build, or [`NO_RECORD`].
    pub old: u32,
}

/// The records of the last build, and the rules for those of this one.
pub struct History {
    /// The key of the hashes, which all builds of a set share.
    pub key: HashKey,
    /// The lastmod of what changes: the start of the build.
    pub now: Order,
    /// The same in seconds since 1970.
    pub seconds: i64,
    /// Seconds after which URLs that are gone are forgotten.
    pub forget: i64,
    /// The records of the last build; `None` in a first build.
    pub table: Option<Table>,
}

impl History {
    /// The hash of a loc, as a record has it.
    #[inline]
    pub fn hash(&self, loc: &[u8]) -> u64 {
        History::part(self.key.hash128(loc))
    }

    /// What a record has of the hash of a loc.
    #[inline]
    pub fn part(hash: u128) -> u64 {
        (hash >> (128 - HASH_BITS)) as u64
    }
}

/// The records of the last build in a file, and their index.
pub struct Table {
    /// The file of the records.
    pub file: File,
    /// Its name in messages.
    pub name: String,
    /// The digest of its bytes.
    pub digest: String,
    /// Records of URLs that were written; their positions are the first ones.
    pub live: u32,
    /// Records of URLs that were gone.
    pub gone: u32,
    /// Digests of the lists of columns that its inputs had.
    pub columns: Vec<u64>,
    /// The positions of all records, sorted by their key, in 4 bytes each.
    pub index: Option<Segment>,
    /// For each value of the first bits of a key the place in the index where its records begin.
    pub starts: Vec<u32>,
    /// A bit for each record: another record has the same key.
    pub several: Bits,
    /// Everything in memory, once the order turns out to be another one.
    pub memory: OnceLock<Option<Memory>>,
    /// Lookups in the index on disk.
    pub lookups: AtomicU64,
    /// The first error of a lookup.
    pub failed: OnceLock<Error>,
}

/// The file and the index in memory.
pub struct Memory {
    records: Vec<u8>,
    index: Vec<u8>,
}

/// A set of small numbers.
#[derive(Debug, Default, Clone)]
pub struct Bits(Vec<u64>);

impl Bits {
    /// For numbers below `count`.
    pub fn new(count: u32) -> Bits {
        Bits(vec![0; (count as usize).div_ceil(64)])
    }

    /// Whether it contains a number.
    #[inline]
    pub fn contains(&self, number: u32) -> bool {
        self.0.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Adds a number; beyond the count it does nothing.
    #[inline]
    pub fn insert(&mut self, number: u32) {
        if let Some(word) = self.0.get_mut(number as usize / 64) {
            *word |= 1 << (number % 64);
        }
    }

    /// The numbers below `count` that it does not contain.
    pub fn missing(&self, count: u32) -> impl Iterator<Item = u32> {
        let words = self.0.iter().enumerate().filter(|(_, word)| **word != u64::MAX);
        words
            .flat_map(|(at, word)| {
                (0..64).filter(move |bit| word >> bit & 1 == 0).map(move |bit| at as u32 * 64 + bit)
            })
            .filter(move |&number| number < count)
    }
}

impl Table {
    /// The number of records.
    pub fn records(&self) -> u32 {
        self.live + self.gone
    }

    /// The error of a lookup, if one has failed.
    pub fn check(&self) -> Result<()> {
        self.failed.get().map_or(Ok(()), |error| Err(error.repeated()))
    }

    /// The error for a file that cannot be read, or whose content is wrong.
    pub fn damaged(&self, why: &str) -> Error {
        damaged(&self.name, why)
    }

    fn offset(&self, position: u32) -> u64 {
        let gone = u64::from(position.saturating_sub(self.live));
        u64::from(position.min(self.live)) * RECORD as u64 + gone * GONE_RECORD as u64
    }

    /// Reads bytes of the records.
    fn read(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        if let Some(Some(memory)) = self.memory.get() {
            let from = offset as usize;
            let part = memory.records.get(from..from + bytes.len());
            bytes.copy_from_slice(part.ok_or_else(|| self.damaged("is too short"))?);
            return Ok(());
        }
        self.file.read_exact_at(bytes, offset).map_err(|error| self.damaged(&plain(&error)))
    }

    /// The record at a position.
    pub fn record(&self, position: u32) -> Result<Record> {
        let mut bytes = [0; RECORD];
        self.read(&mut bytes, self.offset(position))?;
        Ok(Record::from_bytes(&bytes))
    }

    /// When the URL of a record was first missing; `None` if it was written in the last build.
    pub fn gone_since(&self, position: u32) -> Result<Option<i64>> {
        if position < self.live {
            return Ok(None);
        }
        let mut bytes = [0; 8];
        self.read(&mut bytes, self.offset(position) + RECORD as u64)?;
        Ok(Some(i64::from_le_bytes(bytes)))
    }

    /// Positions in the index, from the place `from` on.
    fn positions(&self, from: usize, positions: &mut [u8]) -> Result<()> {
        if let Some(Some(memory)) = self.memory.get() {
            let part = memory.index.get(from * 4..from * 4 + positions.len());
            positions.copy_from_slice(part.ok_or_else(|| self.damaged("has no index"))?);
            return Ok(());
        }
        match &self.index {
            Some(index) => index.read_at(from * 4, positions),
            None => Err(self.damaged("has no index")),
        }
    }

    fn position(&self, place: usize) -> Result<u32> {
        let mut bytes = [0; 4];
        self.positions(place, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// The first place in the index, from `low` to `high`, whose record does not come before.
    fn first(
        &self,
        (mut low, mut high): (usize, usize),
        is_before: impl Fn(&Record) -> bool,
    ) -> Result<usize> {
        let mut bucket = [0; BUCKET * 4];
        let start = low;
        let read = high.saturating_sub(low) <= BUCKET;
        if read && high > low {
            self.positions(low, &mut bucket[..(high - low) * 4])?;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            let position = match bucket[(middle - start).min(BUCKET - 1) * 4..].first_chunk() {
                Some(&bytes) if read => u32::from_le_bytes(bytes),
                _ => self.position(middle)?,
            };
            if is_before(&self.record(position)?) { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }

    /// The places in the index that may have the records of a key.
    fn bucket(&self, key: u64) -> (usize, usize) {
        let bits = (self.starts.len().max(2) - 1).ilog2();
        let bucket = (key >> (HASH_BITS - bits)) as usize;
        let place = |at: usize| self.starts.get(at).copied().unwrap_or(0) as usize;
        (place(bucket), place(bucket + 1))
    }

    /// The positions of all records of a key.
    pub fn all(&self, key: u64) -> Result<Vec<u32>> {
        let (low, high) = self.bucket(key);
        let from = self.first((low, high), |record| record.key < key)?;
        let to = self.first((from, high), |record| record.key <= key)?;
        (from..to).map(|place| self.position(place)).collect()
    }

    /// The record of a URL with this content or, without one, any other record of the URL.
    fn find(&self, key: u64, content: u64) -> Result<Option<(u32, Record)>> {
        if self.memory.get().is_none() {
            let lookups = self.lookups.fetch_add(1, Ordering::Relaxed);
            if lookups > u64::from(self.records()) / 16 + PATIENCE {
                // the others wait: with the disk they would be slower
                self.memory.get_or_init(|| self.load());
            }
        }
        let (low, high) = self.bucket(key);
        let is_before = |record: &Record| (record.key, record.content) <= (key, content);
        let after = self.first((low, high), is_before)?;
        let at = |place: usize| -> Result<Option<(u32, Record)>> {
            let position = self.position(place)?;
            let record = self.record(position)?;
            Ok((record.key == key).then_some((position, record)))
        };
        let same = if after > low { at(after - 1)? } else { None };
        if let Some((_, record)) = &same
            && record.content == content
        {
            return Ok(same);
        }
        let next = if after < high { at(after)? } else { None };
        let Some((position, mut record)) = same.or(next) else { return Ok(None) };
        if self.several.contains(position) {
            // lastmod never decreases
            for other in self.all(key)?.into_iter().take(BUCKET) {
                record.lastmod = record.lastmod.max(self.record(other)?.lastmod);
            }
        }
        Ok(Some((position, record)))
    }

    /// Reads everything; `None` if that fails, and the disk is used on.
    fn load(&self) -> Option<Memory> {
        let mut records = vec![0; self.offset(self.records()) as usize];
        self.file.read_exact_at(&mut records, 0).ok()?;
        let index = self.index.as_ref()?.read().ok()?;
        Some(Memory { records, index })
    }
}

/// The error for a file of records that cannot be used.
pub fn damaged(name: &str, why: &str) -> Error {
    ErrorCode::LastmodDamaged.error(format!(
        "{name}: {why}: it contains the time of the last change of each URL; restore it from a copy, \
         or begin again without these times (--lastmod-restart)"
    ))
}

/// What a lookup returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// What happened to the URL; never [`Change::ClockBehind`].
    pub change: Change,
    /// The lastmod that it had.
    pub lastmod: Order,
    /// A record of the URL, or [`NO_RECORD`].
    pub old: u32,
}

/// Finds the records of URLs that are mostly in the order of the records.
pub struct Cursor<'h> {
    history: &'h History,
    /// the position after that of the last URL; none before the first
    next: Option<u32>,
    window: Vec<u8>,
    /// the position of the first record of the window
    first: u32,
}

impl<'h> Cursor<'h> {
    /// For rows that are adjacent in the input.
    pub fn new(history: &'h History) -> Cursor<'h> {
        Cursor { history, next: None, window: Vec::new(), first: 0 }
    }

    /// Looks up a URL.
    #[inline]
    pub fn find(&mut self, key: u64, content: u64) -> Found {
        let added = Found { change: Change::Added, lastmod: NO_LASTMOD, old: NO_RECORD };
        let Some(table) = &self.history.table else { return added };
        let found = match self.ahead(table, key) {
            Ok(Some((position, record))) if !table.several.contains(position) => {
                Ok(Some((position, record)))
            }
            Ok(_) => self.ask(table, key, content),
            Err(error) => Err(error),
        };
        match found {
            Ok(Some((old, record))) => {
                let change = match record.content {
                    UNKNOWN => Change::Adopted,
                    same if same == content => Change::Kept,
                    _ => Change::Changed,
                };
                Found { change, lastmod: record.lastmod, old }
            }
            Ok(None) => added,
            Err(error) => {
                // the collector ends the run
                let _ = table.failed.set(error);
                added
            }
        }
    }

    /// The record of a key, if it is one of the next.
    #[inline]
    fn ahead(&mut self, table: &Table, key: u64) -> Result<Option<(u32, Record)>> {
        let Some(next) = self.next else { return Ok(None) };
        for position in next..next.saturating_add(AHEAD).min(table.live) {
            let mut at = (position.wrapping_sub(self.first)) as usize * RECORD;
            if position < self.first || at + RECORD > self.window.len() {
                self.fill(table, position)?;
                at = 0;
            }
            let Some(bytes) = self.window[at..].first_chunk() else { break };
            if Record::key_of(bytes) == key {
                self.next = Some(position + 1);
                return Ok(Some((position, Record::from_bytes(bytes))));
            }
        }
        Ok(None)
    }

    /// Reads the records from a position on: more if they follow the last ones.
    #[cold]
    fn fill(&mut self, table: &Table, position: u32) -> Result<()> {
        let (few, many) = WINDOW;
        let last = (self.window.len() / RECORD) as u32;
        let follows = last > 0 && position == self.first.saturating_add(last);
        let count = if follows { (last * 4).min(many) } else { few };
        let count = count.min(table.live.saturating_sub(position));
        self.window.resize(count as usize * RECORD, 0);
        self.first = position;
        table.read(&mut self.window, table.offset(position))
    }

    #[cold]
    fn ask(&mut self, table: &Table, key: u64, content: u64) -> Result<Option<(u32, Record)>> {
        let Some((position, record)) = table.find(key, content)? else { return Ok(None) };
        if let Some(since) = table.gone_since(position)? {
            let History { seconds, forget, .. } = self.history;
            return Ok((seconds.saturating_sub(since) < *forget).then_some((position, record)));
        }
        self.next = Some(position + 1);
        Ok(Some((position, record)))
    }
}

/// Whether an error of the file is the reason for `error`.
pub fn unreadable(name: &str, error: &io::Error) -> Error {
    damaged(name, &plain(error))
}
