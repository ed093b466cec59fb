//! Files in other encodings than UTF-8: they are a finding, but are decoded and read.

use std::io::{self, Read};

use encoding_rs::{Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE};

use crate::flow::transcode::Transcoder;
use crate::inspect::codes;
use crate::inspect::document::inflate::Damage;

/// The encoding of a file that is not in UTF-8.
#[derive(Clone, Copy)]
pub enum SourceEncoding {
    /// An encoding of the WHATWG standard.
    Standard(&'static Encoding),
    /// ISO-8859-1: the WHATWG standard reads it as windows-1252, XML does not.
    Latin1,
}

/// The names of ISO-8859-1 (IANA).
const LATIN1: [&str; 9] = [
    "iso-8859-1",
    "iso_8859-1",
    "iso8859-1",
    "iso_8859-1:1987",
    "latin1",
    "l1",
    "iso-ir-100",
    "ibm819",
    "cp819",
]; // rustfmt would give each a line

/// The number of bytes at the start that are searched for a declaration.
const START: usize = 1024;

/// The encoding of a file that starts with `window`, unless it is read as UTF-8.
pub fn of(window: &[u8]) -> Option<SourceEncoding> {
    match window {
        [0xef, 0xbb, 0xbf, ..] => return None, // the mark takes precedence over the declaration
        [0xff, 0xfe, ..] | [b'<', 0, ..] => return Some(SourceEncoding::Standard(UTF_16LE)),
        [0xfe, 0xff, ..] | [0, b'<', ..] => return Some(SourceEncoding::Standard(UTF_16BE)),
        _ => {}
    }
    let label = std::str::from_utf8(declared(window)?).ok()?.to_ascii_lowercase();
    if LATIN1.contains(&label.as_str()) {
        return Some(SourceEncoding::Latin1);
    }
    let encoding = Encoding::for_label(label.as_bytes())?;
    // US-ASCII is UTF-8, unlike in the WHATWG standard; a file whose declaration can be read
    // byte by byte is not in UTF-16
    let other = encoding != UTF_8 && encoding != REPLACEMENT && !label.contains("ascii");
    (other && encoding.is_ascii_compatible()).then_some(SourceEncoding::Standard(encoding))
}

/// The encoding that an XML declaration names.
fn declared(window: &[u8]) -> Option<&[u8]> {
    let start = window.strip_prefix(b"<?xml")?;
    let start = &start[..start.len().min(START)];
    let declaration = &start[..memchr::memmem::find(start, b"?>")?];
    let rest = &declaration[memchr::memmem::find(declaration, b"encoding")? + 8..];
    let rest = rest.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (quote, rest) = rest.split_first().filter(|(quote, _)| b"\"'".contains(quote))?;
    Some(&rest[..memchr::memchr(*quote, rest)?])
}

/// Decodes bytes to UTF-8. An error after the last byte reports malformed bytes.
pub struct Decoded<R> {
    inner: Transcoder<R>,
    encoding: &'static str,
    reported: bool,
}

impl<R: Read> Decoded<R> {
    /// Decodes all bytes of `inner`.
    pub fn new(form: SourceEncoding, inner: R) -> Decoded<R> {
        let (decoder, encoding) = match form {
            SourceEncoding::Standard(encoding) => {
                (Some(encoding.new_decoder_with_bom_removal()), encoding.name())
            }
            SourceEncoding::Latin1 => (None, "ISO-8859-1"),
        };
        let inner = Transcoder::new(inner, decoder, "\u{fffd}".as_bytes());
        Decoded { inner, encoding, reported: false }
    }
}

impl<R: Read> Read for Decoded<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let given = self.inner.read(out)?;
        if given > 0 || out.is_empty() || self.reported || !self.inner.found_invalid() {
            return Ok(given);
        }
        self.reported = true;
        let message = format!("bytes that are not {}", self.encoding);
        Err(io::Error::other(Damage { code: &codes::UTF8_INVALID, message }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one byte at a time.
    struct SingleBytes<'a>(&'a [u8]);

    impl Read for SingleBytes<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let limit = out.len().min(1);
            self.0.read(&mut out[..limit])
        }
    }

    #[test]
    fn decodes_in_pieces_of_any_size() {
        let text = "äöü€ 漢字 𝄞".repeat(30_000);
        let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let mut whole = String::new();
        Decoded::new(SourceEncoding::Standard(UTF_16LE), &wide[..])
            .read_to_string(&mut whole)
            .unwrap();
        assert!(whole == text);
        let mut dripped = String::new();
        let short = &wide[..4000];
        Decoded::new(SourceEncoding::Standard(UTF_16LE), SingleBytes(short))
            .read_to_string(&mut dripped)
            .unwrap();
        assert!(text.starts_with(&dripped) && dripped.encode_utf16().count() == 2000);
        let all: Vec<u8> = (0..=255).collect();
        let mut latin = String::new();
        Decoded::new(SourceEncoding::Latin1, &all[..]).read_to_string(&mut latin).unwrap();
        assert!(latin.chars().map(u32::from).eq(0..256));
        let mut lost = Vec::new();
        let error =
            Decoded::new(SourceEncoding::Standard(UTF_16LE), &[b'a', 0, 0, 0xd8, b'b', 0][..])
                .read_to_end(&mut lost)
                .unwrap_err();
        assert_eq!(lost, "a\u{fffd}b".as_bytes());
        assert!(error.to_string().contains("UTF-16LE"), "{error}");
    }

    #[test]
    fn names_of_encodings() {
        let named =
            |name: &str| of(format!("<?xml version='1.0' encoding = \"{name}\"?>").as_bytes());
        for utf8 in ["utf-8", "UTF8", "us-ascii", "ascii", "utf-16", "cp037", "iso-2022-kr", ""] {
            assert!(named(utf8).is_none(), "{utf8}");
        }
        assert!(matches!(named("ISO-8859-1"), Some(SourceEncoding::Latin1)));
        for other in ["windows-1252", "ISO-8859-15", "Shift_JIS", "koi8-r"] {
            assert!(matches!(named(other), Some(SourceEncoding::Standard(_))), "{other}");
        }
        assert!(of(b"<?xml version='1.0'?><a encoding='iso-8859-1'>").is_none());
    }
}
