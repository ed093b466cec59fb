//! The reject file: a CSV file with a row for each rejected row.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use memchr::{memchr, memchr3};

use crate::error::{Error, ErrorCode, Result};
use crate::flow::chunk::Reject;

/// Writes the reject file, which appears with the first reject.
pub struct RejectFile {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    first: Option<String>,
    rows: u64,
}

impl RejectFile {
    /// A file that does not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> RejectFile {
        RejectFile { path: path.into(), file: None, first: None, rows: 0 }
    }

    /// Writes a reject.
    pub fn write(&mut self, input: &str, row: u64, reject: &Reject) -> Result<()> {
        let RejectFile { path, file, first, rows } = self;
        first.get_or_insert_with(|| format!("{input}: row {row}: {}", reject.message));
        let failed = |e| Error::output(ErrorCode::OutputRejects, path, e);
        let file = match file {
            Some(file) => file,
            None => {
                let new = File::create_new(&*path).map_err(failed)?;
                let mut new = BufWriter::with_capacity(64 << 10, new);
                new.write_all(b"input,row,column,code,message,value\n").map_err(failed)?;
                file.insert(new)
            }
        };
        let column = reject.column.as_deref().unwrap_or_default();
        line(file, input, row, column, reject).map_err(failed)?;
        *rows += 1;
        Ok(())
    }

    /// The number of rejects written.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The position and the message of the first reject.
    pub fn first(&self) -> Option<&str> {
        self.first.as_deref()
    }

    /// Flushes the buffer.
    pub fn finish(&mut self) -> Result<()> {
        let Some(mut file) = self.file.take() else { return Ok(()) };
        file.flush().map_err(|e| Error::output(ErrorCode::OutputRejects, &self.path, e))
    }
}

/// The index of the column `code`.
const CODE: usize = 3;

/// The complete rows with one code of a reject file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RowsOfCode {
    /// Their number.
    pub rows: u64,
    /// The offsets of the first [`MAX_PLACES`] of them.
    pub places: Vec<u64>,
}

/// The number of rows of a code whose places are kept, for examples.
const MAX_PLACES: usize = 5;

/// The complete rows of a reject file, by code. A cell may contain line breaks, so rows are not
/// lines.
///
/// # Errors
/// The file cannot be read.
pub fn count(path: &Path) -> Result<BTreeMap<String, RowsOfCode>> {
    let failed = |e| Error::output(ErrorCode::OutputRejects, path, e);
    let mut file = BufReader::with_capacity(256 << 10, File::open(path).map_err(failed)?);
    let mut counts = BTreeMap::<String, RowsOfCode>::new();
    let (mut quoted, mut column, mut header) = (false, 0, true);
    // the offsets of the buffer and of the row
    let (mut start, mut row) = (0, 0);
    let mut code = Vec::new();
    loop {
        let bytes = file.fill_buf().map_err(failed)?;
        if bytes.is_empty() {
            return Ok(counts);
        }
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let next = if quoted { memchr(b'"', rest) } else { memchr3(b'"', b',', b'\n', rest) };
            let end = next.unwrap_or(rest.len());
            if column == CODE && !quoted {
                code.extend_from_slice(&rest[..end]);
            }
            match rest.get(end) {
                Some(b'"') => quoted = !quoted,
                Some(b',') => column += 1,
                Some(_) => {
                    if !header {
                        let code = String::from_utf8_lossy(&code).into_owned();
                        let known = counts.entry(code).or_default();
                        known.rows += 1;
                        if known.places.len() < MAX_PLACES {
                            known.places.push(row);
                        }
                    }
                    row = start + (at + end + 1) as u64;
                    (column, header) = (0, false);
                    code.clear();
                }
                None => {}
            }
            at += end + 1;
        }
        let length = bytes.len();
        start += length as u64;
        file.consume(length);
    }
}

fn line(
    out: &mut impl Write,
    input: &str,
    row: u64,
    column: &str,
    reject: &Reject,
) -> io::Result<()> {
    cell(out, input.as_bytes())?;
    write!(out, ",{row},")?;
    cell(out, column.as_bytes())?;
    write!(out, ",{},", reject.code)?;
    cell(out, reject.message.as_bytes())?;
    out.write_all(b",")?;
    cell(out, &reject.value)?;
    out.write_all(b"\n")
}

/// Writes a cell, always quoted. Bytes that are not text and control characters are written as
/// `\x1b`; tabs and line breaks stay, since CSV allows them.
fn cell(out: &mut impl Write, value: &[u8]) -> io::Result<()> {
    out.write_all(b"\"")?;
    for chunk in value.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => out.write_all(b"\"\"")?,
                '\n' | '\t' => write!(out, "{c}")?,
                c if c.is_control() => write!(out, "\\x{:02x}", u32::from(c))?,
                c => write!(out, "{c}")?,
            }
        }
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}")?;
        }
    }
    out.write_all(b"\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_with_any_cells() {
        let path = std::env::temp_dir().join(format!("urlset-rejects-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let mut file = RejectFile::new(&path);
        let values =
            ["", "a\nb", "\"", "\"\n\"", ",,,,,", "\n\n\n", "x\0y", "a,\"b\"\n,loc.empty,"];
        let mut wanted = BTreeMap::new();
        for (row, code) in
            (0..9_000).zip(["loc.empty", "loc.scheme", "loc.other_host"].iter().cycle())
        {
            let reject = Reject {
                row,
                column: Some(values[row as usize % 7].to_owned()),
                code,
                message: values[row as usize % 5].into(),
                value: values[row as usize % 8].repeat(row as usize % 40).into_bytes(),
            };
            file.write("in,\"put\".csv", row.into(), &reject).unwrap();
            *wanted.entry((*code).to_owned()).or_default() += 1;
        }
        file.finish().unwrap();
        assert_eq!(file.rows(), 9_000);
        let counts = count(&path).unwrap();
        assert_eq!(
            counts.iter().map(|(code, of)| (code.clone(), of.rows)).collect::<BTreeMap<_, _>>(),
            wanted
        );
        // the places are where a row begins
        let bytes = std::fs::read(&path).unwrap();
        for (code, of) in &counts {
            assert_eq!(of.places.len(), MAX_PLACES);
            for &place in &of.places {
                let row = &bytes[place as usize..];
                assert!(row.starts_with(b"\"in,\"\"put\"\".csv\","), "{place}");
                assert!(row.windows(code.len()).any(|found| found == code.as_bytes()));
                assert_eq!(bytes[place as usize - 1], b'\n');
            }
        }
        // a truncated row does not count
        let length = std::fs::metadata(&path).unwrap().len();
        File::options().write(true).open(&path).unwrap().set_len(length - 1).unwrap();
        assert_eq!(count(&path).unwrap().values().map(|of| of.rows).sum::<u64>(), 8_999);
        std::fs::remove_file(&path).unwrap();
    }
}
