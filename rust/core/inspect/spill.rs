//! Records grouped by a hash in bounded memory: in 256 partitions, and in one temporary
//! file where they are more than the memory allows.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use siphasher::sip128::SipHasher13;

use crate::error::{Error, Result};
use crate::inspect::workers::Workers;

/// Into how many partitions records are cast.
pub const PARTITIONS: usize = 256;

/// A record: two words of hash, then what belongs to it.
pub type Record<const W: usize> = [u64; W];

/// A keyed 128-bit hash: no one who does not know the key can make two URLs collide.
#[derive(Clone)]
pub struct Hasher(SipHasher13);

impl Default for Hasher {
    fn default() -> Self {
        Hasher::new()
    }
}

impl Hasher {
    /// With a key of the operating system's randomness.
    pub fn new() -> Hasher {
        use std::hash::BuildHasher;
        let word = || std::collections::hash_map::RandomState::new().hash_one(0u8);
        Hasher(SipHasher13::new_with_keys(word(), word()))
    }

    /// With a key that never changes: for partitions alone, never for telling URLs apart.
    pub fn fixed() -> Hasher {
        Hasher(SipHasher13::new_with_keys(0x75726c, 0x736574))
    }

    /// The two words of the hash of `bytes`.
    #[inline]
    pub fn hash(&self, bytes: &[u8]) -> (u64, u64) {
        self.0.hash(bytes).as_u64()
    }
}

/// Records that were not spilled, by partition.
pub type Parts = Vec<Vec<u8>>;

/// Where the records that memory has no room for go.
pub struct Spill {
    /// bytes a writer may hold
    each: usize,
    folder: PathBuf,
    file: Mutex<Option<(File, u64)>>,
    /// (partition, offset, bytes); each is of whole records
    chunks: Mutex<Vec<(usize, u64, usize)>>,
}

/// One thread's records.
pub struct Writer<'s> {
    spill: &'s Spill,
    parts: Parts,
    held: usize,
}

impl Spill {
    /// For `writers` threads with `memory` bytes in all; temporary files go to `folder`.
    pub fn new(memory: usize, writers: usize, folder: Option<PathBuf>) -> Spill {
        Spill {
            // vectors grow by doubling, and sorting a partition needs it once more
            each: (memory / writers.max(1) / 3).max(64 << 10),
            folder: folder.unwrap_or_else(std::env::temp_dir),
            file: Mutex::new(None),
            chunks: Mutex::new(Vec::new()),
        }
    }

    /// A writer for one thread.
    pub fn writer(&self) -> Writer<'_> {
        Writer { spill: self, parts: vec![Vec::new(); PARTITIONS], held: 0 }
    }

    /// Whether anything went to disk.
    pub fn has_spilled(&self) -> bool {
        self.chunks.lock().is_ok_and(|chunks| !chunks.is_empty())
    }

    /// In how many passes a partition is to be taken so that a pass fits into the memory.
    pub fn passes(&self, part: usize, writers: &[Parts]) -> u64 {
        let held: usize = writers.iter().map(|parts| parts[part].len()).sum();
        let spilled: usize = match self.chunks.lock() {
            Ok(chunks) => chunks.iter().filter(|chunk| chunk.0 == part).map(|chunk| chunk.2).sum(),
            Err(_) => 0,
        };
        (held + spilled).div_ceil(self.each).max(1) as u64
    }

    /// Calls `block` for all bytes of a partition, in blocks of whole records.
    pub fn scan(&self, part: usize, writers: &[Parts], mut block: impl FnMut(&[u8])) -> Result<()> {
        writers.iter().for_each(|parts| block(&parts[part]));
        let chunks: Vec<_> = match self.chunks.lock() {
            Ok(chunks) => chunks.iter().copied().filter(|chunk| chunk.0 == part).collect(),
            Err(_) => return Err(poisoned()),
        };
        let mut bytes = Vec::new();
        for (_, offset, size) in chunks {
            bytes.resize(size, 0);
            {
                let mut guard = self.file.lock().map_err(|_| poisoned())?;
                let Some((file, _)) = guard.as_mut() else { return Err(poisoned()) };
                file.seek(SeekFrom::Start(offset))
                    .and_then(|_| file.read_exact(&mut bytes))
                    .map_err(|error| self.failed(error))?;
            }
            block(&bytes);
        }
        Ok(())
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::output("spill.failed", &self.folder, error)
    }

    /// An anonymous temporary file: its name is gone at once, so that nothing stays behind.
    fn create(&self) -> io::Result<File> {
        let word = Hasher::new().hash(b"name").0;
        let path = self.folder.join(format!(".urlset-{}-{word:016x}.tmp", std::process::id()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        std::fs::remove_file(&path)?;
        Ok(file)
    }
}

impl Writer<'_> {
    /// Adds a record of fixed size; its first byte of hash chooses the partition.
    #[inline]
    pub fn push_record<const W: usize>(&mut self, record: Record<W>) -> Result<()> {
        let part = &mut self.parts[(record[0] >> 56) as usize];
        for word in record {
            part.extend_from_slice(&word.to_le_bytes());
        }
        self.grew(W * 8)
    }

    /// Adds a record of any size, made of several pieces, to the partition of `hash`.
    pub fn push(&mut self, hash: u64, pieces: &[&[u8]]) -> Result<()> {
        let part = &mut self.parts[(hash >> 56) as usize];
        let before = part.len();
        pieces.iter().for_each(|piece| part.extend_from_slice(piece));
        let grown = part.len() - before;
        self.grew(grown)
    }

    fn grew(&mut self, bytes: usize) -> Result<()> {
        self.held += bytes;
        if self.held > self.spill.each { self.flush() } else { Ok(()) }
    }

    /// The records that are in memory still.
    pub fn into_parts(self) -> Parts {
        self.parts
    }

    fn flush(&mut self) -> Result<()> {
        let spill = self.spill;
        let mut guard = spill.file.lock().map_err(|_| poisoned())?;
        if guard.is_none() {
            *guard = Some((spill.create().map_err(|error| spill.failed(error))?, 0));
        }
        let Some((file, end)) = guard.as_mut() else { return Err(poisoned()) };
        file.seek(SeekFrom::Start(*end)).map_err(|error| spill.failed(error))?;
        for (part, bytes) in self.parts.iter_mut().enumerate().filter(|(_, all)| !all.is_empty()) {
            file.write_all(bytes).map_err(|error| spill.failed(error))?;
            spill.chunks.lock().map_err(|_| poisoned())?.push((part, *end, bytes.len()));
            *end += bytes.len() as u64;
            bytes.clear();
        }
        self.held = 0;
        Ok(())
    }
}

/// Calls `work` for every partition, on the threads of `workers`, each with a state of its own.
pub fn partitions<S: Send>(
    workers: &mut Workers<'_>,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    let next = AtomicUsize::new(0);
    workers.run(|stop| {
        let mut state = state();
        while !stop.load(Ordering::Relaxed) {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= PARTITIONS {
                break;
            }
            work(&mut state, part)?;
        }
        Ok(state)
    })
}

/// Calls `group` for the fixed-size records of each equal hash, sorted.
///
/// Where one hash has more records than the memory holds, `squeeze` gets those that are there and
/// gives the ones that the rest must still be held against: few, whatever their number.
pub fn groups<const W: usize, S: Send>(
    spill: &Spill,
    writers: &[Parts],
    workers: &mut Workers<'_>,
    state: impl Fn() -> S + Sync,
    squeeze: impl Fn(&mut S, &[Record<W>], &mut Vec<Record<W>>) + Sync,
    group: impl Fn(&mut S, &[Record<W>]) + Sync,
) -> Result<Vec<S>> {
    let same = |a: &Record<W>, b: &Record<W>| a[..2] == b[..2];
    partitions(workers, state, |state, part| {
        let mut records: Vec<Record<W>> = Vec::new();
        let passes = spill.passes(part, writers);
        for pass in 0..passes {
            records.clear();
            let mut most = spill.each / (W * 8);
            spill.scan(part, writers, |bytes| {
                for block in bytes.chunks(W << 15) {
                    for one in block.chunks_exact(W * 8) {
                        let mut record = [0; W];
                        for (word, bytes) in record.iter_mut().zip(one.chunks_exact(8)) {
                            *word = bytes.try_into().map_or(0, u64::from_le_bytes);
                        }
                        if passes == 1 || record[1] % passes == pass {
                            records.push(record);
                        }
                    }
                    if records.len() > most {
                        records.sort_unstable();
                        let mut kept = Vec::new();
                        records.chunk_by(same).for_each(|run| squeeze(state, run, &mut kept));
                        records = kept;
                        // different hashes cannot be squeezed: do not try again and again
                        most = most.max(2 * records.len());
                    }
                }
            })?;
            records.sort_unstable();
            records.chunk_by(same).for_each(|run| group(state, run));
        }
        Ok(())
    })
}

fn poisoned() -> Error {
    Error::new(crate::Kind::Output, "spill.failed", "another thread failed while it wrote")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn groups_are_those_of_a_map_in_memory_and_on_disk() {
        for memory in [1 << 30, 0] {
            let spill = Spill::new(memory, 2, None);
            let hasher = Hasher::new();
            let mut model: BTreeMap<(u64, u64), Vec<u64>> = BTreeMap::new();
            let mut writers = [spill.writer(), spill.writer()];
            for n in 0..20_000u64 {
                let (a, b) = hasher.hash(&(n % 7_001).to_le_bytes());
                writers[(n % 2) as usize].push_record([a, b, n]).unwrap();
                model.entry((a, b)).or_default().push(n);
            }
            assert_eq!(spill.has_spilled(), memory == 0);
            let parts: Vec<_> = writers.into_iter().map(Writer::into_parts).collect();
            let gather = |all: &mut Vec<_>, group: &[Record<3>]| {
                let numbers: Vec<u64> = group.iter().map(|record| record[2]).collect();
                all.push(((group[0][0], group[0][1]), numbers));
            };
            let keep = |_: &mut Vec<_>, run: &[Record<3>], kept: &mut Vec<_>| kept.extend(run);
            let poll = &mut || false;
            let states =
                groups(&spill, &parts, &mut Workers::new(2, poll), Vec::new, keep, gather).unwrap();
            let all: BTreeMap<_, _> = states.into_iter().flatten().collect();
            assert_eq!(all, model);
        }
    }

    #[test]
    fn one_hash_of_many_records_is_squeezed() {
        let spill = Spill::new(0, 1, None); // 64 KiB
        let mut writer = spill.writer();
        let many = 100_000u64;
        (0..many).for_each(|n| writer.push_record([7, 7, many - n]).unwrap());
        let parts = [writer.into_parts()];
        let largest = AtomicUsize::new(0);
        let count = |state: &mut (u64, u64), run: &[Record<3>]| {
            largest.fetch_max(run.len(), Ordering::Relaxed);
            state.0 += run.len() as u64 - 1;
            state.1 = run[0][2];
        };
        let squeeze = |state: &mut (u64, u64), run: &[Record<3>], kept: &mut Vec<_>| {
            count(state, run);
            kept.push(run[0]);
        };
        let poll = &mut || false;
        let states =
            groups(&spill, &parts, &mut Workers::new(1, poll), || (0, 0), squeeze, count).unwrap();
        assert_eq!(states, [(many - 1, 1)]);
        assert!(largest.load(Ordering::Relaxed) < 10_000, "{largest:?}");
    }
}
