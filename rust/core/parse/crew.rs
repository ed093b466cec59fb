//! Threads that work while the calling one asks whether to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};

use crate::error::{Error, Result};

/// How long a stop may go unnoticed by the calling thread.
pub const PATIENCE: Duration = Duration::from_millis(100);

/// So many threads, and whom to ask whether to stop.
pub struct Crew<'a> {
    threads: usize,
    poll: &'a mut dyn FnMut() -> bool,
}

impl<'a> Crew<'a> {
    /// At least one thread; `poll` is asked ten times a second.
    pub fn new(threads: usize, poll: &'a mut dyn FnMut() -> bool) -> Crew<'a> {
        Crew { threads: threads.max(1), poll }
    }

    /// Asks whether to stop; an error if so.
    pub fn check(&mut self) -> Result<()> {
        if (self.poll)() { Err(Error::cancelled()) } else { Ok(()) }
    }

    /// Runs `work` on every thread; it gets a flag that tells it to stop.
    pub fn run<T: Send>(
        &mut self,
        work: impl Fn(&AtomicBool) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let (threads, stop, work) = (self.threads, &AtomicBool::new(false), &work);
        std::thread::scope(|scope| {
            let (sender, receiver) = bounded::<()>(threads);
            let handles: Vec<_> = (0..threads)
                .map(|_| {
                    let sender = sender.clone();
                    scope.spawn(move || {
                        let result = work(stop);
                        if result.is_err() {
                            stop.store(true, Ordering::Relaxed);
                        }
                        drop(sender); // the last one to go wakes the waiting thread
                        result
                    })
                })
                .collect();
            drop(sender);
            let mut cancelled = false;
            while let Err(RecvTimeoutError::Timeout) = receiver.recv_timeout(PATIENCE) {
                if !cancelled && (self.poll)() {
                    cancelled = true;
                    stop.store(true, Ordering::Relaxed);
                }
            }
            let results: Result<Vec<T>> = handles.into_iter().map(join).collect();
            if cancelled { Err(Error::cancelled()) } else { results }
        })
    }
}

/// The result of a thread; a panic in it, a defect of ours, goes on in the caller.
fn join<T>(handle: std::thread::ScopedJoinHandle<'_, T>) -> T {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
