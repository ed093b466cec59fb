//! Counts near-duplicates: locs that differ only in case or in a slash at their end. The count is
//! exact for the first [`MAX_SAMPLE`] URLs, and that of a sample for more.
//!
//! Each time that the sample grows beyond [`MAX_SAMPLE`], half of it is dropped: memory is bounded,
//! and the rest depends on the URLs alone.

use std::collections::HashMap;

use crate::flow::sample::{Rate, Sample};

/// Limit of the URLs in the sample: 0.4 MB. With ten times as many, 2 M rows take 3 % more CPU time.
const MAX_SAMPLE: usize = 10_000;

/// The near-duplicates of the sample.
#[derive(Debug, Default)]
pub struct Variants {
    level: u32,
    /// by the hash of their common part
    pages: HashMap<u64, Page>,
}

/// Locs that are probably one page.
#[derive(Debug)]
struct Page {
    /// the hash of the first of its locs
    exact: u64,
    level: u32,
    /// it has another loc
    several: bool,
}

impl Variants {
    /// Takes samples, and lowers `rate` when there are too many.
    pub fn add(&mut self, samples: &[Sample], rate: &Rate) {
        for sample in samples {
            // it was taken before the others of its level were dropped
            if sample.level < self.level {
                continue;
            }
            let first = Page { exact: sample.exact, level: sample.level, several: false };
            let page = self.pages.entry(sample.common).or_insert(first);
            page.several |= page.exact != sample.exact;
            while self.pages.len() > MAX_SAMPLE {
                self.level += 1;
                self.pages.retain(|_, page| page.level >= self.level);
                rate.set(self.level);
            }
        }
    }

    /// The number of pages of the sample that have several addresses.
    pub fn count(&self) -> u64 {
        self.pages.values().filter(|page| page.several).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::hash::HashKey;

    fn count<'a>(locs: impl Iterator<Item = &'a String>) -> (u64, u32) {
        let (rate, mut variants) = (Rate::default(), Variants::default());
        let key = HashKey::random();
        for loc in locs {
            let sample = rate.sample(key, loc.as_bytes(), &mut Vec::new());
            variants.add(sample.as_slice(), &rate);
        }
        assert!(variants.pages.len() <= MAX_SAMPLE);
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
