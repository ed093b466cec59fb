//! A limit for the rendered bytes that wait for the collector.
//!
//! The output of a batch can be many times its input: a row with 100 languages becomes 100 elements
//! with 100 links each. So a worker passes its chunks on one by one, and only while few bytes wait.
//!
//! # For maintainers
//!
//! **Why there is no deadlock:**
//!
//! 1. The collector takes chunks in the order of the batches. It waits for the next chunk of the
//!    current batch, for shards to be compressed, or for the sorter, which waits only for the disk.
//! 2. The workers take batches in order. If any worker has a batch, the current batch was taken before,
//!    and a worker has it, unless it is done. If no worker has one, nothing waits at this gate, and the
//!    workers are free for the next batch.
//! 3. A chunk of the current batch passes in any case, if no other chunk of that batch waits: then the
//!    collector has nothing to do, or will soon. Each chunk that it takes makes room for the next.
//! 4. A worker that waits here compresses shards meanwhile. So shards are compressed even if all
//!    workers wait, and the collector can dispatch the next shard.
//! 5. The reader waits for buffers and for memory of batches. Both return when a batch is done, which
//!    happens by 1 to 4. One batch is read in any case.
//!
//! The bytes that wait are limited to [`Gate::MAX_MEMORY`] and the one chunk of 3.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lets rendered chunks pass to the collector.
#[derive(Debug, Default)]
pub(crate) struct Gate(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// bytes of the chunks that wait
    bytes: usize,
    /// chunks that wait, by batch
    waiting: BTreeMap<u64, usize>,
    /// the current batch
    current: u64,
}

impl Gate {
    /// Limit of the bytes of the chunks that wait.
    pub const MAX_MEMORY: usize = 16 << 20;

    /// Whether a chunk of a batch may pass; if so, its bytes are counted.
    pub fn enter(&self, batch: u64, bytes: usize) -> bool {
        let mut state = self.state();
        let next = state.current == batch && !state.waiting.contains_key(&batch);
        let fits = state.bytes.saturating_add(bytes) <= Gate::MAX_MEMORY;
        if next || fits {
            state.bytes += bytes;
            *state.waiting.entry(batch).or_default() += 1;
        }
        next || fits
    }

    /// Called when the collector takes a chunk of the current batch.
    pub fn leave(&self, bytes: usize) {
        let mut state = self.state();
        state.bytes = state.bytes.saturating_sub(bytes);
        let current = state.current;
        if let Some(count) = state.waiting.get_mut(&current) {
            *count -= 1;
            if *count == 0 {
                state.waiting.remove(&current);
            }
        }
    }

    /// Sets the current batch.
    pub fn advance(&self, batch: u64) {
        self.state().current = batch;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_batch_always_passes_and_waiting_bytes_are_bounded() {
        let gate = Gate::default();
        let half = Gate::MAX_MEMORY / 2;
        assert!(gate.enter(1, half) && gate.enter(2, half));
        assert!(!gate.enter(1, 1) && !gate.enter(7, 1));
        // the current one, once
        assert!(gate.enter(0, 10 * half));
        assert!(!gate.enter(0, 1));
        gate.leave(10 * half);
        assert!(gate.enter(0, half));
        gate.leave(half);
        // a chunk of it already waits
        gate.advance(1);
        assert!(!gate.enter(1, 1));
        gate.leave(half);
        assert!(gate.enter(1, 3 * half));
        assert!(!gate.enter(2, 1));
        gate.leave(3 * half);
        gate.advance(2);
        gate.leave(half);
        assert!(gate.enter(5, 2 * half) && !gate.enter(4, 1) && gate.enter(2, 1));
    }
}
