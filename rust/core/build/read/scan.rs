//! The exact scanner of CSV: RFC 4180 quoting, and csv-core's rules where RFC 4180 is silent.
//!
//! A row ends at LF, CR or CRLF outside quotes. Empty lines are not rows. A quote inside an unquoted
//! cell is literal. The scanner is stricter than csv-core on purpose: only a delimiter or the end of
//! the line may follow a closing quote, and no quote may be open at the end of the text, since later
//! rows could not be trusted.
//!
//! # For maintainers
//!
//! The scanner jumps from one structural character (delimiter, quote, line break) to the next, by the
//! bit masks that [`crate::simd::csv_masks`] computes for a whole block. It touches no byte between
//! them.
//!
//! **What must stay true.**
//! - `plain_row` takes a row only if none of its cells has a quote, and changes nothing if it returns
//!   `None`: `any_row` then scans the same row. Both must agree on every row without quotes.
//! - `word`, `mask` and `at` describe one position. Whoever skips a byte that has a bit in the masks,
//!   such as the LF of CRLF, must also call `special`.
//! - Offsets are `u32`: a block is smaller than 4 GiB, since a row is at most 16 times `max_cell`.
//!
//! **Which tests fail.** `tests/rust/build/csv.rs` compares rows and cells with csv-core for valid
//! and for random text, and `fuzz/fuzz_targets/scan.rs` does so for any bytes and any slots.

use crate::error::{Error, ErrorCode};

/// The position of a cell of the current row in the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    /// The offset of the first byte, after the opening quote.
    pub start: u32,
    /// The offset after the last byte, at the closing quote.
    pub end: u32,
    /// The cell is quoted and contains doubled quotes.
    pub doubled: bool,
}

/// A scanned row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowSpan {
    /// The offset of the first byte.
    pub start: usize,
    /// The offset of the line break.
    pub end: usize,
    /// The number of cells.
    pub cells: u32,
}

/// Why the rows from here on cannot be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CsvFault {
    /// A quote is not closed at the end of the text.
    Unclosed {
        /// The offset of the row.
        row: usize,
        /// The offset of the quote.
        cell: usize,
    },
    /// Something other than a delimiter or the end of the line follows a closing quote.
    AfterQuote {
        /// Index of the cell in its row.
        cell: u32,
    },
    /// A cell is longer than the limit.
    TooLong {
        /// Index of the cell in its row.
        cell: u32,
    },
}

impl CsvFault {
    /// The error that ends the input, without a position.
    pub fn error(&self, max_cell: usize) -> Error {
        let (code, message) = match self {
        CsvFault::Unclosed { .. } => (
            ErrorCode::CsvUnclosedQuote,
            "a cell that begins with a quote here is never closed; later rows cannot be trusted"
                .into(),
        ),
        CsvFault::AfterQuote { cell } => (
            ErrorCode::CsvAfterQuote,
            format!(
                "cell {}: after its closing quote comes neither a delimiter nor the end of the line; \
                 double the quotes inside; later rows cannot be trusted",
                cell + 1
            ),
        ),
        CsvFault::TooLong { cell } => (
            ErrorCode::CsvCellTooLong,
            format!(
                "cell {}: longer than {max_cell} bytes; is a quote missing? (--max-cell allows more)",
                cell + 1
            ),
        ),
    };
        code.error(message)
    }
}

/// The dialect and the columns of a file.
#[derive(Debug, Clone, Default)]
pub struct CsvFormat {
    /// The delimiter.
    pub delimiter: u8,
    /// Limit of the bytes of a cell.
    pub max_cell: usize,
    /// For each column its slot, or [`NO_SLOT`]; columns after the last count as [`NO_SLOT`].
    pub slots: Vec<u32>,
    /// A list of URLs, one on each line: no header, delimiters and quotes.
    pub lines: bool,
    /// The encoding that the user named.
    pub encoding: Option<String>,
}

/// A column that is not read.
pub const NO_SLOT: u32 = u32::MAX;

/// Scans a text that begins at the start of a row.
pub struct Scanner<'a> {
    text: &'a [u8],
    masks: &'a [u64],
    format: &'a CsvFormat,
    /// the index of the current word of `masks`, and its remaining bits
    word: usize,
    mask: u64,
    at: usize,
    /// the column of each slot
    columns: Vec<u32>,
    /// the ends of the cells of a row
    ends: Vec<u32>,
}

impl<'a> Scanner<'a> {
    /// A scanner over `text`, with its masks from `csv_masks`.
    pub fn new(text: &'a [u8], masks: &'a [u64], format: &'a CsvFormat) -> Scanner<'a> {
        let mask = masks.first().copied().unwrap_or(0);
        let mut columns = Vec::new();
        for (column, &slot) in format.slots.iter().enumerate().filter(|(_, slot)| **slot != NO_SLOT)
        {
            let slot = slot as usize;
            columns.resize(columns.len().max(slot + 1), NO_SLOT);
            columns[slot] = column as u32;
        }
        let ends = vec![0; format.slots.len()];
        Scanner { text, masks, format, word: 0, mask, at: 0, columns, ends }
    }

    /// The offset of the next row.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The offset of the next delimiter, quote or line break.
    #[inline(always)]
    fn special(&mut self) -> Option<usize> {
        while self.mask == 0 {
            self.word += 1;
            self.mask = *self.masks.get(self.word)?;
        }
        let place = self.word * 64 + self.mask.trailing_zeros() as usize;
        self.mask &= self.mask - 1;
        Some(place)
    }

    /// The next row if none of its cells has a quote, as in most rows; otherwise `None`, and the
    /// position does not change. It stores only the ends of the cells, which takes a third of the
    /// instructions.
    #[inline(always)]
    fn plain_row(&mut self, spans: &mut [Span]) -> Option<RowSpan> {
        let (text, delimiter, start) = (self.text, self.format.delimiter, self.at);
        let (mut word, mut mask) = (self.word, self.mask);
        let mut cells = 0;
        let mut special = || {
            while mask == 0 {
                word += 1;
                mask = *self.masks.get(word)?;
            }
            let place = word * 64 + mask.trailing_zeros() as usize;
            mask &= mask - 1;
            Some(place)
        };
        let (end, next) = loop {
            let place = special()?;
            if let Some(end) = self.ends.get_mut(cells) {
                *end = place as u32;
            }
            cells += 1;
            match text[place] {
                byte if byte == delimiter => {}
                b'\n' => break (place, place + 1),
                b'\r' if text.get(place + 1) == Some(&b'\n') => {
                    special();
                    break (place, place + 2);
                }
                _ => return None,
            }
        };
        // an empty line is not a row; a row that is too long may have a cell that is too long
        if end == start || end - start > self.format.max_cell {
            return None;
        }
        for (span, &column) in spans.iter_mut().zip(&self.columns) {
            let column = column as usize;
            if column < cells
                && let Some(&end) = self.ends.get(column)
            {
                let before = column.checked_sub(1).map(|left| self.ends[left] + 1);
                *span = Span { start: before.unwrap_or(start as u32), end, doubled: false };
            }
        }
        (self.word, self.mask, self.at) = (word, mask, next);
        Some(RowSpan { start, end, cells: cells as u32 })
    }

    /// The next row. Its cells are written to `spans` by slot; a slot that the row lacks is unchanged.
    #[inline]
    pub fn next_row(&mut self, spans: &mut [Span]) -> Option<Result<RowSpan, CsvFault>> {
        if let Some(row) = self.plain_row(spans) {
            return Some(Ok(row));
        }
        self.any_row(spans)
    }

    fn any_row(&mut self, spans: &mut [Span]) -> Option<Result<RowSpan, CsvFault>> {
        let text = self.text;
        loop {
            let start = self.at;
            if start >= text.len() {
                return None;
            }
            let mut cell = 0u32;
            let mut from = start;
            let (end, next) = loop {
                let (first, last, doubled, stop);
                if text.get(from) == Some(&b'"') {
                    self.special(); // the opening quote itself
                    let mut seen = false;
                    let close = loop {
                        match self.special() {
                            None if text.len() - from > self.format.max_cell => {
                                return Some(Err(CsvFault::TooLong { cell }));
                            }
                            None => {
                                return Some(Err(CsvFault::Unclosed { row: start, cell: from }));
                            }
                            Some(p) if text[p] != b'"' => {}
                            Some(p) if text.get(p + 1) == Some(&b'"') => {
                                self.special();
                                seen = true;
                            }
                            Some(p) => break p,
                        }
                    };
                    stop = match text.get(close + 1) {
                        None => text.len(),
                        Some(&c) if c == self.format.delimiter || c == b'\n' || c == b'\r' => {
                            self.special();
                            close + 1
                        }
                        Some(_) => return Some(Err(CsvFault::AfterQuote { cell })),
                    };
                    (first, last, doubled) = (from + 1, close, seen);
                } else {
                    stop = loop {
                        match self.special() {
                            None => break text.len(),
                            Some(p) if text[p] == b'"' => {} // literal
                            Some(p) => break p,
                        }
                    };
                    (first, last, doubled) = (from, stop, false);
                }
                if last - first > self.format.max_cell {
                    return Some(Err(CsvFault::TooLong { cell }));
                }
                if let Some(&slot) = self.format.slots.get(cell as usize)
                    && let Some(span) = spans.get_mut(slot as usize)
                {
                    *span = Span { start: first as u32, end: last as u32, doubled };
                }
                cell += 1;
                match text.get(stop) {
                    None => break (stop, stop),
                    Some(&b'\n') => break (stop, stop + 1),
                    Some(&b'\r') => {
                        if text.get(stop + 1) == Some(&b'\n') {
                            self.special();
                            break (stop, stop + 2);
                        }
                        break (stop, stop + 1);
                    }
                    Some(_) => from = stop + 1,
                }
            };
            self.at = next;
            if end > start {
                return Some(Ok(RowSpan { start, end, cells: cell }));
            }
        }
    }
}

/// Copies a cell, with its doubled quotes made single if it has any.
pub fn undouble_if(text: &[u8], doubled: bool, out: &mut Vec<u8>) {
    if doubled { undouble(text, out) } else { out.extend_from_slice(text) }
}

/// Copies a cell with its doubled quotes made single.
pub fn undouble(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(quote) = memchr::memchr(b'"', rest) {
        out.extend_from_slice(&rest[..=quote]);
        rest = rest.get(quote + 2..).unwrap_or(&[]);
    }
    out.extend_from_slice(rest);
}
