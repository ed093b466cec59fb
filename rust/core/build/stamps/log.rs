//! Writes the stamps of this build: those of the URLs that it writes, in the order of the input.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::Write;
use std::mem::take;
use std::path::{Path, PathBuf};

use crate::build::stamps::syncer::Syncer;
use crate::build::stamps::{MAGIC, TRAILER};
use crate::error::{Error, ErrorCode, Result};
use crate::flow::entry::NO_LASTMOD;
use crate::flow::outcome::LastmodChanges;
use crate::flow::stamps::Stamps;
use crate::flow::stamps::bits::Bits;
use crate::flow::stamps::stamp::{NO_STAMP, STAMP_BYTES, Stamped, UNKNOWN};
use crate::flow::stamps::table::Table;

/// Bytes that are written at once.
const BLOCK: usize = 256 << 10;
/// Bytes that are brought to the disk at once.
const SYNCED: u64 = 8 << 20;
/// Limit of the stamps of a build: a position has 32 bits.
const MAX_STAMPS: u64 = NO_STAMP as u64 - 1;

/// Writes the stamps of a build.
pub struct Log<'h> {
    stamps: &'h Stamps,
    file: File,
    syncer: Syncer,
    path: PathBuf,
    hasher: blake3::Hasher,
    block: Vec<u8>,
    bytes: u64,
    /// of these when the syncer was woken
    woken: u64,
    live: u64,
    gone: u64,
    /// the stamps of the last build whose URLs were written again
    seen: Bits,
    columns: BTreeSet<u64>,
    /// by [`crate::flow::stamps::stamp::Change`]
    counts: [u64; 5],
    changes: LastmodChanges,
}

impl<'h> Log<'h> {
    /// Creates the file.
    pub fn new(stamps: &'h Stamps, path: &Path) -> Result<Log<'h>> {
        let file = File::create_new(path).map_err(|e| Error::unwritable(path, e))?;
        let count = stamps.table.as_ref().map_or(0, Table::count);
        let first = stamps.table.is_none();
        Ok(Log {
            stamps,
            syncer: Syncer::new(&file, path)?,
            file,
            path: path.to_owned(),
            hasher: blake3::Hasher::new(),
            block: Vec::with_capacity(BLOCK + STAMP_BYTES),
            bytes: 0,
            woken: 0,
            live: 0,
            gone: 0,
            seen: Bits::new(count),
            columns: BTreeSet::new(),
            counts: [0; 5],
            changes: LastmodChanges { first, ..LastmodChanges::default() },
        })
    }

    /// The rows that follow have this list of columns.
    pub fn columns(&mut self, digest: u64) {
        self.columns.insert(digest);
    }

    /// Takes the stamps of URLs that are written, in their order.
    ///
    /// # Errors
    /// A disk that is full, or a lookup that has failed.
    pub fn push(&mut self, stamps: &[Stamped]) -> Result<()> {
        if let Some(table) = &self.stamps.table {
            table.check()?;
        }
        let start = self.block.len();
        self.block.resize(start + stamps.len() * STAMP_BYTES, 0);
        let (places, _) = self.block[start..].as_chunks_mut();
        for (place, Stamped { stamp, change, old }) in places.iter_mut().zip(stamps) {
            stamp.write(place);
            self.seen.insert(*old); // nothing for NO_STAMP
            self.changes.without += u64::from(stamp.lastmod == NO_LASTMOD);
            self.counts[*change as usize] += 1;
        }
        if self.block.len() >= BLOCK {
            self.write()?;
        }
        self.live += stamps.len() as u64;
        Ok(())
    }

    /// URLs so far.
    pub fn urls(&self) -> u64 {
        self.live
    }

    fn write(&mut self) -> Result<()> {
        self.hasher.update(&self.block);
        self.bytes += self.block.len() as u64;
        let written = self.file.write_all(&self.block);
        self.block.clear();
        if self.bytes >= self.woken + SYNCED {
            self.woken = self.bytes;
            self.syncer.wake();
        }
        written.map_err(|e| Error::unwritable(&self.path, e))
    }

    /// Adds the stamps of URLs that are gone, and ends the file, which is on the disk when the syncer
    /// has finished.
    pub fn finish(mut self) -> Result<(LastmodChanges, Syncer)> {
        if let Some(table) = &self.stamps.table {
            table.check()?;
            self.keep_gone(table)?;
        }
        if self.live + self.gone > MAX_STAMPS {
            let message = "lastmod_from: more than 4 billion URLs; split the set (--name)";
            return Err(ErrorCode::ConfigLimit.error(message));
        }
        for list in take(&mut self.columns) {
            self.block.extend_from_slice(&list.to_le_bytes());
            self.changes.lists += 1;
        }
        let mut trailer = Vec::with_capacity(TRAILER);
        trailer.extend_from_slice(&MAGIC);
        for count in [self.live as u32, self.gone as u32, self.changes.lists] {
            trailer.extend_from_slice(&count.to_le_bytes());
        }
        let (low, high) = self.stamps.key.parts();
        trailer.extend_from_slice(&low.to_le_bytes());
        trailer.extend_from_slice(&high.to_le_bytes());
        self.block.append(&mut trailer);
        self.write()?;
        let [kept, changed, clock_behind, adopted, added] = self.counts;
        let changed = changed + clock_behind;
        self.changes =
            LastmodChanges { kept, changed, clock_behind, adopted, added, ..self.changes };
        self.changes.bytes = self.bytes;
        self.changes.digest = self.hasher.finalize().to_hex()[..32].to_owned();
        let old = self.stamps.table.as_ref();
        // the same stamps again are not kept
        if old.is_none_or(|table| table.digest != self.changes.digest) {
            self.syncer.wake();
        }
        Ok((self.changes, self.syncer))
    }

    /// Writes the stamps of URLs that are gone, unless they are to be forgotten. A stamp whose URL
    /// was written with another content is not gone.
    fn keep_gone(&mut self, table: &Table) -> Result<()> {
        let mut written: HashMap<u64, bool> = HashMap::new();
        let seen = take(&mut self.seen);
        let is_comparable = table.columns.iter().all(|list| self.columns.contains(list));
        for position in seen.missing(table.count()) {
            let mut stamp = table.stamp(position)?;
            if table.several.contains(position) {
                let is_written = match written.get(&stamp.key) {
                    Some(known) => *known,
                    None => {
                        let mut any = false;
                        for at in table.all(stamp.key)? {
                            any |= seen.contains(at?);
                        }
                        *written.entry(stamp.key).or_insert(any)
                    }
                };
                if is_written {
                    continue;
                }
            }
            let since = table.gone_since(position)?.unwrap_or(self.stamps.seconds);
            if self.stamps.seconds.saturating_sub(since) >= self.stamps.forget {
                self.changes.forgotten += 1;
                continue;
            }
            self.gone += 1;
            if !is_comparable {
                stamp.content = UNKNOWN;
            }
            let mut bytes = [0; STAMP_BYTES];
            stamp.write(&mut bytes);
            self.block.extend_from_slice(&bytes);
            self.block.extend_from_slice(&since.to_le_bytes());
            if self.block.len() >= BLOCK {
                self.write()?;
            }
        }
        self.changes.gone = self.gone;
        Ok(())
    }
}
