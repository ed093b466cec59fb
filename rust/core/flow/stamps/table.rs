//! The stamps of the last build, and lookups in them.

use std::fs::File;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, ErrorCode, Result, plain};
use crate::file::read_exact_at;
use crate::flow::spill::Segment;
use crate::flow::stamps::bits::Bits;
use crate::flow::stamps::stamp::{GONE_BYTES, HASH_BITS, STAMP_BYTES, Stamp};

/// Bytes of an entry of the index: a position, and eight bits of the key, [`mark`].
pub const ENTRY_BYTES: usize = 5;
/// Entries of a bucket of the index that are read at once; usual buckets have 4 to 8.
const BUCKET: usize = 64;
/// Stamps of a URL that are compared where its content changed.
const MAX_SEVERAL: usize = 64;
/// Lookups in the index on disk, besides one of 16 stamps, after which everything is read into
/// memory: the order is another one.
const PATIENCE: u64 = if cfg!(test) { 64 } else { 4_096 };

/// The stamps of the last build in a file, and their index.
pub struct Table {
    /// The file of the stamps.
    pub file: File,
    /// Its name in messages.
    pub name: String,
    /// The digest of its bytes.
    pub digest: String,
    /// Stamps of URLs that were written; their positions are the first ones.
    pub live: u32,
    /// Stamps of URLs that were gone.
    pub gone: u32,
    /// Digests of the lists of columns that its inputs had.
    pub columns: Vec<u64>,
    /// An entry for each stamp, sorted by key, then by content and lastmod.
    pub index: Option<Segment>,
    /// For each value of the first bits of a key the place in the index where its stamps begin.
    pub starts: Vec<u32>,
    /// A bit for each stamp: another stamp has the same key.
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
    stamps: Vec<u8>,
    index: Vec<u8>,
}

impl Table {
    /// The number of stamps.
    pub fn count(&self) -> u32 {
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

    /// Where the stamp at a position begins.
    pub fn offset(&self, position: u32) -> u64 {
        let gone = u64::from(position.saturating_sub(self.live));
        u64::from(position.min(self.live)) * STAMP_BYTES as u64 + gone * GONE_BYTES as u64
    }

    /// Reads bytes of the stamps.
    pub(super) fn read(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        if let Some(Some(memory)) = self.memory.get() {
            let from = offset as usize;
            let part = memory.stamps.get(from..from + bytes.len());
            bytes.copy_from_slice(part.ok_or_else(|| self.damaged("is too short"))?);
            return Ok(());
        }
        read_exact_at(&self.file, bytes, offset).map_err(|error| self.damaged(&plain(&error)))
    }

    /// The stamp at a position.
    pub fn stamp(&self, position: u32) -> Result<Stamp> {
        let mut bytes = [0; STAMP_BYTES];
        self.read(&mut bytes, self.offset(position))?;
        Ok(Stamp::from_bytes(&bytes))
    }

    /// When the URL of a stamp was first missing; `None` if it was written in the last build.
    pub fn gone_since(&self, position: u32) -> Result<Option<i64>> {
        if position < self.live {
            return Ok(None);
        }
        let mut bytes = [0; 8];
        self.read(&mut bytes, self.offset(position) + STAMP_BYTES as u64)?;
        Ok(Some(i64::from_le_bytes(bytes)))
    }

    /// Entries of the index, from the place `from` on.
    fn entries(&self, from: usize, entries: &mut [u8]) -> Result<()> {
        if let Some(Some(memory)) = self.memory.get() {
            let at = from * ENTRY_BYTES;
            let part = memory.index.get(at..at + entries.len());
            entries.copy_from_slice(part.ok_or_else(|| self.damaged("has no index"))?);
            return Ok(());
        }
        match &self.index {
            Some(index) => index.read_at(from * ENTRY_BYTES, entries),
            None => Err(self.damaged("has no index")),
        }
    }

    fn position(&self, place: usize) -> Result<u32> {
        let mut bytes = [0; 4];
        self.entries(place, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// The first place in the index, from `low` to `high`, whose stamp does not come before.
    fn first(
        &self,
        (mut low, mut high): (usize, usize),
        is_before: impl Fn(&Stamp) -> bool,
    ) -> Result<usize> {
        while low < high {
            let middle = low + (high - low) / 2;
            let stamp = self.stamp(self.position(middle)?)?;
            if is_before(&stamp) { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }

    /// The places in the index that may have the stamps of a key. Mostly there is one, or none if
    /// the key has no stamp.
    fn places(&self, key: u64) -> Result<(usize, usize)> {
        let bits = (self.starts.len().max(2) - 1).ilog2();
        let bucket = (key >> (HASH_BITS - bits)) as usize;
        let place = |at: usize| self.starts.get(at).copied().unwrap_or(0) as usize;
        let (low, high) = (place(bucket), place(bucket + 1));
        let count = high.saturating_sub(low);
        if count == 0 || count > BUCKET {
            return Ok((low, high));
        }
        let mut read = [0; BUCKET * ENTRY_BYTES];
        let read = &mut read[..count * ENTRY_BYTES];
        self.entries(low, read)?;
        let (entries, _) = read.as_chunks::<ENTRY_BYTES>();
        let mark = mark(key, bits);
        let before = entries.iter().take_while(|entry| entry[4] < mark).count();
        let equal = entries[before..].iter().take_while(|entry| entry[4] == mark).count();
        Ok((low + before, low + before + equal))
    }

    /// The positions of all stamps of a key.
    pub fn all(&self, key: u64) -> Result<impl Iterator<Item = Result<u32>>> {
        let (low, high) = self.places(key)?;
        let from = self.first((low, high), |stamp| stamp.key < key)?;
        let to = self.first((from, high), |stamp| stamp.key <= key)?;
        Ok((from..to).map(|place| self.position(place)))
    }

    /// The stamp of a URL with this content or, without one, any other stamp of the URL.
    pub(super) fn find(&self, key: u64, content: u64) -> Result<Option<(u32, Stamp)>> {
        if self.memory.get().is_none() {
            let lookups = self.lookups.fetch_add(1, Ordering::Relaxed);
            if lookups > u64::from(self.count()) / 16 + PATIENCE {
                // the others wait: with the disk they would be slower
                self.memory.get_or_init(|| self.load());
            }
        }
        let (low, high) = self.places(key)?;
        let is_before = |stamp: &Stamp| (stamp.key, stamp.content) <= (key, content);
        let after = self.first((low, high), is_before)?;
        let at = |place: usize| -> Result<Option<(u32, Stamp)>> {
            let position = self.position(place)?;
            let stamp = self.stamp(position)?;
            Ok((stamp.key == key).then_some((position, stamp)))
        };
        let same = if after > low { at(after - 1)? } else { None };
        if let Some((_, stamp)) = &same
            && stamp.content == content
        {
            return Ok(same);
        }
        let next = if after < high { at(after)? } else { None };
        let Some((position, mut stamp)) = same.or(next) else { return Ok(None) };
        if self.several.contains(position) {
            // lastmod never decreases
            for other in self.all(key)?.take(MAX_SEVERAL) {
                stamp.lastmod = stamp.lastmod.max(self.stamp(other?)?.lastmod);
            }
        }
        Ok(Some((position, stamp)))
    }

    /// Reads everything; `None` if that fails, and the disk is used on.
    fn load(&self) -> Option<Memory> {
        let mut stamps = vec![0; self.offset(self.count()) as usize];
        read_exact_at(&self.file, &mut stamps, 0).ok()?;
        let index = self.index.as_ref()?.read().ok()?;
        Some(Memory { stamps, index })
    }
}

/// The bits of a key behind those that choose its bucket.
#[inline]
pub fn mark(key: u64, bits: u32) -> u8 {
    (key >> (HASH_BITS - bits - 8)) as u8
}

/// The error for a file of stamps that cannot be used.
pub fn damaged(name: &str, why: &str) -> Error {
    ErrorCode::LastmodDamaged.error(format!(
        "{name}: {why}: it contains the time of the last change of each URL; restore it from a copy, \
         or begin again without these times (--lastmod-restart)"
    ))
}

/// Whether an error of the file is the reason for `error`.
pub fn unreadable(name: &str, error: &io::Error) -> Error {
    damaged(name, &plain(error))
}
