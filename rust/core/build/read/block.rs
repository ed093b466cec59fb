//! CSV text in blocks that begin, as far as can be told cheaply, at the start of a row.
//!
//! One file is split over threads so: the reader counts quotes, which SIMD does at memory speed,
//! and ends a block after a line break before which their number is even. Since the block began at
//! the start of a row, that is the end of a row unless a literal quote stands in an unquoted cell
//! (`Monitor 27" IPS`). Each renderer therefore scans its block exactly, and the collector, which
//! sees the blocks in order, learns from the end of one whether the start of the next was right;
//! where it was not, the rest of the one is put before the next and scanned again. The result is
//! that of one exact scan, whatever the data. Measured: counting costs 0.02 ns a byte, an exact
//! scan 0.15 ns; a reader that scanned exactly would feed 35 M rows/s and no more.

use std::io::{self, Read};
use std::sync::Arc;

use crate::build::read::decode::read_error;
use crate::build::read::lines;
use crate::build::read::scan::{Fault, Format, Scanner, Span};
use crate::error::{Error, Result};
use crate::simd::csv_masks;

/// A piece of CSV text.
pub struct Block {
    /// The text.
    pub text: Vec<u8>,
    /// What the scanner needs to know.
    pub format: Arc<Format>,
    /// Nothing comes after it.
    pub last: bool,
}

/// Cuts a text into blocks.
pub struct Blocks {
    from: Box<dyn Read + Send>,
    /// what follows the last cut
    carry: Vec<u8>,
    target: usize,
    ended: bool,
}

/// A row that spans more is refused: no catalog has one, and memory must stay bounded.
fn longest_row(max_cell: usize) -> usize {
    (max_cell * 16).max(16 << 20)
}

impl Blocks {
    /// Blocks of about `target` bytes.
    pub fn new(from: Box<dyn Read + Send>, target: usize) -> Blocks {
        Blocks { from, carry: Vec::new(), target: target.max(64), ended: false }
    }

    /// Puts back what was read too far: the text after the header.
    pub fn unread(&mut self, text: &[u8]) {
        let mut carry = text.to_vec();
        carry.append(&mut self.carry);
        self.carry = carry;
    }

    /// The next block in `buffer`, and whether it is the last, which may be empty: what the one
    /// before it left open is judged there. Not to be called after the last.
    pub fn next(&mut self, mut buffer: Vec<u8>, format: &Format) -> Result<(Vec<u8>, bool)> {
        // what a used buffer holds is written over, which costs less than to clear it
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
                return Ok((buffer, true));
            }
            let cut = match format.lines {
                true => lines::cut(&buffer),
                false => quick_cut(&buffer).or_else(|| exact_cut(&buffer, format)),
            };
            if let Some(cut) = cut {
                self.carry.extend_from_slice(&buffer[cut..]);
                buffer.truncate(cut);
                return Ok((buffer, false));
            }
            let longest = longest_row(format.max_cell);
            if buffer.len() >= longest {
                if format.lines {
                    let message =
                        format!("a line is longer than {longest} bytes; is this a list of URLs?");
                    return Err(Error::input("lines.too_long", message));
                }
                // The renderer finds the same fault, and the row; or, where the block did not begin
                // at the start of a row, that there is none: so it must not count as the last.
                if let Some(Fault::AfterQuote { .. } | Fault::TooLong { .. }) =
                    scan_all(&buffer, format).1
                {
                    return Ok((buffer, false));
                }
                let message = format!("a row is longer than {longest} bytes; is this a CSV file?");
                return Err(Error::input("csv.row_too_long", message));
            }
            target = (buffer.len() * 2).min(longest);
        }
    }

    /// Reads behind the first `n` bytes until there are `target` or the text ends.
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

/// The place after the last line break before which the number of quotes is even.
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

/// The end of the last whole row by an exact scan: for text with CR alone, or with odd quotes.
fn exact_cut(text: &[u8], format: &Format) -> Option<usize> {
    scan_all(text, format).0
}

/// The end of the last whole row, and the fault at which the scan ended.
fn scan_all(text: &[u8], format: &Format) -> (Option<usize>, Option<Fault>) {
    let mut masks = Vec::new();
    csv_masks(text, format.delimiter, &mut masks);
    let mut scanner = Scanner::new(text, &masks, format);
    let mut spans: [Span; 0] = [];
    let mut cut = None;
    while let Some(row) = scanner.next_row(&mut spans) {
        if let Err(fault) = row {
            return (cut, Some(fault));
        }
        // a row that ends with the text may go on in what has not been read, a CR there have its LF
        if scanner.position() < text.len() {
            cut = Some(scanner.position());
        }
    }
    (cut, None)
}

/// The first row of a text: the header.
pub struct Header {
    /// The names.
    pub names: Vec<String>,
    /// Where the first row of data begins.
    pub end: usize,
}

/// Reads the header from the start of `text`; `None` if it does not end there and more can come.
pub fn header(
    text: &[u8],
    whole: bool,
    delimiter: u8,
    max_cell: usize,
    encoding: Option<&str>,
) -> Result<Option<Header>> {
    let slots = (0..10_000).collect();
    let format = Format { delimiter, max_cell, slots, ..Format::default() };
    let mut masks = Vec::new();
    csv_masks(text, delimiter, &mut masks);
    let mut scanner = Scanner::new(text, &masks, &format);
    let mut spans = vec![Span::default(); 10_000];
    let row = match scanner.next_row(&mut spans) {
        None => return Ok(None),
        Some(Err(Fault::Unclosed { .. })) if !whole => return Ok(None),
        Some(Err(fault)) => {
            let (code, message) = fault_message(&fault, max_cell);
            return Err(Error::input(code, format!("in the header: {message}")));
        }
        Some(Ok(row)) if row.end == text.len() && !whole => return Ok(None),
        Some(Ok(row)) => row,
    };
    if row.cells as usize > spans.len() {
        return Err(Error::input("csv.header", "the header has more than 10,000 columns"));
    }
    let mut names = Vec::with_capacity(row.cells as usize);
    let mut plain = Vec::new();
    for span in &spans[..row.cells as usize] {
        plain.clear();
        super::scan::undouble_if(
            &text[span.start as usize..span.end as usize],
            span.doubled,
            &mut plain,
        );
        let name = std::str::from_utf8(&plain).map_err(|_| {
            let what = match encoding {
                None => "not UTF-8; name the encoding (--encoding latin-1, utf-16)".to_owned(),
                Some(named) => format!("not {named}; the file has another encoding"),
            };
            Error::input("csv.encoding", format!("the header is {what}"))
        })?;
        if name.contains('\0') {
            return Err(Error::input(
                "csv.encoding",
                match encoding {
                    None => {
                        "the header holds NUL bytes; is it UTF-16 (--encoding utf-16) or no CSV at all?"
                    }
                    Some(_) => {
                        "the header holds NUL bytes; is it of another encoding, or no CSV at all?"
                    }
                },
            ));
        }
        names.push(name.trim().to_owned());
    }
    Ok(Some(Header { names, end: scanner.position() }))
}

/// The code of a fault, and what it means.
pub fn fault_message(fault: &Fault, max_cell: usize) -> (&'static str, String) {
    match fault {
        Fault::Unclosed { .. } => (
            "csv.unclosed_quote",
            "a cell that begins with a quote here is never closed; later rows cannot be trusted"
                .into(),
        ),
        Fault::AfterQuote { cell } => (
            "csv.after_quote",
            format!(
                "cell {}: after its closing quote comes neither a delimiter nor the end of the line; \
                 double the quotes inside; later rows cannot be trusted",
                cell + 1
            ),
        ),
        Fault::TooLong { cell } => (
            "csv.cell_too_long",
            format!(
                "cell {}: longer than {max_cell} bytes; is a quote missing? (--max-cell allows more)",
                cell + 1
            ),
        ),
    }
}

/// The first line by which a file tells Excel its delimiter, `sep=;`: the delimiter, and where the
/// header begins. `None` if there is none, or if more of the text must be seen.
pub fn excel_separator(text: &[u8]) -> Option<(u8, usize)> {
    let line = text.get(..text.iter().position(|byte| matches!(byte, b'\n' | b'\r'))?)?;
    let bare = line.strip_prefix(b"\"").and_then(|l| l.strip_suffix(b"\"")).unwrap_or(line);
    let [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', delimiter] = bare else { return None };
    let crlf = text.get(line.len()..line.len() + 2) == Some(b"\r\n");
    let delimits = delimiter.is_ascii() && !matches!(delimiter, b'"' | 0);
    delimits.then_some((*delimiter, line.len() + 1 + usize::from(crlf)))
}

/// The delimiter that parts the first line best: the one that occurs most outside quotes.
pub fn sniff(text: &[u8]) -> u8 {
    let mut counts = [(b',', 0usize), (b';', 0), (b'\t', 0), (b'|', 0)];
    let (mut quoted, mut begun) = (false, false);
    for &c in text {
        match c {
            b'"' => quoted = !quoted,
            // empty lines before the header are no rows
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
    // the first of the most frequent: a comma where nothing delimits
    counts.iter().rev().max_by_key(|(_, n)| *n).map_or(b',', |(d, _)| *d)
}
