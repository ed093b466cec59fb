//! Finds characters of an ASCII set and the structural characters of CSV, 32 bytes at a time if the
//! CPU has AVX2.
//!
//! # For maintainers
//!
//! **The table.** A set is a table of 16 bytes, indexed by the low nibble of a byte. Bit `h` of the
//! table's byte is set if the character with the high nibble `h` belongs to the set. Every set of
//! ASCII characters is representable.
//!
//! **What must stay true.** Each AVX2 function has a plain twin with the same result, which also runs
//! on other CPUs. Loads never leave the slice: the last block overlaps the one before it. The
//! `target_feature` functions are called only after `is_x86_feature_detected`. The `unsafe` code of the
//! crate is here and in the import of Arrow's C interface (`build/read/stream.rs`, `import.rs`).
//!
//! **Which tests fail.** The tests below try every byte value at every position and every length
//! around the block sizes. `scripts/sanitize` runs them under the address sanitizer, which
//! finds loads outside of the slice.

#![allow(unsafe_code)] // the loads and calls of AVX2, and the prefetch

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
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the line above has checked that this CPU has AVX2.
            return unsafe { avx2::find::<MEMBER>(&self.low, bytes) };
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
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        done = text.len() / 64 * 64;
        // SAFETY: the line above has checked that this CPU has AVX2.
        seen = unsafe { avx2::csv_masks(&text[..done], delimiter, masks) };
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

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{AsciiSet, TextProperties};
    use crate::UNCHECKED;
    use std::arch::x86_64::*;

    /// The bit of each high nibble; 0 from 0x8 on.
    const HIGH: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 0, 0, 0, 0, 0, 0, 0, 0];

    /// [`AsciiSet::first_in`] or [`AsciiSet::first_not_in`]. The caller has checked for AVX2.
    #[target_feature(enable = "avx2")]
    pub fn find<const MEMBER: bool>(low: &[u8; 16], bytes: &[u8]) -> Option<usize> {
        let len = bytes.len();
        let start = bytes.as_ptr();
        // SAFETY: both tables are 16 bytes long; loadu requires no alignment.
        let (low_table, high_table) = unsafe {
            (_mm_loadu_si128(low.as_ptr().cast()), _mm_loadu_si128(HIGH.as_ptr().cast()))
        };
        if len >= 32 {
            let tables =
                (_mm256_set_m128i(low_table, low_table), _mm256_set_m128i(high_table, high_table));
            let mut at = 0;
            loop {
                // SAFETY: `at + 32 <= len` is true in the first iteration (len >= 32) and, as
                // `at` becomes at most `len - 32` below, at each later one.
                let block = unsafe { _mm256_loadu_si256(start.add(at).cast()) };
                let hits = hits32::<MEMBER>(tables, block);
                if hits != 0 {
                    return Some(at + hits.trailing_zeros() as usize);
                }
                if at + 32 == len {
                    return None;
                }
                // The last block overlaps the one before it.
                at = (at + 32).min(len - 32);
            }
        }
        if len >= 16 {
            // SAFETY: the first and the last 16 bytes are inside, since len >= 16.
            let (head, tail) = unsafe {
                (_mm_loadu_si128(start.cast()), _mm_loadu_si128(start.add(len - 16).cast()))
            };
            let hits = hits16::<MEMBER>((low_table, high_table), head)
                | hits16::<MEMBER>((low_table, high_table), tail) << (len - 16);
            return first(hits);
        }
        if let (Some(head), Some(tail)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
            let both = _mm_set_epi64x(i64::from_le_bytes(*tail), i64::from_le_bytes(*head));
            let hits = hits16::<MEMBER>((low_table, high_table), both);
            return first((hits & 0xff) | (hits >> 8) << (len - 8));
        }
        AsciiSet { low: *low }.find_scalar::<MEMBER>(bytes)
    }

    #[inline]
    fn first(hits: u32) -> Option<usize> {
        (hits != 0).then(|| hits.trailing_zeros() as usize)
    }

    /// [`super::csv_masks`] of a text whose length is a multiple of 64.
    #[target_feature(enable = "avx2")]
    pub fn csv_masks(text: &[u8], delimiter: u8, masks: &mut Vec<u64>) -> TextProperties {
        // `"`, LF and CR have different low nibbles. The shuffle looks up each byte by its low nibble
        // and returns the only one of them that it can be equal to, another byte if there is none,
        // and 0 for bytes from 0x80 on.
        let found = _mm256_broadcastsi128_si256(_mm_setr_epi8(
            1, 0, 0x22, 0, 0, 0, 0, 0, 0, 0, 0x0a, 0, 0, 0x0d, 0, 0,
        ));
        let delimiter = _mm256_set1_epi8(delimiter.cast_signed());
        let (mut least, mut all) = (_mm256_set1_epi8(-1), _mm256_setzero_si256());
        let mut half = |bytes: &[u8; 32]| {
            // SAFETY: the array has 32 bytes; loadu requires no alignment.
            let block = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
            if !UNCHECKED {
                least = _mm256_min_epu8(least, block);
                all = _mm256_or_si256(all, block);
            }
            let hits = _mm256_or_si256(
                _mm256_cmpeq_epi8(_mm256_shuffle_epi8(found, block), block),
                _mm256_cmpeq_epi8(delimiter, block),
            );
            u64::from(_mm256_movemask_epi8(hits).cast_unsigned())
        };
        let pairs = text.as_chunks::<32>().0.as_chunks::<2>().0;
        masks.extend(pairs.iter().map(|[low, high]| half(low) | half(high) << 32));
        let nuls = _mm256_cmpeq_epi8(least, _mm256_setzero_si256());
        TextProperties {
            ascii: _mm256_movemask_epi8(all) == 0,
            nul: _mm256_movemask_epi8(nuls) != 0,
        }
    }

    /// A bit for each byte of the block that belongs (`MEMBER`) or does not belong to the set. The
    /// shuffle returns 0 for bytes from 0x80 on.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn hits32<const MEMBER: bool>((low, high): (__m256i, __m256i), block: __m256i) -> u32 {
        let nibble = _mm256_and_si256(_mm256_srli_epi16(block, 4), _mm256_set1_epi8(15));
        let bits =
            _mm256_and_si256(_mm256_shuffle_epi8(low, block), _mm256_shuffle_epi8(high, nibble));
        let outside = _mm256_movemask_epi8(_mm256_cmpeq_epi8(bits, _mm256_setzero_si256())) as u32;
        if MEMBER { !outside } else { outside }
    }

    /// The same for 16 bytes.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn hits16<const MEMBER: bool>((low, high): (__m128i, __m128i), block: __m128i) -> u32 {
        let nibble = _mm_and_si128(_mm_srli_epi16(block, 4), _mm_set1_epi8(15));
        let bits = _mm_and_si128(_mm_shuffle_epi8(low, block), _mm_shuffle_epi8(high, nibble));
        let outside = _mm_movemask_epi8(_mm_cmpeq_epi8(bits, _mm_setzero_si128())) as u32;
        if MEMBER { !outside & 0xffff } else { outside }
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
