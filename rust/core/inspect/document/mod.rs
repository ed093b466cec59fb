//! Sitemaps to entries: `urlset`, `sitemapindex` and text sitemaps of any producer, plain or gzip.
//!
//! ```text
//!  file --> inflate --> Window --> fast | xml | text --> Entry --> Visitor: verify, read, diff
//!           if gzip     window,                |
//!                       location               +------> Log: findings
//! ```
//!
//! All input is untrusted. Depth, lengths, inflated size and the number of kept findings have limits;
//! no DOCTYPE is read and no external entity is resolved; no input causes a panic.

mod characters;
mod element;
pub mod encoding;
pub mod entry;
pub mod fast;
pub mod inflate;
pub mod model;
pub mod names;
mod prolog;
pub mod regular;
mod tag;
#[cfg(test)]
mod tests;
mod text;
pub mod window;
mod xml;

use crate::inspect::finding::Log;
use crate::inspect::{check, codes};
use crate::sitemap::url::split_absolute;
use entry::{Form, Visitor};
use inflate::Bytes;
use window::Window;

/// The form and the totals of one file.
#[derive(Debug, Clone, Copy)]
pub struct Summary {
    /// Its form.
    pub form: Form,
    /// The number of entries, including invalid ones.
    pub entries: u64,
    /// The size in bytes before compression.
    pub bytes: u64,
}

impl Summary {
    /// The summary of a file that was not read.
    pub const EMPTY: Summary = Summary { form: Form::Unknown, entries: 0, bytes: 0 };
}

/// Reads the bytes of one sitemap of any form, and returns its buffer for reuse. `fast` enables the
/// fast path; without it, the XML parser reads every entry.
pub fn parse(
    bytes: Bytes,
    visitor: &mut dyn Visitor,
    log: &mut Log,
    fast: bool,
) -> (Summary, Vec<u8>) {
    let mut source = Window::new(bytes);
    fill(&mut source, log);
    let start = source.at();
    if let Some(form) = encoding::of(source.window()) {
        source = decode(source, form, log);
    }
    let bom = source.window().starts_with(b"\xef\xbb\xbf");
    if bom {
        log.add(&codes::UTF8_BOM, start, None, || "a byte order mark".to_owned());
        source.advance(3);
    }
    let window = source.window();
    let first = window.iter().find(|b| !b" \t\r\n".contains(b)).copied();
    let is_text = first.is_some_and(|b| b != b'<') && is_url_list(window);
    let (document, mut source) = if first.is_none() {
        log_empty(&mut source, log);
        (xml::Document { form: Form::Unknown, entries: 0, stopped: false }, source)
    } else if first != Some(b'<') && !is_text {
        log.add(&codes::FILE_NOT_SITEMAP, start, None, || {
            "neither XML nor a list of URLs".to_owned()
        });
        return (Summary::EMPTY, source.into_buffer());
    } else if is_text {
        text::parse(source, visitor, log)
    } else {
        xml::parse(source, visitor, log, fast)
    };
    // the size includes the bytes after a fault that ended the parsing
    if !document.stopped {
        source.drain(|| visitor.stopped());
    }
    let bytes = source.at().offset;
    if let Some((damage, at)) = source.take_damage() {
        log.add(damage.code, at, None, || damage.message);
    }
    if let Some(at) = source.bad_utf8() {
        log.add(&codes::UTF8_INVALID, at, None, || "bytes that are not UTF-8".to_owned());
    }
    if document.form == Form::Unknown && first.is_some() && !log.is_broken() {
        log.whole_file(&codes::FILE_NOT_SITEMAP, || "no root element".to_owned());
    }
    let xml::Document { form, entries, .. } = document;
    (Summary { form, entries, bytes }, source.into_buffer())
}

/// Decodes the source to UTF-8. UTF-16 is a finding here; other encodings need a declaration, and its
/// parser reports them.
fn decode(source: Window, form: encoding::SourceEncoding, log: &mut Log) -> Window {
    if !source.window().starts_with(b"<?") {
        log.add_harmless(&codes::UTF8_INVALID, source.at(), || "the file is in UTF-16".to_owned());
    }
    let mut source = source.decode(form);
    fill(&mut source, log);
    source
}

/// Reads the first bytes.
fn fill(source: &mut Window, log: &mut Log) {
    if let Err(error) = source.more() {
        log.whole_file(&codes::FILE_UNREADABLE, || crate::error::plain(&error));
    }
}

fn log_empty(source: &mut Window, log: &mut Log) {
    match source.take_damage() {
        Some((damage, at)) => log.add(damage.code, at, None, || damage.message),
        None => log.whole_file(&codes::FILE_EMPTY, || "the file is empty".to_owned()),
    }
}

/// The bytes in which the first line is searched; a legal URL is shorter.
const FIRST_LINE: usize = 4096;

/// Whether the first line is an absolute URL, as in a list of URLs.
fn is_url_list(window: &[u8]) -> bool {
    let start = check::value::trim(&window[..window.len().min(FIRST_LINE)]);
    let line = start.split(|&b| b == b'\n').next().unwrap_or_default();
    split_absolute(line).is_some()
}
