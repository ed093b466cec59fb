//! Records grouped by the hash of their key in bounded memory: in 256 partitions, which go to one
//! temporary file when they exceed the memory.
//!
//! Notes for maintainers. A record must never be split between two blocks: [`Writer::flush`] writes
//! whole partitions, and [`Partitioned::scan`] returns them as they were written. The number of
//! passes depends on the number of bytes alone, so that the same input is grouped in the same way on
//! any number of threads. The tests below compare with a map in memory, on disk too, and check that
//! records of one hash do not exceed the memory.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::error::{Error, ErrorCode, Result};
use crate::flow::hash::HashKey;
use crate::flow::spill::{Segment, SpillFile};
use crate::inspect::workers::Workers;

/// The number of partitions; the first byte of a hash selects one.
const PARTITIONS: usize = 256;
/// Memory per byte of records: vectors grow by doubling, and sorting a partition copies it.
const OVERHEAD: usize = 3;
/// The minimum memory of a writer.
const MIN_MEMORY: usize = 64 << 10;
/// Records that are read between two checks of the memory.
const BLOCK: usize = 1 << 12;

/// A record of fixed size: the hash of its key, and a value. Sorts by both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HashRecord {
    /// 128 bits.
    pub hash: [u64; 2],
    /// The value.
    pub value: u64,
}

impl HashRecord {
    const BYTES: usize = 24;

    /// A record for a hash of 128 bits.
    #[inline]
    pub fn new(hash: u128, value: u64) -> HashRecord {
        HashRecord { hash: [hash as u64, (hash >> 64) as u64], value }
    }

    #[inline]
    fn encode(self) -> [[u8; 8]; 3] {
        [self.hash[0], self.hash[1], self.value].map(u64::to_le_bytes)
    }

    fn decode(bytes: &[u8]) -> HashRecord {
        let mut words =
            bytes.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_le_bytes));
        let mut next = || words.next().unwrap_or_default();
        HashRecord { hash: [next(), next()], value: next() }
    }
}

/// The records of one writer that are in memory, by partition.
type PartitionBytes = Vec<Vec<u8>>;

/// A part of a partition in the temporary file, of whole records.
struct DiskPart {
    partition: usize,
    segment: Segment,
}

/// The part of the records that is on disk.
#[derive(Default)]
struct Disk {
    file: Option<SpillFile>,
    chunks: Vec<DiskPart>,
}

/// Collects records from several threads.
pub struct Partitions {
    /// The limit of a writer, in bytes.
    memory: usize,
    folder: PathBuf,
    disk: Mutex<Disk>,
}

/// The records of one thread.
pub struct Writer<'p> {
    partitions: &'p Partitions,
    parts: PartitionBytes,
    bytes: usize,
}

impl Partitions {
    /// For `writers` threads with `memory` bytes in total. The temporary file is in `folder`, by
    /// default the temporary folder of the system.
    pub fn new(memory: usize, writers: usize, folder: Option<PathBuf>) -> Partitions {
        Partitions {
            memory: (memory / writers.max(1) / OVERHEAD).max(MIN_MEMORY),
            folder: folder.unwrap_or_else(std::env::temp_dir),
            disk: Mutex::default(),
        }
    }

    /// A writer for one thread.
    pub fn writer(&self) -> Writer<'_> {
        Writer { partitions: self, parts: vec![Vec::new(); PARTITIONS], bytes: 0 }
    }

    /// All records, after the writers are done.
    pub fn collect<'p>(
        &self,
        writers: impl IntoIterator<Item = Writer<'p>>,
    ) -> Result<Partitioned> {
        let disk = std::mem::take(&mut *self.disk.lock().map_err(|_| poisoned())?);
        let parts = writers.into_iter().map(|writer| writer.parts).collect();
        Ok(Partitioned { memory: self.memory, parts, chunks: disk.chunks })
    }
}

impl Writer<'_> {
    /// Adds a record of fixed size.
    #[inline]
    pub fn push(&mut self, record: HashRecord) -> Result<()> {
        let part = &mut self.parts[partition(record.hash[0])];
        record.encode().iter().for_each(|word| part.extend_from_slice(word));
        self.grow(HashRecord::BYTES)
    }

    /// Adds a record of any size, in pieces, to the partition of `hash`.
    pub fn push_pieces(&mut self, hash: u64, pieces: &[&[u8]]) -> Result<()> {
        let part = &mut self.parts[partition(hash)];
        let before = part.len();
        pieces.iter().for_each(|piece| part.extend_from_slice(piece));
        let added = part.len() - before;
        self.grow(added)
    }

    fn grow(&mut self, bytes: usize) -> Result<()> {
        self.bytes += bytes;
        if self.bytes > self.partitions.memory { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let failed = |error: Error| Error { code: ErrorCode::SpillFailed, ..error };
        let Disk { file, chunks } = &mut *self.partitions.disk.lock().map_err(|_| poisoned())?;
        let file = match file {
            Some(file) => file,
            None => {
                let name = HashKey::random().hash64(b"name");
                let name = format!(".urlset-{}-{name:016x}.tmp", std::process::id());
                let path = self.partitions.folder.join(name);
                file.insert(SpillFile::new(&path).map_err(failed)?)
            }
        };
        for (partition, bytes) in self.parts.iter_mut().enumerate() {
            if !bytes.is_empty() {
                let segment = file.write(std::iter::once(&bytes[..])).map_err(failed)?;
                chunks.push(DiskPart { partition, segment });
                bytes.clear();
            }
        }
        self.bytes = 0;
        Ok(())
    }
}

fn partition(hash: u64) -> usize {
    (hash >> 56) as usize
}

/// All records, in memory and on disk.
pub struct Partitioned {
    memory: usize,
    parts: Vec<PartitionBytes>,
    chunks: Vec<DiskPart>,
}

impl Partitioned {
    /// Whether there are records on disk.
    pub fn is_on_disk(&self) -> bool {
        !self.chunks.is_empty()
    }

    /// The partitions.
    pub fn partitions(&self) -> std::ops::Range<usize> {
        0..PARTITIONS
    }

    fn chunks(&self, partition: usize) -> impl Iterator<Item = &Segment> {
        let of_partition = move |chunk: &&DiskPart| chunk.partition == partition;
        self.chunks.iter().filter(of_partition).map(|chunk| &chunk.segment)
    }

    /// The number of passes over a partition after which each pass fits into the memory.
    pub fn passes(&self, partition: usize) -> u64 {
        let in_memory: usize = self.parts.iter().map(|parts| parts[partition].len()).sum();
        let on_disk: usize = self.chunks(partition).map(Segment::length).sum();
        (in_memory + on_disk).div_ceil(self.memory).max(1) as u64
    }

    /// Calls `block` for all bytes of a partition, in blocks of whole records.
    pub fn scan(&self, partition: usize, mut block: impl FnMut(&[u8])) -> Result<()> {
        self.parts.iter().for_each(|parts| block(&parts[partition]));
        let mut bytes = Vec::new();
        for segment in self.chunks(partition) {
            bytes.resize(segment.length(), 0);
            segment
                .read_at(0, &mut bytes)
                .map_err(|error| Error { code: ErrorCode::SpillFailed, ..error })?;
            block(&bytes);
        }
        Ok(())
    }

    /// Calls `work` for every partition on all threads; each thread has its own state.
    pub fn for_each<S: Send>(
        &self,
        workers: &mut Workers<'_>,
        state: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, usize) -> Result<()> + Sync,
    ) -> Result<Vec<S>> {
        let next = AtomicUsize::new(0);
        workers.run(|stop: &AtomicBool| {
            let mut state = state();
            while !stop.load(Ordering::Relaxed) {
                let partition = next.fetch_add(1, Ordering::Relaxed);
                if partition >= PARTITIONS {
                    break;
                }
                work(&mut state, partition)?;
            }
            Ok(state)
        })
    }

    /// Calls `group` for the records of each hash, sorted.
    ///
    /// If one hash has more records than fit into the memory, `reduce` receives the records so far
    /// and returns those that the rest must be compared with: a few, for any number of records.
    pub fn groups<S: Send>(
        &self,
        workers: &mut Workers<'_>,
        state: impl Fn() -> S + Sync,
        reduce: impl Fn(&mut S, &[HashRecord], &mut Vec<HashRecord>) + Sync,
        group: impl Fn(&mut S, &[HashRecord]) + Sync,
    ) -> Result<Vec<S>> {
        let same = |a: &HashRecord, b: &HashRecord| a.hash == b.hash;
        self.for_each(workers, state, |state, partition| {
            let mut records: Vec<HashRecord> = Vec::new();
            let passes = self.passes(partition);
            for pass in 0..passes {
                records.clear();
                let mut limit = self.memory / HashRecord::BYTES;
                self.scan(partition, |bytes| {
                    for block in bytes.chunks(BLOCK * HashRecord::BYTES) {
                        let decoded = block.chunks_exact(HashRecord::BYTES).map(HashRecord::decode);
                        records.extend(
                            decoded.filter(|record| passes == 1 || record.hash[1] % passes == pass),
                        );
                        if records.len() > limit {
                            records.sort_unstable();
                            let mut kept = Vec::new();
                            records.chunk_by(same).for_each(|run| reduce(state, run, &mut kept));
                            records = kept;
                            // distinct hashes cannot be reduced: do not try it again for each block
                            limit = limit.max(2 * records.len());
                        }
                    }
                })?;
                records.sort_unstable();
                records.chunk_by(same).for_each(|run| group(state, run));
            }
            Ok(())
        })
    }
}

fn poisoned() -> Error {
    ErrorCode::SpillFailed.error("another thread failed while it wrote")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn groups_are_those_of_a_map_in_memory_and_on_disk() {
        for memory in [1 << 30, 0] {
            let partitions = Partitions::new(memory, 2, None);
            let key = HashKey::random();
            let mut model: BTreeMap<[u64; 2], Vec<u64>> = BTreeMap::new();
            let mut writers = [partitions.writer(), partitions.writer()];
            for n in 0..20_000u64 {
                let record = HashRecord::new(key.hash128(&(n % 7_001).to_le_bytes()), n);
                writers[(n % 2) as usize].push(record).unwrap();
                model.entry(record.hash).or_default().push(n);
            }
            let all = partitions.collect(writers).unwrap();
            assert_eq!(all.is_on_disk(), memory == 0);
            let gather = |all: &mut Vec<_>, group: &[HashRecord]| {
                let numbers: Vec<u64> = group.iter().map(|record| record.value).collect();
                all.push((group[0].hash, numbers));
            };
            let keep = |_: &mut Vec<_>, run: &[HashRecord], kept: &mut Vec<_>| kept.extend(run);
            let poll = &mut || false;
            let states = all.groups(&mut Workers::new(2, poll), Vec::new, keep, gather).unwrap();
            let found: BTreeMap<_, _> = states.into_iter().flatten().collect();
            assert_eq!(found, model);
        }
    }

    #[test]
    fn one_hash_of_many_records_is_reduced() {
        let partitions = Partitions::new(0, 1, None); // the least memory
        let mut writer = partitions.writer();
        let many = 100_000u64;
        for n in 0..many {
            writer.push(HashRecord { hash: [7, 7], value: many - n }).unwrap();
        }
        let all = partitions.collect([writer]).unwrap();
        let largest = AtomicUsize::new(0);
        let count = |state: &mut (u64, u64), run: &[HashRecord]| {
            largest.fetch_max(run.len(), Ordering::Relaxed);
            state.0 += run.len() as u64 - 1;
            state.1 = run[0].value;
        };
        let reduce = |state: &mut (u64, u64), run: &[HashRecord], kept: &mut Vec<_>| {
            count(state, run);
            kept.push(run[0]);
        };
        let poll = &mut || false;
        let states = all.groups(&mut Workers::new(1, poll), || (0, 0), reduce, count).unwrap();
        assert_eq!(states, [(many - 1, 1)]);
        assert!(largest.load(Ordering::Relaxed) < 10_000, "{largest:?}");
    }
}
