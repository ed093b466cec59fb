//! The bytes of a file, decompressed if its first two bytes are those of gzip (RFC 1952).
//!
//! libdeflate inflates a sitemap within the limits in one call, about twice as fast as a streaming
//! decoder. flate2 streams larger files, and files that libdeflate rejects: it reports the fault and
//! buffers one window only.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::GzDecoder;
use libdeflater::Decompressor;

use crate::file::FileIdentity;
use crate::inspect::codes;
use crate::inspect::codes::Code;
use crate::inspect::document::regular;

/// The first bytes of gzip (RFC 1952).
const MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Compressed files up to this size are read and inflated at once.
const WHOLE: u64 = 32 << 20;
/// Limit of their inflated size.
const WHOLE_INFLATED: usize = 64 << 20;

/// Limit of the bytes that are inflated or read of one file: 1 GiB, twenty times that of a sitemap.
pub const MAX_INFLATED: u64 = 1 << 30;

/// A fault of the compressed data.
#[derive(Debug)]
pub struct Damage {
    /// One of the `gzip.` codes.
    pub code: &'static Code,
    /// The fault, in one line.
    pub message: String,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Damage {}

/// The bytes of a file, inflated.
pub enum Bytes {
    /// All of them.
    Whole(Vec<u8>),
    /// A stream of them; its errors contain [`Damage`] if the compressed data is at fault.
    Stream(Box<dyn Read + Send>),
}

/// A file that was opened for reading.
pub struct OpenedFile {
    /// Its bytes.
    pub bytes: Bytes,
    /// Whether they were compressed.
    pub gzip: bool,
    /// Bytes on disk.
    pub size: u64,
    /// Detects that the file was written while it was read.
    pub identity: FileIdentity,
}

/// Opens files, and reuses its buffers for the next file.
#[derive(Default)]
pub struct Inflater {
    decompressor: Option<Decompressor>,
    compressed: Vec<u8>,
    spare: Vec<u8>,
}

impl Inflater {
    /// Opens the file at `path`.
    pub fn open(&mut self, path: &Path) -> io::Result<OpenedFile> {
        let (mut file, about) = regular::open(path)?;
        let (size, identity) = (about.len(), FileIdentity::of(&about));
        let magic = read_magic(&mut file)?;
        let is_gzip = magic == MAGIC;
        let head = Cursor::new(magic);
        if !is_gzip {
            let bytes = Bytes::Stream(Box::new(Bounded::new(head.chain(file))));
            return Ok(OpenedFile { bytes, gzip: false, size, identity });
        }
        if size <= WHOLE {
            self.compressed.clear();
            self.compressed.extend_from_slice(&MAGIC);
            file.take(WHOLE).read_to_end(&mut self.compressed)?;
            let bytes = match self.inflate_at_once() {
                Some(bytes) => Bytes::Whole(bytes),
                None => stream(Cursor::new(std::mem::take(&mut self.compressed))),
            };
            return Ok(OpenedFile { bytes, gzip: true, size, identity });
        }
        let bytes = stream(BufReader::with_capacity(1 << 16, head.chain(file)));
        Ok(OpenedFile { bytes, gzip: true, size, identity })
    }

    /// Returns a buffer for the next file.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() > self.spare.capacity() {
            self.spare = buffer;
        }
    }

    /// The whole file, if it is one valid member within the limits.
    fn inflate_at_once(&mut self) -> Option<Vec<u8>> {
        let data = &self.compressed;
        let tail: [u8; 4] = data.get(data.len().checked_sub(4)?..)?.try_into().ok()?;
        let size = u32::from_le_bytes(tail) as usize; // ISIZE: exact for one member below 4 GiB
        // the size may be false: a byte of deflate inflates to at most 1,032
        if size > WHOLE_INFLATED || size > data.len().saturating_mul(1032) {
            return None;
        }
        // libdeflate stops after the first member and does not report what follows. The streaming
        // decoder reads a file that may have a second header.
        if memchr::memmem::find(&data[2..], &[0x1f, 0x8b, 0x08]).is_some() {
            return None;
        }
        let mut out = std::mem::take(&mut self.spare);
        out.resize(size, 0);
        let decompressor = self.decompressor.get_or_insert_with(Decompressor::new);
        let wrote = decompressor.gzip_decompress(data, &mut out);
        // without a second member, the last eight bytes are the trailer, unless other bytes follow
        let valid = wrote == Ok(size) && trailer_is_last(data, &out);
        if valid {
            return Some(out);
        }
        self.spare = out;
        None
    }
}

/// Whether the last eight bytes are CRC-32 and size of `out`.
fn trailer_is_last(data: &[u8], out: &[u8]) -> bool {
    data.len() >= 18
        && data[data.len() - 8..data.len() - 4] == libdeflater::crc32(out).to_le_bytes()
}

fn read_magic(file: &mut File) -> io::Result<Vec<u8>> {
    let mut magic = Vec::with_capacity(MAGIC.len());
    file.take(MAGIC.len() as u64).read_to_end(&mut magic)?;
    Ok(magic)
}

fn stream(input: impl BufRead + Send + 'static) -> Bytes {
    Bytes::Stream(Box::new(Bounded::new(Gunzip::new(input))))
}

/// Opens a file as a stream, to read only its start.
pub fn open_stream(path: &Path) -> io::Result<Bytes> {
    let (mut file, _) = regular::open(path)?;
    let magic = read_magic(&mut file)?;
    let is_gzip = magic == MAGIC;
    let all = Cursor::new(magic).chain(file);
    Ok(match is_gzip {
        true => stream(BufReader::with_capacity(1 << 14, all)),
        false => Bytes::Stream(Box::new(Bounded::new(all))),
    })
}

/// Bytes in memory, plain or gzip, within the same bounds: for tests, fuzzing and fetched bodies.
pub fn from_memory(data: Vec<u8>) -> (Bytes, bool) {
    match data.starts_with(&MAGIC) {
        true => (stream(Cursor::new(data)), true),
        false => (Bytes::Whole(data), false),
    }
}

/// All members of a gzip file. An error after the last byte reports a second member or trailing
/// bytes, so that no data is lost.
struct Gunzip<R> {
    inner: Option<GzDecoder<R>>,
    rest: Option<R>,
    members: u64,
    unusual: Option<Damage>,
}

impl<R: BufRead> Gunzip<R> {
    fn new(input: R) -> Gunzip<R> {
        Gunzip { inner: Some(GzDecoder::new(input)), rest: None, members: 1, unusual: None }
    }

    /// Called after a member: continues with the next one, if there is one.
    fn next_member(&mut self) -> io::Result<()> {
        let Some(mut rest) = self.rest.take() else { return Ok(()) };
        let ahead = rest.fill_buf()?;
        if ahead.is_empty() {
            if self.members > 1 && self.unusual.is_none() {
                let message = format!("{} gzip members", self.members);
                self.unusual = Some(Damage { code: &codes::GZIP_MEMBERS, message });
            }
        } else if ahead[0] == 0x1f && ahead.get(1).is_none_or(|&b| b == 0x8b) {
            self.members += 1;
            self.inner = Some(GzDecoder::new(rest));
        } else {
            let message = "bytes after the end of the gzip data".to_owned();
            self.unusual = Some(Damage { code: &codes::GZIP_TRAILING, message });
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Gunzip<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        while let Some(inner) = &mut self.inner {
            match inner.read(out) {
                Ok(0) => {
                    self.rest = self.inner.take().map(GzDecoder::into_inner);
                    self.next_member()?;
                }
                Ok(n) => return Ok(n),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.inner = None;
                    let code = match error.kind() {
                        io::ErrorKind::UnexpectedEof => &codes::GZIP_TRUNCATED,
                        _ => &codes::GZIP_CORRUPT,
                    };
                    let message = match error.kind() {
                        io::ErrorKind::UnexpectedEof => "the gzip data ends too early".to_owned(),
                        _ => format!("damaged gzip data: {}", crate::error::plain(&error)),
                    };
                    return Err(io::Error::other(Damage { code, message }));
                }
            }
        }
        match self.unusual.take() {
            Some(unusual) => Err(io::Error::other(unusual)),
            None => Ok(0),
        }
    }
}

/// A reader that fails after [`MAX_INFLATED`] bytes.
struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Bounded<R> {
    fn new(inner: R) -> Bounded<R> {
        Bounded { inner, left: MAX_INFLATED }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            let message = format!("more than {MAX_INFLATED} bytes; the rest was not read");
            return Err(io::Error::other(Damage { code: &codes::GZIP_BOMB, message }));
        }
        let limit = usize::try_from(self.left).unwrap_or(usize::MAX).min(out.len());
        let got = self.inner.read(&mut out[..limit])?;
        self.left -= got as u64;
        Ok(got)
    }
}
