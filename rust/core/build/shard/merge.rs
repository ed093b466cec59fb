//! Sorted runs of a file, for their merge.

use std::cmp::Ordering;

use crate::error::{Error, ErrorCode, Result};
use crate::flow::spill::Segment;
use crate::sitemap::date::Order;

/// The header of an element in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ElementHeader {
    /// Bytes of the element.
    pub len: u32,
    /// Bytes of its loc.
    pub loc: u32,
    /// Bytes of the value that it is split by, which follows the element.
    pub split: u32,
    /// As [`crate::flow::entry::Entry::newest`].
    pub newest: Order,
    /// As in [`crate::flow::chunk::Chunk::boundaries`].
    pub boundary: u64,
    /// As [`crate::flow::entry::Entry::namespaces`].
    pub namespaces: u8,
}

impl ElementHeader {
    /// Bytes in the file.
    pub const SIZE: usize = 29;

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; ElementHeader::SIZE];
        bytes[..4].copy_from_slice(&self.len.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.loc.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.split.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.newest.to_le_bytes());
        bytes[20..28].copy_from_slice(&self.boundary.to_le_bytes());
        bytes[28] = self.namespaces;
        out.extend_from_slice(&bytes);
    }

    fn read(bytes: &[u8]) -> Option<ElementHeader> {
        let word = |at: usize| bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        let long = |at: usize| bytes[at..at + 8].try_into().unwrap_or_default();
        (bytes.len() >= ElementHeader::SIZE).then(|| ElementHeader {
            len: word(0),
            loc: word(4),
            split: word(8),
            newest: Order::from_le_bytes(long(12)),
            boundary: u64::from_le_bytes(long(20)),
            namespaces: bytes[28],
        })
    }

    /// Bytes of the record, the element and the value.
    fn total(&self) -> usize {
        ElementHeader::SIZE + self.len as usize + self.split as usize
    }
}

/// Reads a run through a buffer. In a heap the reader with the smallest loc comes first; of equal
/// locs that of the first run, so that the order of the input stays.
pub struct RunReader {
    /// the number of the run
    number: usize,
    segment: Segment,
    /// the number of bytes of the segment that were read
    read: usize,
    buffer: Vec<u8>,
    size: usize,
    /// the offset of the current element in the buffer, with its record
    at: usize,
    record: ElementHeader,
    loc_offset: usize,
}

/// An element of a run.
pub struct RunElement<'r> {
    /// Its record.
    pub record: ElementHeader,
    /// The element.
    pub bytes: &'r [u8],
    /// The value that it is split by.
    pub split: &'r [u8],
}

impl RunReader {
    /// A reader at the first element of a run, which is not empty. The buffer has `size` bytes, or
    /// those of the largest element.
    pub fn new(
        number: usize,
        segment: Segment,
        size: usize,
        loc_offset: usize,
    ) -> Result<RunReader> {
        let (buffer, record) = (Vec::new(), ElementHeader::default());
        let mut reader =
            RunReader { number, segment, read: 0, buffer, size, at: 0, record, loc_offset };
        reader.load()?;
        Ok(reader)
    }

    /// The current element.
    pub fn element(&self) -> RunElement<'_> {
        let record = self.record;
        let texts = &self.buffer[self.at + ElementHeader::SIZE..self.at + record.total()];
        let (bytes, split) = texts.split_at(record.len as usize);
        RunElement { record, bytes, split }
    }

    #[inline]
    fn loc(&self) -> &[u8] {
        let start = self.at + ElementHeader::SIZE + self.loc_offset;
        &self.buffer[start..start + self.record.loc as usize]
    }

    /// Moves to the next element; returns false at the end.
    pub fn advance(&mut self) -> Result<bool> {
        self.at += self.record.total();
        if self.at == self.buffer.len() && self.read == self.segment.length() {
            return Ok(false);
        }
        self.load().map(|()| true)
    }

    fn load(&mut self) -> Result<()> {
        self.fill(ElementHeader::SIZE)?;
        let record = ElementHeader::read(&self.buffer[self.at..]).unwrap_or_default();
        if self.loc_offset + record.loc as usize > record.len as usize {
            return Err(damaged());
        }
        self.fill(record.total())?;
        self.record = record;
        Ok(())
    }

    /// Reads until the buffer has `need` bytes from the current offset on.
    fn fill(&mut self, need: usize) -> Result<()> {
        if self.buffer.len() - self.at >= need {
            return Ok(());
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        let held = self.buffer.len();
        let more = (self.size.max(need) - held).min(self.segment.length() - self.read);
        if held + more < need {
            return Err(damaged());
        }
        self.buffer.resize(held + more, 0);
        self.segment.read_at(self.read, &mut self.buffer[held..])?;
        self.read += more;
        Ok(())
    }
}

fn damaged() -> Error {
    let message = "the temporary file of the sort is damaged: check the disk";
    ErrorCode::OutputSpill.error(message)
}

impl Ord for RunReader {
    fn cmp(&self, other: &RunReader) -> Ordering {
        // the standard heap returns the largest first
        (other.loc(), other.number).cmp(&(self.loc(), self.number))
    }
}

impl PartialOrd for RunReader {
    fn partial_cmp(&self, other: &RunReader) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RunReader {
    fn eq(&self, other: &RunReader) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for RunReader {}
