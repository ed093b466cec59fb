//! The one generator of random numbers of the tests: seeded, so that a failure can be repeated.

/// A linear congruential generator (Knuth's MMIX constants).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator that always returns the same numbers for the same seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A number below `limit`, of 31 random bits.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}
