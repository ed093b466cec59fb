//! The format of a file, by its first bytes.

use std::io::{Cursor, Read};

use crate::build::read::decode::to_utf8;
use crate::build::read::foreign::{BinaryFormat, foreign, table, text_start};
use crate::build::read::unpack::unpack;
use crate::error::{ErrorCode, Result};

/// A format that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// Delimited text; also the default.
    Csv,
    /// A list of URLs, one on each line.
    Lines,
    /// Parquet.
    Parquet,
    /// Arrow IPC, as a file or as a stream.
    Arrow,
    /// A JSON object on each line.
    Jsonl,
}

/// The format of a file whose first bytes are `head`; `whole` if these are all its bytes.
///
/// # Errors
/// `input.format` for a format that is not read, with what to do; `config.encoding`.
pub fn detect(head: &[u8], whole: bool, encoding: Option<&str>) -> Result<FileFormat> {
    // the head may be cut anywhere; damage is reported when the file is read
    let Ok((text, packed)) = unpack(Box::new(Cursor::new(head.to_vec()))) else {
        return Ok(FileFormat::Csv);
    };
    let raw = first_bytes(text);
    match table(&raw) {
        Some(_) if packed => {
            let what = "is compressed Parquet or Arrow: decompress it first";
            return Err(ErrorCode::InputFormat.error(what));
        }
        Some(BinaryFormat::Parquet) => return Ok(FileFormat::Parquet),
        Some(BinaryFormat::Arrow) => return Ok(FileFormat::Arrow),
        None => {}
    }
    let whole = whole && raw.len() < FIRST;
    let text = first_bytes(to_utf8(Box::new(Cursor::new(raw.clone())), encoding)?);
    if let Some(what) = foreign(&raw).or_else(|| foreign(&text)) {
        return Err(ErrorCode::InputFormat.error(format!("is {what}")));
    }
    if text_start(&text).starts_with(b"{") {
        return Ok(FileFormat::Jsonl);
    }
    Ok(if is_list(&text, whole) { FileFormat::Lines } else { FileFormat::Csv })
}

/// Bytes of a text that decide its format.
const FIRST: usize = 64 << 10;

/// The first bytes, as far as they can be read.
fn first_bytes(from: impl Read) -> Vec<u8> {
    let mut head = Vec::new();
    // an error is due to the cut, or it happens again when the file is read
    let _ = from.take(FIRST as u64).read_to_end(&mut head);
    head
}

/// Whether a file contains text that is neither a list of URLs nor a table: none of its first lines
/// is a URL or a path, and no delimiter occurs equally often in all of them, or the first line is a
/// sentence. `head` are its first bytes; `whole` if there are no more.
pub fn is_prose(head: &[u8], whole: bool, encoding: Option<&str>) -> bool {
    let Ok((text, _)) = unpack(Box::new(Cursor::new(head.to_vec()))) else { return false };
    let Ok(text) = to_utf8(text, encoding) else { return false };
    let text = first_bytes(text);
    let lines = first_lines(&text, whole && text.len() < FIRST);
    let (Some(first), Some(last)) = (lines.first(), lines.first().and_then(|line| line.last()))
    else {
        return false;
    };
    let is_table = b"\t,;|".iter().any(|delimiter| {
        let count = |line: &[u8]| memchr::memchr_iter(*delimiter, line).count();
        lines.len() > 1 && count(first) > 0 && lines.iter().all(|line| count(line) == count(first))
    });
    !lines.iter().any(|line| is_url(line) || line.starts_with(b"/"))
        && (!is_table || b".!?:".contains(last))
}

/// Up to 100 lines of a text that are not blank; without `whole` the last line may be incomplete.
fn first_lines(text: &[u8], whole: bool) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = text.split(|byte| matches!(byte, b'\n' | b'\r')).collect();
    if !whole && lines.len() > 1 {
        lines.pop();
    }
    let lines = lines.into_iter().map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    lines.take(100).collect()
}

fn is_url(line: &[u8]) -> bool {
    ["http://", "https://"].iter().any(|scheme| {
        line.get(..scheme.len()).is_some_and(|s| s.eq_ignore_ascii_case(scheme.as_bytes()))
    })
}

/// Whether a text is a list of URLs: its first line is a URL and no header, and its lines are not rows
/// with the same number of cells.
fn is_list(text: &[u8], whole: bool) -> bool {
    let lines = first_lines(text, whole);
    if !lines.first().is_some_and(|line| is_url(line)) {
        return false;
    }
    let urls: Vec<&[u8]> = lines.iter().copied().filter(|line| is_url(line)).collect();
    // some other lines do not matter: they are rejected
    if urls.len() * 2 < lines.len() || urls.iter().any(|line| line.contains(&b'\t')) {
        return false;
    }
    b",;|".iter().all(|delimiter| {
        let mut counts = urls.iter().map(|line| memchr::memchr_iter(*delimiter, line).count());
        let first = counts.next().unwrap_or(0);
        first == 0 || counts.any(|count| count != first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected(text: &[u8]) -> FileFormat {
        detect(text, true, None).unwrap()
    }

    #[test]
    fn lists_and_tables() {
        for list in [
            "https://a.example/1\nhttps://a.example/2\n",
            "https://a.example/1",
            "\u{feff}HTTP://a.example/1\r\n\r\nhttps://a.example/2",
            "\n\nhttps://a.example/1\rhttps://a.example/2,1.html\r",
            "https://a.example/1\nN/A\nhttps://a.example/3\n",
            "https://a.example/?a=\"1\"\nhttps://a.example/2\n",
        ] {
            assert_eq!(detected(list.as_bytes()), FileFormat::Lines, "{list:?}");
        }
        for table in [
            "url\nhttps://a.example/1\n",
            "https://a.example/1,2024-01-01\nhttps://a.example/2,2024-01-01\n",
            "https://a.example/1\t2024\nhttps://a.example/2\n",
            "/p/1\n/p/2\n",
            "",
            "\n",
        ] {
            assert_eq!(detected(table.as_bytes()), FileFormat::Csv, "{table:?}");
        }
        assert_eq!(detected(b"\xff\xfeh\0t\0t\0p\0:\0/\0/\0a\0.\0b\0/\0"), FileFormat::Lines);
        assert_eq!(detected(b" {\"url\": 1}\n"), FileFormat::Jsonl);
        assert_eq!(detected(b"PAR1\x15"), FileFormat::Parquet);
        assert_eq!(detected(b"ARROW1\0\0"), FileFormat::Arrow);
    }

    #[test]
    fn formats_that_are_not_read_are_named() {
        for (head, named) in [
            (&b"PK\x03\x04\x14\0\x06\0\x08\0xxxx[Content_Types].xml"[..], ".xlsx"),
            (b"PK\x03\x04\x14\0feed.csv", "zip archive"),
            (b"<!DOCTYPE html><html>", "HTML page"),
            (b"\n<HTML>", "HTML page"),
            (b"<?xml version='1.0'?><urlset xmlns='x'>", "urlset read"),
            (b"[\n {\"a\": 1}]", "jq -c"),
            (b"ORC\x0a\0", "ORC"),
        ] {
            let error = detect(head, true, None).unwrap_err();
            assert_eq!(error.code, "input.format");
            assert!(error.message.contains(named), "{}", error.message);
        }
        for text in
            [&b"ORC_ID,url\n1,https://a.example/"[..], b"[id],[url]\n", b"PK,url\n", b"GIF,url\n"]
        {
            assert_eq!(detected(text), FileFormat::Csv);
        }
    }
}
