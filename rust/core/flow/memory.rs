//! Memory that is in use for one purpose, counted for as long as its owners live.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A count of bytes that threads share.
#[derive(Debug, Clone, Default)]
pub struct MemoryUse(Arc<AtomicUsize>);

/// Counts some bytes until it is dropped.
#[derive(Debug)]
pub struct Charge {
    memory: MemoryUse,
    bytes: usize,
}

impl MemoryUse {
    /// Adds bytes to the count until the result is dropped.
    pub fn charge(&self, bytes: usize) -> Charge {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Charge { memory: self.clone(), bytes }
    }

    /// The current count in bytes.
    pub fn used(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.memory.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
