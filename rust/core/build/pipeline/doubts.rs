//! What all URLs together say of the data.

use crate::build::duplicates::variants::Variants;
use crate::flow::chunk::Chunk;
use crate::flow::entry::NO_LASTMOD;
use crate::flow::outcome::Outcome;
use crate::sitemap::date::Order;

/// Fewer URLs may well have changed at one time; `verify` has the same number.
const SAME_FROM: u64 = 10;

/// Whether all entries have one lastmod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Same {
    /// There was no entry yet.
    Unknown,
    /// This one.
    All(Order),
    /// There are two, or an entry without one.
    No,
}

impl Same {
    /// Looks at the entries of a chunk.
    pub fn add(&mut self, chunk: &mut Chunk) {
        if *self == Same::No || chunk.entries.is_empty() {
            return;
        }
        if chunk.totals.is_none() {
            chunk.sum_up();
        }
        let Some(sum) = chunk.totals else { return };
        let fits = sum.oldest == sum.newest && sum.newest != NO_LASTMOD;
        *self = match *self {
            Same::Unknown if fits => Same::All(sum.newest),
            Same::All(one) if fits && one == sum.newest => Same::All(one),
            _ => Same::No,
        };
    }
}

/// Counts what is worth a word.
pub(crate) fn note_doubts(outcome: &mut Outcome, variants: &Variants, lastmod: &Same) {
    let alike = variants.count();
    if alike > 0 {
        outcome.notes.insert("loc.variant", alike);
    }
    if matches!(lastmod, Same::All(_)) && outcome.urls >= SAME_FROM {
        outcome.notes.insert("lastmod.same", outcome.urls);
    }
}
