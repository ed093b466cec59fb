//! The bytes of a file to UTF-8: decompression and transcoding.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use encoding_rs::{UTF_16BE, UTF_16LE};

use crate::build::read::foreign::check_text;
use crate::build::read::label::Label;
use crate::build::read::unpack::{ByteStream, peek, unpack};
use crate::error::{Error, ErrorCode, Result, plain};
use crate::flow::transcode::Transcoder;

/// Counts the bytes that were read from the file itself, for the progress line.
struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.count.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// A file that is open already, and the bytes that were read to detect its format.
pub struct OpenFile {
    /// The file, positioned after these bytes.
    pub file: File,
    /// The bytes.
    pub head: Vec<u8>,
}

impl From<OpenFile> for ByteStream {
    fn from(opened: OpenFile) -> ByteStream {
        Box::new(io::Cursor::new(opened.head).chain(opened.file))
    }
}

/// The decompressed bytes of `path`, or of what is open already, and whether they were compressed.
///
/// # Errors
/// `input.missing`, `input.unreadable`.
pub fn bytes(
    path: &str,
    opened: Option<ByteStream>,
    count: Arc<AtomicU64>,
) -> Result<(ByteStream, bool)> {
    let unreadable = |e: io::Error| unreadable(path, e);
    let file: ByteStream = match opened {
        Some(opened) => opened,
        None if path == "-" => Box::new(io::stdin()),
        None => {
            let file = File::open(Path::new(path)).map_err(unreadable)?;
            if file.metadata().map_err(unreadable)?.is_dir() {
                return Err(ErrorCode::InputUnreadable.error("is a folder").in_input(path));
            }
            Box::new(file)
        }
    };
    unpack(Box::new(Counted { inner: file, count })).map_err(unreadable)
}

fn unreadable(path: &str, e: io::Error) -> Error {
    let code = match e.kind() {
        io::ErrorKind::NotFound => ErrorCode::InputMissing,
        _ => ErrorCode::InputUnreadable,
    };
    code.error(plain(&e)).in_input(path).caused_by(e)
}

/// The decompressed text of `path`, or of a file that is open already.
///
/// # Errors
/// `input.missing`, `input.unreadable`; `input.format` if it is not text.
pub fn open(path: &str, opened: Option<ByteStream>, count: Arc<AtomicU64>) -> Result<ByteStream> {
    let unreadable = |e: io::Error| unreadable(path, e);
    let (mut text, packed) = bytes(path, opened, count)?;
    // damage is reported when the reader comes to it, after the rows before it
    let mut first = Vec::new();
    let failed = match text.by_ref().take(FIRST).read_to_end(&mut first) {
        Err(e) if !packed => return Err(unreadable(e)),
        read => read.err(),
    };
    check_text(&first).map_err(|e| e.in_input(path))?;
    let first = io::Cursor::new(first);
    Ok(match failed {
        Some(error) => Box::new(first.chain(Fails(Some(error)))),
        None => Box::new(first.chain(text)),
    })
}

/// Bytes that show whether a file is not text: the mark of tar is at offset 257.
const FIRST: u64 = 512;

/// Returns an error that happened before.
struct Fails(Option<io::Error>);

impl Read for Fails {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// The text of `from` in UTF-8, without a byte order mark.
///
/// `encoding` is the option of the user. Without it a byte order mark decides; the default is UTF-8.
pub fn to_utf8(mut from: ByteStream, encoding: Option<&str>) -> Result<ByteStream> {
    let head = peek(&mut from, 3).map_err(|e| read_error(&e))?;
    let mark = match &head[..] {
        [0xef, 0xbb, 0xbf] => Some((Label::Utf8, 3)),
        [0xff, 0xfe, ..] => Some((Label::Other(UTF_16LE), 2)),
        [0xfe, 0xff, ..] => Some((Label::Other(UTF_16BE), 2)),
        _ => None,
    };
    let named = match encoding {
        None => None,
        Some(name) => Some(Label::of(name).ok_or_else(|| {
            let what = format!(
                "{name:?} is not an encoding; use utf-8, latin-1, utf-16 or another WHATWG name"
            );
            ErrorCode::ConfigEncoding.error(what)
        })?),
    };
    let (label, skip) = match (named, mark) {
        (None, None) => (Label::Utf8, 0),
        (None, Some(mark)) => mark,
        // a mark defines the byte order that a plain "utf-16" leaves open
        (Some(Label::Utf16), Some((label @ Label::Other(_), skip))) => (label, skip),
        (Some(Label::Utf16), _) => (Label::Other(UTF_16LE), 0),
        (Some(label), mark) => (label, mark.map_or(0, |(m, n)| if m == label { n } else { 0 })),
    };
    let mut head = io::Cursor::new(head);
    head.set_position(skip);
    let rest = head.chain(from);
    let decoder = match label {
        Label::Utf8 | Label::Utf16 => return Ok(Box::new(rest)),
        Label::Latin1 => None,
        Label::Other(encoding) => Some(encoding.new_decoder_without_bom_handling()),
    };
    // UTF-8 never contains the byte 0xFF: its row is rejected as invalid text instead of published
    // with a replacement character
    Ok(Box::new(Transcoder::new(rest, decoder, b"\xff")))
}

/// Classifies an error while reading: a truncated or damaged archive, or a failing disk.
pub fn read_error(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            ErrorCode::InputTruncated.error("the file is truncated; create it again")
        }
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::Other => {
            ErrorCode::InputDamaged
                .error(format!("cannot be decompressed ({}); create the file again", plain(error)))
        }
        _ => ErrorCode::InputUnreadable.error(plain(error)),
    }
}
