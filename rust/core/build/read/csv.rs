//! A CSV file as a source. A list of URLs, one on each line, is read as CSV without a header,
//! delimiters and quotes.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::build::read::block::BlockReader;
use crate::build::read::csv_batch::CsvBatch;
use crate::build::read::decode;
use crate::build::read::header::{ExcelSeparator, Header, excel_separator, header, sniff};
use crate::build::read::lines;
use crate::build::read::scan::{CsvFormat, NO_SLOT};
use crate::build::read::unpack::{ByteStream, peek};
use crate::error::{ErrorCode, Result};
use crate::flow::cell::{ColumnKind, Columns};
use crate::flow::source::Source;

/// Options of a CSV file.
#[derive(Debug, Clone)]
pub struct CsvOptions {
    /// The delimiter; detected without it.
    pub delimiter: Option<u8>,
    /// The encoding; see [`decode::to_utf8`].
    pub encoding: Option<String>,
    /// Limit of the bytes of a cell.
    pub max_cell: usize,
    /// Target size of a block in bytes.
    pub block: usize,
    /// The file is a list of URLs, one on each line.
    pub lines: bool,
}

/// A CSV file, plain or packed; `-` is standard input.
pub struct Csv {
    path: String,
    opened: Option<ByteStream>,
    options: CsvOptions,
    blocks: Option<BlockReader>,
    format: Arc<CsvFormat>,
    columns: usize,
    consumed: Arc<AtomicU64>,
}

impl Csv {
    /// A source that has not been opened yet.
    pub fn new(path: impl Into<String>, options: CsvOptions) -> Csv {
        Csv {
            path: path.into(),
            opened: None,
            options,
            blocks: None,
            format: Arc::default(),
            columns: 0,
            consumed: Arc::default(),
        }
    }

    /// Reads what is open already; the path is then only its name.
    pub fn with_reader(self, opened: ByteStream) -> Csv {
        Csv { opened: Some(opened), ..self }
    }

    fn text(&mut self) -> Result<ByteStream> {
        let file = decode::open(&self.path, self.opened.take(), self.consumed.clone())?;
        decode::to_utf8(file, self.options.encoding.as_deref())
    }

    /// The columns of a list of URLs: one.
    fn open_lines(&mut self) -> Result<Columns> {
        let mut text = self.text()?;
        let head = peek(&mut text, 1).map_err(|e| decode::read_error(&e).caused_by(e))?;
        if head.is_empty() {
            return Err(ErrorCode::InputEmpty.error("is empty; it must contain one URL per line"));
        }
        let mut blocks = BlockReader::new(text, self.options.block);
        blocks.unread(&head);
        self.blocks = Some(blocks);
        Ok(Columns { names: vec![lines::COLUMN.to_owned()], kinds: vec![ColumnKind::Text] })
    }

    /// Reads the header and returns it with the delimiter.
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
            let declared = excel_separator(&head);
            let rows = declared.as_ref().map_or(&head[..], |found| &head[found.header..]);
            let declared = declared.as_ref().map(|found: &ExcelSeparator| found.delimiter);
            let delimiter = self.options.delimiter.or(declared).unwrap_or_else(|| sniff(rows));
            let named = self.options.encoding.as_deref();
            if let Some(found) = header(rows, whole, delimiter, self.options.max_cell, named)? {
                let mut blocks = BlockReader::new(text, self.options.block);
                blocks.unread(&rows[found.end..]);
                self.blocks = Some(blocks);
                return Ok((found, delimiter));
            }
            if whole {
                return Err(ErrorCode::InputEmpty.error("is empty; a header row is needed"));
            }
            if head.len() > limit {
                return Err(ErrorCode::CsvHeader
                    .error("no header ends within the first MiB; is this a CSV file?"));
            }
            want *= 2;
        }
    }
}

impl Source for Csv {
    type Batch = CsvBatch;

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
        self.format = Arc::new(CsvFormat {
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
        self.format = Arc::new(CsvFormat { slots: by_column, ..(*self.format).clone() });
    }

    fn next(&mut self, spare: Vec<u8>) -> Result<Option<CsvBatch>> {
        let Some(blocks) = &mut self.blocks else { return Ok(None) };
        let block = blocks.next(spare, &self.format).map_err(|e| e.in_input(&self.path))?;
        if block.last {
            self.blocks = None;
        }
        Ok(Some(CsvBatch { block, format: self.format.clone() }))
    }

    fn consumed(&self) -> u64 {
        self.consumed.load(Ordering::Relaxed)
    }
}
