//! A block of CSV to elements: the scan and the rendering, row by row.

use crate::UNCHECKED;
use crate::build::read::block::{Block, fault_message};
use crate::build::read::csv::CsvRow;
use crate::build::read::lines::Lines;
use crate::build::read::scan::{Fault, Format, Scanner, Span};
use crate::build::render::plan::Plan;
use crate::build::render::row::Renderer;
use crate::error::Error;
use crate::flow::chunk::{Chunk, MAX_REJECT_VALUE, Reject};
use crate::simd::csv_masks;

/// How the scan of a block ended.
pub(crate) enum End {
    /// At the end of a row.
    Clean,
    /// In a quoted cell that may go on in the next block; the row began here.
    Open(usize),
    /// The rows from here on cannot be trusted.
    Fault(Fault),
}

/// Scans and renders a block that begins at the start of a row.
pub(crate) fn render_csv(
    block: &Block,
    plan: &Plan,
    masks: &mut Vec<u64>,
    renderer: &mut Renderer<'_>,
    chunk: &mut Chunk,
) -> End {
    if block.format.lines {
        render_lines(block, renderer, chunk);
        return End::Clean;
    }
    let text = &block.text[..];
    let seen = csv_masks(text, block.format.delimiter, masks);
    // the whole block at once; rows singly only where it is not clean
    let clean = UNCHECKED || !seen.nul && (seen.ascii || simdutf8::basic::from_utf8(text).is_ok());
    let mut spans = vec![Span::default(); plan.columns.len()];
    let mut scanner = Scanner::new(text, masks, &block.format);
    let mut number = 0;
    while let Some(row) = scanner.next_row(&mut spans) {
        let row = match row {
            // a block that was cut for lack of a row's end: the row may go on
            Ok(row) if row.end == text.len() && !block.last => return End::Open(row.start),
            Ok(row) => row,
            Err(Fault::Unclosed { row, .. }) if !block.last => return End::Open(row),
            Err(fault) => return End::Fault(fault),
        };
        let bytes = &text[row.start..row.end];
        let fault = if row.cells as usize != plan.width && !UNCHECKED {
            Some(("row.ragged", format!("{} cells where the header has {}", row.cells, plan.width)))
        } else if clean {
            None
        } else if memchr::memchr(0, bytes).is_some() {
            Some(("row.nul", "holds a NUL byte".to_owned()))
        } else if simdutf8::basic::from_utf8(bytes).is_err() {
            Some(("row.not_utf8", not_text(&block.format)))
        } else {
            None
        };
        match fault {
            None => renderer.render(&CsvRow { text, spans: &spans }, number, chunk),
            Some((code, message)) => reject(bytes, number, code, message, chunk),
        }
        number += 1;
        if !renderer.hand_on(chunk) {
            break; // nobody looks at what would come
        }
    }
    End::Clean
}

/// Renders a block of URLs, one a line. A row's number is that of its line; blank lines are none.
fn render_lines(block: &Block, renderer: &mut Renderer<'_>, chunk: &mut Chunk) {
    let text = &block.text[..];
    let clean = memchr::memchr(0, text).is_none() && simdutf8::basic::from_utf8(text).is_ok();
    for (number, (start, end)) in (0..).zip(Lines::new(text)) {
        let line = &text[start..end];
        if line.iter().all(u8::is_ascii_whitespace) {
            chunk.blank += 1;
        } else if clean || simdutf8::basic::from_utf8(line).is_ok_and(|line| !line.contains('\0')) {
            let spans = [Span { start: start as u32, end: end as u32, doubled: false }];
            renderer.render(&CsvRow { text, spans: &spans }, number, chunk);
        } else if line.contains(&0) {
            reject(line, number, "row.nul", "holds a NUL byte".to_owned(), chunk);
        } else {
            reject(line, number, "row.not_utf8", not_text(&block.format), chunk);
        }
    }
}

/// What is wrong with a row that cannot be decoded.
fn not_text(format: &Format) -> String {
    match &format.encoding {
        None => {
            "is not UTF-8; if the whole file has another encoding, name it (--encoding latin-1)"
                .to_owned()
        }
        Some(named) => format!(
            "is not {named}; if other rows are right, mend this one, else the file has another encoding"
        ),
    }
}

fn reject(bytes: &[u8], row: u32, code: &'static str, message: String, chunk: &mut Chunk) {
    chunk.rows += 1;
    let value = bytes[..bytes.len().min(MAX_REJECT_VALUE)].to_vec();
    chunk.rejects.push(Reject { row, column: None, code, message, value });
}

/// The error that ends the input `name` after `rows` rows of it.
pub(crate) fn fault_error(fault: &Fault, max_cell: usize, name: &str, rows: u64) -> Error {
    let (code, message) = fault_message(fault, max_cell);
    Error::input(code, message).in_input(name).at_row(rows + 1)
}
