//! The limits of the protocol (sitemaps.org; the byte limit as of 2016-11-30).

/// Entries of a urlset, of a text sitemap and of an index.
pub const MAX_ENTRIES: u64 = 50_000;
/// Bytes of a file before compression: 50 MiB.
pub const MAX_BYTES: u64 = 52_428_800;
/// Characters of a URL: fewer than 2,048.
pub const MAX_URL_CHARS: usize = 2_047;
/// Characters of a URL: the least that the schema allows.
pub const MIN_URL_CHARS: usize = 12;
