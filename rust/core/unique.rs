//! Which locs came before: a set of 128-bit keyed hashes.
//!
//! Open addressing in 1,024 partitions that grow one at a time: at a load of 0.43 to 0.86 a key
//! takes 19 to 37 bytes, and while a partition grows only that one is there twice.

use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;

use crate::error::Result;

const PARTITIONS: usize = 1 << 10;
/// Slots of a new partition.
const FIRST: usize = 64;

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
}

/// What the runs of one build have seen: a URL of one set is a duplicate in the next.
#[derive(Default)]
pub struct Seen(Mutex<Option<Unique>>);

impl Seen {
    /// What the run before has seen, or an empty set.
    pub fn take(&self) -> Result<Unique> {
        match self.0.lock().ok().and_then(|mut seen| seen.take()) {
            Some(unique) => Ok(unique),
            None => Unique::new(),
        }
    }

    /// For the next run.
    pub fn give(&self, unique: Unique) {
        if let Ok(mut seen) = self.0.lock() {
            *seen = Some(unique);
        }
    }
}

/// A table of hashes whose slot 0 stands for an empty one.
#[derive(Default)]
struct Partition {
    slots: Vec<u128>,
    used: usize,
}

impl Unique {
    /// An empty set with a key of its own: nobody can craft two URLs with one hash.
    pub fn new() -> Result<Unique> {
        Ok(Unique {
            key: random_key(),
            partitions: (0..PARTITIONS).map(|_| Partition::default()).collect(),
        })
    }

    /// The key to hash with.
    pub fn key(&self) -> (u64, u64) {
        self.key
    }

    /// Adds hashes in their order; appends to `known` the indices of those that were there.
    pub fn insert(&mut self, hashes: &[u128], known: &mut Vec<u32>) {
        // Groups: the first look at each slot is a wait for memory, and 32 waits overlap.
        // Measured with 10 M keys: 52 ns a key so, 118 ns one by one.
        for (group, hashes) in hashes.chunks(32).enumerate() {
            let mut warm = 0;
            for hash in hashes {
                warm |= self.partitions[partition(*hash)].peek(*hash);
            }
            std::hint::black_box(warm);
            for (i, hash) in hashes.iter().enumerate() {
                // an empty slot is 0, so the hash 0 counts as 1
                if !self.partitions[partition(*hash)].insert((*hash).max(1)) {
                    known.push((group * 32 + i) as u32);
                }
            }
        }
    }
}

/// By bits that do not choose the slot.
fn partition(hash: u128) -> usize {
    (hash >> 118) as usize
}

impl Partition {
    #[inline]
    fn peek(&self, hash: u128) -> u128 {
        if self.slots.is_empty() { 0 } else { self.slots[hash as usize & (self.slots.len() - 1)] }
    }

    #[inline]
    fn insert(&mut self, hash: u128) -> bool {
        // at most 6/7 full
        if self.used * 7 >= self.slots.len() * 6 {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at] != 0 {
            if self.slots[at] == hash {
                return false;
            }
            at = (at + 1) & mask;
        }
        self.slots[at] = hash;
        self.used += 1;
        true
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(FIRST);
        let old = std::mem::replace(&mut self.slots, vec![0; size]);
        let mask = size - 1;
        for hash in old.into_iter().filter(|hash| *hash != 0) {
            let mut at = hash as usize & mask;
            while self.slots[at] != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = hash;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn it_knows_what_a_plain_set_knows() {
        let mut unique = Unique::new().unwrap();
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
            let expected: Vec<u32> = (0..hashes.len() as u32)
                .filter(|&i| !plain.insert(hashes[i as usize].max(1)))
                .collect();
            assert_eq!(known, expected);
        }
        assert!(plain.len() > 10_000);
    }
}
