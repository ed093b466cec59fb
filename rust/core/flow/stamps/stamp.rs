//! The stamp of a URL.

use crate::flow::entry::NO_LASTMOD;
use crate::sitemap::date::Order;

/// Bytes of a stamp.
pub const STAMP_BYTES: usize = 18;
/// Bytes of the stamp of a URL that is gone: with the time since when, in seconds since 1970.
pub const GONE_BYTES: usize = STAMP_BYTES + 8;
/// Bits of a hash.
pub const HASH_BITS: u32 = 48;
const HASH_MASK: u64 = (1 << HASH_BITS) - 1;
/// The content of a stamp that cannot be compared.
pub const UNKNOWN: u64 = 0;
/// No content: no stamp has it.
pub const NO_CONTENT: u64 = u64::MAX;
/// No stamp, in [`Stamped::old`].
pub const NO_STAMP: u32 = u32::MAX;

/// The stamp of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The hash of its loc.
    pub key: u64,
    /// The hash of its content.
    pub content: u64,
    /// The lastmod that it was given, or [`NO_LASTMOD`].
    pub lastmod: Order,
}

impl Stamp {
    /// Writes it as the file has it.
    #[inline]
    pub fn write(self, bytes: &mut [u8; STAMP_BYTES]) {
        let lastmod = if self.lastmod == NO_LASTMOD { 0 } else { self.lastmod as u64 };
        // in whole words, each of which replaces the end of the one before
        let end = self.content >> 32 & 0xffff | lastmod << 16;
        for (at, word) in [(0, self.key), (6, self.content), (10, end)] {
            if let Some(place) = bytes[at..].first_chunk_mut() {
                *place = word.to_le_bytes();
            }
        }
    }

    /// The hash of the loc in the bytes of a stamp.
    #[inline]
    pub fn key_of(bytes: &[u8; STAMP_BYTES]) -> u64 {
        word(bytes, 0) & HASH_MASK
    }

    /// From the bytes of a file.
    #[inline]
    pub fn from_bytes(bytes: &[u8; STAMP_BYTES]) -> Stamp {
        let lastmod = match word(bytes, 10) >> 16 {
            0 => NO_LASTMOD,
            order => order as Order,
        };
        let content = word(bytes, 6) & HASH_MASK;
        Stamp { key: Stamp::key_of(bytes), content, lastmod }
    }
}

/// Eight bytes at once: a copy of six would be read back before it is complete, which stalls.
#[inline]
fn word(bytes: &[u8; STAMP_BYTES], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

/// What happened to a URL since the last build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Its content is the same.
    Kept,
    /// Its content is another one.
    Changed,
    /// Its content is another one, but its lastmod is later than now.
    ClockBehind,
    /// Its content cannot be compared, since the columns are others.
    Adopted,
    /// There is no stamp of it.
    Added,
}

/// The stamp that a URL gets if it is written.
#[derive(Debug, Clone, Copy)]
pub struct Stamped {
    /// The stamp.
    pub stamp: Stamp,
    /// What happened.
    pub change: Change,
    /// A stamp of the same URL in the last build, or [`NO_STAMP`].
    pub old: u32,
}
