//! The common shape of a `<url>`, read without the XML parser.
//!
//! The fast path accepts the tags of the sitemap namespace without prefix, attribute or comment, in
//! order, then images and alternates under their usual prefixes. Values are visible ASCII with the
//! five named entities. The XML parser reads everything else, and every extension with a fault. A
//! property test compares both.

use crate::inspect::document::entry::{Part, PartField};
use crate::inspect::finding::Location;
use crate::sitemap::hreflang::{self, CodePolicy};
use crate::sitemap::namespaces::IMAGES;
use crate::sitemap::url;

/// A `<url>` as offsets into the scanned bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct CommonEntry {
    /// The offset of `<url>`.
    pub start: usize,
    /// The offset after `</url>`.
    pub end: usize,
    /// Start and end of the texts of loc, lastmod, changefreq, priority; empty if missing.
    pub texts: [(usize, usize); 4],
    /// The offsets of their start tags.
    pub tags: [usize; 4],
    /// Whether loc contains entities.
    pub escaped: bool,
}

const NAMES: [(&[u8], &[u8]); 4] = [
    (b"<loc>", b"</loc>"),
    (b"<lastmod>", b"</lastmod>"),
    (b"<changefreq>", b"</changefreq>"),
    (b"<priority>", b"</priority>"),
];

/// Images and alternates of the entry that was scanned last.
#[derive(Default)]
pub struct Extensions {
    /// `image:` is the prefix of images.
    pub images: bool,
    /// `xhtml:` is the prefix of XHTML.
    pub links: bool,
    /// Leave values with a fault to the parser.
    pub checks: bool,
    /// The parts, in the form of the parser.
    pub parts: Vec<Part>,
    /// Their texts.
    pub arena: Vec<u8>,
    /// The start of a URL without a fault.
    pub(crate) known: Vec<u8>,
}

/// The parser reads larger entries, since it checks the limits.
const MAX_PARTS: usize = 4_000;
const MAX_TEXT: usize = 1 << 20;

impl Extensions {
    /// Reads images and alternates up to `</url>`; `start` is the location of `bytes[0]`.
    fn take(&mut self, bytes: &[u8], mut at: usize, start: Location) -> Option<usize> {
        let (mut counted, mut line) = (0, start.line);
        loop {
            at = space(bytes, at);
            if let Some(end) = expect(bytes, at, b"</url>") {
                return Some(end);
            }
            if self.parts.len() > MAX_PARTS || self.arena.len() > MAX_TEXT {
                return None;
            }
            line += memchr::memchr_iter(b'\n', bytes.get(counted..at)?).count() as u64;
            counted = at;
            let mut place = Location { offset: start.offset + at as u64, line };
            if self.images
                && let Some(inside) = expect(bytes, at, b"<image:image>")
            {
                self.part(PartField::Block(IMAGES), b"", place)?;
                let tag = space(bytes, inside);
                let text = expect(bytes, tag, b"<image:loc>")?;
                let end = text + memchr::memchr(b'<', bytes.get(text..)?)?;
                line += memchr::memchr_iter(b'\n', &bytes[counted..tag]).count() as u64;
                counted = tag;
                place = Location { offset: start.offset + tag as u64, line };
                self.url(PartField::ImageLoc, &bytes[text..end], place)?;
                at = space(bytes, expect(bytes, end, b"</image:loc>")?);
                at = expect(bytes, at, b"</image:image>")?;
            } else if self.links
                && let Some(lang) = expect(bytes, at, LINK)
            {
                let end = lang + memchr::memchr(b'"', bytes.get(lang..)?)?;
                let code = &bytes[lang..end];
                let simple = |b: &u8| b.is_ascii_alphanumeric() || *b == b'-';
                if code.is_empty()
                    || !code.iter().all(simple)
                    || (self.checks && !hreflang::is_legal(code, CodePolicy::Report))
                {
                    return None;
                }
                self.part(PartField::AlternateLang, code, place)?;
                let href = expect(bytes, end, b"\" href=\"")?;
                let end = href + memchr::memchr(b'"', bytes.get(href..)?)?;
                self.url(PartField::AlternateHref, &bytes[href..end], place)?;
                at = expect(bytes, space(bytes, end + 1), b"/>")?;
            } else {
                return None;
            }
        }
    }

    /// Adds a part whose text is a URL.
    fn url(&mut self, field: PartField, written: &[u8], place: Location) -> Option<()> {
        if written.is_empty() || !plain(written) || memchr::memchr(b'<', written).is_some() {
            return None;
        }
        let from = self.arena.len();
        self.part(field, written, place)?;
        if memchr::memchr(b'&', written).is_some() {
            if !only_named(written) {
                return None;
            }
            self.arena.truncate(from);
            unescape(written, &mut self.arena);
            self.parts.last_mut()?.text.1 = self.arena.len() as u32;
        }
        let text = self.arena.get(from..)?;
        if self.checks {
            if url::written_fault(text, &self.known).is_some() {
                return None;
            }
            if !text.starts_with(&self.known) || self.known.is_empty() {
                let absolute = url::split_absolute(text)?;
                self.known.clear();
                self.known.extend_from_slice(absolute.with_root(text)?);
            }
        }
        Some(())
    }

    fn part(&mut self, field: PartField, text: &[u8], at: Location) -> Option<()> {
        let start = u32::try_from(self.arena.len()).ok()?;
        self.arena.extend_from_slice(text);
        let end = u32::try_from(self.arena.len()).ok()?;
        self.parts.push(Part { field, text: (start, end), at });
        Some(())
    }
}

const LINK: &[u8] = b"<xhtml:link rel=\"alternate\" hreflang=\"";

/// The `<url>` at the start of `bytes`, after white space; `None` if it has another shape or is
/// incomplete. `start` is the location of `bytes[0]`; `more` receives the extensions.
#[inline]
pub fn scan(bytes: &[u8], start: Location, more: &mut Extensions) -> Option<CommonEntry> {
    more.parts.clear();
    more.arena.clear();
    let mut shape = CommonEntry { start: space(bytes, 0), ..CommonEntry::default() };
    let mut at = expect(bytes, shape.start, b"<url>")?;
    for (which, (open, close)) in NAMES.iter().enumerate() {
        at = space(bytes, at);
        let Some(start) = expect(bytes, at, open) else {
            if which == 0 {
                return None;
            }
            continue;
        };
        let end = start + memchr::memchr(b'<', bytes.get(start..)?)?;
        let text = &bytes[start..end];
        if text.is_empty() || !plain(text) {
            return None;
        }
        if memchr::memchr(b'&', text).is_some() {
            if which != 0 || !only_named(text) {
                return None;
            }
            shape.escaped = true;
        }
        shape.texts[which] = (start, end);
        shape.tags[which] = at;
        at = expect(bytes, end, close)?;
    }
    at = space(bytes, at);
    shape.end = match expect(bytes, at, b"</url>") {
        Some(end) => end,
        None => more.take(bytes, at, start)?,
    };
    Some(shape)
}

#[inline]
fn expect(bytes: &[u8], at: usize, what: &[u8]) -> Option<usize> {
    bytes.get(at..)?.starts_with(what).then(|| at + what.len())
}

#[inline]
fn space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Visible ASCII without `>`; written so that the compiler vectorises it.
#[inline]
fn plain(text: &[u8]) -> bool {
    let mut bad = false;
    for &b in text {
        bad |= (b <= b' ') | (b > b'~') | (b == b'>');
    }
    !bad
}

/// The five entities of XML and their characters.
pub const ENTITIES: [(&[u8], u8); 5] =
    [(b"amp;", b'&'), (b"lt;", b'<'), (b"gt;", b'>'), (b"quot;", b'"'), (b"apos;", b'\'')];

fn only_named(text: &[u8]) -> bool {
    memchr::memchr_iter(b'&', text)
        .all(|at| ENTITIES.iter().any(|(name, _)| text[at + 1..].starts_with(name)))
}

/// `text` with the five entities resolved, appended to `out`.
pub fn unescape(text: &[u8], out: &mut Vec<u8>) {
    let mut done = 0;
    for at in memchr::memchr_iter(b'&', text) {
        for (name, character) in ENTITIES {
            if text[at + 1..].starts_with(name) {
                out.extend_from_slice(&text[done..at]);
                out.push(character);
                done = at + 1 + name.len();
            }
        }
    }
    out.extend_from_slice(&text[done..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_common_shape_and_nothing_else() {
        let one =
            b"\n <url>\n<loc>https://a.example/?a=1&amp;b=2</loc><priority>0.5</priority></url>";
        let mut none = Extensions::default();
        let shape = scan(one, Location::default(), &mut none).unwrap();
        assert_eq!((shape.start, shape.end, shape.escaped), (2, one.len(), true));
        let mut loc = Vec::new();
        unescape(&one[shape.texts[0].0..shape.texts[0].1], &mut loc);
        assert_eq!(loc, b"https://a.example/?a=1&b=2");
        for unusual in [
            &b"<url><loc>https://a.example/</loc></url"[..],
            b"<url><lastmod>2026-01-01</lastmod><loc>https://a.example/</loc></url>",
            b"<url><loc>https://a.example/</loc><loc>https://a.example/</loc></url>",
            b"<url><loc> https://a.example/</loc></url>",
            b"<url><loc>https://a.example/&#38;</loc></url>",
            b"<url><loc>https://a.example/&copy;</loc></url>",
            b"<url><loc>https://a.example/\xc3\xbc</loc></url>",
            b"<url><loc>https://a.example/</loc><!-- --></url>",
            b"<url><loc></loc></url>",
            b"<url ><loc>https://a.example/</loc></url>",
        ] {
            assert_eq!(
                scan(unusual, Location::default(), &mut none),
                None,
                "{}",
                String::from_utf8_lossy(unusual)
            );
        }
    }
}
