//! The interface to the place where the files of a build are stored.

use crate::error::Result;
use crate::flow::outcome::ShardEntry;

/// Stores files: in a folder, in memory, in an object store.
///
/// Workers create and write files at the same time, one worker for each file. An error ends the run.
/// The files are of no use unless the run succeeds: the caller publishes them or discards them.
pub trait Sink: Send + Sync {
    /// Begins a file. The name is relative, has `/` between its parts, and is unique in the run;
    /// under the stable layout it depends on the content of the file.
    fn create(&self, name: &str) -> Result<Box<dyn SinkFile + '_>>;

    /// Called once, after the last file was closed. All files are durable when it returns.
    fn finish(&self) -> Result<()>;
}

/// A file that is being written. A file that is dropped and not closed is incomplete, and must not
/// become visible.
pub trait SinkFile {
    /// Appends bytes.
    fn write(&mut self, part: &[u8]) -> Result<()>;

    /// Completes the file. `entry` describes it; [`ShardEntry::compressed_bytes`] is the number of
    /// bytes that were written.
    ///
    /// # Errors
    /// The file cannot be stored, or differs from the written bytes.
    fn close(self: Box<Self>, entry: &ShardEntry) -> Result<()>;
}
