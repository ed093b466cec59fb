//! The sample of locs in which near-duplicates are counted: locs that differ only in case or in a
//! slash at their end, usually one page under two addresses.
//!
//! The sample is chosen by a hash of what near-duplicates have in common, so both of a pair are in
//! it or neither. It depends on the URLs alone, neither on their order nor on threads.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::flow::hash::HashKey;

/// The number of bytes at the end of a loc that choose whether it is in the sample.
const TAIL: usize = 32;

/// The sampling rate: one of 2^level URLs is in the sample. Shared by all renderers.
#[derive(Debug, Default)]
pub struct Rate(AtomicU32);

/// A loc of the sample.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// The highest level of a rate at which it is in the sample.
    pub level: u32,
    /// A hash of it without case and slash.
    pub common: u64,
    /// A hash of it.
    pub exact: u64,
}

impl Rate {
    /// The sample of a loc, if it is in the sample. `key` is secret, so that no input can make locs
    /// collide; `scratch` is overwritten.
    #[inline]
    pub fn sample(&self, key: HashKey, loc: &[u8], scratch: &mut Vec<u8>) -> Option<Sample> {
        let level = level(loc);
        (level >= self.0.load(Ordering::Relaxed)).then(|| Sample::new(key, level, loc, scratch))
    }

    /// Halves the sample for each level more.
    pub fn set(&self, level: u32) {
        self.0.store(level, Ordering::Relaxed);
    }
}

impl Sample {
    #[cold]
    fn new(key: HashKey, level: u32, loc: &[u8], scratch: &mut Vec<u8>) -> Sample {
        scratch.clear();
        scratch.extend_from_slice(without_slash(loc));
        scratch.make_ascii_lowercase();
        let common = key.hash64(scratch);
        // most locs are in lower case, without a slash at their end
        let exact = if scratch == loc { common } else { key.hash64(loc) };
        Sample { level, common, exact }
    }
}

/// The number of leading zeros of a hash of the end of a loc, without case and slash.
///
/// It runs for every row, so it hashes whole words. The four products do not depend on each other:
/// the CPU computes them at the same time, where a chain of four waits for each.
#[inline]
fn level(loc: &[u8]) -> u32 {
    const ODD: [u64; 4] = [
        0x9e37_79b9_7f4a_7c15,
        0xbf58_476d_1ce4_e5b9,
        0x94d0_49bb_1331_11eb,
        0xd6e8_feb8_6659_fd93,
    ];
    let loc = without_slash(loc);
    let mut tail = [0; TAIL];
    match loc.last_chunk::<TAIL>() {
        Some(last) => tail = *last,
        None => tail[..loc.len()].copy_from_slice(loc),
    }
    let mut mixed = 0_u64;
    for (word, odd) in tail.as_chunks().0.iter().zip(ODD) {
        // Letters lose their case. Other characters that become equal do no harm.
        let product = (u64::from_le_bytes(*word) | 0x2020_2020_2020_2020).wrapping_mul(odd);
        mixed ^= product ^ product >> 32;
    }
    (mixed ^ mixed >> 29).wrapping_mul(ODD[0]).leading_zeros()
}

fn without_slash(loc: &[u8]) -> &[u8] {
    loc.strip_suffix(b"/").unwrap_or(loc)
}
