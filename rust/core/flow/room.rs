//! Bytes that are in memory for one purpose, counted as long as their owners live.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A count of bytes that several threads see.
#[derive(Debug, Clone, Default)]
pub struct Room(Arc<AtomicUsize>);

/// Counts some bytes until it is dropped.
#[derive(Debug)]
pub struct Charge {
    room: Room,
    bytes: usize,
}

impl Room {
    /// Counts so many bytes more.
    pub fn charge(&self, bytes: usize) -> Charge {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Charge { room: self.clone(), bytes }
    }

    /// The bytes that are counted now.
    pub fn used(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.room.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
