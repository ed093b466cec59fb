//! The parts of a URL (RFC 3986), the site that relative references are joined
//! to, and the folder under which the sitemaps will be served.

use super::class::{CONTROL, HOST, URL};
use super::fault::LocFault;
use super::template::push_percent;
use crate::error::{Error, Result};
use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};

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
    pub(super) fn same_origin(&self, https: bool, host: &str, port: u16) -> bool {
        let address = &self.address;
        address.https == https
            && address.port == port
            && (self.any_host || address.host.eq_ignore_ascii_case(host))
    }

    /// Whether a percent-encoded path (a query may follow) is inside; an empty one is `/`. The path
    /// of the folder has no `?`, so a match never reaches into the query.
    #[inline]
    pub(super) fn holds_path(&self, path: &[u8]) -> bool {
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

pub(super) fn scheme(https: bool) -> &'static str {
    if https { "https" } else { "http" }
}

pub(super) fn default_port(https: bool) -> u16 {
    if https { 443 } else { 80 }
}

/// True for https, false for http, `None` for any other scheme.
pub(super) fn is_https(scheme: &str) -> Option<bool> {
    if scheme.eq_ignore_ascii_case("https") {
        return Some(true);
    }
    scheme.eq_ignore_ascii_case("http").then_some(false)
}

/// A URL or relative reference, cut up as RFC 3986, appendix B does.
pub(super) struct Parts<'a> {
    pub scheme: Option<&'a str>,
    pub authority: Option<&'a str>,
    pub path: &'a str,
    pub query: Option<&'a str>,
    pub fragment: Option<&'a str>,
}

/// Cuts a URL up. A colon in the first segment of what has no scheme is not a
/// legal relative reference (RFC 3986, section 4.2) but a damaged URL.
pub(super) fn split(text: &str) -> std::result::Result<Parts<'_>, LocFault> {
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
pub(super) struct Authority<'a> {
    /// As written, an IDN in punycode.
    pub host: Cow<'a, str>,
    pub port: Option<u16>,
    /// As written, with its colon; empty if there is none.
    pub port_text: &'a str,
}

/// Checks an authority and takes it apart.
pub(super) fn authority(text: &str) -> std::result::Result<Authority<'_>, LocFault> {
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
    let host = match name.strip_prefix('[') {
        Some(literal) => {
            literal.trim_end_matches(']').parse::<Ipv6Addr>().map_err(|_| LocFault::Host)?;
            Cow::Borrowed(name)
        }
        None => host(name)?,
    };
    let port = match port_text.strip_prefix(':') {
        None if port_text.is_empty() => None,
        Some("") => None,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse().map_err(|_| LocFault::Host)?)
        }
        _ => return Err(LocFault::Host),
    };
    Ok(Authority { host, port, port_text })
}

/// A host name: as written if it is one, an IDN in punycode (UTS 46).
pub(super) fn host(name: &str) -> std::result::Result<Cow<'_, str>, LocFault> {
    if plain_host(name.as_bytes()) {
        return Ok(Cow::Borrowed(name));
    }
    // What is ASCII has illegal characters or labels, or labels in punycode to be checked.
    if name.is_ascii() && !legal_host(name.as_bytes()) {
        return Err(LocFault::Host);
    }
    let ascii = idna::domain_to_ascii_cow(name.as_bytes(), idna::AsciiDenyList::URL)
        .map_err(|_| LocFault::Host)?;
    if !legal_host(ascii.as_bytes()) {
        return Err(LocFault::Host);
    }
    Ok(if name.is_ascii() { Cow::Borrowed(name) } else { Cow::Owned(ascii.into_owned()) })
}

/// Whether a name is legal and has no label in punycode: most are such.
#[inline]
pub(super) fn plain_host(name: &[u8]) -> bool {
    legal_host(name)
        && !name
            .split(|&byte| byte == b'.')
            .any(|label| label.get(..4).is_some_and(|four| four.eq_ignore_ascii_case(b"xn--")))
}

/// Legal characters, labels of 1 to 63 of them, at most 253 in all (RFC 1035,
/// section 2.3.4), and if the last label is a number, an IPv4 address.
#[inline]
fn legal_host(name: &[u8]) -> bool {
    if HOST.first_not_in(name).is_some() {
        return false;
    }
    let name = name.strip_suffix(b".").unwrap_or(name);
    let mut last = name;
    for label in name.split(|&byte| byte == b'.') {
        if !(1..=63).contains(&label.len()) {
            return false;
        }
        last = label;
    }
    name.len() <= 253 && (!last.iter().all(u8::is_ascii_digit) || is_ipv4(name))
}

fn is_ipv4(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(|name| name.parse::<Ipv4Addr>().is_ok())
}

/// Whether a `%` and two hex digits stand at the start.
#[inline]
pub(super) fn is_escape(bytes: &[u8]) -> bool {
    matches!(bytes, [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

/// Appends a path, query or fragment, percent-encoded where RFC 3986 does not
/// allow a byte; `%XX` is kept. Any other `%` becomes `%25`, or is a fault when strict.
pub(super) fn percent_into(
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

/// Removes `.` and `..` from the absolute or empty path that begins at `start`
/// and ends with the buffer (RFC 3986, section 5.2.4), in place.
pub(super) fn remove_dots(buffer: &mut Vec<u8>, start: usize) {
    let len = buffer.len();
    let (mut read, mut write) = (start, start);
    while read < len {
        let end = memchr::memchr(b'/', &buffer[read + 1..]).map_or(len, |at| read + 1 + at);
        let dots = match &buffer[read + 1..end] {
            b"." => 1,
            b".." => 2,
            _ => 0,
        };
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
pub(super) fn host_entry(text: &str) -> Result<(String, Option<u16>)> {
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
pub(super) fn host_of(url: &[u8]) -> &[u8] {
    let start = memchr::memmem::find(url, b"://").map_or(url.len(), |at| at + 3);
    let rest = &url[start..];
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
    &rest[..end.unwrap_or(rest.len())]
}

/// Whether the hosts of two absolute URLs are the same, or one is a subdomain of the other.
pub(super) fn same_domain(one: &[u8], other: &[u8]) -> bool {
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
