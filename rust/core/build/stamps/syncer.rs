//! Brings the file of the stamps to the disk while rows are read: at the end of a build the disk has
//! to write little.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use crossbeam_channel::{Sender, bounded};

use crate::error::{Error, Result};
use crate::thread::{inject, start};

/// A thread that waits for the disk.
pub struct Syncer {
    wake: Sender<()>,
    thread: JoinHandle<Option<()>>,
    failure: Arc<OnceLock<Error>>,
}

impl Syncer {
    /// For a file that another thread writes.
    ///
    /// # Errors
    /// `system.threads`, or a system without free descriptors.
    pub fn new(file: &File, path: &Path) -> Result<Syncer> {
        let (path, file) = (PathBuf::from(path), file.try_clone());
        let file = file.map_err(|e| Error::unwritable(&path, e))?;
        let (wake, woken) = bounded(1);
        let failure = Arc::new(OnceLock::new());
        let (failed, panicked) = (failure.clone(), failure.clone());
        let work = move || {
            for () in woken {
                inject("stamps.sync.file");
                if let Err(error) = file.sync_data() {
                    let _ = failed.set(Error::unwritable(&path, error));
                    return;
                }
            }
        };
        let thread = start("stamps.sync", work, move |error| drop(panicked.set(error)))?;
        Ok(Syncer { wake, thread, failure })
    }

    /// Brings everything that was written so far to the disk. Does not wait.
    pub fn wake(&self) {
        // if the queue is full, the thread will sync once more; an error is known in the end
        let _ = self.wake.try_send(());
    }

    /// Waits for the disk.
    ///
    /// # Errors
    /// A disk that is full or broken.
    pub fn finish(self) -> Result<()> {
        drop(self.wake);
        let ended = self.thread.join().ok().flatten();
        match self.failure.get() {
            Some(error) => Err(error.repeated()),
            None => ended.ok_or_else(Error::thread),
        }
    }
}
