//! The progress of a run, which other threads watch, and the signal that stops it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::{Error, Result};

/// The progress of a run, shared with the caller.
#[derive(Debug, Default)]
pub struct Progress {
    /// Rows read.
    pub rows: AtomicU64,
    /// URLs packed.
    pub urls: AtomicU64,
    /// Shards written.
    pub shards: AtomicU64,
    /// Bytes of files consumed; for Parquet in proportion to its rows.
    pub bytes: AtomicU64,
    /// Set it to stop the run, which then returns `cancelled`.
    pub stop: AtomicBool,
}

impl Progress {
    /// Whether the run is to stop.
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Stops all threads of the run.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// # Errors
    /// `cancelled` if the run is to stop.
    pub(crate) fn check(&self) -> Result<()> {
        if self.stopped() { Err(Error::cancelled()) } else { Ok(()) }
    }
}
