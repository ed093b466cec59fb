//! The grammar of URLs (RFC 3986), written once for building and verifying.
//!
//! Both split a URL with [`split`] and [`RawAuthority::split`] and use the same classes of
//! characters and the same rules for hosts and ports ([`host`]). The policies differ: a build repairs
//! what has one meaning ([`authority`], [`percent_into`]) and rejects the rest as a [`LocFault`];
//! `verify` reports the faults of the URL as written ([`written_fault`]).

use std::borrow::Cow;

use crate::sitemap::characters::URL;
use crate::sitemap::host;
use crate::sitemap::loc_fault::LocFault;

/// The scheme as text.
pub fn scheme(https: bool) -> &'static str {
    if https { "https" } else { "http" }
}

/// The default port of the scheme.
pub fn default_port(https: bool) -> u16 {
    if https { 443 } else { 80 }
}

/// True for https, false for http, `None` for any other scheme.
pub fn is_https(scheme: &[u8]) -> Option<bool> {
    if scheme.eq_ignore_ascii_case(b"https") {
        return Some(true);
    }
    scheme.eq_ignore_ascii_case(b"http").then_some(false)
}

/// Replaces backslashes before the query by slashes, as browsers and crawlers do (WHATWG URL,
/// "special-authority-slashes state" and following). True if there was one.
pub(crate) fn slashes(text: &str) -> (Cow<'_, str>, bool) {
    let Some(first) = text.find(['\\', '?', '#']).filter(|&at| text.as_bytes()[at] == b'\\') else {
        return (Cow::Borrowed(text), false);
    };
    let end = text[first..].find(['?', '#']).map_or(text.len(), |at| first + at);
    (Cow::Owned(text[..end].replace('\\', "/") + &text[end..]), true)
}

/// The fault of a text without a scheme that is not a path either.
#[cold]
pub(crate) fn relative_fault(text: &str) -> LocFault {
    if text.starts_with("//") {
        return LocFault::TwoSlashes;
    }
    let segment = text.split(['/', '?', '#']).next().unwrap_or_default();
    let after = |word: &str| {
        let (start, rest) = segment.split_at_checked(word.len())?;
        start.eq_ignore_ascii_case(word).then_some(rest)
    };
    // https//host, http;//host, https.//host
    let rest = &text[segment.len()..];
    if let Some(mark) = after("https").or_else(|| after("http"))
        && !mark.contains(|c: char| c.is_ascii_alphanumeric())
        && rest.starts_with('/')
    {
        return LocFault::Misspelt;
    }
    let name = segment.split(':').next().unwrap_or_default();
    let like_a_host = name.rsplit_once('.').is_some_and(|(_, last)| {
        last.len() > 1
            && last.chars().all(char::is_alphabetic)
            && !FILE_SUFFIXES.iter().any(|one| one.eq_ignore_ascii_case(last))
    });
    if like_a_host && host::canonical(name).is_some() {
        return LocFault::NoScheme;
    }
    LocFault::Relative
}

/// Suffixes of file names that look like the end of a host name.
const FILE_SUFFIXES: [&str; 21] = [
    "asp", "aspx", "avif", "cfm", "css", "gif", "htm", "html", "jpeg", "jpg", "js", "jsp", "mov",
    "pdf", "php", "png", "svg", "txt", "webm", "webp", "xml",
];

/// The parts of a URL or relative reference (RFC 3986, appendix B), as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UrlParts<'a> {
    /// Without `:`.
    pub scheme: Option<&'a [u8]>,
    /// Without `//`.
    pub authority: Option<&'a [u8]>,
    /// May be empty.
    pub path: &'a [u8],
    /// Without `?`.
    pub query: Option<&'a [u8]>,
    /// Without `#`.
    pub fragment: Option<&'a [u8]>,
}

/// Splits a URL or relative reference.
///
/// # Errors
/// [`LocFault::Scheme`] for a colon in the first segment after text that is not a scheme: that is
/// not a legal relative reference (RFC 3986, section 4.2) but a damaged URL.
pub fn split(text: &[u8]) -> Result<UrlParts<'_>, LocFault> {
    let (rest, fragment) = cut(text, b'#');
    let (rest, query) = cut(rest, b'?');
    let segment = &rest[..memchr::memchr(b'/', rest).unwrap_or(rest.len())];
    let (scheme, rest) = match memchr::memchr(b':', segment) {
        None => (None, rest),
        Some(colon) if is_scheme(&segment[..colon]) => (Some(&rest[..colon]), &rest[colon + 1..]),
        Some(_) => return Err(LocFault::Scheme),
    };
    let (authority, path) = match rest.strip_prefix(b"//") {
        None => (None, rest),
        Some(rest) => {
            let end = memchr::memchr(b'/', rest).unwrap_or(rest.len());
            (Some(&rest[..end]), &rest[end..])
        }
    };
    Ok(UrlParts { scheme, authority, path, query, fragment })
}

fn is_scheme(name: &[u8]) -> bool {
    let tail = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
    name.first().is_some_and(u8::is_ascii_alphabetic) && name.iter().all(tail)
}

fn cut(text: &[u8], mark: u8) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(mark, text) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

/// The parts of an authority, as written and unchecked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawAuthority<'a> {
    /// Without `@`.
    pub userinfo: Option<&'a [u8]>,
    /// An IPv6 address with its brackets.
    pub host: &'a [u8],
    /// Without `:`.
    pub port: Option<&'a [u8]>,
}

impl RawAuthority<'_> {
    /// Splits an authority.
    pub fn split(text: &[u8]) -> RawAuthority<'_> {
        let (userinfo, rest) = match memchr::memrchr(b'@', text) {
            Some(at) => (Some(&text[..at]), &text[at + 1..]),
            None => (None, text),
        };
        let bracket = memchr::memrchr(b']', rest).unwrap_or(0);
        let (host, port) = match memchr::memrchr(b':', &rest[bracket..]) {
            Some(at) => (&rest[..bracket + at], Some(&rest[bracket + at + 1..])),
            None => (rest, None),
        };
        RawAuthority { userinfo, host, port }
    }

    /// The port; `Some(None)` if there is none or it is empty (RFC 3986, section 6.2.3), `None` if
    /// it is not legal.
    pub fn port(&self) -> Option<Option<u16>> {
        host::port(std::str::from_utf8(self.port.unwrap_or_default()).ok()?)
    }
}

/// Host and port of a URL to be written.
pub(crate) struct Authority<'a> {
    /// As written, an IDN in punycode.
    pub host: Cow<'a, str>,
    pub port: Option<u16>,
    /// As written, with its colon; empty without a port.
    pub port_text: &'a str,
}

/// Checks an authority; an IDN is repaired to punycode.
pub(crate) fn authority(text: &[u8]) -> Result<Authority<'_>, LocFault> {
    let raw = RawAuthority::split(text);
    if raw.userinfo.is_some() {
        return Err(LocFault::Userinfo);
    }
    if raw.host.is_empty() {
        return Err(LocFault::NoHost);
    }
    let as_str = |bytes| std::str::from_utf8(bytes).map_err(|_| LocFault::NotUtf8);
    let host = host::canonical(as_str(raw.host)?).ok_or(LocFault::Host)?;
    let port = raw.port().ok_or(LocFault::Host)?;
    let port_text = if port.is_none() { "" } else { as_str(&text[raw.host.len()..])? };
    Ok(Authority { host, port, port_text })
}

/// A URL with scheme and authority, as written and unchecked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Absolute<'a> {
    /// Without `:`.
    pub scheme: &'a [u8],
    /// User information, host and port.
    pub authority: RawAuthority<'a>,
    /// The parts.
    pub parts: UrlParts<'a>,
    /// The offset of the path.
    pub path_start: usize,
}

impl<'a> Absolute<'a> {
    /// `https://host/` of the URL, the start of other URLs; `None` for an empty path.
    pub fn with_root(&self, url: &'a [u8]) -> Option<&'a [u8]> {
        (!self.parts.path.is_empty()).then(|| &url[..=self.path_start])
    }
}

/// Splits an absolute URL; `None` for a text without scheme or `//`.
pub fn split_absolute(url: &[u8]) -> Option<Absolute<'_>> {
    let parts = split(url).ok()?;
    let (scheme, authority) = (parts.scheme?, parts.authority?);
    let path_start = scheme.len() + 3 + authority.len();
    Some(Absolute { scheme, authority: RawAuthority::split(authority), parts, path_start })
}

/// What is wrong with an absolute URL as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenFault<'a> {
    /// Not an absolute URL.
    Relative,
    /// A scheme other than http and https.
    Scheme(&'a [u8]),
    /// A host that cannot exist, or is not in ASCII.
    Host(&'a [u8]),
    /// A port that is not a number up to 65,535.
    Port(&'a [u8]),
    /// A character that must be percent-encoded, at the start of these bytes.
    Character(&'a [u8]),
    /// A second `#`.
    SecondFragment,
    /// A `%` without two hex digits, at the start of these bytes.
    Percent(&'a [u8]),
}

/// The first fault of an absolute http or https URL as it is written, length aside.
///
/// `prefix` is the start of an earlier URL without a fault, up to its path (`https://host/`), or
/// empty: where a URL starts with it, only the rest is checked.
#[inline]
pub fn written_fault<'a>(url: &'a [u8], prefix: &[u8]) -> Option<WrittenFault<'a>> {
    if !prefix.is_empty() && url.starts_with(prefix) {
        return character_fault(&url[prefix.len()..]);
    }
    let Some(Absolute { scheme, authority, path_start, .. }) = split_absolute(url) else {
        let scheme = split(url).ok().and_then(|parts| parts.scheme);
        let other = scheme.filter(|scheme| is_uri_scheme(scheme, &url[scheme.len() + 1..]));
        return Some(other.map_or(WrittenFault::Relative, WrittenFault::Scheme));
    };
    if is_https(scheme).is_none() {
        return Some(WrittenFault::Scheme(scheme));
    }
    if !host::is_written(authority.host) {
        return Some(WrittenFault::Host(authority.host));
    }
    if authority.port().is_none() {
        return Some(WrittenFault::Port(authority.host));
    }
    authority.userinfo.and_then(character_fault).or_else(|| character_fault(&url[path_start..]))
}

/// Whether a URI without `//` has another scheme, such as `mailto:x` (RFC 3986, section 3.1), and is
/// not a host with a port, such as `host:8080/x`.
fn is_uri_scheme(scheme: &[u8], rest: &[u8]) -> bool {
    let port = rest.first().is_some_and(u8::is_ascii_digit) && !scheme.eq_ignore_ascii_case(b"tel");
    !scheme.contains(&b'.') && is_https(scheme).is_none() && !port
}

#[inline]
fn character_fault(text: &[u8]) -> Option<WrittenFault<'_>> {
    let mut rest = text;
    let mut fragment = false;
    while let Some(at) = URL.first_not_in(rest) {
        rest = &rest[at..];
        match rest[0] {
            b'#' if fragment => return Some(WrittenFault::SecondFragment),
            b'#' => {
                fragment = true;
                rest = &rest[1..];
            }
            b'%' => {
                if !is_escape(rest) {
                    return Some(WrittenFault::Percent(rest));
                }
                // escapes come in runs
                while is_escape(rest) {
                    rest = &rest[3..];
                }
            }
            _ => return Some(WrittenFault::Character(rest)),
        }
    }
    None
}

/// Scheme, host and port in canonical form: lower case, without the default port. `None` without
/// scheme or authority.
pub fn origin(url: &[u8]) -> Option<Vec<u8>> {
    let Absolute { scheme, authority, .. } = split_absolute(url)?;
    let mut origin = scheme.to_ascii_lowercase();
    let default = default_port(origin == b"https");
    origin.extend_from_slice(b"://");
    origin.extend(authority.host.to_ascii_lowercase());
    match (authority.port, authority.port()) {
        (None, _) | (_, Some(None)) => {}
        (_, Some(Some(port))) if port == default => {}
        (Some(text), _) => {
            origin.push(b':');
            origin.extend_from_slice(text);
        }
    }
    Some(origin)
}

/// Whether the text starts with a `%` and two hex digits.
#[inline]
pub(crate) fn is_escape(bytes: &[u8]) -> bool {
    matches!(bytes, [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

/// Appends a byte as `%XX`, in upper case (RFC 3986, section 2.1).
#[inline]
pub(crate) fn push_percent(byte: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
}

/// Appends a path, query or fragment, with percent-encoding for each byte that RFC 3986 does not
/// allow; `%XX` is kept. Any other `%` becomes `%25`, or is a fault if `strict`.
pub(crate) fn percent_into(text: &[u8], strict: bool, out: &mut Vec<u8>) -> Result<(), LocFault> {
    let mut rest = text;
    while let Some(at) = URL.first_not_in(rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        // bytes to encode come in runs: UTF-8, spaces with dashes
        while let Some(&byte) = rest.first()
            && !URL.contains(byte)
        {
            let taken = if is_escape(rest) {
                out.extend_from_slice(&rest[..3]);
                3
            } else if byte == b'%' && strict {
                return Err(LocFault::Percent);
            } else {
                push_percent(byte, out);
                1
            };
            rest = &rest[taken..];
        }
    }
    out.extend_from_slice(rest);
    Ok(())
}

/// The number of dots of a segment of one or two dots, percent-encoded or not; 0 for any other.
fn dots(mut segment: &[u8]) -> usize {
    let mut dots = 0;
    while !segment.is_empty() {
        let taken = match segment {
            [b'.', ..] => 1,
            [b'%', b'2', b'e' | b'E', ..] => 3,
            _ => return 0,
        };
        dots += 1;
        segment = &segment[taken..];
    }
    if dots > 2 { 0 } else { dots }
}

/// Whether a path has a segment of one or two plain dots.
pub(crate) fn has_dots(path: &[u8]) -> bool {
    path.split(|&byte| byte == b'/').any(|segment| matches!(segment, b"." | b".."))
}

/// Removes `.` and `..` in place from the absolute or empty path that begins at `start` and ends
/// with the buffer (RFC 3986, section 5.2.4).
pub(crate) fn remove_dots(buffer: &mut Vec<u8>, start: usize) {
    let len = buffer.len();
    let (mut read, mut write) = (start, start);
    while read < len {
        let end = memchr::memchr(b'/', &buffer[read + 1..]).map_or(len, |at| read + 1 + at);
        let dots = dots(&buffer[read + 1..end]);
        if dots == 0 {
            buffer.copy_within(read..end, write);
            write += end - read;
        } else {
            if dots == 2 {
                write = start + memchr::memrchr(b'/', &buffer[start..write]).unwrap_or(0);
            }
            if end == len {
                buffer[write] = b'/';
                write += 1;
            }
        }
        read = end;
    }
    buffer.truncate(write);
}

/// Host and port of an absolute URL that was checked, percent-encoded or escaped. Called for each row
/// of a build that is split by hosts, so it scans the authority only.
pub(crate) fn host_of(url: &[u8]) -> &[u8] {
    let start = memchr::memmem::find(url, b"://").map_or(url.len(), |at| at + 3);
    let rest = &url[start..];
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
    &rest[..end.unwrap_or(rest.len())]
}

/// Whether the hosts of two absolute URLs are the same, or one is a subdomain of the other.
pub(crate) fn same_domain(one: &[u8], other: &[u8]) -> bool {
    let name = |url| RawAuthority::split(host_of(url)).host.to_ascii_lowercase();
    let (one, other) = (name(one), name(other));
    let (long, short) = if one.len() > other.len() { (one, other) } else { (other, one) };
    // the domain of a single label has many owners
    let below = long.strip_suffix(&short[..]).is_some_and(|rest| rest.ends_with(b"."));
    long == short || below && short.contains(&b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_first_fault() {
        for prefix in [
            "https://a.example/",
            "HTTP://A.example:8080/?q#f",
            "https://a.example",
            "http://[::1]/x",
            "https://u:p@a.example/",
            "https://a_b.example./%C3%BC?a=(b)",
        ] {
            assert_eq!(written_fault(prefix.as_bytes(), b""), None, "{prefix}");
        }
        let relative = WrittenFault::Relative;
        for (url, expected) in [
            ("/products/1", relative),
            ("www.a.example/x", relative),
            ("//a.example/", relative),
            ("mailto:x@a.example", WrittenFault::Scheme(b"mailto")),
            ("javascript:void(0)", WrittenFault::Scheme(b"javascript")),
            ("data:,x", WrittenFault::Scheme(b"data")),
            ("tel:123", WrittenFault::Scheme(b"tel")),
            ("localhost:8080/x", relative),
            ("a.example:8080/x", relative),
            ("https:/a.example/x", relative),
            ("ftp://a.example/", WrittenFault::Scheme(b"ftp")),
            ("https:///x", WrittenFault::Host(b"")),
            ("https://bücher.example/", WrittenFault::Host("bücher.example".as_bytes())),
            ("https://a..example/", WrittenFault::Host(b"a..example")),
            ("https://a.example:x/", WrittenFault::Port(b"a.example")),
            ("https://a.example:70000/", WrittenFault::Port(b"a.example")),
            ("http://[::zz]/", WrittenFault::Host(b"[::zz]")),
            ("https://a.example/a b", WrittenFault::Character(b" b")),
            ("https://a.example/ü", WrittenFault::Character("ü".as_bytes())),
            ("https://a.example/[1]", WrittenFault::Character(b"[1]")),
            ("https://a.example/a#b#c", WrittenFault::SecondFragment),
            ("https://a.example/100%", WrittenFault::Percent(b"%")),
            ("https://a.example/%zz", WrittenFault::Percent(b"%zz")),
        ] {
            assert_eq!(written_fault(url.as_bytes(), b""), Some(expected), "{url}");
        }
        assert_eq!(
            written_fault(b"https://a.example/%", b"https://a.example/"),
            Some(WrittenFault::Percent(b"%"))
        );
    }

    #[test]
    fn origins_are_compared_in_one_form() {
        assert_eq!(origin(b"HTTPS://A.example:443/x"), origin(b"https://a.example/y"));
        assert_eq!(origin(b"https://a.example:/x"), origin(b"https://a.example/y"));
        assert_ne!(origin(b"https://a.example:8443/x"), origin(b"https://a.example/y"));
        assert_ne!(origin(b"http://a.example/"), origin(b"https://a.example/"));
    }
}
