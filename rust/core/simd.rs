//! Finds characters of an ASCII set and the structural characters of CSV, with the vectors of the CPU:
//! AVX2 on x86-64, NEON on ARM.
//!
//! # For maintainers
//!
//! **The table.** A set is a table of 16 bytes, indexed by the low nibble of a byte. Bit `h` of the
//! table's byte is set if the character with the high nibble `h` belongs to the set. Every set of
//! ASCII characters is representable.
//!
//! **What must stay true.** `avx2.rs` and `neon.rs` have the same functions, and no pointers: a block
//! is an array. Each function that uses them has a plain twin with the same result, which also runs on
//! other CPUs. They are called only where the CPU has their instructions. The `unsafe` code of the
//! crate is here and in the import of Arrow's C interface (`build/read/stream.rs`, `import.rs`).
//!
//! **Which tests fail.** The tests below try every byte value at every position and every length
//! around the block sizes. `scripts/check-targets` runs them for ARM, in an emulator.

#![allow(unsafe_code)] // two calls of functions with vectors, and the prefetch

#[cfg(target_arch = "x86_64")]
#[path = "simd/avx2.rs"]
mod vectors;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
#[path = "simd/neon.rs"]
mod vectors;

/// A set of ASCII characters. Bytes from 0x80 on never belong to it.
#[derive(Clone, Copy, Debug)]
pub struct AsciiSet {
    low: [u8; 16],
}

impl AsciiSet {
    /// The set of the given characters.
    ///
    /// # Panics
    /// While compiling, when a byte is not ASCII: sets are constants.
    pub const fn new(members: &[u8]) -> AsciiSet {
        let mut low = [0; 16];
        let mut at = 0;
        while at < members.len() {
            assert!(members[at].is_ascii(), "only ASCII belongs to an AsciiSet");
            low[(members[at] & 15) as usize] |= 1 << (members[at] >> 4);
            at += 1;
        }
        AsciiSet { low }
    }

    /// Whether a byte belongs to the set.
    #[inline]
    pub const fn contains(&self, byte: u8) -> bool {
        byte < 0x80 && (self.low[(byte & 15) as usize] >> (byte >> 4)) & 1 != 0
    }

    /// The offset of the first byte that belongs to the set.
    #[inline]
    pub fn first_in(&self, bytes: &[u8]) -> Option<usize> {
        self.find::<true>(bytes)
    }

    /// The offset of the first byte that does not belong to the set.
    #[inline]
    pub fn first_not_in(&self, bytes: &[u8]) -> Option<usize> {
        self.find::<false>(bytes)
    }

    #[inline]
    fn find<const MEMBER: bool>(&self, bytes: &[u8]) -> Option<usize> {
        #[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
        if bytes.len() >= 8 && vectors::available() {
            // SAFETY: the line above has checked that this CPU has the instructions.
            return unsafe { blocks::find::<MEMBER>(&self.low, bytes) };
        }
        self.find_scalar::<MEMBER>(bytes)
    }

    #[inline]
    fn find_scalar<const MEMBER: bool>(&self, bytes: &[u8]) -> Option<usize> {
        bytes.iter().position(|&byte| self.contains(byte) == MEMBER)
    }
}

/// Prefetches a cache line, on CPUs that can.
#[inline]
pub fn prefetch<T>(line: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing, and SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(line).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

/// Properties of a text, which the same pass over it finds at almost no cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextProperties {
    /// All bytes are ASCII.
    pub ascii: bool,
    /// There is a NUL.
    pub nul: bool,
}

/// Computes a word for each 64 bytes of `text`, whose bits mark `delimiter`, `"`, LF and CR.
pub fn csv_masks(text: &[u8], delimiter: u8, masks: &mut Vec<u64>) -> TextProperties {
    masks.clear();
    masks.reserve(text.len() / 64 + 1);
    let mut seen = TextProperties { ascii: true, nul: false };
    let mut done = 0;
    #[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
    if vectors::available() {
        let whole = text.as_chunks().0;
        done = whole.len() * 64;
        // SAFETY: the line above has checked that this CPU has the instructions.
        seen = unsafe { blocks::csv_masks(whole, delimiter, masks) };
    }
    let rest = &text[done..];
    masks.extend(rest.chunks(64).map(|chunk| csv_mask(chunk, delimiter)));
    TextProperties { ascii: seen.ascii && rest.is_ascii(), nul: seen.nul || rest.contains(&0) }
}

/// The mask of at most 64 bytes.
fn csv_mask(chunk: &[u8], delimiter: u8) -> u64 {
    chunk.iter().enumerate().fold(0, |mask, (i, &c)| {
        mask | u64::from(c == delimiter || matches!(c, b'"' | b'\n' | b'\r')) << i
    })
}

/// The same with the vectors of the CPU.
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little")))]
mod blocks {
    use super::TextProperties;
    use super::vectors::{Csv, Tables};

    /// `"`, LF and CR by their low nibbles, which differ. Every other entry is a byte with another low
    /// nibble: a byte is structural if it is its own entry.
    const FOUND: [u8; 16] = [1, 0, b'"', 0, 0, 0, 0, 0, 0, 0, b'\n', 0, 0, b'\r', 0, 0];

    /// [`super::AsciiSet::first_in`] or [`super::AsciiSet::first_not_in`] of at least eight bytes.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon"))]
    pub fn find<const MEMBER: bool>(low: &[u8; 16], bytes: &[u8]) -> Option<usize> {
        let tables = Tables::new(low);
        let first = |hits: u32| (hits != 0).then(|| hits.trailing_zeros() as usize);
        let hits = |outside: u32| if MEMBER { !outside } else { outside };
        let length = bytes.len();
        if length >= 32 {
            let whole = bytes.as_chunks::<32>().0;
            for (number, block) in whole.iter().enumerate() {
                if let Some(at) = first(hits(tables.outside32(block))) {
                    return Some(number * 32 + at);
                }
            }
            if length.is_multiple_of(32) {
                return None;
            }
            // the last block overlaps the one before it
            let last = bytes[length - 32..].first_chunk()?;
            return first(hits(tables.outside32(last))).map(|at| length - 32 + at);
        }
        if length >= 16 {
            let (head, tail) = (bytes.first_chunk()?, bytes[length - 16..].first_chunk()?);
            let [head, tail] = [head, tail].map(|half| hits(tables.outside16(half)) & 0xffff);
            return first(head | tail << (length - 16));
        }
        let (head, tail) = (bytes.first_chunk()?, bytes.last_chunk()?);
        let both = hits(tables.outside8(*head, *tail)) & 0xffff;
        first((both & 0xff) | (both >> 8) << (length - 8))
    }

    /// [`super::csv_masks`] of whole blocks.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon"))]
    pub fn csv_masks(blocks: &[[u8; 64]], delimiter: u8, masks: &mut Vec<u64>) -> TextProperties {
        let mut csv = Csv::new(&FOUND, delimiter);
        masks.extend(blocks.iter().map(|block| csv.mask(block)));
        TextProperties { ascii: csv.is_ascii(), nul: csv.has_nul() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMBERS: &[u8] = b"\0\x07!/09:@AZ[`az{\x7f&";
    const SET: AsciiSet = AsciiSet::new(MEMBERS);

    fn check(bytes: &[u8]) {
        let member = |byte: &u8| MEMBERS.contains(byte);
        assert_eq!(SET.first_in(bytes), bytes.iter().position(member), "{bytes:?}");
        assert_eq!(SET.first_not_in(bytes), bytes.iter().position(|b| !member(b)), "{bytes:?}");
        assert_eq!(SET.find_scalar::<true>(bytes), SET.first_in(bytes));
        assert_eq!(SET.find_scalar::<false>(bytes), SET.first_not_in(bytes));
    }

    #[test]
    fn every_alignment_length_and_position() {
        for (filler, odd) in [(b'a', b'b'), (b'b', b'a')] {
            let mut buffer = [filler; 240];
            for from in 0..32 {
                for len in 0..=200 {
                    // Bytes outside of the slice must not count.
                    buffer[from + len] = odd;
                    check(&buffer[from..from + len]);
                    buffer[from + len] = filler;
                }
                for len in [1, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 200] {
                    for at in from..from + len {
                        buffer[at] = odd;
                        check(&buffer[from..from + len]);
                        buffer[at] = filler;
                    }
                }
            }
        }
    }

    #[test]
    fn every_byte_value_at_every_position() {
        for filler in [b'a', b'b'] {
            for len in 0..=70 {
                let mut bytes = vec![filler; len];
                for at in 0..len {
                    for value in 0..=255 {
                        bytes[at] = value;
                        check(&bytes);
                    }
                    bytes[at] = filler;
                }
            }
        }
    }

    #[test]
    fn csv_masks_mark_the_structural_characters() {
        let text: Vec<u8> =
            (0..1000u32).map(|i| b",\"\n\r;ab\xffz"[(i * i % 31 % 9) as usize]).collect();
        for delimiter in [b',', b';', b'a'] {
            for from in 0..70 {
                for to in [from, from + 1, from + 63, from + 64, from + 65, from + 200, 1000] {
                    let text = &text[from..to];
                    let mut masks = Vec::new();
                    let seen = csv_masks(text, delimiter, &mut masks);
                    assert_eq!(seen, TextProperties { ascii: !text.contains(&0xff), nul: false });
                    assert_eq!(masks.len(), text.len().div_ceil(64));
                    for (i, &c) in text.iter().enumerate() {
                        let marked = (masks[i / 64] >> (i % 64)) & 1 == 1;
                        assert_eq!(marked, c == delimiter || b"\"\n\r".contains(&c));
                    }
                }
            }
        }
    }

    #[test]
    fn csv_masks_at_every_byte_value_and_place() {
        for filler in [b'a', b'\n'] {
            for len in [1, 31, 32, 63, 64, 65, 130] {
                let mut text = vec![filler; len];
                for at in 0..len {
                    for value in 0..=255 {
                        text[at] = value;
                        let mut masks = Vec::new();
                        let seen = csv_masks(&text, b';', &mut masks);
                        let expected = TextProperties { ascii: value < 0x80, nul: value == 0 };
                        assert_eq!(seen, expected, "{value} at {at} of {len}");
                        let marked = (masks[at / 64] >> (at % 64)) & 1 == 1;
                        assert_eq!(marked, b"\"\n\r;".contains(&value), "{value} at {at} of {len}");
                        let other = masks.iter().map(|mask| mask.count_ones()).sum::<u32>();
                        let others = if filler == b'\n' { len as u32 - 1 } else { 0 };
                        assert_eq!(other - u32::from(marked), others);
                    }
                    text[at] = filler;
                }
            }
        }
    }
}
