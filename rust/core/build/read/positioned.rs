//! A file that several threads read at once, each at its own position.

use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// Bytes read at once for the header of a page, which has about thirty.
const HEADER: usize = 512;

/// A file without a cursor: `File` itself has one, which its clones share.
#[derive(Clone)]
pub struct Positioned {
    file: Arc<File>,
    size: u64,
}

/// Reads sequentially from a position.
pub struct PositionedReader {
    file: Arc<File>,
    at: u64,
}

impl Positioned {
    /// A file with its current size.
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
    type T = BufReader<PositionedReader>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::with_capacity(
            HEADER,
            PositionedReader { file: self.file.clone(), at: start },
        ))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // no memory is reserved for sizes that a damaged directory claims
        if start.checked_add(length as u64).is_none_or(|end| end > self.size) {
            let message = format!("{length} bytes at {start} are beyond the end of the file");
            return Err(ParquetError::EOF(message));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

impl Read for PositionedReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
