//! What a file is, by its first bytes.

use std::io::{Cursor, Read};

use crate::build::read::decode::to_utf8;
use crate::build::read::unpack::unpack;
use crate::error::{Error, Result};

/// A format that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Delimited text, or nothing that can be told.
    Csv,
    /// A URL a line.
    Lines,
    /// Parquet.
    Parquet,
    /// Arrow IPC, as a file or as a stream.
    Arrow,
    /// A JSON object a line.
    Jsonl,
}

/// First bytes that cannot begin a text, and what they begin. What to do follows.
const BINARY: &[(&[u8], &str)] = &[
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel workbook (.xls): save the sheet as CSV"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it (7z x -so FILE | urlset build -)"),
    (b"Rar!\x1a\x07", "a RAR archive: unpack it first"),
    (b"\x04\x22\x4d\x18", "packed by lz4: unpack it (lz4 -dc FILE | urlset build -)"),
    (b"\xff\x06\x00\x00sNaPpY", "packed by snappy: unpack it first"),
    (b"\x1f\x9d", "packed by compress (.Z): unpack it (zcat FILE | urlset build -)"),
    (b"\x1f\x8b", "packed twice: unpack it once (zcat FILE | urlset build -)"),
    (b"\xfd7zXZ\x00", "packed twice: unpack it once (xzcat FILE | urlset build -)"),
    (b"\x28\xb5\x2f\xfd", "packed twice: unpack it once (zstdcat FILE | urlset build -)"),
    (b"%PDF-", "a PDF document: urlset reads tables; export CSV from where it was made"),
    (b"Obj\x01", "Avro: convert it to Parquet (duckdb, pyspark)"),
    (b"PARE", "Parquet with an encrypted footer: decrypt it first"),
    (b"FEA1", "Feather of version 1: write it anew (pyarrow.feather.write_feather)"),
    (
        b"SQLite format 3\0",
        "an SQLite database: export the table (sqlite3 -csv -header FILE 'select …')",
    ),
    (b"\x89HDF\r\n", "HDF5: write the table as Parquet (pandas.read_hdf(…).to_parquet(…))"),
    (b"\x89PNG", "an image: urlset reads tables"),
    (b"\xff\xd8\xff\xe0", "an image: urlset reads tables"),
    (b"\xff\xd8\xff\xe1", "an image: urlset reads tables"),
    (b"GIF87a", "an image: urlset reads tables"),
    (b"GIF89a", "an image: urlset reads tables"),
    (b"\x7fELF", "a program: urlset reads tables"),
];

/// What a file is that is not read, and what to do; `head` are its first bytes, unpacked.
pub fn foreign(head: &[u8]) -> Option<&'static str> {
    if let Some((_, what)) = BINARY.iter().find(|(first, _)| head.starts_with(first)) {
        return Some(what);
    }
    let has = |part: &[u8]| memchr::memmem::find(head, part).is_some();
    if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        return Some(if has(b"application/vnd.oasis.opendocument") {
            "an OpenDocument file: save the sheet as CSV"
        } else if has(b"[Content_Types].xml") || has(b"xl/") || has(b"_rels/.rels") {
            "an Excel workbook (.xlsx): save the sheet as CSV (\"CSV UTF-8\")"
        } else {
            "a zip archive: unpack it (unzip -p FILE | urlset build -)"
        });
    }
    if head.get(257..262) == Some(b"ustar") {
        return Some("a tar archive: unpack it (tar -xOf FILE | urlset build -)");
    }
    if head.starts_with(b"ORC") && head.contains(&0) {
        return Some("ORC: convert it to Parquet (pyarrow.orc, pyspark)");
    }
    if head.get(8..12) == Some(b"DUCK") && head.contains(&0) {
        return Some("a DuckDB database: export the table (copy … to 'x.parquet')");
    }
    let text = text_start(head);
    let begins = |tag: &str| {
        text.get(..tag.len()).is_some_and(|first| first.eq_ignore_ascii_case(tag.as_bytes()))
    };
    if ["<!doctype html", "<html", "<head", "<body"].iter().any(|tag| begins(tag)) {
        return Some(
            "an HTML page, not data: is it a page of login or of an error? fetch the export itself",
        );
    }
    if ["<?xml", "<urlset", "<sitemapindex", "<rss", "<feed"].iter().any(|tag| begins(tag)) {
        return Some(if has(b"<urlset") || has(b"<sitemapindex") {
            "a sitemap already: urlset read makes rows of it (urlset read FILE -o urls.csv)"
        } else {
            "XML: urlset reads tables; export CSV, JSON Lines or Parquet"
        });
    }
    if let Some(rest) = text.strip_prefix(b"[")
        && let Some(first) = rest.iter().find(|byte| !byte.is_ascii_whitespace())
        && matches!(first, b'{' | b'"' | b'[' | b']')
    {
        return Some(
            "one JSON array; urlset reads JSON Lines, an object a line (jq -c '.[]' FILE.json > \
             FILE.jsonl)",
        );
    }
    None
}

/// The text after a mark and blanks.
fn text_start(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start()
}

/// The binary format that is read and has these first bytes.
fn table(head: &[u8]) -> Option<Kind> {
    if head.starts_with(b"PAR1") {
        return Some(Kind::Parquet);
    }
    let arrow = head.starts_with(b"ARROW1") || head.starts_with(b"\xff\xff\xff\xff");
    arrow.then_some(Kind::Arrow)
}

/// Refuses what cannot be read as text; `head` are its first bytes, unpacked.
///
/// # Errors
/// `input.format`, with what it is and what to do.
pub fn check_text(head: &[u8]) -> Result<()> {
    let what = match table(head) {
        Some(Kind::Parquet) => Some("Parquet: name no other format, or --format parquet"),
        Some(_) => Some("Arrow IPC: name no other format, or --format arrow"),
        None => foreign(head),
    };
    what.map_or(Ok(()), |what| Err(Error::input("input.format", format!("is {what}"))))
}

/// What a file is whose first bytes are `head`; `whole` if there are no more.
///
/// # Errors
/// `input.format` where it is nothing that is read, with what to do; `config.encoding`.
pub fn recognise(head: &[u8], whole: bool, encoding: Option<&str>) -> Result<Kind> {
    // of a head the end is missing: what can be unpacked is enough, and damage is told later
    let Ok((text, packed)) = unpack(Box::new(Cursor::new(head.to_vec()))) else {
        return Ok(Kind::Csv);
    };
    let raw = first_bytes(text);
    match table(&raw) {
        Some(_) if packed => {
            let what = "is Parquet or Arrow, packed once more: unpack it first";
            return Err(Error::input("input.format", what));
        }
        Some(kind) => return Ok(kind),
        None => {}
    }
    let whole = whole && raw.len() < FIRST;
    let text = first_bytes(to_utf8(Box::new(Cursor::new(raw.clone())), encoding)?);
    if let Some(what) = foreign(&raw).or_else(|| foreign(&text)) {
        return Err(Error::input("input.format", format!("is {what}")));
    }
    if text_start(&text).starts_with(b"{") {
        return Ok(Kind::Jsonl);
    }
    Ok(if is_list(&text, whole) { Kind::Lines } else { Kind::Csv })
}

/// Bytes of a text by which its format is told.
const FIRST: usize = 64 << 10;

/// What can be read of the first bytes.
fn first_bytes(from: impl Read) -> Vec<u8> {
    let mut head = Vec::new();
    // an error here is that of the cut, or it comes again where the file is read
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

/// Whether a text is a URL a line: its first line is no header but a URL, and its first lines are
/// not rows of as many cells each.
fn is_list(text: &[u8], whole: bool) -> bool {
    let lines = first_lines(text, whole);
    if !lines.first().is_some_and(|line| is_url(line)) {
        return false;
    }
    let urls: Vec<&[u8]> = lines.iter().copied().filter(|line| is_url(line)).collect();
    // a list with some lines that are none is a list; their rows are rejected
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

    fn told(text: &[u8]) -> Kind {
        recognise(text, true, None).unwrap()
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
            assert_eq!(told(list.as_bytes()), Kind::Lines, "{list:?}");
        }
        for table in [
            "url\nhttps://a.example/1\n",
            "https://a.example/1,2024-01-01\nhttps://a.example/2,2024-01-01\n",
            "https://a.example/1\t2024\nhttps://a.example/2\n",
            "/p/1\n/p/2\n",
            "",
            "\n",
        ] {
            assert_eq!(told(table.as_bytes()), Kind::Csv, "{table:?}");
        }
        assert_eq!(told(b"\xff\xfeh\0t\0t\0p\0:\0/\0/\0a\0.\0b\0/\0"), Kind::Lines);
        assert_eq!(told(b" {\"url\": 1}\n"), Kind::Jsonl);
        assert_eq!(told(b"PAR1\x15"), Kind::Parquet);
        assert_eq!(told(b"ARROW1\0\0"), Kind::Arrow);
    }

    #[test]
    fn what_is_no_table_is_named() {
        for (head, named) in [
            (&b"PK\x03\x04\x14\0\x06\0\x08\0xxxx[Content_Types].xml"[..], ".xlsx"),
            (b"PK\x03\x04\x14\0feed.csv", "zip archive"),
            (b"<!DOCTYPE html><html>", "HTML page"),
            (b"\n<HTML>", "HTML page"),
            (b"<?xml version='1.0'?><urlset xmlns='x'>", "urlset read"),
            (b"[\n {\"a\": 1}]", "jq -c"),
            (b"ORC\x0a\0", "ORC"),
        ] {
            let error = recognise(head, true, None).unwrap_err();
            assert_eq!(error.code, "input.format");
            assert!(error.message.contains(named), "{}", error.message);
        }
        for text in
            [&b"ORC_ID,url\n1,https://a.example/"[..], b"[id],[url]\n", b"PK,url\n", b"GIF,url\n"]
        {
            assert_eq!(told(text), Kind::Csv);
        }
    }
}
