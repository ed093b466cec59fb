//! The grammar of an absolute http(s) URL (RFC 3986), and its origin.

use crate::inspect::codes;
use crate::inspect::codes::Code;
use crate::inspect::finding::quoted;
use crate::sitemap::host;

/// 1 for what RFC 3986 allows outside the host, 2 for the per cent sign, 0 for the rest.
const CLASS: [u8; 256] = {
    let mut class = [0u8; 256];
    let allowed =
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/?#@!$&'()*+,;=";
    let mut n = 0;
    while n < allowed.len() {
        class[allowed[n] as usize] = 1;
        n += 1;
    }
    class[b'%' as usize] = 2;
    class
};

/// The parts of a URL that its origin is made of.
#[derive(Debug, PartialEq, Eq)]
pub struct Split<'a> {
    /// As written.
    pub scheme: &'a [u8],
    /// What stands before `@`.
    pub userinfo: Option<&'a [u8]>,
    /// As written, brackets included.
    pub host: &'a [u8],
    /// As written, without the colon.
    pub port: Option<&'a [u8]>,
    /// From the first `/`, `?` or `#` on.
    pub rest: &'a [u8],
}

/// Splits `scheme://authority rest`; `None` without scheme or `//`.
pub fn split(url: &[u8]) -> Option<Split<'_>> {
    let colon = memchr::memchr(b':', url)?;
    let scheme = &url[..colon];
    let alpha = scheme.first()?.is_ascii_alphabetic();
    if !alpha || !scheme.iter().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b)) {
        return None;
    }
    let after = url[colon + 1..].strip_prefix(b"//")?;
    let end = after.iter().position(|b| b"/?#".contains(b)).unwrap_or(after.len());
    let (authority, rest) = after.split_at(end);
    let (userinfo, host_port) = match memchr::memrchr(b'@', authority) {
        Some(at) => (Some(&authority[..at]), &authority[at + 1..]),
        None => (None, authority),
    };
    let bracket = memchr::memrchr(b']', host_port).unwrap_or(0);
    let (host, port) = match memchr::memrchr(b':', &host_port[bracket..]) {
        Some(at) => (&host_port[..bracket + at], Some(&host_port[bracket + at + 1..])),
        None => (host_port, None),
    };
    Some(Split { scheme, userinfo, host, port, rest })
}

/// Scheme, host and port in one form: lower case, without the default port.
pub fn origin(url: &[u8]) -> Option<Vec<u8>> {
    let Split { scheme, host, port, .. } = split(url)?;
    let mut origin = scheme.to_ascii_lowercase();
    let default: &[u8] = if origin == b"https" { b"443" } else { b"80" };
    origin.extend_from_slice(b"://");
    origin.extend(host.to_ascii_lowercase());
    if let Some(port) = port.filter(|&port| !port.is_empty() && port != default) {
        origin.push(b':');
        origin.extend_from_slice(port);
    }
    Some(origin)
}

/// What is wrong with a URL: the code a `loc` gives for it, and the message.
pub type Fault = (&'static Code, String);

/// The first fault of an absolute http(s) URL, its length aside. `known` is a start that is known
/// to be sound and ends within the path (`https://host/`): what it covers is not looked at again.
#[inline]
pub fn fault(url: &[u8], known: &[u8]) -> Option<Fault> {
    if !known.is_empty() && url.starts_with(known) {
        return characters(url, known.len());
    }
    authority(url).or_else(|| {
        let split = split(url)?;
        characters(url, url.len() - split.rest.len())
    })
}

fn authority(url: &[u8]) -> Option<Fault> {
    let Some(split) = split(url) else {
        if let Some(scheme) = other_scheme(url) {
            return Some((&codes::LOC_SCHEME, format!("the scheme is {}", quoted(scheme))));
        }
        return Some((&codes::LOC_RELATIVE, format!("{} is not an absolute URL", quoted(url))));
    };
    if !split.scheme.eq_ignore_ascii_case(b"http") && !split.scheme.eq_ignore_ascii_case(b"https") {
        return Some((&codes::LOC_SCHEME, format!("the scheme is {}", quoted(split.scheme))));
    }
    let host = split.host;
    if !host::is_written(host) {
        return Some((&codes::LOC_HOST, format!("{} is no host name", quoted(host))));
    }
    let bad_port = |port: &[u8]| std::str::from_utf8(port).ok().and_then(host::port).is_none();
    if split.port.is_some_and(bad_port) {
        return Some((&codes::LOC_HOST, format!("{} has a bad port", quoted(host))));
    }
    split.userinfo.and_then(|userinfo| characters(userinfo, 0))
}

/// The scheme of a URI without `//`, such as `mailto:x` (RFC 3986, 3.1); `host:8080/x` has none.
fn other_scheme(url: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = url.split_at_checked(memchr::memchr(b':', url)?)?;
    let sound = scheme.first()?.is_ascii_alphabetic()
        && scheme.iter().all(|b| b.is_ascii_alphanumeric() || b"+-".contains(b));
    let http = scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https");
    let port = rest.get(1).is_some_and(u8::is_ascii_digit) && !scheme.eq_ignore_ascii_case(b"tel");
    (sound && !http && !port).then_some(scheme)
}

#[inline]
fn characters(url: &[u8], from: usize) -> Option<Fault> {
    let mut at = from;
    let mut fragment = false;
    while let Some(&b) = url.get(at) {
        match CLASS[b as usize] {
            1 => {
                if b == b'#' {
                    if fragment {
                        return Some((&codes::LOC_CHARACTERS, "a second \"#\"".to_owned()));
                    }
                    fragment = true;
                }
                at += 1;
            }
            2 => {
                let hex = url.get(at + 1..at + 3);
                if !hex.is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) {
                    let shown = quoted(&url[at..url.len().min(at + 3)]);
                    return Some((&codes::LOC_PERCENT, format!("{shown} is no percent-encoding")));
                }
                at += 3;
            }
            _ => {
                let rest = String::from_utf8_lossy(&url[at..url.len().min(at + 4)]).into_owned();
                let c = rest.chars().next().unwrap_or('\u{fffd}');
                let shown = quoted(c.to_string().as_bytes());
                return Some((
                    &codes::LOC_CHARACTERS,
                    format!("{shown} (U+{:04X}) must be percent-encoded", c as u32),
                ));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(url: &str) -> Option<&'static str> {
        fault(url.as_bytes(), b"").map(|(code, _)| code.name)
    }

    #[test]
    fn finds_the_first_fault() {
        for sound in [
            "https://a.example/",
            "HTTP://A.example:8080/?q#f",
            "https://a.example",
            "http://[::1]/x",
            "https://u:p@a.example/",
            "https://a_b.example./%C3%BC?a=(b)",
        ] {
            assert_eq!(code(sound), None, "{sound}");
        }
        for (url, expected) in [
            ("/products/1", "loc.relative"),
            ("www.a.example/x", "loc.relative"),
            ("//a.example/", "loc.relative"),
            ("mailto:x@a.example", "loc.scheme"),
            ("javascript:void(0)", "loc.scheme"),
            ("data:,x", "loc.scheme"),
            ("tel:123", "loc.scheme"),
            ("localhost:8080/x", "loc.relative"),
            ("a.example:8080/x", "loc.relative"),
            ("https:/a.example/x", "loc.relative"),
            ("ftp://a.example/", "loc.scheme"),
            ("https:///x", "loc.host"),
            ("https://bücher.example/", "loc.host"),
            ("https://a..example/", "loc.host"),
            ("https://a.example:x/", "loc.host"),
            ("https://a.example:70000/", "loc.host"),
            ("http://[::zz]/", "loc.host"),
            ("https://a.example/a b", "loc.characters"),
            ("https://a.example/ü", "loc.characters"),
            ("https://a.example/[1]", "loc.characters"),
            ("https://a.example/a#b#c", "loc.characters"),
            ("https://a.example/100%", "loc.percent"),
            ("https://a.example/%zz", "loc.percent"),
        ] {
            assert_eq!(code(url), Some(expected), "{url}");
        }
    }

    #[test]
    fn origins_are_compared_in_one_form() {
        assert_eq!(origin(b"HTTPS://A.example:443/x"), origin(b"https://a.example/y"));
        assert_ne!(origin(b"https://a.example:8443/x"), origin(b"https://a.example/y"));
        assert_ne!(origin(b"http://a.example/"), origin(b"https://a.example/"));
    }
}
