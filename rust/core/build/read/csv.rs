//! A CSV file as a source: what it is, its header, its blocks, its rows. A list of URLs, one a line,
//! is one without a header, delimiters and quotes.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::build::read::block::{Block, Blocks, Header, excel_separator, header, sniff};
use crate::build::read::decode;
use crate::build::read::decode::Begun;
use crate::build::read::lines;
use crate::build::read::scan::{Format, NO_SLOT, Span, undouble};
use crate::build::read::unpack::{Text, peek};
use crate::build::read::{Batch, Source};
use crate::error::{Error, Result};
use crate::flow::cell::{Cell, ColumnKind, Columns};
use crate::flow::row::Row;

/// How a CSV file is to be read.
#[derive(Debug, Clone)]
pub struct CsvOptions {
    /// The delimiter; found by looking without it.
    pub delimiter: Option<u8>,
    /// The encoding; see [`decode::to_utf8`].
    pub encoding: Option<String>,
    /// Bytes of one cell at most.
    pub max_cell: usize,
    /// Bytes of a block.
    pub block: usize,
    /// A URL a line.
    pub lines: bool,
}

/// A CSV file, plain or packed; `-` is standard input.
pub struct Csv {
    path: String,
    begun: Option<Begun>,
    options: CsvOptions,
    blocks: Option<Blocks>,
    format: Arc<Format>,
    columns: usize,
    consumed: Arc<AtomicU64>,
}

impl Csv {
    /// A source that has not been opened yet.
    pub fn new(path: impl Into<String>, options: CsvOptions) -> Csv {
        Csv {
            path: path.into(),
            begun: None,
            options,
            blocks: None,
            format: Arc::default(),
            columns: 0,
            consumed: Arc::default(),
        }
    }

    /// The same source, of a file that is open already; the path is its name alone.
    pub fn begun(self, begun: Begun) -> Csv {
        Csv { begun: Some(begun), ..self }
    }

    fn text(&mut self) -> Result<Text> {
        let file = decode::open(&self.path, self.begun.take(), self.consumed.clone())?;
        decode::to_utf8(file, self.options.encoding.as_deref())
    }

    /// The columns of a list of URLs: one.
    fn open_lines(&mut self) -> Result<Columns> {
        let mut text = self.text()?;
        let (head, n) = peek::<1>(&mut text).map_err(|e| decode::read_error(&e).caused_by(e))?;
        if n == 0 {
            return Err(Error::input("input.empty", "is empty; a URL a line is needed"));
        }
        let mut blocks = Blocks::new(text, self.options.block);
        blocks.unread(&head);
        self.blocks = Some(blocks);
        Ok(Columns { names: vec![lines::COLUMN.to_owned()], kinds: vec![ColumnKind::Text] })
    }

    /// Reads the header, and tells the delimiter and the text that was read beyond it.
    fn read_header(&mut self) -> Result<(Header, u8)> {
        let mut text = self.text()?;
        let mut head = Vec::new();
        let limit = self.options.max_cell.max(1 << 20);
        let mut want = 64 << 10;
        loop {
            let before = head.len();
            (&mut text)
                .take((want - before) as u64)
                .read_to_end(&mut head)
                .map_err(|e| decode::read_error(&e).caused_by(e))?;
            let whole = head.len() < want;
            let (told, start) = excel_separator(&head).unzip();
            let rows = &head[start.unwrap_or(0)..];
            let delimiter = self.options.delimiter.or(told).unwrap_or_else(|| sniff(rows));
            let named = self.options.encoding.as_deref();
            if let Some(found) = header(rows, whole, delimiter, self.options.max_cell, named)? {
                let mut blocks = Blocks::new(text, self.options.block);
                blocks.unread(&rows[found.end..]);
                self.blocks = Some(blocks);
                return Ok((found, delimiter));
            }
            if whole {
                return Err(Error::input("input.empty", "is empty; a header row is needed"));
            }
            if head.len() > limit {
                return Err(Error::input(
                    "csv.header",
                    "no header ends within the first MiB; is this a CSV file?",
                ));
            }
            want *= 2;
        }
    }
}

impl Source for Csv {
    fn name(&self) -> &str {
        &self.path
    }

    fn open(&mut self) -> Result<Columns> {
        let (columns, delimiter) = if self.options.lines {
            (self.open_lines().map_err(|e| e.in_input(&self.path))?, 0)
        } else {
            let (header, delimiter) = self.read_header().map_err(|e| e.in_input(&self.path))?;
            let kinds = vec![ColumnKind::Text; header.names.len()];
            (Columns { names: header.names, kinds }, delimiter)
        };
        self.columns = columns.names.len();
        self.format = Arc::new(Format {
            delimiter,
            max_cell: self.options.max_cell,
            slots: Vec::new(),
            lines: self.options.lines,
            encoding: self.options.encoding.clone(),
        });
        Ok(columns)
    }

    fn select(&mut self, slots: &[usize]) {
        let mut by_column = vec![NO_SLOT; self.columns];
        for (slot, &column) in slots.iter().enumerate() {
            by_column[column] = slot as u32;
        }
        self.format = Arc::new(Format { slots: by_column, ..(*self.format).clone() });
    }

    fn next(&mut self, spare: Vec<u8>) -> Result<Option<Batch>> {
        let Some(blocks) = &mut self.blocks else { return Ok(None) };
        let (text, last) = blocks.next(spare, &self.format).map_err(|e| e.in_input(&self.path))?;
        if last {
            self.blocks = None;
        }
        Ok(Some(Batch::Csv(Block { text, format: self.format.clone(), last })))
    }

    fn consumed(&self) -> u64 {
        self.consumed.load(Ordering::Relaxed)
    }
}

/// A scanned row with its cells.
pub struct CsvRow<'t> {
    /// The text of the block.
    pub text: &'t [u8],
    /// The cells by slot.
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
