//! The parts of a URL (RFC 3986), the site that relative references are joined
//! to, and the folder under which the sitemaps will be served.

use crate::build::render::fault::LocFault;
use crate::build::render::template::push_percent;
use crate::error::{Error, Result};
use crate::sitemap::characters::{CONTROL, URL};
use crate::sitemap::host;
use std::borrow::Cow;

/// Scheme, host, port and path of a URL without query and fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Address {
    https: bool,
    host: String,
    port: u16,
    path: String,
}

/// The site (`--site`): what relative references are joined to and what other URLs are compared with.
#[derive(Debug, Clone)]
pub struct Site {
    address: Address,
    origin: String,
}

impl Site {
    /// Reads an absolute URL; a path in it is the base of relative references.
    ///
    /// # Errors
    /// `config.site` when it is not an absolute http or https URL, or has user
    /// information, a query or a fragment.
    pub fn parse(url: &str) -> Result<Site> {
        let address = Address::parse(url).map_err(|what| {
            let help = "write for example https://www.shop.example";
            Error::config("config.site", format!("site {url:?}: {what}; {help}"))
        })?;
        let Address { https, host, port, .. } = &address;
        let mut origin = format!("{}://{host}", scheme(*https));
        if *port != default_port(*https) {
            origin.push_str(&format!(":{port}"));
        }
        Ok(Site { address, origin })
    }

    /// Scheme, host and port in canonical form: `https://www.shop.example`,
    /// lower-case, punycode, without the scheme's default port.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Whether the scheme is https.
    pub fn https(&self) -> bool {
        self.address.https
    }

    /// The host, in lower case and punycode.
    pub fn host(&self) -> &str {
        &self.address.host
    }

    /// The port, the scheme's default if the URL had none.
    pub fn port(&self) -> u16 {
        self.address.port
    }

    /// The path, percent-encoded and without dot segments; may be empty.
    pub fn path(&self) -> &str {
        &self.address.path
    }
}

/// The folder under which the sitemaps will be served (`--sitemap-url`).
#[derive(Debug, Clone)]
pub struct Folder {
    address: Address,
    /// The host was `{host}`: there is such a folder on each host.
    any_host: bool,
}

impl Folder {
    /// Reads an absolute URL; the `/` at its end may be missing. The host may be
    /// `{host}` where each of many hosts has such a folder.
    ///
    /// # Errors
    /// `config.sitemap_url`, as for [`Site::parse`].
    pub fn parse(url: &str) -> Result<Folder> {
        let any_host = url.contains("://{host}");
        let plain = if any_host { url.replacen("://{host}", "://host", 1) } else { url.to_owned() };
        let mut address = Address::parse(&plain).map_err(|what| {
            let help = "write for example https://www.shop.example/sitemaps/";
            Error::config("config.sitemap_url", format!("sitemap-url {url:?}: {what}; {help}"))
        })?;
        if !address.path.ends_with('/') {
            address.path.push('/');
        }
        Ok(Folder { address, any_host })
    }

    /// Whether a URL of this scheme, host and port can be inside at all.
    pub(crate) fn same_origin(&self, https: bool, host: &str, port: u16) -> bool {
        let address = &self.address;
        address.https == https
            && address.port == port
            && (self.any_host || address.host.eq_ignore_ascii_case(host))
    }

    /// Whether a percent-encoded path (a query may follow) is inside; an empty one is `/`. The path
    /// of the folder has no `?`, so a match never reaches into the query.
    #[inline]
    pub(crate) fn holds_path(&self, path: &[u8]) -> bool {
        let folder = self.address.path.as_bytes();
        folder == b"/" || path.starts_with(folder)
    }
}

impl Address {
    fn parse(url: &str) -> std::result::Result<Address, &'static str> {
        let url = url.trim_ascii();
        if CONTROL.first_in(url.as_bytes()).is_some() {
            return Err(LocFault::Control.message());
        }
        if url.contains('\\') {
            return Err("has a backslash");
        }
        let Parts { scheme, authority: whole, path: raw, query, fragment } =
            split(url).map_err(LocFault::message)?;
        let https = scheme.and_then(is_https).ok_or("not an absolute http or https URL")?;
        if query.is_some() || fragment.is_some() {
            return Err("has a query or a fragment");
        }
        let whole = whole.ok_or(LocFault::NoHost.message())?;
        let Authority { host, port, .. } = authority(whole).map_err(LocFault::message)?;
        let mut path = Vec::new();
        percent_into(raw.as_bytes(), true, &mut path).map_err(LocFault::message)?;
        remove_dots(&mut path, 0);
        Ok(Address {
            https,
            host: host.to_ascii_lowercase(),
            port: port.unwrap_or(default_port(https)),
            path: String::from_utf8_lossy(&path).into_owned(),
        })
    }
}

pub(crate) fn scheme(https: bool) -> &'static str {
    if https { "https" } else { "http" }
}

pub(crate) fn default_port(https: bool) -> u16 {
    if https { 443 } else { 80 }
}

/// True for https, false for http, `None` for any other scheme.
pub(crate) fn is_https(scheme: &str) -> Option<bool> {
    if scheme.eq_ignore_ascii_case("https") {
        return Some(true);
    }
    scheme.eq_ignore_ascii_case("http").then_some(false)
}

/// Reads a backslash before the query as the slash that browsers and crawlers take it for (WHATWG
/// URL, "special-authority-slashes state" and those after it). True if there was one.
pub(crate) fn slashes(text: &str) -> (Cow<'_, str>, bool) {
    let Some(first) = text.find(['\\', '?', '#']).filter(|&at| text.as_bytes()[at] == b'\\') else {
        return (Cow::Borrowed(text), false);
    };
    let end = text[first..].find(['?', '#']).map_or(text.len(), |at| first + at);
    (Cow::Owned(text[..end].replace('\\', "/") + &text[end..]), true)
}

/// Why a text that names no scheme is no URL.
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
            && !FILES.iter().any(|one| one.eq_ignore_ascii_case(last))
    });
    if like_a_host && host::canonical(name).is_some() {
        return LocFault::NoScheme;
    }
    LocFault::Relative
}

/// How names of files end that look like names of hosts.
const FILES: [&str; 21] = [
    "asp", "aspx", "avif", "cfm", "css", "gif", "htm", "html", "jpeg", "jpg", "js", "jsp", "mov",
    "pdf", "php", "png", "svg", "txt", "webm", "webp", "xml",
];

/// A URL or relative reference, cut up as RFC 3986, appendix B does.
pub(crate) struct Parts<'a> {
    pub scheme: Option<&'a str>,
    pub authority: Option<&'a str>,
    pub path: &'a str,
    pub query: Option<&'a str>,
    pub fragment: Option<&'a str>,
}

/// Cuts a URL up. A colon in the first segment of what has no scheme is not a
/// legal relative reference (RFC 3986, section 4.2) but a damaged URL.
pub(crate) fn split(text: &str) -> std::result::Result<Parts<'_>, LocFault> {
    let (rest, fragment) = cut(text, '#');
    let (rest, query) = cut(rest, '?');
    let segment = rest.split('/').next().unwrap_or_default();
    let (scheme, rest) = match segment.split_once(':') {
        None => (None, rest),
        Some((name, _)) => {
            let tail = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
            if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.bytes().all(tail) {
                return Err(LocFault::Scheme);
            }
            (Some(name), &rest[name.len() + 1..])
        }
    };
    let (authority, path) = match rest.strip_prefix("//") {
        None => (None, rest),
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            (Some(authority), path)
        }
    };
    Ok(Parts { scheme, authority, path, query, fragment })
}

fn cut(text: &str, mark: char) -> (&str, Option<&str>) {
    text.split_once(mark).map_or((text, None), |(before, after)| (before, Some(after)))
}

/// Host and port of a URL.
pub(crate) struct Authority<'a> {
    /// As written, an IDN in punycode.
    pub host: Cow<'a, str>,
    pub port: Option<u16>,
    /// As written, with its colon; empty if there is no port.
    pub port_text: &'a str,
}

/// Checks an authority and takes it apart.
pub(crate) fn authority(text: &str) -> std::result::Result<Authority<'_>, LocFault> {
    if text.contains('@') {
        return Err(LocFault::Userinfo);
    }
    let host_end = match text.strip_prefix('[') {
        Some(literal) => literal.find(']').ok_or(LocFault::Host)? + 2,
        None => text.find(':').unwrap_or(text.len()),
    };
    let (name, port_text) = text.split_at(host_end);
    if name.is_empty() {
        return Err(LocFault::NoHost);
    }
    let host = host::canonical(name).ok_or(LocFault::Host)?;
    let port = match port_text.strip_prefix(':') {
        Some(digits) => host::port(digits).ok_or(LocFault::Host)?,
        None if port_text.is_empty() => None,
        None => return Err(LocFault::Host),
    };
    // a colon with nothing after it says nothing (RFC 3986, section 6.2.3)
    let port_text = if port.is_none() { "" } else { port_text };
    Ok(Authority { host, port, port_text })
}

/// Whether a `%` and two hex digits stand at the start.
#[inline]
pub(crate) fn is_escape(bytes: &[u8]) -> bool {
    matches!(bytes, [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

/// Appends a path, query or fragment, percent-encoded where RFC 3986 does not
/// allow a byte; `%XX` is kept. Any other `%` becomes `%25`, or is a fault when strict.
pub(crate) fn percent_into(
    text: &[u8],
    strict: bool,
    out: &mut Vec<u8>,
) -> std::result::Result<(), LocFault> {
    let mut rest = text;
    while let Some(at) = URL.first_not_in(rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        // What needs encoding comes in runs: UTF-8, spaces with dashes.
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

/// How many dots a segment consists of, if that is one or two; some may be percent-encoded.
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

/// Removes `.` and `..` from the absolute or empty path that begins at `start`
/// and ends with the buffer (RFC 3986, section 5.2.4), in place.
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

/// An entry of a list of hosts, `host` or `host:port`, in lower case and punycode.
pub(crate) fn host_entry(text: &str) -> Result<(String, Option<u16>)> {
    let text = text.trim_ascii();
    match authority(text) {
        Ok(Authority { host, port, .. }) => Ok((host.to_ascii_lowercase(), port)),
        Err(_) => Err(Error::config(
            "config.hosts",
            format!(
                "hosts: {text:?} is not a host; write for example m.shop.example or shop.example:8080"
            ),
        )),
    }
}

/// The host and port of an absolute URL that has been checked, percent-encoded or escaped.
pub(crate) fn host_of(url: &[u8]) -> &[u8] {
    let start = memchr::memmem::find(url, b"://").map_or(url.len(), |at| at + 3);
    let rest = &url[start..];
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
    &rest[..end.unwrap_or(rest.len())]
}

/// Whether the hosts of two absolute URLs are the same, or one is a subdomain of the other.
pub(crate) fn same_domain(one: &[u8], other: &[u8]) -> bool {
    let name = |url| {
        let host: &[u8] = host_of(url);
        let end = host.iter().rposition(|byte| *byte == b':').unwrap_or(host.len());
        host[..end].to_ascii_lowercase()
    };
    let (one, other) = (name(one), name(other));
    let (long, short) = if one.len() > other.len() { (one, other) } else { (other, one) };
    // one label alone is a domain of many owners
    let below = long.strip_suffix(&short[..]).is_some_and(|rest| rest.ends_with(b"."));
    long == short || below && short.contains(&b'.')
}
