//! Scoped threads, while the calling thread polls for cancellation.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};

use crate::error::{Error, Result};
use crate::thread::{FirstError, start_scoped, start_several};

/// The time between two polls: the longest delay until a request to stop is seen.
pub const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The number of threads, and the function that polls for cancellation.
pub struct Workers<'a> {
    threads: usize,
    poll: &'a mut dyn FnMut() -> bool,
}

impl<'a> Workers<'a> {
    /// At least one thread. `poll` returns true to cancel.
    pub fn new(threads: usize, poll: &'a mut dyn FnMut() -> bool) -> Workers<'a> {
        Workers { threads: threads.max(1), poll }
    }

    /// Polls once.
    ///
    /// # Errors
    /// `cancelled`
    pub fn check(&mut self) -> Result<()> {
        if (self.poll)() { Err(Error::cancelled()) } else { Ok(()) }
    }

    /// Runs `work` on every thread; the flag that it receives requests it to stop.
    ///
    /// # Errors
    /// The first error of a thread, its panic included, or `cancelled`.
    pub fn run<T: Send>(
        &mut self,
        work: impl Fn(&AtomicBool) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let (threads, stop, work) = (self.threads, &AtomicBool::new(false), &work);
        let panicked = &FirstError::default();
        let results = std::thread::scope(|scope| {
            let (sender, receiver) = bounded::<()>(threads);
            let handles = start_several(threads, || {
                let sender = sender.clone();
                let work = move || {
                    let result = work(stop);
                    if result.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    drop(sender); // the last drop wakes the polling thread
                    result
                };
                let failed = move |error| {
                    stop.store(true, Ordering::Relaxed);
                    panicked.report(error);
                };
                start_scoped(scope, "inspect", work, failed)
            })?;
            drop(sender);
            let mut cancelled = false;
            while let Err(RecvTimeoutError::Timeout) = receiver.recv_timeout(POLL_INTERVAL) {
                if !cancelled && (self.poll)() {
                    cancelled = true;
                    stop.store(true, Ordering::Relaxed);
                }
            }
            let results: Result<Vec<T>> = handles
                .into_iter()
                .map(|handle| handle.join().ok().flatten().unwrap_or_else(|| Err(Error::thread())))
                .collect();
            if cancelled { Err(Error::cancelled()) } else { results }
        });
        panicked.take().map_or(results, Err)
    }
}
