//! Hashes of URLs: keyed ones that no input can predict, and one that is the same in every run.

use std::hash::{BuildHasher, RandomState};

use rapidhash::v3::{RapidSecrets, rapidhash_v3_micro_inline};
use siphasher::{sip, sip128};

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
        sip::SipHasher13::new_with_keys(self.low, self.high).hash(bytes)
    }
}

/// A fast hash with a secret key, the same in all versions and on all systems. It is for data whose
/// author gains nothing by two values with the same hash.
#[derive(Debug, Clone, Copy)]
pub struct FastHash(RapidSecrets);

impl FastHash {
    /// With a key.
    pub fn new(key: HashKey) -> FastHash {
        let mut secrets = RapidSecrets::seed(key.low);
        secrets.seed ^= key.high;
        FastHash(secrets)
    }

    /// 64 bits.
    pub fn of(&self, bytes: &[u8]) -> u64 {
        rapidhash_v3_micro_inline::<true, true>(bytes, &self.0)
    }
}

/// The hash of a loc that chooses where shards end under the stable layout. It has a fixed key, so
/// that every run chooses the same boundaries.
#[inline]
pub fn boundary_hash(loc: &[u8]) -> u64 {
    HashKey::fixed(0, 0).hash64(loc)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_hash_is_that_of_the_files_of_former_builds() {
        let hash = FastHash::new(HashKey::fixed(1, 2));
        let bytes: Vec<u8> = (0..=255).collect();
        let found = [0, 3, 15, 80, 256].map(|length| hash.of(&bytes[..length]));
        let former = [
            7_422_642_187_284_333_781,
            1_772_259_519_821_314_556,
            8_099_563_695_535_300_901,
            8_193_701_723_907_898_569,
            9_412_310_178_538_318_837,
        ];
        assert_eq!(found, former);
    }
}
