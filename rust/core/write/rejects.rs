//! The reject file: one line of CSV a row that became no URL.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::render::chunk::Reject;

/// Writes rejects to a file that appears with the first of them.
pub struct RejectFile {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    first: Option<String>,
}

impl RejectFile {
    /// Nothing is written yet.
    pub fn new(path: impl Into<PathBuf>) -> RejectFile {
        RejectFile { path: path.into(), file: None, first: None }
    }

    /// Writes a row's reject.
    pub fn write(&mut self, input: &str, row: u64, reject: &Reject) -> Result<()> {
        let RejectFile { path, file, first } = self;
        first.get_or_insert_with(|| format!("{input}: row {row}: {}", reject.message));
        let failed = |e| Error::output("output.rejects", path, e);
        let file = match file {
            Some(file) => file,
            None => {
                let new = File::create(&*path).map_err(failed)?;
                let mut new = BufWriter::with_capacity(64 << 10, new);
                new.write_all(b"input,row,column,code,message,value\n").map_err(failed)?;
                file.insert(new)
            }
        };
        let column = reject.column.as_deref().unwrap_or_default();
        line(file, input, row, column, reject).map_err(failed)
    }

    /// Where the first of them is and what is wrong with it.
    pub fn first(&self) -> Option<&str> {
        self.first.as_deref()
    }

    /// Flushes what is buffered.
    pub fn finish(&mut self) -> Result<()> {
        let Some(mut file) = self.file.take() else { return Ok(()) };
        file.flush().map_err(|e| Error::output("output.rejects", &self.path, e))
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

/// A cell, always quoted. What is no text or would reach a terminal is shown as `\x1b`; tabs and
/// line breaks stay, as CSV allows them.
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
