//! Buffers of chunks for reuse: fresh memory costs a page fault for every 4 KiB.

use std::sync::{Arc, Mutex};

use crate::flow::entry::Entry;
use crate::flow::stamps::stamp::Stamped;

/// The vectors of a [`crate::flow::chunk::Chunk`] that every row of a usual build fills.
#[derive(Debug, Default)]
pub struct Buffers {
    /// Elements.
    pub bytes: Vec<u8>,
    /// An entry for each.
    pub entries: Vec<Entry>,
    /// The keyed hash of each loc.
    pub keys: Vec<u128>,
    /// The boundary hash of each loc.
    pub boundaries: Vec<u64>,
    /// The stamp of each URL.
    pub stamps: Vec<Stamped>,
}

impl Buffers {
    /// Their bytes in memory.
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
            + self.entries.capacity() * size_of::<Entry>()
            + self.keys.capacity() * size_of::<u128>()
            + self.boundaries.capacity() * size_of::<u64>()
            + self.stamps.capacity() * size_of::<Stamped>()
    }

    /// Removes the contents and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.keys.clear();
        self.boundaries.clear();
        self.stamps.clear();
    }
}

/// Unused buffers. The last one in is the first one out: it is most likely still in a cache.
#[derive(Debug, Clone, Default)]
pub struct Pool(Arc<Mutex<Unused>>);

#[derive(Debug, Default)]
struct Unused {
    buffers: Vec<Buffers>,
    bytes: usize,
}

impl Pool {
    /// Limit of the bytes of all unused buffers; further buffers are freed.
    const MAX_BYTES: usize = 128 << 20;

    /// Empty buffers.
    pub fn take(&self) -> Buffers {
        let Ok(mut unused) = self.0.lock() else { return Buffers::default() };
        let mut buffers = unused.buffers.pop().unwrap_or_default();
        unused.bytes = unused.bytes.saturating_sub(buffers.memory());
        drop(unused);
        buffers.clear();
        buffers
    }

    /// Takes buffers back.
    pub fn give(&self, used: Buffers) {
        let bytes = used.memory();
        if bytes > 0
            && let Ok(mut unused) = self.0.lock()
            && unused.bytes + bytes <= Self::MAX_BYTES
        {
            unused.bytes += bytes;
            unused.buffers.push(used);
        }
    }
}
