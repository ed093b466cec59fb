//! Which locs came before: a set of keyed hashes.
//!
//! Open addressing in 1,024 partitions that grow one at a time. A bucket of 64 bytes, a line of the
//! cache, holds six keys: at a load of 0.4 to 0.8 a key takes 13 to 27 bytes, and while a partition
//! grows only that one is there one and a half times.
//!
//! Of a hash 10 bits choose the partition and 80 are kept. The key is random in every run, so that
//! no rows can be made to meet: a false duplicate among `n` URLs has the probability n^2 / 2^91,
//! 4e-14 for 10 million of them and 1e-10 for 500 million.

use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;

use crate::simd::prefetch;

const PARTITIONS: usize = 1 << 10;
/// Buckets of a new partition.
const FIRST: usize = 8;
/// Keys of a bucket.
const KEYS: usize = 6;
/// How many keys memory is asked for at once, while those before are looked up, so that all their
/// waits for page tables and for memory overlap. In a build of 10 M rows a key takes about 57 ns so,
/// 15 to 20 more where it is read in place of asked for.
const GROUP: usize = 16;

/// A key for hashes that nobody can foresee.
pub fn random_key() -> (u64, u64) {
    // the standard library seeds its maps from the operating system's random numbers
    let random = || RandomState::new().hash_one(0u8);
    (random(), random())
}

/// The set.
pub struct Unique {
    key: (u64, u64),
    partitions: Vec<Partition>,
    /// the buckets that a partition had before it grew; for one after the other
    old: Vec<Bucket>,
}

/// What the runs of one build have seen: a URL of one set is a duplicate in the next.
#[derive(Default)]
pub struct Seen(Mutex<Option<Unique>>);

impl Seen {
    /// What the run before has seen, or an empty set.
    pub fn take(&self) -> Unique {
        self.0.lock().ok().and_then(|mut seen| seen.take()).unwrap_or_else(Unique::new)
    }

    /// For the next run.
    pub fn give(&self, unique: Unique) {
        if let Ok(mut seen) = self.0.lock() {
            *seen = Some(unique);
        }
    }
}

/// A table in which a key stands in its home or, where that is full, in one of the next buckets.
#[derive(Default)]
struct Partition {
    buckets: Vec<Bucket>,
    used: usize,
}

/// The first `used` keys, in two parts.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Bucket {
    low: [u64; KEYS],
    high: [u16; KEYS],
    used: u32,
}

/// What is kept of a hash.
type Key = (u64, u16);

impl Unique {
    /// An empty set with a key of its own: nobody can craft two URLs with one hash.
    #[allow(clippy::new_without_default)] // its key makes each one different
    pub fn new() -> Unique {
        Unique {
            key: random_key(),
            partitions: (0..PARTITIONS).map(|_| Partition::default()).collect(),
            old: Vec::new(),
        }
    }

    /// The key to hash with.
    pub fn key(&self) -> (u64, u64) {
        self.key
    }

    /// Adds hashes in their order; appends to `known` the indices of those that were there.
    pub fn insert(&mut self, hashes: &[u128], known: &mut Vec<u32>) {
        self.fetch(hashes, 0);
        for (i, &hash) in hashes.iter().enumerate() {
            if i % GROUP == 0 {
                self.fetch(hashes, i + GROUP);
            }
            let number = partition(hash);
            let partition = &mut self.partitions[number];
            if partition.is_full() {
                partition.grow(&mut self.old);
            }
            if !partition.insert(key(hash)) {
                known.push(i as u32);
            }
        }
    }

    /// Asks for the memory where the hashes of a group are or will be.
    fn fetch(&self, hashes: &[u128], from: usize) {
        for &hash in hashes.iter().skip(from).take(GROUP) {
            let buckets = &self.partitions[partition(hash)].buckets;
            let at = home(key(hash), buckets.len());
            buckets.get(at).inspect(|bucket| prefetch(*bucket));
            // often that one is full
            buckets.get(at + 1).inspect(|bucket| prefetch(*bucket));
        }
    }
}

/// By bits that are not kept.
fn partition(hash: u128) -> usize {
    (hash >> 118) as usize
}

fn key(hash: u128) -> Key {
    (hash as u64, (hash >> 64) as u16)
}

/// Where a key belongs; in a table of twice the size at twice the place, so that growing goes
/// through both in order.
fn home(key: Key, buckets: usize) -> usize {
    ((u128::from(key.0) * buckets as u128) >> 64) as usize
}

impl Partition {
    /// At 4/5: a new key looks at two buckets then on average, at 6/7 at four.
    #[inline]
    fn is_full(&self) -> bool {
        self.used * 5 >= self.buckets.len() * KEYS * 4
    }

    #[inline]
    fn insert(&mut self, key: Key) -> bool {
        let mut at = home(key, self.buckets.len());
        loop {
            if self.buckets[at].holds(key) {
                return false;
            }
            if self.buckets[at].push(key) {
                self.used += 1;
                return true;
            }
            at = self.after(at);
        }
    }

    fn after(&self, at: usize) -> usize {
        if at + 1 == self.buckets.len() { 0 } else { at + 1 }
    }

    #[cold]
    fn grow(&mut self, old: &mut Vec<Bucket>) {
        old.clone_from(&self.buckets);
        self.buckets.fill(Bucket::default());
        self.buckets.resize((old.len() * 2).max(FIRST), Bucket::default());
        for bucket in old {
            for key in bucket.keys() {
                let mut at = home(key, self.buckets.len());
                while !self.buckets[at].push(key) {
                    at = self.after(at);
                }
            }
        }
    }
}

impl Bucket {
    fn keys(&self) -> impl Iterator<Item = Key> {
        self.low.into_iter().zip(self.high).take(self.used as usize)
    }

    #[inline]
    fn holds(&self, key: Key) -> bool {
        // without a branch for each: nearly always there is none
        self.low.iter().fold(false, |any, &low| any | (low == key.0))
            && self.keys().any(|k| k == key)
    }

    /// False where it is full.
    #[inline]
    fn push(&mut self, (low, high): Key) -> bool {
        let at = self.used as usize;
        if at == KEYS {
            return false;
        }
        (self.low[at], self.high[at]) = (low, high);
        self.used += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn it_knows_what_a_plain_set_knows() {
        let mut unique = Unique::new();
        let mut plain = HashSet::new();
        let mut seed = 1u128;
        for round in 0..200 {
            let hashes: Vec<u128> = (0..round * 7)
                .map(|_| {
                    seed = seed.wrapping_mul(0x2d99787926d46932a4c1f32680f70c55).wrapping_add(1);
                    // few enough to repeat, in all partitions, with the odd zero
                    ((seed >> 64) % 20_000).wrapping_mul(0x9e41_8937_4bc6_a7ef_9db2_2d0e_5604_1893)
                })
                .collect();
            let mut known = Vec::new();
            unique.insert(&hashes, &mut known);
            let expected: Vec<u32> =
                (0..hashes.len() as u32).filter(|&i| !plain.insert(hashes[i as usize])).collect();
            assert_eq!(known, expected);
        }
        assert!(plain.len() > 10_000);
    }

    #[test]
    fn keys_that_meet_in_few_buckets_are_told_apart() {
        let mut unique = Unique::new();
        let mut plain = HashSet::new();
        let mut hashes = Vec::new();
        for high in 0..300u128 {
            // the first and the last home of the first and the last partition; the last runs over
            // into the first
            for low in [0, 1, u128::from(u64::MAX) - 1, u128::from(u64::MAX)] {
                for partition in [0u128, 1023] {
                    hashes.push(partition << 118 | (high * 217 % 300) << 64 | low);
                }
            }
        }
        for hashes in [&hashes[..1_000], &hashes[500..], &hashes] {
            let mut known = Vec::new();
            unique.insert(hashes, &mut known);
            let expected: Vec<u32> =
                (0..hashes.len() as u32).filter(|&i| !plain.insert(hashes[i as usize])).collect();
            assert_eq!(known, expected);
        }
        assert_eq!(plain.len(), 2_400);
    }
}
