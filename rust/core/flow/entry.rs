//! The record of one `<url>` element.

use crate::sitemap::age::Ages;
use crate::sitemap::date::Order;

/// No lastmod, in [`Entry::newest`].
pub const NO_LASTMOD: Order = Order::MIN;

/// The first bytes of each XML element; its loc follows.
pub const ELEMENT_START: &[u8] = b"<url><loc>";
/// The offset of the loc in an XML element.
pub const LOC_OFFSET: usize = ELEMENT_START.len();

/// The properties of one `<url>` that later stages use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Bytes in the chunk.
    pub len: u32,
    /// The row of the batch that it was made from.
    pub row: u32,
    /// Its lastmod; [`NO_LASTMOD`] if it has none.
    pub newest: Order,
    /// The extension namespaces that it uses, a bit each.
    pub namespaces: u8,
}

/// The totals of all entries of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// The namespaces that any of them uses.
    pub namespaces: u8,
    /// The number of news articles.
    pub news: u32,
    /// The newest lastmod.
    pub newest: Order,
    /// The oldest; [`NO_LASTMOD`] if an entry has none.
    pub oldest: Order,
    /// The ages of all; zeros if they are not counted.
    pub ages: Ages,
}
