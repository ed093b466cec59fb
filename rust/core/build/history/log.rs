//! Writes the records of this build: those of the URLs that it writes, in the order of the input.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::Write;
use std::mem::take;
use std::path::{Path, PathBuf};

use crate::build::history::{MAGIC, TRAILER};
use crate::error::{Error, ErrorCode, Result};
use crate::flow::entry::NO_LASTMOD;
use crate::flow::history::{
    Bits, Change, History, NO_RECORD, RECORD, Record, Stamp, Table, UNKNOWN,
};
use crate::flow::outcome::LastmodChanges;

/// Bytes that are written at once.
const BLOCK: usize = 256 << 10;
/// Limit of the records of a build: a position has 32 bits.
const MAX_RECORDS: u64 = NO_RECORD as u64 - 1;

/// Writes the records of a build.
pub struct Log<'h> {
    history: &'h History,
    file: File,
    path: PathBuf,
    hasher: blake3::Hasher,
    block: Vec<u8>,
    bytes: u64,
    live: u64,
    gone: u64,
    /// the records of the last build whose URLs were written again
    seen: Bits,
    columns: BTreeSet<u64>,
    changes: LastmodChanges,
}

impl<'h> Log<'h> {
    /// Creates the file.
    pub fn new(history: &'h History, path: &Path) -> Result<Log<'h>> {
        let file = File::create_new(path).map_err(|e| Error::unwritable(path, e))?;
        let records = history.table.as_ref().map_or(0, Table::records);
        let first = history.table.is_none();
        Ok(Log {
            history,
            file,
            path: path.to_owned(),
            hasher: blake3::Hasher::new(),
            block: Vec::with_capacity(BLOCK + RECORD),
            bytes: 0,
            live: 0,
            gone: 0,
            seen: Bits::new(records),
            columns: BTreeSet::new(),
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
    pub fn push(&mut self, stamps: &[Stamp]) -> Result<()> {
        if let Some(table) = &self.history.table {
            table.check()?;
        }
        for stamp in stamps {
            self.block.extend_from_slice(&stamp.record);
            if self.block.len() >= BLOCK {
                self.write()?;
            }
            self.seen.insert(stamp.old); // nothing for NO_RECORD
            match stamp.change {
                Change::Kept => self.changes.kept += 1,
                Change::Changed => self.changes.changed += 1,
                Change::ClockBehind => {
                    self.changes.changed += 1;
                    self.changes.clock_behind += 1;
                }
                Change::Adopted => self.changes.adopted += 1,
                Change::Added => self.changes.added += 1,
            }
            self.changes.without +=
                u64::from(Record::from_bytes(&stamp.record).lastmod == NO_LASTMOD);
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
        written.map_err(|e| Error::unwritable(&self.path, e))
    }

    /// Adds the records of URLs that are gone, and ends the file.
    pub fn finish(mut self) -> Result<LastmodChanges> {
        if let Some(table) = &self.history.table {
            table.check()?;
            self.keep_gone(table)?;
        }
        if self.live + self.gone > MAX_RECORDS {
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
        let (low, high) = self.history.key.parts();
        trailer.extend_from_slice(&low.to_le_bytes());
        trailer.extend_from_slice(&high.to_le_bytes());
        self.block.append(&mut trailer);
        self.write()?;
        self.changes.bytes = self.bytes;
        self.changes.digest = self.hasher.finalize().to_hex()[..32].to_owned();
        let old = self.history.table.as_ref();
        // the same records again are not kept
        if old.is_none_or(|table| table.digest != self.changes.digest) {
            self.file.sync_data().map_err(|e| Error::unwritable(&self.path, e))?;
        }
        Ok(self.changes)
    }

    /// Writes the records of URLs that are gone, unless they are to be forgotten. A record whose URL
    /// was written with another content is not gone.
    fn keep_gone(&mut self, table: &Table) -> Result<()> {
        let mut written: HashMap<u64, bool> = HashMap::new();
        let seen = take(&mut self.seen);
        let is_comparable = table.columns.iter().all(|list| self.columns.contains(list));
        for position in seen.missing(table.records()) {
            let mut record = table.record(position)?;
            if table.several.contains(position) {
                let is_written = match written.get(&record.key) {
                    Some(known) => *known,
                    None => {
                        let any = table.all(record.key)?.into_iter().any(|p| seen.contains(p));
                        *written.entry(record.key).or_insert(any)
                    }
                };
                if is_written {
                    continue;
                }
            }
            let since = table.gone_since(position)?.unwrap_or(self.history.seconds);
            if self.history.seconds.saturating_sub(since) >= self.history.forget {
                self.changes.forgotten += 1;
                continue;
            }
            self.gone += 1;
            if !is_comparable {
                record.content = UNKNOWN;
            }
            self.block.extend_from_slice(&record.to_bytes());
            self.block.extend_from_slice(&since.to_le_bytes());
            if self.block.len() >= BLOCK {
                self.write()?;
            }
        }
        self.changes.gone = self.gone;
        Ok(())
    }
}
