//! A set of 128-bit keyed hashes: the URLs, or the keys of groups, that were seen.
//!
//! # For maintainers
//!
//! **The table.** Open addressing in 1,024 partitions that grow one at a time. A bucket is one cache
//! line of 64 bytes with six keys. At a load of 0.4 to 0.8 a key takes 13 to 27 bytes, and only the
//! partition that grows needs one and a half times its memory.
//!
//! **What must stay true.**
//! - 10 bits of a hash choose the partition, and 80 other bits are stored. With a random key per
//!   run, the probability of a false duplicate among `n` URLs is n² / 2⁹¹: 4e-14 for 10 million URLs
//!   and 1e-10 for 500 million. Fewer stored bits make false duplicates real.
//! - A bucket fills from its start and keys are never removed, so a lookup may stop at the first
//!   bucket that is not full.
//! - The home bucket doubles with the size of the table, so growing reads and writes in order.
//!
//! **What was tried.** `hashbrown::HashTable` in the same partitions, with keys of 10 bytes: 2.85 s
//! instead of 2.6 s of CPU time for a build of 2 M rows with `--duplicates drop --threads 1`, and the
//! difference grows with the rows, since it cannot prefetch.
//!
//! The tests below compare it with `std::collections::HashSet`, also for keys that collide in the
//! first and the last bucket.

use crate::simd::prefetch;

const PARTITIONS: usize = 1 << 10;
/// Buckets of a new partition.
const FIRST_BUCKETS: usize = 8;
/// Keys of a bucket.
const BUCKET_KEYS: usize = 6;
/// The number of keys whose buckets are prefetched together, so that their cache and TLB misses
/// overlap. In a build of 10 M rows a key takes 57 ns; without prefetching 72 to 77 ns.
const GROUP: usize = 16;

/// The set.
pub struct KeySet {
    partitions: Vec<Partition>,
    /// the buckets of a partition before it grows; a buffer that all partitions use in turn
    old: Vec<Bucket>,
}

/// A table. A key is in its home bucket or, if that is full, in one of the next buckets.
#[derive(Default)]
struct Partition {
    buckets: Vec<Bucket>,
    used: usize,
}

/// The first `used` keys, in two parts.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Bucket {
    low: [u64; BUCKET_KEYS],
    high: [u16; BUCKET_KEYS],
    used: u32,
}

/// The stored bits of a hash.
type Key = (u64, u16);

impl Default for KeySet {
    fn default() -> KeySet {
        let partitions = (0..PARTITIONS).map(|_| Partition::default()).collect();
        KeySet { partitions, old: Vec::new() }
    }
}

impl KeySet {
    /// Adds hashes in their order; appends to `known` the indices of those that were in the set.
    pub fn insert(&mut self, hashes: &[u128], known: &mut Vec<u32>) {
        self.prefetch_group(hashes, 0);
        for (i, &hash) in hashes.iter().enumerate() {
            if i % GROUP == 0 {
                self.prefetch_group(hashes, i + GROUP);
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

    /// Prefetches the buckets of a group of hashes.
    fn prefetch_group(&self, hashes: &[u128], from: usize) {
        for &hash in hashes.iter().skip(from).take(GROUP) {
            let buckets = &self.partitions[partition(hash)].buckets;
            let at = home(key(hash), buckets.len());
            buckets.get(at).inspect(|bucket| prefetch(*bucket));
            // the home bucket is often full
            buckets.get(at + 1).inspect(|bucket| prefetch(*bucket));
        }
    }
}

/// Chosen by bits that are not stored.
fn partition(hash: u128) -> usize {
    (hash >> 118) as usize
}

fn key(hash: u128) -> Key {
    (hash as u64, (hash >> 64) as u16)
}

/// The home bucket of a key. In a table of twice the size it is at twice the index.
fn home(key: Key, buckets: usize) -> usize {
    ((u128::from(key.0) * buckets as u128) >> 64) as usize
}

impl Partition {
    /// At a load of 4/5 a new key needs two buckets on average, at 6/7 it needs four.
    #[inline]
    fn is_full(&self) -> bool {
        self.used * 5 >= self.buckets.len() * BUCKET_KEYS * 4
    }

    #[inline]
    fn insert(&mut self, key: Key) -> bool {
        let mut at = home(key, self.buckets.len());
        loop {
            if self.buckets[at].contains(key) {
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
        self.buckets.resize((old.len() * 2).max(FIRST_BUCKETS), Bucket::default());
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
    fn contains(&self, key: Key) -> bool {
        // one branch for all six keys: nearly always none matches
        self.low.iter().fold(false, |any, &low| any | (low == key.0))
            && self.keys().any(|k| k == key)
    }

    /// Adds a key; returns false if the bucket is full.
    #[inline]
    fn push(&mut self, (low, high): Key) -> bool {
        let at = self.used as usize;
        if at == BUCKET_KEYS {
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
    fn agrees_with_a_plain_set() {
        let mut set = KeySet::default();
        let mut plain = HashSet::new();
        let mut seed = 1u128;
        for round in 0..200 {
            let hashes: Vec<u128> = (0..round * 7)
                .map(|_| {
                    seed = seed.wrapping_mul(0x2d99787926d46932a4c1f32680f70c55).wrapping_add(1);
                    // few enough to repeat, in all partitions, including zeros
                    ((seed >> 64) % 20_000).wrapping_mul(0x9e41_8937_4bc6_a7ef_9db2_2d0e_5604_1893)
                })
                .collect();
            let mut known = Vec::new();
            set.insert(&hashes, &mut known);
            let expected: Vec<u32> =
                (0..hashes.len() as u32).filter(|&i| !plain.insert(hashes[i as usize])).collect();
            assert_eq!(known, expected);
        }
        assert!(plain.len() > 10_000);
    }

    #[test]
    fn keys_that_share_buckets_are_distinguished() {
        let mut set = KeySet::default();
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
            set.insert(hashes, &mut known);
            let expected: Vec<u32> =
                (0..hashes.len() as u32).filter(|&i| !plain.insert(hashes[i as usize])).collect();
            assert_eq!(known, expected);
        }
        assert_eq!(plain.len(), 2_400);
    }
}
