//! What stands behind a loc: short parts of known lengths.

/// What follows a loc, put together on the stack: its parts are short and of known lengths, and
/// one copy of it costs less than ten that each ask whether there is room (measured: 20 ns a row).
pub(super) struct Tail {
    bytes: [u8; TAIL],
    length: usize,
}

/// `</loc><lastmod>` 20 `</lastmod><changefreq>` 7 `</changefreq><priority>` 3 `</priority></url>`
/// take 107 bytes; a part is copied in a piece of up to 20.
const TAIL: usize = 128;

impl Tail {
    #[inline]
    pub fn new() -> Tail {
        Tail { bytes: [0; TAIL], length: 0 }
    }

    #[inline]
    pub fn push<const N: usize>(&mut self, part: &[u8; N]) {
        self.bytes[self.length..self.length + N].copy_from_slice(part);
        self.length += N;
    }

    /// The first `length` bytes of `part`; what is behind them will be overwritten.
    #[inline]
    pub fn push_part<const N: usize>(&mut self, part: &[u8; N], length: usize) {
        self.bytes[self.length..self.length + N].copy_from_slice(part);
        self.length += length;
    }

    #[inline]
    pub fn push_text(&mut self, text: &[u8]) {
        self.bytes[self.length..self.length + text.len()].copy_from_slice(text);
        self.length += text.len();
    }

    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}
