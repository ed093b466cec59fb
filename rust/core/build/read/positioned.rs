//! A file that several threads read at once, each at its own place.

use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// Bytes read at once for the header of a page, which has some thirty.
const HEADER: usize = 512;

/// A file without a cursor: `File` itself has one, which its clones share.
#[derive(Clone)]
pub struct Positioned {
    file: Arc<File>,
    size: u64,
}

/// Reads on from a place.
pub struct Cursor {
    file: Arc<File>,
    at: u64,
}

impl Positioned {
    /// The file as large as it is now.
    pub fn new(file: File) -> std::io::Result<Positioned> {
        let size = file.metadata()?.len();
        Ok(Positioned { file: Arc::new(file), size })
    }
}

impl Length for Positioned {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for Positioned {
    type T = BufReader<Cursor>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::with_capacity(HEADER, Cursor { file: self.file.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // nothing is reserved for bytes that a damaged directory invents
        if start.checked_add(length as u64).is_none_or(|end| end > self.size) {
            let message = format!("{length} bytes at {start} are beyond the end of the file");
            return Err(ParquetError::EOF(message));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

impl Read for Cursor {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
