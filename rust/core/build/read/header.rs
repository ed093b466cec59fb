//! The first row of a CSV file: the names of its columns.

use crate::build::read::scan::{CsvFault, CsvFormat, Scanner, Span, undouble_if};
use crate::error::{Error, ErrorCode, Result};
use crate::simd::csv_masks;

/// Limit of the columns of a file.
const MAX_COLUMNS: u32 = 10_000;

/// The first row of a text: the header.
pub struct Header {
    /// The names.
    pub names: Vec<String>,
    /// Where the first row of data begins.
    pub end: usize,
}

/// Reads the header from the start of `text`. Returns `None` if it does not end there and the text is
/// not `whole`.
pub fn header(
    text: &[u8],
    whole: bool,
    delimiter: u8,
    max_cell: usize,
    encoding: Option<&str>,
) -> Result<Option<Header>> {
    let slots = (0..MAX_COLUMNS).collect();
    let format = CsvFormat { delimiter, max_cell, slots, ..CsvFormat::default() };
    let mut masks = Vec::new();
    csv_masks(text, delimiter, &mut masks);
    let mut scanner = Scanner::new(text, &masks, &format);
    let mut spans = vec![Span::default(); MAX_COLUMNS as usize];
    let row = match scanner.next_row(&mut spans) {
        None => return Ok(None),
        Some(Err(CsvFault::Unclosed { .. })) if !whole => return Ok(None),
        Some(Err(fault)) => {
            let error = fault.error(max_cell);
            return Err(Error { message: format!("in the header: {}", error.message), ..error });
        }
        Some(Ok(row)) if row.end == text.len() && !whole => return Ok(None),
        Some(Ok(row)) => row,
    };
    if row.cells as usize > spans.len() {
        return Err(ErrorCode::CsvHeader.error("the header has more than 10,000 columns"));
    }
    let mut names = Vec::with_capacity(row.cells as usize);
    let mut plain = Vec::new();
    for span in &spans[..row.cells as usize] {
        plain.clear();
        undouble_if(&text[span.start as usize..span.end as usize], span.doubled, &mut plain);
        let name = std::str::from_utf8(&plain).map_err(|_| {
            let what = match encoding {
                None => "not UTF-8; name the encoding (--encoding latin-1, utf-16)".to_owned(),
                Some(named) => format!("not {named}; the file has another encoding"),
            };
            ErrorCode::CsvEncoding.error(format!("the header is {what}"))
        })?;
        if name.contains('\0') {
            return Err(ErrorCode::CsvEncoding.error(match encoding {
                None => {
                    "the header has NUL bytes; is it UTF-16 (--encoding utf-16) or no CSV at all?"
                }
                Some(_) => "the header has NUL bytes; is it of another encoding, or no CSV at all?",
            }));
        }
        names.push(name.trim().to_owned());
    }
    Ok(Some(Header { names, end: scanner.position() }))
}

/// A first line such as `sep=;`, which declares the delimiter for Excel.
pub struct ExcelSeparator {
    /// The delimiter.
    pub delimiter: u8,
    /// The offset of the header.
    pub header: usize,
}

/// The Excel separator line at the start of a text. Returns `None` if there is none, or if the text
/// is too short to contain it.
pub fn excel_separator(text: &[u8]) -> Option<ExcelSeparator> {
    let line = text.get(..text.iter().position(|byte| matches!(byte, b'\n' | b'\r'))?)?;
    let bare = line.strip_prefix(b"\"").and_then(|l| l.strip_suffix(b"\"")).unwrap_or(line);
    let [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', delimiter] = bare else { return None };
    let crlf = text.get(line.len()..line.len() + 2) == Some(b"\r\n");
    let delimits = delimiter.is_ascii() && !matches!(delimiter, b'"' | 0);
    let header = line.len() + 1 + usize::from(crlf);
    delimits.then_some(ExcelSeparator { delimiter: *delimiter, header })
}

/// The most frequent delimiter outside quotes in the first line.
pub fn sniff(text: &[u8]) -> u8 {
    let mut counts = [(b',', 0usize), (b';', 0), (b'\t', 0), (b'|', 0)];
    let (mut quoted, mut begun) = (false, false);
    for &c in text {
        match c {
            b'"' => quoted = !quoted,
            // empty lines before the header are not rows
            b'\n' | b'\r' if !quoted && begun => break,
            b'\n' | b'\r' if !quoted => continue,
            _ if !quoted => {
                if let Some((_, n)) = counts.iter_mut().find(|(d, _)| *d == c) {
                    *n += 1;
                }
            }
            _ => {}
        }
        begun = true;
    }
    // of equal counts the first; a comma if there is no delimiter
    counts.iter().rev().max_by_key(|(_, n)| *n).map_or(b',', |(d, _)| *d)
}
