//! Threads that work while the calling one asks whether to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};

use crate::error::{Error, Result};
use crate::thread::start_scoped;

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
        let fallen = &Mutex::new(None);
        let results = std::thread::scope(|scope| {
            let (sender, receiver) = bounded::<()>(threads);
            let mut handles = Vec::with_capacity(threads);
            for number in 0..threads {
                let sender = sender.clone();
                let work = move || {
                    let result = work(stop);
                    if result.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    drop(sender); // the last one to go wakes the waiting thread
                    result
                };
                let failed = move |error| {
                    stop.store(true, Ordering::Relaxed);
                    fallen.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                };
                match start_scoped(scope, "crew", work, failed) {
                    Ok(handle) => handles.push(handle),
                    Err(error) if number == 0 => return Err(error),
                    Err(_) => break, // those that there are do all the work
                }
            }
            drop(sender);
            let mut cancelled = false;
            while let Err(RecvTimeoutError::Timeout) = receiver.recv_timeout(PATIENCE) {
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
        let fallen = fallen.lock().unwrap_or_else(PoisonError::into_inner).take();
        fallen.map_or(results, Err)
    }
}
