//! Warnings about all URLs together.

use crate::build::duplicates::variants::Variants;
use crate::flow::chunk::Chunk;
use crate::flow::entry::NO_LASTMOD;
use crate::flow::outcome::Outcome;
use crate::flow::sample::Rate;
use crate::sitemap::date::Order;

/// Minimum number of URLs for the warning, as in `verify`: fewer may have changed at the same time.
const MIN_SAME_LASTMOD: u64 = 10;

/// Collects the warnings from all chunks.
#[derive(Default)]
pub(crate) struct Warnings {
    variants: Variants,
    lastmod: CommonLastmod,
}

/// The lastmod that all entries so far have in common.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum CommonLastmod {
    /// There was no entry yet.
    #[default]
    Unknown,
    /// All entries so far have this one.
    All(Order),
    /// There are two, or an entry without one.
    None,
}

impl Warnings {
    /// Evaluates a chunk.
    pub fn add(&mut self, chunk: &mut Chunk, rate: &Rate) {
        self.variants.add(&chunk.samples, rate);
        self.lastmod.add(chunk);
    }

    /// Adds the warnings to the outcome.
    pub fn finish(&self, outcome: &mut Outcome) {
        let variants = self.variants.count();
        if variants > 0 {
            outcome.notes.insert("loc.variant", variants);
        }
        if matches!(self.lastmod, CommonLastmod::All(_)) && outcome.urls >= MIN_SAME_LASTMOD {
            outcome.notes.insert("lastmod.same", outcome.urls);
        }
    }
}

impl CommonLastmod {
    fn add(&mut self, chunk: &mut Chunk) {
        if *self == CommonLastmod::None || chunk.entries.is_empty() {
            return;
        }
        if chunk.totals.is_none() {
            chunk.sum_up(None);
        }
        let Some(totals) = chunk.totals else { return };
        let same = totals.oldest == totals.newest && totals.newest != NO_LASTMOD;
        *self = match *self {
            CommonLastmod::Unknown if same => CommonLastmod::All(totals.newest),
            CommonLastmod::All(one) if same && one == totals.newest => CommonLastmod::All(one),
            _ => CommonLastmod::None,
        };
    }
}
