//! The hosts and ports that a URL can have: one rule for building and verifying.

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};

use crate::simd::AsciiSet;

/// Limits of the characters of a name and of a label (RFC 1035, section 2.3.4).
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// The characters of a host name in ASCII. DNS allows `_`, and names with it are in
/// use on the web, though RFC 952 does not know it.
const NAME: AsciiSet =
    AsciiSet::new(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._");

/// The host to write: unchanged if it is in ASCII; an IDN in punycode (UTS 46 with the options of the
/// WHATWG URL standard). `None` for a host that cannot exist.
pub fn canonical(host: &str) -> Option<Cow<'_, str>> {
    if let Some(literal) = host.strip_prefix('[') {
        literal.strip_suffix(']')?.parse::<Ipv6Addr>().ok()?;
        return Some(Cow::Borrowed(host));
    }
    if is_plain(host.as_bytes()) {
        return Some(Cow::Borrowed(host));
    }
    // a name in ASCII that is not plain has illegal characters or labels, or labels in punycode
    if host.is_ascii() && !is_legal(host.as_bytes()) {
        return None;
    }
    let (deny, hyphens) = (AsciiDenyList::URL, Hyphens::CheckFirstLast);
    // lengths are checked below, for all names
    let ascii = Uts46::new().to_ascii(host.as_bytes(), deny, hyphens, DnsLength::Ignore).ok()?;
    if !is_legal(ascii.as_bytes()) {
        return None;
    }
    Some(if host.is_ascii() { Cow::Borrowed(host) } else { Cow::Owned(ascii.into_owned()) })
}

/// Whether a URL that is written may have this host: it can exist, and is in ASCII.
pub fn is_written(host: &[u8]) -> bool {
    is_plain(host)
        || host.is_ascii() && std::str::from_utf8(host).is_ok_and(|host| canonical(host).is_some())
}

/// Whether a name is legal and has no label in punycode, as most names.
#[inline]
pub fn is_plain(name: &[u8]) -> bool {
    is_legal(name)
        && !name
            .split(|&byte| byte == b'.')
            .any(|label| label.get(..4).is_some_and(|four| four.eq_ignore_ascii_case(b"xn--")))
}

/// A port without its colon: `Some(None)` if it is empty, `None` if it is not a port.
pub fn port(digits: &str) -> Option<Option<u16>> {
    match digits {
        "" => Some(None),
        // `parse` also accepts a sign
        _ if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok().map(Some),
        _ => None,
    }
}

/// Legal characters and lengths, no `-` at the ends of a label, and an IPv4 address if the last
/// label is a number (WHATWG URL, "ends in a number").
#[inline]
fn is_legal(name: &[u8]) -> bool {
    if NAME.first_not_in(name).is_some() {
        return false;
    }
    let name = name.strip_suffix(b".").unwrap_or(name);
    let mut last = name;
    for label in name.split(|&byte| byte == b'.') {
        let (Some(start), Some(end)) = (label.first(), label.last()) else { return false };
        if label.len() > MAX_LABEL || *start == b'-' || *end == b'-' {
            return false;
        }
        last = label;
    }
    name.len() <= MAX_NAME && (!is_number(last) || is_ipv4(name))
}

/// Decimal, or hexadecimal with `0x`.
fn is_number(label: &[u8]) -> bool {
    match label {
        [b'0', b'x' | b'X', hex @ ..] => hex.iter().all(u8::is_ascii_hexdigit),
        _ => label.iter().all(u8::is_ascii_digit),
    }
}

/// Four decimal numbers without leading zeros. Browsers also accept other forms (`127.1`,
/// `0x7f.0.0.1`), but crawlers do not agree on their meaning.
fn is_ipv4(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(|name| name.parse::<Ipv4Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_can_exist() {
        let label = "a".repeat(63);
        let name = format!("{}{}", "abcdefg.".repeat(31), "abcde"); // 253
        for host in [
            "a.example",
            "localhost",
            "A.Example.",
            "_dmarc.a_b.example_",
            "r1---sn.example",
            "3com.example",
            "1.example",
            "0x.example",
            "xn--bcher-kva.example",
            "XN--BCHER-KVA.example",
            "192.0.2.1",
            "192.0.2.1.",
            "[::]",
            "[2001:DB8::1]",
            "[::ffff:192.0.2.1]",
            &format!("{label}.example"),
            &name,
            &format!("{name}."),
        ] {
            assert_eq!(canonical(host).as_deref(), Some(host));
            assert!(is_written(host.as_bytes()), "{host}");
        }
        for (host, written) in [
            ("Bücher.example", "xn--bcher-kva.example"),
            ("faß.example", "xn--fa-hia.example"),
            ("a。example", "a.example"),
            ("１９２.0.2.1", "192.0.2.1"),
        ] {
            assert_eq!(canonical(host).as_deref(), Some(written));
            assert!(!is_written(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn hosts_that_cannot_exist() {
        for host in [
            "",
            ".",
            ".a.example",
            "a..example",
            "a.example..",
            "-example.com",
            "example-.com",
            "a.-b.example",
            "-",
            "-bücher.example",
            "bücher-.example",
            "256.256.256.256",
            "1.2.3.4.5",
            "1.2.3",
            "127.1",
            "2130706433",
            "0x7f.1",
            "0x7f000001",
            "1.2.3.0x4",
            "1.2.3.0X",
            "0177.0.0.1",
            "1.2.3.08",
            "a.1",
            "１.２.３.２５６",
            "xn--a",
            "xn--a.example",
            "XN--A.example",
            "xn--.example",
            "xn--abc-.example",
            "a b.example",
            "a%62.example",
            "a!b.example",
            "a\u{202e}b.example",
            "\u{ad}",
            "a\u{378}.example", // no character
            "[]",
            "[::1",
            "[::g]",
            "[fe80::1%25eth0]",
            "[1.2.3.4]",
            "[::1.2.3.04]",
            &format!("{}.example", "a".repeat(64)),
            &format!("{}{}", "abcdefg.".repeat(31), "abcdef"), // 254
            &format!("{}.example", "ü".repeat(60)),            // 64 and more in punycode
        ] {
            assert_eq!(canonical(host), None, "{host}");
            assert!(!is_written(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn ports() {
        assert_eq!(port(""), Some(None));
        assert_eq!(port("0"), Some(Some(0)));
        assert_eq!(port("000443"), Some(Some(443)));
        assert_eq!(port("65535"), Some(Some(65_535)));
        for wrong in ["65536", "+80", "-1", "8o", " 80", "80:80"] {
            assert_eq!(port(wrong), None, "{wrong}");
        }
    }
}
