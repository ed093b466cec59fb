//! Hashes of URLs: keyed ones that no input can predict, and one that is the same in every run.

use std::hash::{BuildHasher, RandomState};

use siphasher::{sip, sip128};

/// A hash of 64 bits in the making.
pub type KeyHasher = sip::SipHasher13;

/// A secret key. An attacker who does not know it cannot craft two URLs with the same hash.
#[derive(Debug, Clone, Copy)]
pub struct HashKey {
    low: u64,
    high: u64,
}

impl HashKey {
    /// A new random key.
    pub fn random() -> HashKey {
        // the standard library seeds its hash maps from the random numbers of the system
        let random = || RandomState::new().hash_one(0u8);
        HashKey { low: random(), high: random() }
    }

    /// A key that is the same in every run, and public.
    pub const fn fixed(low: u64, high: u64) -> HashKey {
        HashKey { low, high }
    }

    /// Its two halves, to keep it for another run.
    pub fn parts(self) -> (u64, u64) {
        (self.low, self.high)
    }

    /// 128 bits.
    #[inline]
    pub fn hash128(self, bytes: &[u8]) -> u128 {
        sip128::SipHasher13::new_with_keys(self.low, self.high).hash(bytes).as_u128()
    }

    /// 64 bits.
    #[inline]
    pub fn hash64(self, bytes: &[u8]) -> u64 {
        self.hasher().hash(bytes)
    }

    /// The same for bytes that are not all known at once.
    #[inline]
    pub fn hasher(self) -> KeyHasher {
        KeyHasher::new_with_keys(self.low, self.high)
    }
}

/// The hash of a loc that chooses where shards end under the stable layout. It has a fixed key, so
/// that every run chooses the same boundaries.
#[inline]
pub fn boundary_hash(loc: &[u8]) -> u64 {
    HashKey::fixed(0, 0).hash64(loc)
}
