//! The index of the stamps: their positions, sorted by key, in a temporary file.
//!
//! One pass over the stamps distributes them to partitions by the first bits of their keys, which are
//! hashes and fill partitions evenly; a thread computes the digest of the file meanwhile. Then each
//! partition, which fits into a cache, is sorted. Measured: 35 ns of CPU time for each stamp.

use std::fs::File;
use std::path::Path;
use std::thread::{ScopedJoinHandle, scope};

use crate::error::{Error, Result};
use crate::file::{read_at, read_exact_at};
use crate::flow::spill::{Segment, SpillFile};
use crate::flow::stamps::bits::Bits;
use crate::flow::stamps::stamp::{GONE_BYTES, HASH_BITS, STAMP_BYTES, Stamp};
use crate::flow::stamps::table::{Table, damaged, unreadable};
use crate::thread::{FirstError, start_scoped};

/// Bytes that are read at once: a multiple of the size of each kind of stamp.
const BLOCK: usize = STAMP_BYTES * GONE_BYTES * 512;
/// Bits of the number of a partition.
const PARTITION_BITS: u32 = 10;
/// Stamps of a partition that are written at once: 16 MiB in all partitions, so that the partitions of
/// 2 million stamps are not written.
const BUFFER: usize = if cfg!(test) { 3 } else { 2_048 };
/// Threads that sort partitions, and the partitions that one sorts.
const THREADS: usize = 4;
const EACH: usize = 32;
/// Stamps for which it takes longer to start threads.
const FEW: u32 = if cfg!(test) { 1_000 } else { 1 << 16 };
/// Bits of the number of a bucket, at least: each partition has several.
const MIN_BITS: u32 = PARTITION_BITS + 2;
/// Stamps of a bucket, on average.
const BUCKET: u32 = 8;

/// Checks the digest of the file and makes the index.
///
/// # Errors
/// `lastmod.damaged`, `output.spill`.
pub(crate) fn build(table: &mut Table, folder: &Path, threads: usize) -> Result<()> {
    let stamps = table.count();
    let bits = (stamps / BUCKET).next_power_of_two().ilog2().max(MIN_BITS);
    let mut file = SpillFile::new(&folder.join("lastmod-index.new"))?;
    let failed = FirstError::default();
    let (digest, partitions) = scope(|scope| {
        let digest = || digest(&table.file);
        let digest = start_scoped(scope, "stamps", digest, |error| failed.report(error))?;
        let partitions = distribute(table, &mut file);
        Ok::<_, Error>((joined(digest), partitions))
    })?;
    if let Some(error) = failed.take() {
        return Err(error);
    }
    if digest?.map_err(|e| unreadable(&table.name, &e))? != table.digest {
        return Err(damaged(&table.name, "has another content than the last build wrote"));
    }
    table.starts = vec![0];
    table.starts.reserve_exact(1 << bits);
    table.several = Bits::new(stamps);
    let mut index = file.write(std::iter::empty())?;
    // few stamps are sorted by one thread
    let (threads, each) = if stamps < FEW { (1, 1 << PARTITION_BITS) } else { (threads, EACH) };
    for some in partitions?.chunks(threads.clamp(1, THREADS) * each) {
        for sorted in sort_several(table, some, each, bits)? {
            let start = table.starts.last().copied().unwrap_or(0);
            table.starts.extend(sorted.ends.iter().map(|end| start + end));
            index.append(file.write([&sorted.positions[..]].into_iter())?);
            sorted.several.iter().for_each(|&position| table.several.insert(position));
        }
    }
    table.index = Some(index);
    Ok(())
}

fn joined<T>(handle: ScopedJoinHandle<'_, Option<T>>) -> Result<T> {
    handle.join().ok().flatten().ok_or_else(Error::thread)
}

fn digest(file: &File) -> std::io::Result<String> {
    let (mut block, mut offset) = (vec![0; BLOCK], 0);
    let mut hasher = blake3::Hasher::new();
    loop {
        let read = read_at(file, &mut block, offset)?;
        if read == 0 {
            return Ok(hasher.finalize().to_hex()[..32].to_owned());
        }
        hasher.update(&block[..read]);
        offset += read as u64;
    }
}

/// Stamps whose keys begin with the same bits, in 8 bytes each: the next 32 bits of the key, then the
/// position.
#[derive(Default)]
struct Partition {
    written: Vec<Segment>,
    rest: Vec<u8>,
}

/// Distributes the stamps to partitions.
fn distribute(table: &Table, file: &mut SpillFile) -> Result<Vec<Partition>> {
    let mut partitions = Vec::new();
    partitions.resize_with(1 << PARTITION_BITS, Partition::default);
    let mut block = vec![0; BLOCK];
    let (mut offset, mut position) = (0_u64, 0_u32);
    for (count, size) in [(table.live, STAMP_BYTES), (table.gone, GONE_BYTES)] {
        let mut left = count as usize * size;
        while left > 0 {
            let part = &mut block[..left.min(BLOCK)];
            read_exact_at(&table.file, part, offset).map_err(|e| unreadable(&table.name, &e))?;
            for stamp in part.chunks_exact(size) {
                let key = stamp.first_chunk().map_or(0, Stamp::key_of);
                let partition = &mut partitions[(key >> (HASH_BITS - PARTITION_BITS)) as usize];
                let next = key >> (HASH_BITS - PARTITION_BITS - 32) & u64::from(u32::MAX);
                let entry = next << 32 | u64::from(position);
                partition.rest.extend_from_slice(&entry.to_le_bytes());
                if partition.rest.len() >= BUFFER * 8 {
                    partition.written.push(file.write([&partition.rest[..]].into_iter())?);
                    partition.rest.clear();
                }
                position += 1;
            }
            offset += part.len() as u64;
            left -= part.len();
        }
    }
    Ok(partitions)
}

/// A sorted partition.
#[derive(Default)]
struct Sorted {
    /// Positions in the order of the keys, in 4 bytes each; those of the same key in the order of
    /// content and lastmod.
    positions: Vec<u8>,
    /// For each bucket the number of stamps up to its end.
    ends: Vec<u32>,
    /// The positions of stamps whose key another stamp has, too.
    several: Vec<u32>,
}

/// Sorts partitions, `each` of them in a thread.
fn sort_several(
    table: &Table,
    partitions: &[Partition],
    each: usize,
    bits: u32,
) -> Result<Vec<Sorted>> {
    let failed = FirstError::default();
    let sorted = scope(|scope| {
        let start = |some| {
            let work = move || sort_each(table, some, bits);
            start_scoped(scope, "stamps.sort", work, |error| failed.report(error))
        };
        let started = partitions.chunks(each).map(start).collect::<Result<Vec<_>>>()?;
        Ok::<Vec<_>, Error>(started.into_iter().map(joined).collect())
    })?;
    if let Some(error) = failed.take() {
        return Err(error);
    }
    let sorted: Vec<Vec<Sorted>> = sorted.into_iter().map(|one| one?).collect::<Result<_>>()?;
    Ok(sorted.into_iter().flatten().collect())
}

fn sort_each(table: &Table, partitions: &[Partition], bits: u32) -> Result<Vec<Sorted>> {
    partitions.iter().map(|partition| sort(table, partition, bits)).collect()
}

fn sort(table: &Table, partition: &Partition, bits: u32) -> Result<Sorted> {
    let mut bytes = Vec::new();
    for segment in &partition.written {
        bytes.extend_from_slice(&segment.read()?);
    }
    bytes.extend_from_slice(&partition.rest);
    let mut entries: Vec<u64> =
        bytes.as_chunks::<8>().0.iter().map(|entry| u64::from_le_bytes(*entry)).collect();
    entries.sort_unstable();
    let mut sorted = Sorted::default();
    sorted.positions.reserve_exact(entries.len() * 4);
    let bucket_bits = bits - PARTITION_BITS;
    let mut at = 0;
    for bucket in 0..1_u64 << bucket_bits {
        let end = entries[at..].partition_point(|entry| entry >> (64 - bucket_bits) <= bucket);
        sorted.ends.push((at + end) as u32);
        at += end;
    }
    for run in entries.chunk_by(|a, b| a >> 32 == b >> 32) {
        if let [one] = run {
            sorted.positions.extend_from_slice(&(*one as u32).to_le_bytes());
            continue;
        }
        let mut equal = (run.iter().map(|entry| *entry as u32))
            .map(|position| {
                let Stamp { key, content, lastmod } = table.stamp(position)?;
                Ok((key, content, lastmod, position))
            })
            .collect::<Result<Vec<_>>>()?;
        equal.sort_unstable();
        for (at, &(key, .., position)) in equal.iter().enumerate() {
            sorted.positions.extend_from_slice(&position.to_le_bytes());
            // only the first bits of the keys of a run are equal
            let next_to = |other: Option<&(u64, u64, i64, u32)>| other.is_some_and(|o| o.0 == key);
            if next_to(equal.get(at + 1)) || next_to(at.checked_sub(1).and_then(|at| equal.get(at)))
            {
                sorted.several.push(position);
            }
        }
    }
    Ok(sorted)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use crate::build::stamps::log::Log;
    use crate::build::stamps::open::{Clock, OldFile, open};
    use crate::flow::entry::NO_LASTMOD;
    use crate::flow::hash::HashKey;
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
        Stamped { stamp: stamp.to_bytes(), change: Change::Added, old }
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
            let digest = log.finish().unwrap().digest;
            let reopened = |digest: &str| {
                let file = File::open(&path).unwrap();
                let old = OldFile { file, name: "stamps".into(), digest: digest.into() };
                open(Some(old), CLOCK, &folder, 3)
            };
            let known = reopened(&digest).unwrap();
            assert!(reopened("0").is_err());
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
        let changes = log.finish().unwrap();
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
