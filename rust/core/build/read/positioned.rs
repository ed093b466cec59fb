//! A file or an object in a store that several threads read at once, each at its own position.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// Bytes read at once for the header of a page, which has about thirty.
const HEADER: usize = 512;

/// Bytes that can be read at any position.
pub trait Access: Send + Sync {
    /// The number of bytes.
    fn size(&self) -> io::Result<u64>;

    /// Reads some bytes at a position, as `read` does.
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize>;

    /// Announces what will be read: for each column its ranges, in the order of the reads.
    fn plan(&self, _columns: Vec<Vec<Range<u64>>>) -> io::Result<()> {
        Ok(())
    }
}

impl Access for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        crate::file::read_at(self, buffer, at)
    }
}

/// A file without a cursor: `File` itself has one, which its clones share.
#[derive(Clone)]
pub struct Positioned {
    file: Arc<dyn Access>,
    size: u64,
}

/// Reads sequentially from a position.
pub struct PositionedReader {
    file: Arc<dyn Access>,
    at: u64,
}

impl Positioned {
    /// A file with its current size.
    pub fn new(file: Arc<dyn Access>) -> io::Result<Positioned> {
        let size = file.size()?;
        Ok(Positioned { file, size })
    }

    /// Announces what will be read; see [`Access::plan`].
    pub fn plan(&self, columns: Vec<Vec<Range<u64>>>) -> io::Result<()> {
        self.file.plan(columns)
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
        let mut reader = PositionedReader { file: self.file.clone(), at: start };
        reader.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

impl Read for PositionedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
