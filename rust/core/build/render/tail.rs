//! What stands behind a loc: short parts of known lengths.

/// What follows a loc. Its parts are short and of known lengths: room for all of them is made once,
/// and each is written where it stays (measured: ten that each ask whether there is room take 20 ns
/// a row more).
pub(crate) struct Tail {
    bytes: Vec<u8>,
    end: usize,
}

/// `</loc><lastmod>` 20 `</lastmod><changefreq>` 7 `</changefreq><priority>` 3 `</priority></url>`
/// and a line break take 108 bytes; the room for a lastmod, 20, is there before one is written.
const TAIL: usize = 128;

impl Tail {
    /// What is written goes behind `bytes`.
    #[inline]
    pub fn new(mut bytes: Vec<u8>) -> Tail {
        let end = bytes.len();
        bytes.extend_from_slice(&[0; TAIL]);
        Tail { bytes, end }
    }

    #[inline]
    pub fn push<const N: usize>(&mut self, part: &[u8; N]) {
        self.bytes[self.end..self.end + N].copy_from_slice(part);
        self.end += N;
    }

    /// Lets `write` fill what comes next; it tells how many bytes are of use, and what it makes of
    /// them. Nothing was written if it has `None`.
    #[inline]
    pub fn fill<const N: usize, T>(
        &mut self,
        write: impl FnOnce(&mut [u8; N]) -> Option<(usize, T)>,
    ) -> Option<T> {
        let (length, made) = write(self.bytes[self.end..].first_chunk_mut()?)?;
        self.end += length;
        Some(made)
    }

    /// Takes back what was written from `end` on.
    #[inline]
    pub fn cut(&mut self, end: usize) {
        self.end = end;
    }

    /// Where the next byte goes.
    #[inline]
    pub fn end(&self) -> usize {
        self.end
    }

    #[inline]
    pub fn push_text(&mut self, text: &[u8]) {
        self.bytes[self.end..self.end + text.len()].copy_from_slice(text);
        self.end += text.len();
    }

    /// The bytes with what was written.
    #[inline]
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.bytes.truncate(self.end);
        self.bytes
    }
}
