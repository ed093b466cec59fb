//! The vectors of x86-64 with AVX2. All functions are safe to call from a function that enables AVX2;
//! any other caller checks [`available`] first.

use std::arch::x86_64::*;

use crate::UNCHECKED;

/// The bit of each high nibble; 0 from 0x8 on.
const HIGH: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 0, 0, 0, 0, 0, 0, 0, 0];

/// Whether this CPU has AVX2.
#[inline]
pub fn available() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

/// The table of a set, and the bits of the high nibbles, each twice.
#[derive(Clone, Copy)]
pub struct Tables {
    low: __m256i,
    high: __m256i,
}

impl Tables {
    /// The tables of a set.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn new(low: &[u8; 16]) -> Tables {
        let twice = |table: &[u8; 16]| _mm256_broadcastsi128_si256(load16(table));
        Tables { low: twice(low), high: twice(&HIGH) }
    }

    /// A bit for each byte that does not belong to the set. The shuffle returns 0 for bytes from 0x80
    /// on.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn outside32(self, bytes: &[u8; 32]) -> u32 {
        let block = load32(bytes);
        let nibble = _mm256_and_si256(_mm256_srli_epi16(block, 4), _mm256_set1_epi8(15));
        let bits = _mm256_and_si256(
            _mm256_shuffle_epi8(self.low, block),
            _mm256_shuffle_epi8(self.high, nibble),
        );
        _mm256_movemask_epi8(_mm256_cmpeq_epi8(bits, _mm256_setzero_si256())).cast_unsigned()
    }

    /// The same for half of a block.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn outside16(self, bytes: &[u8; 16]) -> u32 {
        self.outside(load16(bytes))
    }

    /// The same for twice eight bytes.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn outside8(self, first: [u8; 8], second: [u8; 8]) -> u32 {
        self.outside(_mm_set_epi64x(i64::from_le_bytes(second), i64::from_le_bytes(first)))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn outside(self, block: __m128i) -> u32 {
        let [low, high] = [self.low, self.high].map(|table| _mm256_castsi256_si128(table));
        let nibble = _mm_and_si128(_mm_srli_epi16(block, 4), _mm_set1_epi8(15));
        let bits = _mm_and_si128(_mm_shuffle_epi8(low, block), _mm_shuffle_epi8(high, nibble));
        _mm_movemask_epi8(_mm_cmpeq_epi8(bits, _mm_setzero_si128())).cast_unsigned()
    }
}

/// The structural characters of CSV, and what all blocks have in common.
pub struct Csv {
    found: __m256i,
    delimiter: __m256i,
    least: __m256i,
    all: __m256i,
}

impl Csv {
    /// Before the first block.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn new(found: &[u8; 16], delimiter: u8) -> Csv {
        Csv {
            found: _mm256_broadcastsi128_si256(load16(found)),
            delimiter: _mm256_set1_epi8(delimiter.cast_signed()),
            least: _mm256_set1_epi8(-1),
            all: _mm256_setzero_si256(),
        }
    }

    /// A bit for each structural character of a block.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn mask(&mut self, block: &[u8; 64]) -> u64 {
        let [low, high] = block.as_chunks::<32>().0 else { unreachable!() };
        u64::from(self.half(low)) | u64::from(self.half(high)) << 32
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn half(&mut self, bytes: &[u8; 32]) -> u32 {
        let block = load32(bytes);
        if !UNCHECKED {
            self.least = _mm256_min_epu8(self.least, block);
            self.all = _mm256_or_si256(self.all, block);
        }
        let hits = _mm256_or_si256(
            _mm256_cmpeq_epi8(_mm256_shuffle_epi8(self.found, block), block),
            _mm256_cmpeq_epi8(self.delimiter, block),
        );
        _mm256_movemask_epi8(hits).cast_unsigned()
    }

    /// Whether all bytes were ASCII.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn is_ascii(&self) -> bool {
        _mm256_movemask_epi8(self.all) == 0
    }

    /// Whether there was a NUL.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn has_nul(&self) -> bool {
        _mm256_movemask_epi8(_mm256_cmpeq_epi8(self.least, _mm256_setzero_si256())) != 0
    }
}

/// The words of a block; the compiler makes one load of them, without a pointer.
#[inline]
fn words<const BYTES: usize, const WORDS: usize>(bytes: &[u8; BYTES]) -> [i64; WORDS] {
    let words = bytes.as_chunks::<8>().0;
    std::array::from_fn(|i| i64::from_le_bytes(words[i]))
}

#[inline]
#[target_feature(enable = "avx2")]
fn load16(bytes: &[u8; 16]) -> __m128i {
    let [a, b] = words(bytes);
    _mm_set_epi64x(b, a)
}

#[inline]
#[target_feature(enable = "avx2")]
fn load32(bytes: &[u8; 32]) -> __m256i {
    let [a, b, c, d] = words(bytes);
    _mm256_setr_epi64x(a, b, c, d)
}
