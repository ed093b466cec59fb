//! A staging folder as a sink: files are written, checked and fsynced.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

use crossbeam_channel::{Sender, bounded};

use crate::UNCHECKED;
use crate::build::write::sink::{Sink, SinkFile};
use crate::error::{Error, ErrorCode, Result};
use crate::file::{read_exact_at, sync_folder};
use crate::flow::outcome::ShardEntry;
use crate::thread;
use crate::thread::inject;

/// Limit of the files that wait for their fsync while the kernel writes them. Each is an open file,
/// of which a process may have 256 or 1,024, and in a strict setting fewer.
const MAX_UNSYNCED: usize = 32;
/// The number of bytes at the end of a file that are read back.
const CHECKED_BYTES: usize = 8;

/// Writes files to a folder.
pub struct FolderSink {
    /// exists
    path: PathBuf,
    syncer: Mutex<Option<Syncer>>,
}

/// A thread that waits for the disk, so that the workers do not.
struct Syncer {
    files: Sender<Unsynced>,
    thread: Option<JoinHandle<Option<()>>>,
    /// why the thread ended early
    failure: Arc<OnceLock<Error>>,
}

struct Unsynced {
    path: PathBuf,
    file: File,
}

impl Syncer {
    fn new() -> Result<Syncer> {
        let (files, queue) = bounded::<Unsynced>(MAX_UNSYNCED);
        let failure = Arc::new(OnceLock::new());
        let failed = failure.clone();
        let work = move || {
            for Unsynced { path, file } in queue {
                inject("syncer.file");
                if let Err(error) = file.sync_all() {
                    let _ = failed.set(Error::unwritable(&path, error));
                    return;
                }
            }
        };
        let panicked = failure.clone();
        let thread = thread::start("syncer", work, move |error| drop(panicked.set(error)))?;
        Ok(Syncer { files, thread: Some(thread), failure })
    }

    /// Why the thread ended early. Several workers can ask, and all get the same error.
    fn failure(&mut self) -> Error {
        if let Some(thread) = self.thread.take() {
            drop(thread.join()); // a panic is recorded after the queue is closed
        }
        self.failure.get().map_or_else(Error::thread, Error::repeated)
    }

    /// Waits until all files are on the disk.
    fn finish(self) -> Result<()> {
        drop(self.files);
        if let Some(thread) = self.thread {
            drop(thread.join());
        }
        self.failure.get().map_or(Ok(()), |error| Err(error.repeated()))
    }
}

impl FolderSink {
    /// A sink for a folder that exists.
    pub fn new(path: PathBuf) -> FolderSink {
        FolderSink { path, syncer: Mutex::new(None) }
    }

    /// Queues a file for its fsync.
    fn sync_later(&self, unsynced: Unsynced) -> Result<()> {
        let files = {
            let mut syncer = self.syncer.lock().map_err(|_| Error::thread())?;
            match &*syncer {
                Some(started) => started.files.clone(),
                None => syncer.insert(Syncer::new()?).files.clone(),
            }
        };
        if files.send(unsynced).is_ok() {
            return Ok(());
        }
        // the thread ends early only with an error
        let mut syncer = self.syncer.lock().map_err(|_| Error::thread())?;
        Err(syncer.as_mut().map_or_else(Error::thread, Syncer::failure))
    }
}

impl Sink for FolderSink {
    fn create(&self, name: &str) -> Result<Box<dyn SinkFile + '_>> {
        let path = self.path.join(name);
        let failed = |e| Error::unwritable(&path, e);
        // Not `create_dir_all`: it would create the folder of a job again that was committed meanwhile.
        for (at, _) in name.match_indices('/') {
            match fs::create_dir(self.path.join(&name[..at])) {
                Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(failed(e)),
                _ => {}
            }
        }
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).open(&path).map_err(failed)?;
        Ok(Box::new(FolderFile { folder: self, path, file, last: Vec::new() }))
    }

    fn finish(&self) -> Result<()> {
        if let Some(syncer) = self.syncer.lock().map_err(|_| Error::thread())?.take() {
            syncer.finish()?;
        }
        sync_folder(&self.path).map_err(|e| Error::unwritable(&self.path, e))
    }
}

struct FolderFile<'f> {
    folder: &'f FolderSink,
    path: PathBuf,
    file: File,
    /// the last bytes that were written, at most [`CHECKED_BYTES`]
    last: Vec<u8>,
}

impl SinkFile for FolderFile<'_> {
    fn write(&mut self, part: &[u8]) -> Result<()> {
        self.last.extend_from_slice(&part[part.len().saturating_sub(CHECKED_BYTES)..]);
        self.last.drain(..self.last.len().saturating_sub(CHECKED_BYTES));
        self.file.write_all(part).map_err(|e| Error::unwritable(&self.path, e))
    }

    fn close(self: Box<Self>, entry: &ShardEntry) -> Result<()> {
        let FolderFile { folder, path, file, last } = *self;
        check_file(&path, &file, entry.compressed_bytes, &last)?;
        folder.sync_later(Unsynced { path, file })
    }
}

/// Checks that a file has the size and the last bytes that were written to it.
fn check_file(path: &Path, file: &File, size: u64, last: &[u8]) -> Result<()> {
    let failed = |e| Error::unwritable(path, e);
    let damaged = |message: String| {
        Err(ErrorCode::OutputDamaged.error(format!("{}: {message}", path.display())))
    };
    let found = file.metadata().map_err(failed)?.len();
    if found != size {
        return damaged(format!("{found} bytes, {size} were written"));
    }
    let mut end = vec![0; last.len()];
    read_exact_at(file, &mut end, size.saturating_sub(last.len() as u64)).map_err(failed)?;
    if end != last && !UNCHECKED {
        return damaged("its last bytes are not those that were written".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device that discards all bytes looks like a file that is too short.
    #[test]
    fn a_file_that_is_not_what_was_written_is_found() {
        let null = OpenOptions::new().read(true).write(true).open("/dev/null").unwrap();
        let path = Path::new("/dev/null");
        assert_eq!(check_file(path, &null, 5, b"").unwrap_err().code, "output.damaged");
        let target = std::env::temp_dir().join(format!("urlset-short-{}", std::process::id()));
        fs::write(&target, "0123456789").unwrap();
        let file = File::open(&target).unwrap();
        assert!(check_file(&target, &file, 10, b"23456789").is_ok());
        let wrong = check_file(&target, &file, 10, b"23456780").unwrap_err();
        assert_eq!(wrong.code, "output.damaged");
        fs::remove_file(&target).unwrap();
    }

    /// The first error of a run is the one that is reported, so no worker may have a vague one.
    #[test]
    fn every_worker_gets_the_reason_of_a_failed_fsync() {
        for _ in 0..200 {
            let sink = FolderSink::new(std::env::temp_dir());
            let errors: Vec<Error> = std::thread::scope(|scope| {
                let worker = || {
                    // fsync fails for a device
                    let path = PathBuf::from("/dev/null");
                    (0..100).find_map(|_| {
                        let file = File::open(&path).unwrap();
                        sink.sync_later(Unsynced { path: path.clone(), file }).err()
                    })
                };
                let workers: Vec<_> = (0..4).map(|_| scope.spawn(worker)).collect();
                workers.into_iter().filter_map(|worker| worker.join().unwrap()).collect()
            });
            assert_eq!(errors.len(), 4);
            for error in errors {
                assert_eq!(error.code, "output.unwritable", "{}", error.message);
            }
        }
    }
}
