//! Files that are named by their content. Equal shards have one name, so one worker writes the file
//! and the others wait for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use crate::error::{Error, ErrorCode, Result};
use crate::flow::outcome::ShardEntry;

/// The names that are taken.
#[derive(Default)]
pub(crate) struct Claims(Mutex<HashMap<String, Arc<ClaimedFile>>>);

/// A file of one name.
pub(crate) struct ClaimedFile {
    digest: String,
    /// its size, once it is complete, or why it is not
    written: OnceLock<Result<u64>>,
}

/// The answer to a claim of a name.
pub(crate) enum Claim {
    /// The name is new: write the file.
    Write(Writing),
    /// Another worker writes the same content.
    Wait(Arc<ClaimedFile>),
}

impl Claims {
    /// Claims a name for a content.
    ///
    /// # Errors
    /// `output.same_name` if another content has this name.
    pub fn claim(&self, name: &str, digest: &str) -> Result<Claim> {
        let mut files = self.0.lock().map_err(|_| interrupted())?;
        if let Some(file) = files.get(name) {
            return if file.digest == digest {
                Ok(Claim::Wait(file.clone()))
            } else {
                Err(same_name(name))
            };
        }
        let file = Arc::new(ClaimedFile { digest: digest.to_owned(), written: OnceLock::new() });
        files.insert(name.to_owned(), file.clone());
        Ok(Claim::Write(Writing(file)))
    }
}

impl ClaimedFile {
    /// Waits until the file is complete, and returns its size.
    pub fn wait(&self) -> Result<u64> {
        match self.written.wait() {
            Ok(size) => Ok(*size),
            Err(e) => Err(e.code.error(e.message.clone())),
        }
    }
}

/// The duty to write a file. The workers that wait continue when it is dropped, also by a panic.
pub(crate) struct Writing(Arc<ClaimedFile>);

impl Writing {
    /// Reports the result to the workers that wait.
    pub fn end(self, written: &Result<ShardEntry>) {
        let written = match written {
            Ok(entry) => Ok(entry.compressed_bytes),
            Err(e) => Err(e.code.error(e.message.clone())),
        };
        // this is the only place that sets it before the drop
        let _ = self.0.written.set(written);
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let _ = self.0.written.set(Err(interrupted()));
    }
}

fn interrupted() -> Error {
    ErrorCode::InternalThread.error("another thread failed")
}

/// Two contents would have one name: the first 64 bits of their digests are equal.
pub(crate) fn same_name(name: &str) -> Error {
    let message = format!(
        "{name}: another shard with another content has this name; choose another --max-urls or \
         --layout packed"
    );
    ErrorCode::OutputSameName.error(message)
}
