//! A Python object as a sink: it takes each complete shard.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use urlset_core::Result;
use urlset_core::build::write::sink::{Sink, SinkFile};
use urlset_core::error::ErrorCode;
use urlset_core::flow::outcome::ShardEntry;
use urlset_core::flow::shard::Piece;

use crate::buffer::PieceBuffer;

/// Passes shards to `put(name, data, digest)` of an object, one call for each shard, and calls
/// `finish()` after the last one. Both may wait; `put` keeps `data` as a buffer without a copy.
pub struct ObjectSink {
    object: Py<PyAny>,
    /// the first exception
    failed: Mutex<Option<PyErr>>,
}

impl ObjectSink {
    /// A sink for an object.
    pub fn new(object: Py<PyAny>) -> ObjectSink {
        ObjectSink { object, failed: Mutex::new(None) }
    }

    /// The first exception of the object.
    pub fn into_failure(self) -> Option<PyErr> {
        self.failed.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn call(&self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>) -> Result<()> {
        Python::attach(|py| call(self.object.bind(py))).map_err(|error| {
            let message = error.to_string();
            let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
            failed.get_or_insert(error);
            ErrorCode::OutputUnwritable.error(message)
        })
    }
}

impl Sink for ObjectSink {
    fn create(&self, name: &str) -> Result<Box<dyn SinkFile + '_>> {
        Ok(Box::new(ObjectFile { sink: self, name: name.to_owned(), bytes: Vec::new() }))
    }

    fn finish(&self) -> Result<()> {
        self.call(|object| object.call_method0("finish").map(drop))
    }
}

struct ObjectFile<'s> {
    sink: &'s ObjectSink,
    name: String,
    bytes: Vec<u8>,
}

impl SinkFile for ObjectFile<'_> {
    fn write(&mut self, part: &[u8]) -> Result<()> {
        self.bytes.extend_from_slice(part);
        Ok(())
    }

    fn close(self: Box<Self>, entry: &ShardEntry) -> Result<()> {
        let ObjectFile { sink, name, bytes } = *self;
        sink.call(|object| {
            let data = Bound::new(object.py(), PieceBuffer(Piece::of(bytes)))?;
            object.call_method1("put", (name, data, &entry.digest)).map(drop)
        })
    }
}
