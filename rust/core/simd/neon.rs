//! The vectors of ARM, with the same functions as `avx2.rs`. Every 64-bit ARM CPU has NEON.

use std::arch::aarch64::*;

use crate::UNCHECKED;

/// The bit of each high nibble; 0 from 0x8 on.
const HIGH: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 0, 0, 0, 0, 0, 0, 0, 0];
/// The bit of each byte of a mask.
const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

/// Whether this CPU has NEON.
#[inline]
pub fn available() -> bool {
    std::arch::is_aarch64_feature_detected!("neon")
}

/// The table of a set, and the bits of the high nibbles.
#[derive(Clone, Copy)]
pub struct Tables {
    low: uint8x16_t,
    high: uint8x16_t,
}

impl Tables {
    /// The tables of a set.
    #[inline]
    #[target_feature(enable = "neon")]
    pub fn new(low: &[u8; 16]) -> Tables {
        Tables { low: load(low), high: load(&HIGH) }
    }

    /// A bit for each byte that does not belong to the set.
    #[inline]
    #[target_feature(enable = "neon")]
    pub fn outside32(self, bytes: &[u8; 32]) -> u32 {
        let [low, high] = bytes.as_chunks::<16>().0 else { unreachable!() };
        self.outside16(low) | self.outside16(high) << 16
    }

    /// The same for half of a block.
    #[inline]
    #[target_feature(enable = "neon")]
    pub fn outside16(self, bytes: &[u8; 16]) -> u32 {
        self.outside(load(bytes))
    }

    /// The same for twice eight bytes.
    #[inline]
    #[target_feature(enable = "neon")]
    pub fn outside8(self, first: [u8; 8], second: [u8; 8]) -> u32 {
        let [first, second] = [first, second].map(|half| vcreate_u8(u64::from_le_bytes(half)));
        self.outside(vcombine_u8(first, second))
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn outside(self, block: uint8x16_t) -> u32 {
        let bits =
            vandq_u8(look_up(self.low, block), vqtbl1q_u8(self.high, vshrq_n_u8::<4>(block)));
        let outside = vandq_u8(vceqzq_u8(bits), load(&BITS));
        u32::from(vaddv_u8(vget_low_u8(outside))) | u32::from(vaddv_u8(vget_high_u8(outside))) << 8
    }
}

/// The structural characters of CSV, and what all blocks have in common.
pub struct Csv {
    found: uint8x16_t,
    delimiter: uint8x16_t,
    least: uint8x16_t,
    all: uint8x16_t,
}

impl Csv {
    /// Before the first block.
    #[inline]
    #[target_feature(enable = "neon")]
    pub fn new(found: &[u8; 16], delimiter: u8) -> Csv {
        Csv {
            found: load(found),
            delimiter: vdupq_n_u8(delimiter),
            least: vdupq_n_u8(0xff),
            all: vdupq_n_u8(0),
        }
    }

    /// A bit for each structural character of a block.
    #[inline]
    #[target_feature(enable = "neon")]
    pub fn mask(&mut self, block: &[u8; 64]) -> u64 {
        let [a, b, c, d] = block.as_chunks::<16>().0 else { unreachable!() };
        let [a, b, c, d] = [self.quarter(a), self.quarter(b), self.quarter(c), self.quarter(d)];
        // three sums of neighbours make one byte of the mask of eight
        let sums = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)))
    }

    /// The bits of the mask, each in its own byte.
    #[inline]
    #[target_feature(enable = "neon")]
    fn quarter(&mut self, bytes: &[u8; 16]) -> uint8x16_t {
        let block = load(bytes);
        if !UNCHECKED {
            self.least = vminq_u8(self.least, block);
            self.all = vorrq_u8(self.all, block);
        }
        let found = vceqq_u8(look_up(self.found, block), block);
        vandq_u8(vorrq_u8(found, vceqq_u8(self.delimiter, block)), load(&BITS))
    }

    /// Whether all bytes were ASCII.
    #[inline]
    #[target_feature(enable = "neon")]
    pub fn is_ascii(&self) -> bool {
        vmaxvq_u8(self.all) < 0x80
    }

    /// Whether there was a NUL.
    #[inline]
    #[target_feature(enable = "neon")]
    pub fn has_nul(&self) -> bool {
        vminvq_u8(self.least) == 0
    }
}

/// The entry of each byte by its low nibble; 0 for bytes from 0x80 on, which are indices out of range.
#[inline]
#[target_feature(enable = "neon")]
fn look_up(table: uint8x16_t, block: uint8x16_t) -> uint8x16_t {
    vqtbl1q_u8(table, vandq_u8(block, vdupq_n_u8(0x8f)))
}

/// The compiler makes one load of both words, without a pointer.
#[inline]
#[target_feature(enable = "neon")]
fn load(bytes: &[u8; 16]) -> uint8x16_t {
    let [first, second] = bytes.as_chunks::<8>().0 else { unreachable!() };
    let [first, second] = [first, second].map(|word| vcreate_u8(u64::from_le_bytes(*word)));
    vcombine_u8(first, second)
}
