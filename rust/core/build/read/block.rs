//! CSV text in blocks that begin at the start of a row, by a cheap test.
//!
//! # For maintainers
//!
//! One file is split over threads as follows. The reader counts quotes, which SIMD does at memory
//! speed, and ends a block after a line break with an even number of quotes before it. Since the
//! block began at the start of a row, that is the end of a row, unless a literal quote is in an
//! unquoted cell (`Monitor 27" IPS`). Each worker therefore scans its block exactly. The collector,
//! which receives the blocks in order, learns from the end of one block whether the next one began
//! at the start of a row. If it did not, the collector joins the open row to the next block
//! (`CsvBatch::join`) and renders that block again. The result is that of one exact scan, for any
//! data: `tests/rust/build/csv.rs` compares blocks of any size with a single block.
//!
//! Measured: counting quotes costs 0.02 ns a byte and an exact scan 0.15 ns. A reader that scanned
//! exactly would limit a build to 35 M rows/s.

use std::io::{self, Read};

use crate::build::read::decode::read_error;
use crate::build::read::lines;
use crate::build::read::scan::{CsvFault, CsvFormat, Scanner, Span};
use crate::error::{ErrorCode, Result};
use crate::simd::csv_masks;

/// Cuts a text into blocks.
pub struct BlockReader {
    from: Box<dyn Read + Send>,
    /// the text after the last cut
    carry: Vec<u8>,
    target: usize,
    ended: bool,
}

/// A block of text.
pub struct Block {
    /// The text.
    pub text: Vec<u8>,
    /// No block follows.
    pub last: bool,
}

/// Limit of the bytes of a row. No catalog has a longer one, and memory must stay bounded.
fn longest_row(max_cell: usize) -> usize {
    (max_cell * 16).max(16 << 20)
}

impl BlockReader {
    /// Blocks of about `target` bytes.
    pub fn new(from: Box<dyn Read + Send>, target: usize) -> BlockReader {
        BlockReader { from, carry: Vec::new(), target: target.max(64), ended: false }
    }

    /// Puts back text that was read too far: the text after the header.
    pub fn unread(&mut self, text: &[u8]) {
        let mut carry = text.to_vec();
        carry.append(&mut self.carry);
        self.carry = carry;
    }

    /// Reads the next block into `buffer`. The last block may be empty: it decides whether the row
    /// that the block before left open is complete. It must not be called after the last block.
    pub fn next(&mut self, mut buffer: Vec<u8>, format: &CsvFormat) -> Result<Block> {
        // a used buffer is overwritten, which is cheaper than clearing it
        if buffer.len() < self.carry.len() {
            buffer.resize(self.carry.len(), 0);
        }
        let mut filled = self.carry.len();
        buffer[..filled].copy_from_slice(&self.carry);
        self.carry.clear();
        let mut target = self.target;
        loop {
            self.fill(&mut buffer, filled, target)?;
            filled = buffer.len();
            if self.ended {
                return Ok(Block { text: buffer, last: true });
            }
            let cut = match format.lines {
                true => lines::cut(&buffer),
                false => quick_cut(&buffer).or_else(|| exact_cut(&buffer, format)),
            };
            if let Some(cut) = cut {
                self.carry.extend_from_slice(&buffer[cut..]);
                buffer.truncate(cut);
                return Ok(Block { text: buffer, last: false });
            }
            let longest = longest_row(format.max_cell);
            if buffer.len() >= longest {
                if format.lines {
                    let message =
                        format!("a line is longer than {longest} bytes; is this a list of URLs?");
                    return Err(ErrorCode::LinesTooLong.error(message));
                }
                // A worker finds the same fault, and its row. If the block did not begin at the start
                // of a row, there may be no fault at all: so this block must not count as the last.
                let fault = scan_all(&buffer, format).fault;
                if let Some(CsvFault::AfterQuote { .. } | CsvFault::TooLong { .. }) = fault {
                    return Ok(Block { text: buffer, last: false });
                }
                let message = format!("a row is longer than {longest} bytes; is this a CSV file?");
                return Err(ErrorCode::CsvRowTooLong.error(message));
            }
            target = (buffer.len() * 2).min(longest);
        }
    }

    /// Reads after the first `n` bytes until the buffer has `target` bytes or the text ends.
    fn fill(&mut self, buffer: &mut Vec<u8>, mut n: usize, target: usize) -> Result<()> {
        if n >= target || self.ended {
            buffer.truncate(n);
            return Ok(());
        }
        buffer.resize(target, 0);
        while n < target {
            match self.from.read(&mut buffer[n..]) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(more) => n += more,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    buffer.truncate(n);
                    return Err(read_error(&e).caused_by(e));
                }
            }
        }
        buffer.truncate(n);
        Ok(())
    }
}

/// The offset after the last line break that has an even number of quotes before it.
fn quick_cut(text: &[u8]) -> Option<usize> {
    let mut end = memchr::memrchr(b'\n', text)? + 1;
    let mut quotes = memchr::memchr_iter(b'"', &text[..end]).count();
    while quotes % 2 == 1 {
        let quote = memchr::memrchr(b'"', &text[..end])?;
        let before = memchr::memrchr(b'\n', &text[..quote])? + 1;
        quotes -= memchr::memchr_iter(b'"', &text[before..end]).count();
        end = before;
    }
    Some(end)
}

/// The end of the last whole row by an exact scan: for text with CR alone, or with an odd number of quotes.
fn exact_cut(text: &[u8], format: &CsvFormat) -> Option<usize> {
    scan_all(text, format).cut
}

/// The result of an exact scan.
struct Scan {
    /// the end of the last whole row
    cut: Option<usize>,
    /// the fault that ended the scan
    fault: Option<CsvFault>,
}

fn scan_all(text: &[u8], format: &CsvFormat) -> Scan {
    let mut masks = Vec::new();
    csv_masks(text, format.delimiter, &mut masks);
    let mut scanner = Scanner::new(text, &masks, format);
    let mut spans: [Span; 0] = [];
    let mut cut = None;
    while let Some(row) = scanner.next_row(&mut spans) {
        if let Err(fault) = row {
            return Scan { cut, fault: Some(fault) };
        }
        // a row at the end of the text may continue in what follows, or its CR may have an LF there
        if scanner.position() < text.len() {
            cut = Some(scanner.position());
        }
    }
    Scan { cut, fault: None }
}
