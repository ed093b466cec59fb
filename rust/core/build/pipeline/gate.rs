//! How many rendered bytes may wait for the collector.
//!
//! What rows are rendered to can be many times what was read: a row with 100 languages becomes 100
//! elements with 100 links each. So a worker hands on its chunks one by one, and only as long as few
//! bytes wait. **Why nothing waits for ever:**
//!
//! 1. The collector takes chunks in the order of the batches. It waits for the next chunk of the
//!    batch at hand, or until shards are compressed, or for the thread that sorts, which waits for
//!    nothing but the disk.
//! 2. Batches are taken by the workers in their order. So if any worker has a batch, the batch at
//!    hand was taken before, and a worker has it, unless it is done. If no worker has one, nothing
//!    waits at this gate, and the workers are free for the next batch.
//! 3. A chunk of the batch at hand is let through, whatever waits, if no other chunk of that batch
//!    waits: then the collector has nothing to do, or is about to. Each chunk that it takes makes
//!    room for the next one.
//! 4. A worker that waits here compresses shards meanwhile. So shards are compressed even where all
//!    workers wait, and the collector gets rid of the next one.
//! 5. The reader waits for buffers and for room for batches. Both are given back when a batch is
//!    done, which by 1 to 4 it will be; one batch is read in any case.
//!
//! Bytes that wait: [`Gate::MOST`], and the one chunk of 3.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lets rendered chunks through to the collector.
#[derive(Debug, Default)]
pub(crate) struct Gate(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// bytes that wait
    bytes: usize,
    /// chunks that wait, by batch
    waiting: BTreeMap<u64, usize>,
    /// the batch at hand
    at: u64,
}

impl Gate {
    /// Bytes of chunks that may wait.
    pub const MOST: usize = 16 << 20;

    /// Whether a chunk of so many bytes of a batch may go on; if so it is counted.
    pub fn enter(&self, batch: u64, bytes: usize) -> bool {
        let mut state = self.state();
        let next = state.at == batch && !state.waiting.contains_key(&batch);
        let fits = state.bytes.saturating_add(bytes) <= Gate::MOST;
        if next || fits {
            state.bytes += bytes;
            *state.waiting.entry(batch).or_default() += 1;
        }
        next || fits
    }

    /// The collector takes a chunk out; those of the batch at hand only.
    pub fn leave(&self, bytes: usize) {
        let mut state = self.state();
        state.bytes = state.bytes.saturating_sub(bytes);
        let at = state.at;
        if let Some(count) = state.waiting.get_mut(&at) {
            *count -= 1;
            if *count == 0 {
                state.waiting.remove(&at);
            }
        }
    }

    /// Which batch the collector takes chunks of from now on.
    pub fn advance(&self, batch: u64) {
        self.state().at = batch;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_batch_at_hand_is_never_shut_out_and_what_waits_is_bounded() {
        let gate = Gate::default();
        let half = Gate::MOST / 2;
        assert!(gate.enter(1, half) && gate.enter(2, half));
        assert!(!gate.enter(1, 1) && !gate.enter(7, 1));
        // the one at hand, once
        assert!(gate.enter(0, 10 * half));
        assert!(!gate.enter(0, 1));
        gate.leave(10 * half);
        assert!(gate.enter(0, half));
        gate.leave(half);
        // a chunk of it waits already
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
