//! Formats that are not read, by their first bytes, and what the user can do.

use crate::error::{ErrorCode, Result};

/// The first bytes of binary formats that are not read, with the name of the format and what to do.
const BINARY: &[(&[u8], &str)] = &[
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel workbook (.xls): save the sheet as CSV"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it (7z x -so FILE | urlset build -)"),
    (b"Rar!\x1a\x07", "a RAR archive: unpack it first"),
    (b"\x04\x22\x4d\x18", "compressed with lz4: decompress it (lz4 -dc FILE | urlset build -)"),
    (b"\xff\x06\x00\x00sNaPpY", "compressed with snappy: decompress it first"),
    (b"\x1f\x9d", "compressed with compress (.Z): decompress it (zcat FILE | urlset build -)"),
    (b"\x1f\x8b", "compressed twice: decompress it once (zcat FILE | urlset build -)"),
    (b"\xfd7zXZ\x00", "compressed twice: decompress it once (xzcat FILE | urlset build -)"),
    (b"\x28\xb5\x2f\xfd", "compressed twice: decompress it once (zstdcat FILE | urlset build -)"),
    (b"%PDF-", "a PDF document: urlset reads tables; export CSV from its source"),
    (b"Obj\x01", "Avro: convert it to Parquet (duckdb, pyspark)"),
    (b"PARE", "Parquet with an encrypted footer: decrypt it first"),
    (b"FEA1", "Feather version 1: convert it (pyarrow.feather.write_feather)"),
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

/// The name of a format that is not read, and what to do; `head` are its first bytes, decompressed.
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
            "an HTML page, not data: is it a login page or an error page? fetch the export itself",
        );
    }
    if ["<?xml", "<urlset", "<sitemapindex", "<rss", "<feed"].iter().any(|tag| begins(tag)) {
        return Some(if has(b"<urlset") || has(b"<sitemapindex") {
            "already a sitemap: urlset read converts it to rows (urlset read FILE -o urls.csv)"
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

/// The text after a byte order mark and blanks.
pub fn text_start(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start()
}

/// A binary format that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryFormat {
    /// Parquet.
    Parquet,
    /// Arrow IPC, as a file or as a stream.
    Arrow,
}

/// The binary format with these first bytes.
pub fn table(head: &[u8]) -> Option<BinaryFormat> {
    if head.starts_with(b"PAR1") {
        return Some(BinaryFormat::Parquet);
    }
    let arrow = head.starts_with(b"ARROW1") || head.starts_with(b"\xff\xff\xff\xff");
    arrow.then_some(BinaryFormat::Arrow)
}

/// Refuses a file that cannot be read as text; `head` are its first bytes, decompressed.
///
/// # Errors
/// `input.format`, with the name of the format and what to do.
pub fn check_text(head: &[u8]) -> Result<()> {
    let what = match table(head) {
        Some(BinaryFormat::Parquet) => Some("Parquet: omit --format, or use --format parquet"),
        Some(_) => Some("Arrow IPC: omit --format, or use --format arrow"),
        None => foreign(head),
    };
    what.map_or(Ok(()), |what| Err(ErrorCode::InputFormat.error(format!("is {what}"))))
}
