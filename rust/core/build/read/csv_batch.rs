//! A block of CSV, or of a list of URLs, as a batch of rows.

use std::sync::Arc;

use crate::UNCHECKED;
use crate::build::read::block::Block;
use crate::build::read::lines::Lines;
use crate::build::read::scan::{CsvFault, CsvFormat, NO_SLOT, Scanner, Span, undouble};
use crate::flow::cell::Cell;
use crate::flow::row::Row;
use crate::flow::source::{BadRow, Batch, BatchEnd, RowConsumer};
use crate::simd::csv_masks;

/// A block and its format.
pub struct CsvBatch {
    /// The text.
    pub block: Block,
    /// The dialect and the columns.
    pub format: Arc<CsvFormat>,
}

/// A scanned row with its cells.
pub struct CsvRow<'t> {
    /// The text of the block.
    pub text: &'t [u8],
    /// The cells, by slot.
    pub spans: &'t [Span],
}

impl Row for CsvRow<'_> {
    #[inline]
    fn cell<'a>(&'a self, slot: usize, scratch: &'a mut Vec<u8>) -> Cell<'a> {
        let span = self.spans[slot];
        let raw = &self.text[span.start as usize..span.end as usize];
        if raw.is_empty() {
            return Cell::Null;
        }
        if span.doubled {
            scratch.clear();
            undouble(raw, scratch);
            return Cell::Text(scratch);
        }
        Cell::Text(raw)
    }
}

/// A line of a list of URLs. A type of its own: the rows of CSV are rendered inline only if one place
/// renders them, which saves 44 instructions for each.
struct LineRow<'t>(&'t [u8]);

impl Row for LineRow<'_> {
    #[inline]
    fn cell<'a>(&'a self, _slot: usize, _scratch: &'a mut Vec<u8>) -> Cell<'a> {
        Cell::Text(self.0)
    }
}

impl Batch for CsvBatch {
    #[inline]
    fn rows(&mut self, scratch: &mut Vec<u64>, consumer: &mut impl RowConsumer) -> BatchEnd {
        if self.format.lines {
            self.lines(consumer);
            return BatchEnd::Complete;
        }
        self.csv_rows(scratch, consumer)
    }

    fn join(&mut self, mut open: Vec<u8>) {
        open.append(&mut self.block.text);
        self.block.text = open;
    }

    fn into_buffer(self) -> Vec<u8> {
        self.block.text
    }
}

impl CsvBatch {
    fn csv_rows(&self, masks: &mut Vec<u64>, consumer: &mut impl RowConsumer) -> BatchEnd {
        let CsvBatch { block: Block { text, last }, format } = self;
        let found = csv_masks(text, format.delimiter, masks);
        // The whole block is checked at once. Single rows are checked only if it has bad bytes.
        let clean =
            UNCHECKED || !found.nul && (found.ascii || simdutf8::basic::from_utf8(text).is_ok());
        let width = format.slots.len();
        let slots = format.slots.iter().filter(|slot| **slot != NO_SLOT).count();
        let mut spans = vec![Span::default(); slots];
        let mut scanner = Scanner::new(text, masks, format);
        let mut number = 0;
        while let Some(row) = scanner.next_row(&mut spans) {
            let row = match row {
                // the row may continue in the next block
                Ok(row) if row.end == text.len() && !last => {
                    return BatchEnd::Open(text[row.start..].to_vec());
                }
                Ok(row) => row,
                Err(CsvFault::Unclosed { row, .. }) if !last => {
                    return BatchEnd::Open(text[row..].to_vec());
                }
                Err(fault) => return BatchEnd::Failed(fault.error(format.max_cell)),
            };
            let bytes = &text[row.start..row.end];
            let bad = if row.cells as usize != width && !UNCHECKED {
                let message = format!("{} cells where the header has {width}", row.cells);
                Some(BadRow { code: "row.ragged", message, bytes })
            } else if clean {
                None
            } else {
                bad_bytes(bytes, format)
            };
            let more = match bad {
                None => consumer.row(&CsvRow { text, spans: &spans }, number),
                Some(bad) => consumer.bad_row(bad, number),
            };
            number += 1;
            if !more {
                break;
            }
        }
        BatchEnd::Complete
    }

    /// The rows of a list of URLs. A row has the number of its line.
    fn lines(&self, consumer: &mut impl RowConsumer) {
        let CsvBatch { block: Block { text, .. }, format } = self;
        let clean = memchr::memchr(0, text).is_none() && simdutf8::basic::from_utf8(text).is_ok();
        for (number, span) in (0..).zip(Lines::new(text)) {
            let line = &text[span.start..span.end];
            if line.iter().all(u8::is_ascii_whitespace) {
                consumer.blank();
                continue;
            }
            let bad = if clean { None } else { bad_bytes(line, format) };
            let more = match bad {
                None => consumer.row(&LineRow(line), number),
                Some(bad) => consumer.bad_row(bad, number),
            };
            if !more {
                break;
            }
        }
    }
}

/// The fault of the bytes of a row.
fn bad_bytes<'a>(bytes: &'a [u8], format: &CsvFormat) -> Option<BadRow<'a>> {
    if memchr::memchr(0, bytes).is_some() {
        let message = "has a NUL byte".to_owned();
        return Some(BadRow { code: "row.nul", message, bytes });
    }
    if simdutf8::basic::from_utf8(bytes).is_ok() {
        return None;
    }
    let message = match &format.encoding {
        None => {
            "is not UTF-8; if the whole file has another encoding, name it (--encoding latin-1)"
                .to_owned()
        }
        Some(named) => format!(
            "is not {named}; if other rows are right, fix this one, else the file has another \
             encoding"
        ),
    };
    Some(BadRow { code: "row.not_utf8", message, bytes })
}
