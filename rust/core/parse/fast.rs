//! The common shape of a `<url>`, read without the XML parser.
//!
//! It takes only what it is sure of: the tags of the sitemap namespace without prefix, attribute
//! or comment, in order, and visible ASCII with at most the five named entities. Everything else
//! it leaves to the XML parser; a property test holds the two against each other.

/// A `<url>` as offsets into the bytes that were looked at.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Where `<url>` starts.
    pub start: usize,
    /// The byte after `</url>`.
    pub end: usize,
    /// Start and end of the texts of loc, lastmod, changefreq, priority; empty where missing.
    pub texts: [(usize, usize); 4],
    /// Where their start tags stand.
    pub tags: [usize; 4],
    /// Whether loc holds entities.
    pub escaped: bool,
}

const NAMES: [(&[u8], &[u8]); 4] = [
    (b"<loc>", b"</loc>"),
    (b"<lastmod>", b"</lastmod>"),
    (b"<changefreq>", b"</changefreq>"),
    (b"<priority>", b"</priority>"),
];

/// The `<url>` at the start of `bytes`, after white space; `None` where it is not of the common
/// shape or not wholly there.
#[inline]
pub fn scan(bytes: &[u8]) -> Option<Shape> {
    let mut shape = Shape { start: space(bytes, 0), ..Shape::default() };
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
    shape.end = expect(bytes, at, b"</url>")?;
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
        let shape = scan(one).unwrap();
        assert_eq!((shape.start, shape.end, shape.escaped), (2, one.len(), true));
        let mut loc = Vec::new();
        unescape(&one[shape.texts[0].0..shape.texts[0].1], &mut loc);
        assert_eq!(loc, b"https://a.example/?a=1&b=2");
        for odd in [
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
            assert_eq!(scan(odd), None, "{}", String::from_utf8_lossy(odd));
        }
    }
}
