//! What several threads may read ahead of the rows that are given out: bytes in memory, not those
//! that a file tells, which an encoding makes as small as it likes.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes that wait, of all threads.
pub(crate) struct Ahead {
    most: u64,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    bytes: u64,
    ended: bool,
}

impl Ahead {
    /// Bounded by so many bytes, and one batch a thread.
    pub fn new(most: u64) -> Ahead {
        let state = Mutex::new(State { bytes: 0, ended: false });
        Ahead { most, state, changed: Condvar::new() }
    }

    /// Waits until so many bytes more may wait; false if nobody wants them any more. A thread of
    /// which nothing waits (`none`) need not: its rows may be the next.
    pub fn take(&self, bytes: u64, none: impl Fn() -> bool) -> bool {
        let mut state = self.state();
        while !state.ended && state.bytes.saturating_add(bytes) > self.most && !none() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.bytes = state.bytes.saturating_add(bytes);
        !state.ended
    }

    /// So many bytes wait no longer: called after they were taken out of their queue.
    pub fn give(&self, bytes: u64) {
        let mut state = self.state();
        state.bytes = state.bytes.saturating_sub(bytes);
        self.changed.notify_all();
    }

    /// Nobody wants more.
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

    const MOST: u64 = 1_000;

    /// Threads that make batches of so many bytes; what waits in all, and its peak.
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
    fn all_is_given_in_order_and_what_waits_is_bounded() {
        for sizes in [&[90, 90, 90][..], &[5_000, 5_000], &[1, 400, 5_000], &[0, 999, 1_000]] {
            let ahead = Arc::new(Ahead::new(MOST));
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
            // one batch a thread waits in any case, and one may be on its way out
            let singles: u64 = sizes.iter().sum();
            assert!(peak.load(SeqCst) <= MOST + 2 * singles, "{sizes:?}");
        }
    }

    #[test]
    fn the_end_wakes_all() {
        let ahead = Arc::new(Ahead::new(MOST));
        let (queues, ..) = makers(&[600, 600, 600], &ahead);
        assert_eq!(queues[0].recv(), Ok(600));
        ahead.end();
        // the senders are dropped, whatever waited
        assert!(queues.iter().all(|queue| queue.iter().count() <= 3));
    }
}
