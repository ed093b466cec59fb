//! A limit for the rows that several threads decode ahead. It counts bytes in memory: the sizes in a
//! file are no bound, since an encoding can make them arbitrarily small.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The bytes in the queues of all threads.
pub(crate) struct Ahead {
    limit: u64,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    bytes: u64,
    ended: bool,
}

impl Ahead {
    /// Limits the queues to `limit` bytes, and one batch more for each thread.
    pub fn new(limit: u64) -> Ahead {
        let state = Mutex::new(State { bytes: 0, ended: false });
        Ahead { limit, state, changed: Condvar::new() }
    }

    /// Waits until `bytes` more fit. Returns false if the consumer has ended. A producer with an
    /// empty queue (`is_empty`) never blocks: the consumer may be waiting for it, and blocking would
    /// deadlock.
    pub fn take(&self, bytes: u64, is_empty: impl Fn() -> bool) -> bool {
        let mut state = self.state();
        while !state.ended && state.bytes.saturating_add(bytes) > self.limit && !is_empty() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.bytes = state.bytes.saturating_add(bytes);
        !state.ended
    }

    /// Releases bytes; called after they were taken out of their queue.
    pub fn give(&self, bytes: u64) {
        let mut state = self.state();
        state.bytes = state.bytes.saturating_sub(bytes);
        self.changed.notify_all();
    }

    /// The consumer wants no more.
    pub fn end(&self) {
        self.state().ended = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossbeam_channel::{Receiver, Sender, unbounded};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
    use std::thread;

    const LIMIT: u64 = 1_000;

    /// Threads that make batches of these sizes, their queued bytes, and the peak of those.
    fn makers(
        sizes: &'static [u64],
        ahead: &Arc<Ahead>,
    ) -> (Vec<Receiver<u64>>, Arc<AtomicU64>, Arc<AtomicU64>) {
        let (waits, peak) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let queues = sizes.iter().map(|&size| {
            let (sender, queue): (Sender<u64>, _) = unbounded();
            let (ahead, waits, peak) = (ahead.clone(), waits.clone(), peak.clone());
            thread::spawn(move || {
                for _ in 0..200 {
                    if !ahead.take(size, || sender.is_empty()) {
                        return;
                    }
                    peak.fetch_max(waits.fetch_add(size, SeqCst) + size, SeqCst);
                    if sender.send(size).is_err() {
                        return;
                    }
                }
            });
            queue
        });
        (queues.collect(), waits.clone(), peak.clone())
    }

    #[test]
    fn batches_come_in_order_and_queued_bytes_are_bounded() {
        for sizes in [&[90, 90, 90][..], &[5_000, 5_000], &[1, 400, 5_000], &[0, 999, 1_000]] {
            let ahead = Arc::new(Ahead::new(LIMIT));
            let (queues, waits, peak) = makers(sizes, &ahead);
            for (queue, &size) in queues.iter().zip(sizes) {
                let mut count = 0;
                for bytes in queue {
                    assert_eq!(bytes, size);
                    waits.fetch_sub(bytes, SeqCst);
                    ahead.give(bytes);
                    count += 1;
                }
                assert_eq!(count, 200);
            }
            // one batch of each thread is always queued, and one may be on its way out
            let singles: u64 = sizes.iter().sum();
            assert!(peak.load(SeqCst) <= LIMIT + 2 * singles, "{sizes:?}");
        }
    }

    #[test]
    fn the_end_wakes_all() {
        let ahead = Arc::new(Ahead::new(LIMIT));
        let (queues, ..) = makers(&[600, 600, 600], &ahead);
        assert_eq!(queues[0].recv(), Ok(600));
        ahead.end();
        // the senders are dropped with their queued batches
        assert!(queues.iter().all(|queue| queue.iter().count() <= 3));
    }
}
