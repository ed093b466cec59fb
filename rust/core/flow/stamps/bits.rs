//! A set of small numbers.

/// A set of small numbers.
#[derive(Debug, Default, Clone)]
pub struct Bits(Vec<u64>);

impl Bits {
    /// For numbers below `count`.
    pub fn new(count: u32) -> Bits {
        Bits(vec![0; (count as usize).div_ceil(64)])
    }

    /// Whether it contains a number.
    #[inline]
    pub fn contains(&self, number: u32) -> bool {
        self.0.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Adds a number; beyond the count it does nothing.
    #[inline]
    pub fn insert(&mut self, number: u32) {
        if let Some(word) = self.0.get_mut(number as usize / 64) {
            *word |= 1 << (number % 64);
        }
    }

    /// The numbers below `count` that it does not contain.
    pub fn missing(&self, count: u32) -> impl Iterator<Item = u32> {
        let words = self.0.iter().enumerate().filter(|(_, word)| **word != u64::MAX);
        words
            .flat_map(|(at, word)| {
                (0..64).filter(move |bit| word >> bit & 1 == 0).map(move |bit| at as u32 * 64 + bit)
            })
            .filter(move |&number| number < count)
    }
}
