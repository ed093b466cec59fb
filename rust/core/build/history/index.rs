//! The index of the records: their positions, sorted by key, in a temporary file.
//!
//! The keys are hashes, so they fill buckets of equal ranges evenly. The first pass over the file
//! counts the records of each bucket, and checks the digest; each further pass sorts the records of
//! as many buckets as fit into memory. It takes 0.1 s for 10 M records on four cores.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;

use crate::error::Result;
use crate::flow::history::{
    Bits, GONE_RECORD, HASH_BITS, RECORD, Record, Table, damaged, unreadable,
};
use crate::flow::spill::SpillFile;
use crate::thread::{FirstError, start_scoped};

/// Bytes that are read at once: a multiple of the size of each kind of record.
const BLOCK: usize = RECORD * GONE_RECORD * 512;
/// Records that a pass sorts, at least: 8 MiB in each thread.
const PASS: usize = if cfg!(test) { 1 << 6 } else { 1 << 20 };
/// Passes at a time.
const THREADS: usize = 4;
/// Bits of the number of a bucket: with fewer, the rest of a key would not fit into 32 bits.
const MIN_BITS: u32 = HASH_BITS - 32;
/// Records of a bucket, on average.
const BUCKET: u32 = 8;

/// Checks the digest of the file and makes the index.
///
/// # Errors
/// `lastmod.damaged`, `output.spill`.
pub(crate) fn build(table: &mut Table, folder: &Path, threads: usize) -> Result<()> {
    let records = table.records();
    let bits = (records / BUCKET).next_power_of_two().ilog2().max(MIN_BITS);
    let shift = HASH_BITS - bits;
    let mut starts = vec![0_u32; (1 << bits) + 1];
    let mut hasher = blake3::Hasher::new();
    let end = table.file.metadata().map_err(|e| unreadable(&table.name, &e))?.len();
    let rest = scan(table, Some(&mut hasher), |_, key| starts[(key >> shift) as usize + 1] += 1)?;
    hash_rest(table, &mut hasher, rest, end)?;
    if hasher.finalize().to_hex()[..32] != table.digest {
        return Err(damaged(&table.name, "has another content than the last build wrote"));
    }
    let mut sum = 0;
    for start in &mut starts {
        sum += *start;
        *start = sum;
    }
    table.starts = starts;
    table.several = Bits::new(records);
    let limit = PASS.max(records as usize / 32);
    let mut file = SpillFile::new(&folder.join("lastmod-index.new"))?;
    let mut segment = file.write(std::iter::empty())?;
    let mut ranges = ranges(&table.starts, limit);
    while !ranges.is_empty() {
        let now: Vec<_> = ranges.drain(..ranges.len().min(threads.clamp(1, THREADS))).collect();
        for pass in passes(table, &now, shift)? {
            segment.append(file.write([&pass.positions[..]].into_iter())?);
            pass.several.iter().for_each(|&position| table.several.insert(position));
        }
    }
    table.index = Some(segment);
    Ok(())
}

/// Buckets from one number to another.
type Buckets = (usize, usize);

/// Buckets that are sorted together.
fn ranges(starts: &[u32], limit: usize) -> Vec<Buckets> {
    let (mut ranges, mut from) = (Vec::new(), 0);
    for at in 1..starts.len() {
        let last = at + 1 == starts.len();
        let next = starts.get(at + 1).copied().unwrap_or(0);
        if last || (next - starts[from]) as usize > limit {
            ranges.push((from, at));
            from = at;
        }
    }
    ranges
}

/// The result of a pass.
#[derive(Default)]
struct Pass {
    /// Positions in the order of the keys, in 4 bytes each.
    positions: Vec<u8>,
    /// Those of records whose key another record has, too.
    several: Vec<u32>,
}

/// One pass in each thread.
fn passes(table: &Table, ranges: &[Buckets], shift: u32) -> Result<Vec<Pass>> {
    let failed = FirstError::default();
    let results = thread::scope(|scope| {
        let pass = |&range| {
            let report = |error| failed.report(error);
            start_scoped(scope, "history", move || pass(table, range, shift), report)
        };
        let started: Vec<_> = ranges.iter().map(pass).collect();
        let join = |handle: Result<thread::ScopedJoinHandle<'_, Option<Result<Pass>>>>| {
            Ok(handle?.join().ok().flatten())
        };
        started.into_iter().map(join).collect::<Result<Vec<_>>>()
    })?;
    if let Some(error) = failed.take() {
        return Err(error);
    }
    results
        .into_iter()
        .map(|result| result.unwrap_or_else(|| Err(crate::error::Error::thread())))
        .collect()
}

/// The positions of the records of some buckets, in the order of their keys; those of the same key in
/// the order of content and lastmod.
fn pass(table: &Table, (from, to): Buckets, shift: u32) -> Result<Pass> {
    let base = table.starts[from];
    let mut free: Vec<u32> = table.starts[from..to].iter().map(|start| start - base).collect();
    // the rest of the key, then the position
    let mut sorted = vec![0_u64; (table.starts[to] - base) as usize];
    scan(table, None, |position, key| {
        let bucket = (key >> shift) as usize;
        if (from..to).contains(&bucket) {
            let rest = key & ((1 << shift) - 1);
            // the file may have changed since its records were counted
            if let Some(place) = sorted.get_mut(free[bucket - from] as usize) {
                *place = rest << 32 | u64::from(position);
            }
            free[bucket - from] += 1;
        }
    })?;
    let mut pass = Pass::default();
    pass.positions.reserve_exact(sorted.len() * 4);
    for bucket in from..to {
        let [start, end] = [bucket, bucket + 1].map(|at| (table.starts[at] - base) as usize);
        sorted[start..end].sort_unstable();
        for run in sorted[start..end].chunk_by(|a, b| a >> 32 == b >> 32) {
            if let [one] = run {
                pass.positions.extend_from_slice(&(*one as u32).to_le_bytes());
                continue;
            }
            let mut equal = (run.iter().map(|entry| *entry as u32))
                .map(|position| {
                    let Record { content, lastmod, .. } = table.record(position)?;
                    Ok((content, lastmod, position))
                })
                .collect::<Result<Vec<_>>>()?;
            equal.sort_unstable();
            for (.., position) in equal {
                pass.positions.extend_from_slice(&position.to_le_bytes());
                pass.several.push(position);
            }
        }
    }
    Ok(pass)
}

/// Calls `each` with the position and the key of every record; returns the offset behind them.
fn scan(
    table: &Table,
    mut hasher: Option<&mut blake3::Hasher>,
    mut each: impl FnMut(u32, u64),
) -> Result<u64> {
    let mut block = vec![0; BLOCK];
    let (mut offset, mut position) = (0_u64, 0);
    for (count, size) in [(table.live, RECORD), (table.gone, GONE_RECORD)] {
        let mut left = count as usize * size;
        while left > 0 {
            let part = &mut block[..left.min(BLOCK)];
            table.file.read_exact_at(part, offset).map_err(|e| unreadable(&table.name, &e))?;
            if let Some(hasher) = hasher.as_deref_mut() {
                hasher.update(part);
            }
            for record in part.chunks_exact(size) {
                let mut key = [0; 8];
                key[..6].copy_from_slice(&record[..6]);
                each(position, u64::from_le_bytes(key));
                position += 1;
            }
            offset += part.len() as u64;
            left -= part.len();
        }
    }
    Ok(offset)
}

fn hash_rest(table: &Table, hasher: &mut blake3::Hasher, from: u64, to: u64) -> Result<()> {
    let mut rest = vec![0; to.saturating_sub(from) as usize];
    table.file.read_exact_at(&mut rest, from).map_err(|e| unreadable(&table.name, &e))?;
    hasher.update(&rest);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use crate::build::history::log::Log;
    use crate::build::history::open::{Clock, OldFile, open};
    use crate::flow::entry::NO_LASTMOD;
    use crate::flow::hash::HashKey;
    use crate::flow::history::{Change, Cursor, Found, History, NO_RECORD, Record, Stamp};

    const CLOCK: Clock = Clock { now: 1_000_000, forget: 100 };

    /// Pseudo-random numbers.
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (self.0 >> 33) % limit
        }
    }

    fn stamp(record: Record, old: u32) -> Stamp {
        Stamp { record: record.to_bytes(), change: Change::Added, old }
    }

    /// Records, some of which share a key or are equal.
    fn records(count: u64) -> Vec<Record> {
        let mut random = Random(count);
        let key = HashKey::fixed(1, 2);
        let record = |_| Record {
            key: key.hash64(&random.below(count * 3).to_le_bytes()) >> 16,
            content: 1 + random.below(3),
            lastmod: [NO_LASTMOD, 20_261_122_030_000 * 2 + 1][random.below(2) as usize],
        };
        (0..count).map(record).collect()
    }

    /// What a lookup must return: the last of the records in question decides.
    fn expected(records: &[Record], key: u64, content: u64) -> (Change, i64) {
        let of_key = || records.iter().filter(|record| record.key == key);
        let newest = |same: &dyn Fn(&Record) -> bool| {
            of_key().filter(|record| same(record)).map(|record| record.lastmod).max()
        };
        match (newest(&|record| record.content == content), newest(&|_| true)) {
            (Some(lastmod), _) => (Change::Kept, lastmod),
            (None, Some(lastmod)) => (Change::Changed, lastmod),
            (None, None) => (Change::Added, NO_LASTMOD),
        }
    }

    #[test]
    fn lookups_agree_with_a_plain_search() {
        let folder = std::env::temp_dir().join(format!("urlset-history-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for count in [1, 2, 7, 65, 700, 3_000] {
            let records = records(count);
            let path = folder.join("records");
            let history = open(None, CLOCK, &folder, 2).unwrap();
            let mut log = Log::new(&history, &path).unwrap();
            for part in records.chunks(13) {
                let stamps: Vec<_> = part.iter().map(|record| stamp(*record, NO_RECORD)).collect();
                log.push(&stamps).unwrap();
            }
            let digest = log.finish().unwrap().digest;
            let reopened = |digest: &str| {
                let file = File::open(&path).unwrap();
                let old = OldFile { file, name: "records".into(), digest: digest.into() };
                open(Some(old), CLOCK, &folder, 3)
            };
            let history = reopened(&digest).unwrap();
            assert!(reopened("0").is_err());
            look_up(&history, &records);
            gone(&history, &records, &folder);
            std::fs::remove_file(&path).unwrap();
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    fn look_up(history: &History, records: &[Record]) {
        let mut random = Random(7);
        let mut cursor = Cursor::new(history);
        // in their order with gaps, then in any order, on the disk and in memory
        let in_order = (0..records.len()).filter(|at| at % 5 != 0 && at % 40 < 25);
        let in_order: Vec<_> = in_order.collect();
        let any = (0..400).map(|_| random.below(records.len() as u64) as usize);
        for at in in_order.into_iter().chain(any) {
            for (key, content) in [
                (records[at].key, records[at].content),
                (records[at].key, 9),
                (records[at].key ^ 1 << 40, 1),
            ] {
                let Found { change, lastmod, old } = cursor.find(key, content);
                assert_eq!((change, lastmod), expected(records, key, content));
                if change != Change::Added {
                    assert_eq!(records[old as usize].key, key);
                }
            }
        }
        let table = history.table.as_ref().unwrap();
        table.check().unwrap();
        assert!(table.memory.get().is_some());
    }

    /// Writes some URLs again: the others are gone.
    fn gone(history: &History, records: &[Record], folder: &std::path::Path) {
        let path = folder.join("next");
        let mut log = Log::new(history, &path).unwrap();
        let written: Vec<_> = (0..records.len()).filter(|at| at % 3 == 0).collect();
        for &at in &written {
            log.push(&[stamp(records[at], at as u32)]).unwrap();
        }
        let changes = log.finish().unwrap();
        let is_written = |record: &Record| written.iter().any(|&at| records[at].key == record.key);
        let gone: Vec<_> = records.iter().filter(|record| !is_written(record)).collect();
        assert_eq!(changes.gone, gone.len() as u64);
        for (later, known) in [(99, true), (100, false)] {
            let file = File::open(&path).unwrap();
            let old = OldFile { file, name: "next".into(), digest: changes.digest.clone() };
            let clock = Clock { now: CLOCK.now + later, ..CLOCK };
            let history = open(Some(old), clock, folder, 1).unwrap();
            let mut cursor = Cursor::new(&history);
            for record in &gone {
                let found = cursor.find(record.key, record.content);
                assert_eq!(found.change == Change::Kept, known);
            }
        }
        std::fs::remove_file(&path).unwrap();
    }
}
