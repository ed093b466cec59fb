//! The bytes of a file to UTF-8: decompression and transcoding.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use encoding_rs::{Decoder, DecoderResult, UTF_16BE, UTF_16LE};

use crate::build::read::foreign::check_text;
use crate::build::read::label::Label;
use crate::build::read::unpack::{ByteStream, peek, unpack};
use crate::error::{Error, ErrorCode, Result, plain};

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
                return Err(Error::new(ErrorCode::InputUnreadable, "is a folder").in_input(path));
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
    Error::new(code, plain(&e)).in_input(path).caused_by(e)
}

/// The decompressed text of `path`, or of a file that is open already.
///
/// # Errors
/// `input.missing`, `input.unreadable`; `input.format` if it is no text.
pub fn open(path: &str, opened: Option<ByteStream>, count: Arc<AtomicU64>) -> Result<ByteStream> {
    let unreadable = |e: io::Error| unreadable(path, e);
    let (mut text, packed) = bytes(path, opened, count)?;
    // damage is reported when the reader comes to it, after the rows before it
    let mut first = [0; FIRST];
    let mut n = 0;
    let mut failed = None;
    while n < FIRST {
        match text.read(&mut first[n..]) {
            Ok(0) => break,
            Ok(more) => n += more,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if packed => {
                failed = Some(e);
                break;
            }
            Err(e) => return Err(unreadable(e)),
        }
    }
    check_text(&first[..n]).map_err(|e| e.in_input(path))?;
    let first = io::Cursor::new(first).take(n as u64);
    Ok(match failed {
        Some(error) => Box::new(first.chain(Fails(Some(error)))),
        None => Box::new(first.chain(text)),
    })
}

/// Bytes that show whether a file is no text: the mark of tar is at offset 257.
const FIRST: usize = 512;

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
    let (head, n) = peek::<3>(&mut from).map_err(|e| read_error(&e))?;
    let mark = match &head[..n] {
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
            Error::new(ErrorCode::ConfigEncoding, what)
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
    let rest = io::Cursor::new(head).take(n as u64).chain(from);
    let mut rest: ByteStream = Box::new(rest);
    let mut skipped = [0; 3];
    rest.read_exact(&mut skipped[..skip]).map_err(|e| read_error(&e))?;
    Ok(match label {
        Label::Utf8 | Label::Utf16 => rest,
        Label::Latin1 => Box::new(Latin1 { from: rest, pending: None }),
        Label::Other(encoding) => Box::new(Transcode {
            from: rest,
            decoder: encoding.new_decoder_without_bom_handling(),
            raw: vec![0; 64 << 10],
            start: 0,
            end: 0,
            ended: false,
            finished: false,
            small: Vec::new(),
        }),
    })
}

/// Classifies an error while reading: a truncated or damaged archive, or a failing disk.
pub fn read_error(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            Error::new(ErrorCode::InputTruncated, "the file is truncated; create it again")
        }
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::Other => {
            Error::new(
                ErrorCode::InputDamaged,
                format!("cannot be decompressed ({}); create the file again", plain(error)),
            )
        }
        _ => Error::new(ErrorCode::InputUnreadable, plain(error)),
    }
}

/// ISO 8859-1: each byte is the code point (unlike windows-1252, which the web calls latin1).
struct Latin1<R> {
    from: R,
    /// second byte of a character that did not fit
    pending: Option<u8>,
}

impl<R: Read> Read for Latin1<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let mut n = 0;
        if let Some(byte) = self.pending.take() {
            buffer[0] = byte;
            n = 1;
        }
        let mut raw = [0; 16 << 10];
        let room = ((buffer.len() - n) / 2).min(raw.len());
        if room == 0 {
            if n == 0 {
                // room for one byte: return the first half of a character and keep the second
                let got = self.from.read(&mut raw[..1])?;
                if got == 1 {
                    let mut two = [0; 4];
                    let character = char::from(raw[0]).encode_utf8(&mut two).as_bytes();
                    buffer[0] = character[0];
                    self.pending = character.get(1).copied();
                }
                return Ok(got);
            }
            return Ok(n);
        }
        let got = self.from.read(&mut raw[..room])?;
        Ok(n + encoding_rs::mem::convert_latin1_to_utf8(&raw[..got], &mut buffer[n..]))
    }
}

/// Any other encoding. An invalid sequence becomes the byte 0xFF, so that its row is rejected as
/// invalid text instead of published with a replacement character.
struct Transcode<R> {
    from: R,
    decoder: Decoder,
    raw: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    finished: bool,
    /// decoded bytes that did not fit into the buffer of the caller, in reverse order
    small: Vec<u8>,
}

impl<R: Read> Read for Transcode<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        // the longest character and the byte for an invalid one must fit
        if buffer.len() < 8 && self.small.is_empty() {
            let mut room = [0; 8];
            let n = self.decode(&mut room)?;
            self.small.extend(room[..n].iter().rev());
        }
        if !self.small.is_empty() || buffer.len() < 8 {
            let mut n = 0;
            while n < buffer.len()
                && let Some(byte) = self.small.pop()
            {
                buffer[n] = byte;
                n += 1;
            }
            return Ok(n);
        }
        self.decode(buffer)
    }
}

impl<R: Read> Transcode<R> {
    /// Fills a buffer of 8 bytes or more.
    fn decode(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.finished {
            if self.start == self.end && !self.ended {
                self.start = 0;
                self.end = self.from.read(&mut self.raw)?;
                self.ended = self.end == 0;
            }
            let room = buffer.len() - 1;
            let (result, read, written) = self.decoder.decode_to_utf8_without_replacement(
                &self.raw[self.start..self.end],
                &mut buffer[..room],
                self.ended,
            );
            self.start += read;
            match result {
                DecoderResult::Malformed(..) => {
                    buffer[written] = 0xff;
                    return Ok(written + 1);
                }
                DecoderResult::InputEmpty if self.ended => self.finished = true,
                DecoderResult::InputEmpty | DecoderResult::OutputFull => {}
            }
            if written > 0 {
                return Ok(written);
            }
        }
        Ok(0)
    }
}
