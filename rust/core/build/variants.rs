//! Locs that differ only in case or in a slash at their end: one page under two addresses, as a
//! rule. They are counted exactly among the first [`MOST`] URLs; of more, in a sample.
//!
//! The sample is chosen by a hash of what such locs have in common, so both of a pair are in it or
//! neither. Each time that it grows beyond [`MOST`], half of it goes: memory stays bounded, and what
//! remains depends on the URLs alone, neither on their order nor on threads.

use std::collections::HashMap;
use std::hash::Hasher;
use std::sync::atomic::{AtomicU32, Ordering};

use siphasher::sip::SipHasher13;

/// Maximum of URLs in the sample: 0.4 MB. With ten times as many, 2 M rows take 3 % more CPU time.
const MOST: usize = 10_000;
/// How many bytes at the end of a loc choose whether it is in the sample.
const TAIL: usize = 32;

/// Which URLs are in the sample: one of 2^this. Shared by all that render.
#[derive(Debug, Default)]
pub struct Rate(AtomicU32);

/// A loc of the sample.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Which rates it is part of.
    level: u32,
    /// A hash of it without case and slash.
    common: u64,
    /// A hash of it.
    exact: u64,
}

impl Rate {
    /// The sample of a loc, if it is in it. `key` keeps anybody from making locs meet; `scratch` is
    /// overwritten.
    #[inline]
    pub fn sample(&self, key: (u64, u64), loc: &[u8], scratch: &mut Vec<u8>) -> Option<Sample> {
        let level = level(loc);
        (level >= self.0.load(Ordering::Relaxed)).then(|| Sample::new(key, level, loc, scratch))
    }
}

impl Sample {
    #[cold]
    fn new(key: (u64, u64), level: u32, loc: &[u8], scratch: &mut Vec<u8>) -> Sample {
        let hash = |bytes: &[u8]| {
            let mut hasher = SipHasher13::new_with_keys(key.0, key.1);
            hasher.write(bytes);
            hasher.finish()
        };
        scratch.clear();
        scratch.extend_from_slice(without_slash(loc));
        scratch.make_ascii_lowercase();
        Sample { level, common: hash(scratch), exact: hash(loc) }
    }
}

/// The level of a loc: n with probability 2^-n. It is the same for all locs that differ only in case
/// and in a slash at the end.
///
/// Called for every row. The four products do not depend on each other, so the CPU computes them at
/// the same time; a chain of four takes twice as long.
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

/// Counts them.
#[derive(Debug, Default)]
pub struct Variants {
    level: u32,
    /// by what they have in common: one of them, its level, and whether there is another
    seen: HashMap<u64, (u64, u32, bool)>,
}

impl Variants {
    /// Takes samples, and tells `rate` when there are too many.
    pub fn add(&mut self, samples: &[Sample], rate: &Rate) {
        for sample in samples {
            // it was taken before the others of its level were dropped
            if sample.level < self.level {
                continue;
            }
            let first = (sample.exact, sample.level, false);
            let known = self.seen.entry(sample.common).or_insert(first);
            known.2 |= known.0 != sample.exact;
            while self.seen.len() > MOST {
                self.level += 1;
                self.seen.retain(|_, known| known.1 >= self.level);
                rate.0.store(self.level, Ordering::Relaxed);
            }
        }
    }

    /// How many pages of the sample have several addresses.
    pub fn count(&self) -> u64 {
        self.seen.values().filter(|known| known.2).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count<'a>(locs: impl Iterator<Item = &'a String>) -> (u64, u32) {
        let (rate, mut variants) = (Rate::default(), Variants::default());
        for loc in locs {
            let sample = rate.sample((1, 2), loc.as_bytes(), &mut Vec::new());
            variants.add(sample.as_slice(), &rate);
        }
        assert!(variants.seen.len() <= MOST);
        (variants.count(), variants.level)
    }

    #[test]
    fn few_are_counted_exactly() {
        let locs = |list: &[&str]| list.iter().map(|&loc| loc.to_owned()).collect::<Vec<_>>();
        for (list, wanted) in [
            (&["https://a.example/p", "https://a.example/p"][..], 0),
            (&["https://a.example/p", "https://a.example/q", "https://a.example"], 0),
            (&["https://a.example/p", "https://a.example/P"], 1),
            (&["https://a.example/p", "https://a.example/p/"], 1),
            (&["https://a.example", "https://A.example/"], 1),
            (&["https://a.example/%c3%bc", "https://a.example/%C3%BC", "https://a.example/x"], 1),
            (&["/a", "/A", "/a/", "/b", "/B", "/b", "/c"], 2),
            (&["", "/", "//"], 1),
        ] {
            assert_eq!(count(locs(list).iter()).0, wanted, "{list:?}");
        }
        let long = "x".repeat(5_000);
        assert_eq!(count([format!("/{long}"), format!("/{long}/")].iter()).0, 1);
    }

    #[test]
    fn many_are_a_sample_that_no_order_changes() {
        let mut locs: Vec<String> = (0..150_000)
            .flat_map(|i| {
                let loc = format!("https://www.shop.example/products/item-{i}");
                let twin = (i % 10 == 0).then(|| loc.replace("item", "Item"));
                [Some(loc), twin].into_iter().flatten()
            })
            .collect();
        let (found, level) = count(locs.iter());
        let rate = (1 << level) as f64;
        assert!((3..=5).contains(&level));
        let estimate = found as f64 * rate;
        assert!((12_500.0..17_500.0).contains(&estimate), "{estimate}");
        locs.reverse();
        assert_eq!(count(locs.iter()), (found, level));
        locs.sort_by_key(|loc| (loc.len(), loc.bytes().rev().collect::<Vec<_>>()));
        assert_eq!(count(locs.iter()), (found, level));
    }
}
