//! The index of the stamps: their positions, sorted by key, in a temporary file.
//!
//! Each thread reads a part of the stamps, and distributes them to partitions by the first bits of their
//! keys, which are hashes and fill partitions evenly. Then each thread sorts some of the partitions,
//! which fit into a cache.

use std::ops::Range;
use std::path::Path;
use std::thread::scope;

use crate::error::{Error, Result};
use crate::file::read_exact_at;
use crate::flow::spill::{Segment, SpillFile};
use crate::flow::stamps::bits::Bits;
use crate::flow::stamps::stamp::{GONE_BYTES, HASH_BITS, STAMP_BYTES, Stamp};
use crate::flow::stamps::table::{ENTRY_BYTES, Table, mark, unreadable};
use crate::thread::{FirstError, start_scoped};

/// Bytes that are read at once: a multiple of the size of each kind of stamp.
const BLOCK: usize = STAMP_BYTES * GONE_BYTES * 512;
/// Bits of the number of a partition.
const PARTITION_BITS: u32 = 10;
const PARTITIONS: usize = 1 << PARTITION_BITS;
/// Stamps of a partition that a thread writes at once: 8 MiB in all partitions.
const BUFFER: usize = if cfg!(test) { 3 } else { 1_024 };
/// Threads, at most.
const THREADS: usize = 4;
/// Stamps for which it takes longer to start threads.
const FEW: u32 = if cfg!(test) { 1_000 } else { 1 << 16 };
/// Bits of the number of a bucket, at least: each partition has several.
const MIN_BITS: u32 = PARTITION_BITS + 2;
/// Stamps of a bucket, on average.
const BUCKET: u32 = 8;

/// Makes the index.
///
/// # Errors
/// `lastmod.damaged`, `output.spill`.
pub(crate) fn build(table: &mut Table, folder: &Path, threads: usize) -> Result<()> {
    let count = table.count();
    let bits = (count / BUCKET).next_power_of_two().ilog2().max(MIN_BITS);
    let threads = if count < FEW { 1 } else { threads.clamp(1, THREADS) };
    let part = |number: usize, whole: usize| {
        let end = |number: usize| (whole as u64 * number as u64 / threads as u64) as usize;
        end(number)..end(number + 1)
    };
    let parts = in_threads(threads, |number| {
        let file = SpillFile::new(&folder.join(format!("lastmod-part-{number}.new")))?;
        distribute(table, part(number, count as usize), file)
    })?;
    let mut starts = vec![0];
    starts.extend((0..PARTITIONS).scan(0, |end, at| {
        *end += parts.iter().map(|part| part[at].count).sum::<u32>();
        Some(*end)
    }));
    let mut file = SpillFile::new(&folder.join("lastmod-index.new"))?;
    let index = file.reserve(count as usize * ENTRY_BYTES);
    let sorted = in_threads(threads, |number| {
        let mut sorter = Sorter::new(table, bits, &index);
        for at in part(number, PARTITIONS) {
            sorter.sort(parts.iter().map(|part| &part[at]), starts[at])?;
        }
        Ok((sorter.ends, sorter.several))
    })?;
    table.starts = Vec::with_capacity((1 << bits) + 1);
    table.starts.push(0);
    table.several = Bits::new(count);
    for (ends, several) in sorted {
        table.starts.extend(ends);
        several.into_iter().for_each(|position| table.several.insert(position));
    }
    table.index = Some(index);
    Ok(())
}

/// The results of several threads.
fn in_threads<T: Send>(count: usize, work: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    let (failed, work) = (FirstError::default(), &work);
    let results = scope(|scope| {
        let start = |number| {
            start_scoped(scope, "stamps.index", move || work(number), |error| failed.report(error))
        };
        let started = (0..count).map(start).collect::<Result<Vec<_>>>()?;
        Ok::<Vec<_>, Error>(started.into_iter().map(|thread| thread.join()).collect())
    })?;
    if let Some(error) = failed.take() {
        return Err(error);
    }
    results.into_iter().map(|one| one.ok().flatten().ok_or_else(Error::thread)?).collect()
}

/// Stamps whose keys begin with the same bits, in 8 bytes each: the next 32 bits of the key, then the
/// position.
#[derive(Default)]
struct Partition {
    count: u32,
    written: Vec<Segment>,
    rest: Vec<[u8; 8]>,
}

/// Distributes the stamps at some positions to partitions.
fn distribute(
    table: &Table,
    positions: Range<usize>,
    mut file: SpillFile,
) -> Result<Vec<Partition>> {
    let mut partitions = Vec::new();
    partitions.resize_with(PARTITIONS, Partition::default);
    let mut block = vec![0; BLOCK];
    let live = table.live as usize;
    let of_live = positions.start.min(live)..positions.end.min(live);
    let of_gone = positions.start.max(live)..positions.end.max(live);
    for (positions, size) in [(of_live, STAMP_BYTES), (of_gone, GONE_BYTES)] {
        let mut offset = table.offset(positions.start as u32);
        let mut position = positions.start as u32;
        let mut left = positions.len() * size;
        while left > 0 {
            let part = &mut block[..left.min(BLOCK)];
            read_exact_at(&table.file, part, offset).map_err(|e| unreadable(&table.name, &e))?;
            for stamp in part.chunks_exact(size) {
                let key = stamp.first_chunk().map_or(0, Stamp::key_of);
                let partition = &mut partitions[(key >> (HASH_BITS - PARTITION_BITS)) as usize];
                let next = key >> (HASH_BITS - PARTITION_BITS - 32) & u64::from(u32::MAX);
                partition.rest.push((next << 32 | u64::from(position)).to_le_bytes());
                if partition.rest.len() >= BUFFER {
                    partition.count += partition.rest.len() as u32;
                    let bytes = partition.rest.as_flattened();
                    partition.written.push(file.write([bytes].into_iter())?);
                    partition.rest.clear();
                }
                position += 1;
            }
            offset += part.len() as u64;
            left -= part.len();
        }
    }
    partitions.iter_mut().for_each(|partition| partition.count += partition.rest.len() as u32);
    Ok(partitions)
}

/// Sorts partitions one after the other.
struct Sorter<'t> {
    table: &'t Table,
    bits: u32,
    index: &'t Segment,
    /// for each bucket the place in the index of its end
    ends: Vec<u32>,
    /// the positions of stamps whose key another stamp has, too
    several: Vec<u32>,
    entries: Vec<u64>,
    sorted: Vec<u64>,
    out: Vec<[u8; ENTRY_BYTES]>,
}

impl<'t> Sorter<'t> {
    fn new(table: &'t Table, bits: u32, index: &'t Segment) -> Sorter<'t> {
        Sorter {
            table,
            bits,
            index,
            ends: Vec::new(),
            several: Vec::new(),
            entries: Vec::new(),
            sorted: Vec::new(),
            out: Vec::new(),
        }
    }

    /// Sorts the parts of a partition, which begins at a place in the index.
    fn sort<'p>(&mut self, parts: impl Iterator<Item = &'p Partition>, start: u32) -> Result<()> {
        let Sorter { table, bits, entries, sorted, .. } = self;
        entries.clear();
        let number = |entry: &[u8; 8]| u64::from_le_bytes(*entry);
        for part in parts {
            for segment in &part.written {
                entries.extend(segment.read()?.as_chunks().0.iter().map(number));
            }
            entries.extend(part.rest.iter().map(number));
        }
        // to buckets, each of which is then sorted
        let shift = 64 - (*bits - PARTITION_BITS);
        let first = self.ends.len();
        self.ends.resize(first + (1 << (*bits - PARTITION_BITS)), 0);
        let ends = &mut self.ends[first..];
        entries.iter().for_each(|entry| ends[(entry >> shift) as usize] += 1);
        let mut end = 0;
        ends.iter_mut().for_each(|bucket| (*bucket, end) = (end, end + *bucket));
        sorted.clear();
        sorted.resize(entries.len(), 0);
        for entry in &*entries {
            let place = &mut ends[(entry >> shift) as usize];
            sorted[*place as usize] = *entry;
            *place += 1;
        }
        let mut from = 0;
        for end in ends {
            sorted[from..*end as usize].sort_unstable();
            from = *end as usize;
            *end += start;
        }
        self.out.clear();
        for run in sorted.chunk_by_mut(|a, b| *a >> 32 == *b >> 32) {
            if run.len() > 1 {
                arrange(table, run, &mut self.several)?;
            }
            for entry in run {
                let [a, b, c, d] = (*entry as u32).to_le_bytes();
                let key = *entry >> 32 << (HASH_BITS - PARTITION_BITS - 32);
                self.out.push([a, b, c, d, mark(key, *bits)]);
            }
        }
        self.index.write_at(start as usize * ENTRY_BYTES, self.out.as_flattened())
    }
}

/// Sorts stamps whose keys are almost equal by key, content and lastmod, and adds the positions of
/// those with the same key to `several`.
fn arrange(table: &Table, run: &mut [u64], several: &mut Vec<u32>) -> Result<()> {
    let stamp = |entry: &u64| {
        let Stamp { key, content, lastmod } = table.stamp(*entry as u32)?;
        Ok((key, content, lastmod, *entry))
    };
    let mut stamps = run.iter().map(stamp).collect::<Result<Vec<_>>>()?;
    stamps.sort_unstable();
    for same in stamps.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
        several.extend(same.iter().map(|stamp| stamp.3 as u32));
    }
    run.iter_mut().zip(stamps).for_each(|(entry, stamp)| *entry = stamp.3);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::atomic::AtomicBool;

    use crate::build::stamps::digest::check_digest;
    use crate::build::stamps::log::Log;
    use crate::build::stamps::open::{Clock, OldFile, open};
    use crate::flow::entry::NO_LASTMOD;
    use crate::flow::hash::HashKey;
    use crate::flow::outcome::LastmodChanges;
    use crate::flow::stamps::Stamps;
    use crate::flow::stamps::cursor::{Cursor, Found};
    use crate::flow::stamps::stamp::{Change, NO_STAMP, Stamp, Stamped};

    const CLOCK: Clock = Clock { now: 1_000_000, forget: 100 };

    /// Pseudo-random numbers.
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (self.0 >> 33) % limit
        }
    }

    fn stamped(stamp: Stamp, old: u32) -> Stamped {
        Stamped { stamp, change: Change::Added, old }
    }

    fn finished(log: Log<'_>) -> LastmodChanges {
        let (changes, syncer) = log.finish().unwrap();
        syncer.finish().unwrap();
        changes
    }

    /// Stamps, some of which share a key or are equal.
    fn some(count: u64) -> Vec<Stamp> {
        let mut random = Random(count);
        let key = HashKey::fixed(1, 2);
        let stamp = |_| Stamp {
            key: key.hash64(&random.below(count * 3).to_le_bytes()) >> 16,
            content: 1 + random.below(3),
            lastmod: [NO_LASTMOD, 20_261_122_030_000 * 2 + 1][random.below(2) as usize],
        };
        (0..count).map(stamp).collect()
    }

    /// What a lookup must return: the last of the stamps in question decides.
    fn expected(stamps: &[Stamp], key: u64, content: u64) -> (Change, i64) {
        let of_key = || stamps.iter().filter(|stamp| stamp.key == key);
        let newest = |same: &dyn Fn(&Stamp) -> bool| {
            of_key().filter(|stamp| same(stamp)).map(|stamp| stamp.lastmod).max()
        };
        match (newest(&|stamp| stamp.content == content), newest(&|_| true)) {
            (Some(lastmod), _) => (Change::Kept, lastmod),
            (None, Some(lastmod)) => (Change::Changed, lastmod),
            (None, None) => (Change::Added, NO_LASTMOD),
        }
    }

    #[test]
    fn lookups_agree_with_a_plain_search() {
        let folder = std::env::temp_dir().join(format!("urlset-stamps-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for count in [1, 2, 7, 65, 700, 3_000] {
            let stamps = some(count);
            let path = folder.join("stamps");
            let known = open(None, CLOCK, &folder, 2).unwrap();
            let mut log = Log::new(&known, &path).unwrap();
            for part in stamps.chunks(13) {
                let stamps: Vec<_> = part.iter().map(|stamp| stamped(*stamp, NO_STAMP)).collect();
                log.push(&stamps).unwrap();
            }
            let digest = finished(log).digest;
            let reopened = |digest: &str| {
                let file = File::open(&path).unwrap();
                let old = OldFile { file, name: "stamps".into(), digest: digest.into() };
                open(Some(old), CLOCK, &folder, 3)
            };
            let known = reopened(&digest).unwrap();
            let damaged = reopened("0").unwrap();
            for (stamps, is_whole) in [(&damaged, false), (&known, true)] {
                let table = stamps.table.as_ref().unwrap();
                check_digest(table, &AtomicBool::new(false));
                assert_eq!(table.check().is_ok(), is_whole);
            }
            look_up(&known, &stamps);
            gone(&known, &stamps, &folder);
            std::fs::remove_file(&path).unwrap();
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    fn look_up(known: &Stamps, stamps: &[Stamp]) {
        let mut random = Random(7);
        let mut cursor = Cursor::new(known);
        // in their order with gaps, then in any order, on the disk and in memory
        let in_order = (0..stamps.len()).filter(|at| at % 5 != 0 && at % 40 < 25);
        let in_order: Vec<_> = in_order.collect();
        let any = (0..400).map(|_| random.below(stamps.len() as u64) as usize);
        for at in in_order.into_iter().chain(any) {
            for (key, content) in [
                (stamps[at].key, stamps[at].content),
                (stamps[at].key, 9),
                (stamps[at].key ^ 1 << 40, 1),
            ] {
                let Found { change, lastmod, old } = cursor.find(key, content);
                assert_eq!((change, lastmod), expected(stamps, key, content));
                if change != Change::Added {
                    assert_eq!(stamps[old as usize].key, key);
                }
            }
        }
        let table = known.table.as_ref().unwrap();
        table.check().unwrap();
        assert!(table.memory.get().is_some());
    }

    /// Writes some URLs again: the others are gone.
    fn gone(known: &Stamps, stamps: &[Stamp], folder: &std::path::Path) {
        let path = folder.join("next");
        let mut log = Log::new(known, &path).unwrap();
        let written: Vec<_> = (0..stamps.len()).filter(|at| at % 3 == 0).collect();
        for &at in &written {
            log.push(&[stamped(stamps[at], at as u32)]).unwrap();
        }
        let changes = finished(log);
        let is_written = |stamp: &Stamp| written.iter().any(|&at| stamps[at].key == stamp.key);
        let gone: Vec<_> = stamps.iter().filter(|stamp| !is_written(stamp)).collect();
        assert_eq!(changes.gone, gone.len() as u64);
        for (later, is_known) in [(99, true), (100, false)] {
            let file = File::open(&path).unwrap();
            let old = OldFile { file, name: "next".into(), digest: changes.digest.clone() };
            let clock = Clock { now: CLOCK.now + later, ..CLOCK };
            let known = open(Some(old), clock, folder, 1).unwrap();
            let mut cursor = Cursor::new(&known);
            for stamp in &gone {
                let found = cursor.find(stamp.key, stamp.content);
                assert_eq!(found.change == Change::Kept, is_known);
            }
        }
        std::fs::remove_file(&path).unwrap();
    }
}
