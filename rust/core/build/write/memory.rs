//! Files in memory: for tests, benchmarks, and programs that publish them by their own means.

use std::collections::BTreeMap;
use std::mem::take;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::build::write::sink::{Sink, SinkFile};
use crate::error::Result;
use crate::flow::outcome::ShardEntry;

/// Complete files by name.
#[derive(Debug, Default)]
pub struct MemorySink(Mutex<BTreeMap<String, Vec<u8>>>);

impl MemorySink {
    /// Takes the complete files out.
    pub fn take(&self) -> BTreeMap<String, Vec<u8>> {
        take(&mut self.files())
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for MemorySink {
    fn create(&self, name: &str) -> Result<Box<dyn SinkFile + '_>> {
        Ok(Box::new(MemoryFile { sink: self, name: name.to_owned(), bytes: Vec::new() }))
    }

    fn finish(&self) -> Result<()> {
        Ok(())
    }
}

struct MemoryFile<'s> {
    sink: &'s MemorySink,
    name: String,
    bytes: Vec<u8>,
}

impl SinkFile for MemoryFile<'_> {
    fn write(&mut self, part: &[u8]) -> Result<()> {
        self.bytes.extend_from_slice(part);
        Ok(())
    }

    fn close(self: Box<Self>, _entry: &ShardEntry) -> Result<()> {
        self.sink.files().insert(self.name, self.bytes);
        Ok(())
    }
}
