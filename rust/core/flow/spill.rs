//! Elements on disk, until their shard is complete.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, ErrorCode, Result};
use crate::file::{create_temporary, read_exact_at, write_all_at};

/// A growing temporary file. Each element is written once.
pub struct SpillFile {
    file: Arc<File>,
    path: Arc<PathBuf>,
    length: u64,
}

/// A part of the file.
pub struct Segment {
    file: Arc<File>,
    path: Arc<PathBuf>,
    offset: u64,
    length: usize,
}

impl SpillFile {
    /// Creates the file; nothing remains of it, however the run ends.
    pub fn new(path: &Path) -> Result<SpillFile> {
        // a run that was killed in create_temporary leaves it behind
        let _ = std::fs::remove_file(path);
        let file = create_temporary(path).map_err(|e| Error::unwritable(path, e))?;
        Ok(SpillFile { file: Arc::new(file), path: Arc::new(path.to_owned()), length: 0 })
    }

    /// Leaves room for bytes that [`Segment::write_at`] writes later.
    pub fn reserve(&mut self, length: usize) -> Segment {
        let (offset, file) = (self.length, self.file.clone());
        self.length += length as u64;
        Segment { file, path: self.path.clone(), offset, length }
    }

    /// Appends bytes.
    pub fn write<'a>(&mut self, parts: impl Iterator<Item = &'a [u8]>) -> Result<Segment> {
        let offset = self.length;
        for part in parts {
            write_all_at(&self.file, part, self.length)
                .map_err(|e| Error::unwritable(&self.path, e))?;
            self.length += part.len() as u64;
        }
        Ok(Segment {
            file: self.file.clone(),
            path: self.path.clone(),
            offset,
            length: (self.length - offset) as usize,
        })
    }
}

impl Segment {
    /// Its length in bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The first `at` bytes, and the rest.
    pub fn split(self, at: usize) -> (Segment, Segment) {
        let tail = Segment {
            file: self.file.clone(),
            path: self.path.clone(),
            offset: self.offset + at as u64,
            length: self.length - at,
        };
        (Segment { length: at, ..self }, tail)
    }

    /// Joins the segment that was written right after this one.
    pub fn append(&mut self, next: Segment) {
        self.length += next.length;
    }

    /// Reads a part of it, beginning at offset `at`.
    pub fn read_at(&self, at: usize, bytes: &mut [u8]) -> Result<()> {
        read_exact_at(&self.file, bytes, self.offset + at as u64)
            .map_err(|e| Error::output(ErrorCode::OutputSpill, &self.path, e))
    }

    /// Writes a part of it, beginning at offset `at`. Several threads may write different parts.
    pub fn write_at(&self, at: usize, bytes: &[u8]) -> Result<()> {
        write_all_at(&self.file, bytes, self.offset + at as u64)
            .map_err(|e| Error::unwritable(&self.path, e))
    }

    /// Reads the bytes back.
    pub fn read(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.length];
        self.read_at(0, &mut bytes)?;
        Ok(bytes)
    }
}
