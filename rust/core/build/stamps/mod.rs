//! The times at which the content of URLs last changed (`--lastmod-from`), from build to build.
//!
//! ```text
//! stamps of the URLs that the last build wrote, 18 bytes each, in the order of its input
//! stamps of URLs that are gone, 26 bytes each: with the time since when
//! digests of the lists of columns that the inputs had, 8 bytes each
//! trailer: version, counts, key of the hashes
//! ```
//!
//! All numbers are little-endian. [`open`] makes an index of the file in a temporary one; its digest,
//! which the manifest has, is checked while rows are read. [`log`] writes the file of this build.

pub mod digest;
pub mod index;
pub mod log;
pub mod open;
pub mod syncer;

/// The first bytes of the trailer; another version has others.
pub(crate) const MAGIC: [u8; 8] = *b"urlset\0\x02";
/// Bytes of the trailer.
pub(crate) const TRAILER: usize = 8 + 3 * 4 + 2 * 8;
