//! A prefix that most texts of a run share.

/// The number of bytes that are compared at once.
const HEAD: usize = 32;

/// A prefix that is compared without a function call (measured: 4 ns per row).
#[derive(Debug, Clone)]
pub(crate) struct Prefix {
    text: Vec<u8>,
    /// its first bytes, and a mask of the bits to compare
    head: [u64; HEAD / 8],
    mask: [u64; HEAD / 8],
}

impl Prefix {
    pub fn new(text: &[u8]) -> Prefix {
        let (mut head, mut mask) = ([0; HEAD], [0; HEAD]);
        for ((to, bits), &byte) in head.iter_mut().zip(&mut mask).zip(text) {
            (*to, *bits) = (byte, 0xff);
        }
        Prefix { text: text.to_vec(), head: words(&head), mask: words(&mask) }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }

    /// Whether `text` begins with it.
    #[inline]
    pub fn begins(&self, text: &[u8]) -> bool {
        let Some(head) = text.first_chunk::<HEAD>() else { return text.starts_with(&self.text) };
        let head = words(head);
        let other =
            (0..head.len()).fold(0, |other, i| other | (head[i] ^ self.head[i]) & self.mask[i]);
        other == 0 && (self.text.len() <= HEAD || text.starts_with(&self.text))
    }
}

#[inline]
fn words(bytes: &[u8; HEAD]) -> [u64; HEAD / 8] {
    let mut words = [0; HEAD / 8];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_comparison_byte_by_byte() {
        let long: Vec<u8> = (0..80).collect();
        for length in 0..70 {
            let prefix = Prefix::new(&long[..length]);
            assert_eq!(prefix.as_bytes(), &long[..length]);
            for end in 0..long.len() {
                assert_eq!(prefix.begins(&long[..end]), end >= length, "{length} {end}");
            }
            for wrong in 0..long.len() {
                let mut text = long.clone();
                text[wrong] ^= 0x80;
                assert_eq!(prefix.begins(&text), wrong >= length, "{length} {wrong}");
            }
        }
    }
}
