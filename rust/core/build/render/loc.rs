//! The URL of a row: checked, percent-encoded once, compared with the site, XML-escaped.

pub use crate::sitemap::hosts::Hosts;
pub use crate::sitemap::loc_fault::LocFault;
pub use crate::sitemap::site::{Folder, Site};

use crate::UNCHECKED;
use crate::build::render::prefix::Prefix;
use crate::error::Result;
use crate::sitemap::characters::{CLEAN, CONTROL, trim};
use crate::sitemap::escape::escape_into;
use crate::sitemap::host;
use crate::sitemap::hosts::{AllowedHosts, Listed};
use crate::sitemap::limits::{MAX_URL_CHARS, MIN_URL_CHARS};
use crate::sitemap::placeholder;
use crate::sitemap::url;
use crate::sitemap::url::Authority;

/// Yandex drops longer URLs: a warning.
const WARN_CHARS: usize = 1024;

/// An absolute http or https URL in canonical form: percent-encoded, its host in punycode.
///
/// # Errors
/// What is wrong with it.
pub fn absolute(url: &str) -> std::result::Result<String, LocFault> {
    let url = url.trim_ascii();
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    if scheme.and_then(|scheme| url::is_https(scheme.as_bytes())).is_none() {
        return Err(LocFault::Scheme);
    }
    // an absolute URL does not depend on the site
    let site = Site::parse("https://site.invalid").map_err(|_| LocFault::Host)?;
    let rules =
        LocRules::new(site, Hosts::Any, false, MAX_URL_CHARS, None).map_err(|_| LocFault::Host)?;
    let mut encoded = Vec::new();
    match rules.encode(url.as_bytes(), &mut encoded) {
        // not an error: the caller may append the name of a file
        Ok(_) | Err(LocFault::TooShort) => {}
        Err(fault) => return Err(fault),
    }
    String::from_utf8(encoded).map_err(|_| LocFault::NotUtf8)
}

/// Warnings about a URL that was written. One byte, so that a result fits into a register (measured:
/// in memory it takes 7 ns more per row).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocInfo(u8);

/// It is longer than the limit of Yandex.
const OVER_1024: u8 = 1;
/// It is not under the folder of the sitemaps.
const OUTSIDE_FOLDER: u8 = 1 << 1;
/// It has a fragment.
const FRAGMENT: u8 = 1 << 2;
/// It contains a character reference of XML, such as `&amp;`.
const ENTITY: u8 = 1 << 3;
/// A backslash was read as a slash.
const BACKSLASH: u8 = 1 << 4;
/// It was a path, and the site has a path that it does not contain.
const SITE_PATH: u8 = 1 << 5;
/// It contains a placeholder that was not replaced, such as `{{slug}}`.
const PLACEHOLDER: u8 = 1 << 6;

/// Their codes.
const NOTES: [(u8, &str); 7] = [
    (OVER_1024, "loc.over_1024"),
    (OUTSIDE_FOLDER, "loc.outside_folder"),
    (FRAGMENT, "loc.fragment"),
    (ENTITY, "loc.entity"),
    (BACKSLASH, "loc.backslash"),
    (SITE_PATH, "loc.site_path"),
    (PLACEHOLDER, "loc.placeholder"),
];

impl LocInfo {
    /// Whether there is a warning.
    #[inline]
    pub fn any(self) -> bool {
        self.0 != 0
    }

    /// The codes of the warnings.
    pub fn notes(self) -> impl Iterator<Item = &'static str> {
        NOTES.iter().filter(move |(bit, _)| self.0 & bit != 0).map(|(_, code)| *code)
    }

    /// The warnings that also apply to the URL of an extension.
    pub fn of_other(self) -> LocInfo {
        LocInfo(self.0 & (ENTITY | BACKSLASH | SITE_PATH | PLACEHOLDER))
    }
}

/// The rules for URLs.
#[derive(Debug, Clone)]
pub struct LocRules {
    site: Site,
    origin: Prefix,
    hosts: AllowedHosts,
    strict: bool,
    max_chars: usize,
    folder: Option<Folder>,
    site_in_folder: bool,
    /// relative references other than absolute paths are joined to the site
    join: bool,
    /// the warnings about an absolute path
    of_path: u8,
}

impl LocRules {
    /// `strict` rejects a `%` without two hex digits; `max_chars` is 2,047 for
    /// all known crawlers; without `folder` no URL counts as outside of it.
    ///
    /// # Errors
    /// `config.hosts` for an entry of the list that is not a host.
    pub fn new(
        site: Site,
        hosts: Hosts,
        strict: bool,
        max_chars: usize,
        folder: Option<Folder>,
    ) -> Result<LocRules> {
        let hosts = AllowedHosts::parse(hosts)?;
        let site_in_folder = folder
            .as_ref()
            .is_none_or(|folder| folder.same_origin(site.https(), site.host(), site.port()));
        let origin = Prefix::new(site.origin().as_bytes());
        let of_path = if matches!(site.path(), "" | "/") { 0 } else { SITE_PATH };
        Ok(LocRules {
            site,
            origin,
            hosts,
            strict,
            max_chars,
            folder,
            site_in_folder,
            join: false,
            of_path,
        })
    }

    /// The same rules; with `join` all relative references are joined to the site (RFC 3986), not
    /// only absolute paths (`--relative-urls`).
    pub fn joining(self, join: bool) -> LocRules {
        LocRules { join, ..self }
    }

    /// Appends the URL, percent-encoded and then XML-escaped. On a fault
    /// nothing is appended. `scratch` is overwritten.
    ///
    /// # Errors
    /// What is wrong with the URL.
    #[inline]
    pub fn write(
        &self,
        raw: &[u8],
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> std::result::Result<LocInfo, LocFault> {
        let raw = trim(raw);
        if UNCHECKED {
            escape_into(raw, out);
            return Ok(LocInfo(0));
        }
        if let Some(info) = self.write_simple(raw, out) {
            return Ok(info);
        }
        let info = self.encode(raw, scratch)?;
        escape_into(scratch, out);
        Ok(info)
    }

    /// Leaves the percent-encoded, not XML-escaped URL in `scratch`. This is the complete rule;
    /// [`LocRules::write`] has a fast path for most URLs.
    ///
    /// # Errors
    /// What is wrong with the URL; the content of `scratch` is then undefined.
    pub fn encode(
        &self,
        raw: &[u8],
        scratch: &mut Vec<u8>,
    ) -> std::result::Result<LocInfo, LocFault> {
        scratch.clear();
        let raw = trim(raw);
        if raw.is_empty() {
            return Err(LocFault::Empty);
        }
        if CONTROL.first_in(raw).is_some() {
            return Err(LocFault::Control);
        }
        let text = simdutf8::basic::from_utf8(raw).map_err(|_| LocFault::NotUtf8)?;
        if !is_url_or_path(text) && placeholder::is_missing_url(raw) {
            return Err(LocFault::Placeholder);
        }
        let (slashed, backslash) = url::slashes(text);
        let parts = url::split(slashed.as_bytes())?;
        let https = match parts.scheme {
            Some(scheme) => url::is_https(scheme).ok_or(LocFault::Scheme)?,
            None if self.join || text.starts_with('/') && parts.authority.is_none() => {
                self.site.https()
            }
            None => return Err(url::relative_fault(&slashed)),
        };
        let mut notes = if backslash { BACKSLASH } else { 0 };
        let in_folder = match parts.authority {
            Some(authority) => {
                // the host of http://https://www.shop.example would be "https"
                let name = authority.strip_suffix(b":").unwrap_or(authority);
                if parts.path.starts_with(b"//") && url::is_https(name).is_some() {
                    return Err(LocFault::TwoSchemes);
                }
                let Authority { host, port, port_text } = url::authority(authority)?;
                let port = port.unwrap_or(url::default_port(https));
                self.allow(https, &host, port)?;
                let scheme = parts.scheme.unwrap_or(url::scheme(https).as_bytes());
                for part in [scheme, b"://", host.as_bytes(), port_text.as_bytes()] {
                    scratch.extend_from_slice(part);
                }
                self.folder.as_ref().is_none_or(|folder| folder.same_origin(https, &host, port))
            }
            None if parts.scheme.is_some() => return Err(LocFault::NoHost),
            None => {
                scratch.extend_from_slice(self.site.origin().as_bytes());
                self.site_in_folder
            }
        };
        let path_start = scratch.len();
        if parts.authority.is_none() && !parts.path.starts_with(b"/") {
            // RFC 3986, section 5.2.3: merged with the path of the site.
            let base = self.site.path();
            let folder = base.rfind('/').map_or("/", |end| &base[..=end]);
            let base = if parts.path.is_empty() { base } else { folder };
            scratch.extend_from_slice(base.as_bytes());
        }
        url::percent_into(parts.path, self.strict, scratch)?;
        if parts.scheme.is_none() {
            if parts.authority.is_none() && parts.path.starts_with(b"/") {
                notes |= self.of_path;
            }
            if url::has_dots(&scratch[path_start..]) {
                url::remove_dots(scratch, path_start);
            }
        }
        let path_end = scratch.len();
        for (mark, part) in [(b'?', parts.query), (b'#', parts.fragment)] {
            if let Some(part) = part {
                scratch.push(mark);
                url::percent_into(part, self.strict, scratch)?;
            }
        }
        if scratch.len() < MIN_URL_CHARS {
            return Err(LocFault::TooShort);
        }
        if scratch.len() > self.max_chars {
            return Err(LocFault::TooLong);
        }
        if parts.fragment.is_some() {
            notes |= FRAGMENT;
        }
        if memchr::memchr_iter(b'&', raw).any(|at| is_entity(&raw[at..])) {
            notes |= ENTITY;
        }
        // braces are percent-encoded, so the fast path never writes such a URL
        if raw.contains(&b'{') && placeholder::is_in_url(raw) {
            notes |= PLACEHOLDER;
        }
        Ok(self.info(notes, scratch.len(), in_folder, &scratch[path_start..path_end]))
    }

    #[inline]
    fn info(&self, notes: u8, chars: usize, same_origin: bool, path: &[u8]) -> LocInfo {
        let inside = match &self.folder {
            Some(folder) => same_origin && folder.contains_path(path),
            None => true,
        };
        let long = if chars > WARN_CHARS { OVER_1024 } else { 0 };
        let outside = if inside { 0 } else { OUTSIDE_FOLDER };
        LocInfo(notes | long | outside)
    }

    /// Whether a URL may have this scheme, host and port.
    fn allow(&self, https: bool, host: &str, port: u16) -> std::result::Result<(), LocFault> {
        let site = &self.site;
        let of_site = host.eq_ignore_ascii_case(site.host());
        if of_site && https == site.https() && port == site.port() {
            return Ok(());
        }
        let mut listed = false;
        match &self.hosts {
            AllowedHosts::Any => return Ok(()),
            AllowedHosts::Same => {}
            AllowedHosts::List(list) => match list.find(https, host, port) {
                Listed::Yes => return Ok(()),
                Listed::OtherPort => listed = true,
                Listed::No => {}
            },
        }
        Err(match (of_site, https == site.https()) {
            (true, false) => LocFault::OtherScheme,
            (true, true) => LocFault::OtherPort,
            (false, _) if listed => LocFault::OtherPort,
            (false, _) => LocFault::OtherHost,
        })
    }

    /// The fast path for most rows: the origin of the site in canonical form (or a host without a
    /// port, if other hosts are allowed), or an absolute path, followed by characters that need no
    /// percent-encoding. For all other URLs it returns `None` and appends nothing.
    #[inline]
    fn write_simple(&self, raw: &[u8], out: &mut Vec<u8>) -> Option<LocInfo> {
        let origin = self.origin.as_bytes();
        let (prefix, path_start, in_folder, mut notes) = if self.origin.begins(raw)
            && matches!(raw.get(origin.len()), None | Some(b'/' | b'?' | b'#'))
        {
            (&b""[..], origin.len(), self.site_in_folder, 0)
        } else if is_plain_path(raw) {
            (origin, 0, self.site_in_folder, self.of_path)
        } else {
            let (path_start, in_folder) = self.plain_origin(raw)?;
            (&b""[..], path_start, in_folder, 0)
        };
        // Nothing is percent-encoded here, so the length is known.
        let chars = prefix.len() + raw.len();
        if chars < MIN_URL_CHARS || chars > self.max_chars {
            return None;
        }
        match CLEAN.first_not_in(&raw[path_start..]) {
            None => {
                out.extend_from_slice(prefix);
                out.extend_from_slice(raw);
            }
            Some(at) => {
                let before = out.len();
                out.extend_from_slice(prefix);
                match escape_legal(raw, path_start + at, out) {
                    Some(found) => notes |= found,
                    None => {
                        out.truncate(before);
                        return None;
                    }
                }
            }
        }
        Some(self.info(notes, chars, in_folder, &raw[path_start..]))
    }

    /// The end of an allowed `http(s)://host` without a port, and whether it is the host of the
    /// folder.
    fn plain_origin(&self, raw: &[u8]) -> Option<(usize, bool)> {
        if matches!(self.hosts, AllowedHosts::Same) {
            return None;
        }
        let (https, start) = match raw {
            [b'h', b't', b't', b'p', b's', b':', b'/', b'/', ..] => (true, 8),
            [b'h', b't', b't', b'p', b':', b'/', b'/', ..] => (false, 7),
            _ => return None,
        };
        let rest = &raw[start..];
        let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
        let name = &rest[..end.unwrap_or(rest.len())];
        if !host::is_plain(name) {
            return None;
        }
        let name = std::str::from_utf8(name).ok()?;
        let port = url::default_port(https);
        self.allow(https, name, port).ok()?;
        let folder = self.folder.as_ref();
        let in_folder = folder.is_none_or(|folder| folder.same_origin(https, name, port));
        Some((start + name.len(), in_folder))
    }
}

/// Whether a text begins as a URL or as an absolute path does.
fn is_url_or_path(text: &str) -> bool {
    let http =
        |scheme: &str| text.get(..scheme.len()).is_some_and(|s| s.eq_ignore_ascii_case(scheme));
    text.starts_with('/') || http("http:") || http("https:")
}

/// Whether the text, which begins with `&`, begins with a character reference of XML or HTML.
fn is_entity(text: &[u8]) -> bool {
    const NAMES: [&[u8]; 6] = [b"amp;", b"lt;", b"gt;", b"quot;", b"apos;", b"nbsp;"];
    let number = |digits: &[u8], is_digit: fn(&u8) -> bool| {
        let end = digits.iter().take_while(|byte| is_digit(byte)).count();
        end > 0 && digits.get(end) == Some(&b';')
    };
    match &text[1..] {
        [b'#', b'x' | b'X', digits @ ..] => number(digits, u8::is_ascii_hexdigit),
        [b'#', digits @ ..] => number(digits, u8::is_ascii_digit),
        rest => NAMES.iter().any(|name| rest.starts_with(name)),
    }
}

/// Whether this is an absolute path without dot segments; a query may follow.
#[inline]
fn is_plain_path(raw: &[u8]) -> bool {
    raw.starts_with(b"/")
        && raw.get(1) != Some(&b'/')
        && memchr::memchr_iter(b'.', raw).all(|at| raw[at - 1] != b'/')
}

/// Appends a URL that needs no percent-encoding: `&`, `'`, `%XX` and one `#` are allowed. `at` is the
/// position of the first byte that is not clean. Returns the warnings. For all other URLs it returns
/// `None`, and `out` is incomplete.
fn escape_legal(raw: &[u8], mut at: usize, out: &mut Vec<u8>) -> Option<u8> {
    let mut copied = 0;
    let mut notes = 0;
    loop {
        match raw[at] {
            byte @ (b'&' | b'\'') => {
                if byte == b'&' && is_entity(&raw[at..]) {
                    notes |= ENTITY;
                }
                out.extend_from_slice(&raw[copied..at]);
                out.extend_from_slice(if byte == b'&' { b"&amp;" } else { b"&apos;" });
                at += 1;
                copied = at;
            }
            b'%' if url::is_escape(&raw[at..]) => at += 3,
            b'#' if notes & FRAGMENT == 0 => {
                notes |= FRAGMENT;
                at += 1;
            }
            _ => return None,
        }
        match raw.get(at) {
            None => break,
            // Escapes come in runs.
            Some(&byte) if !CLEAN.contains(byte) => {}
            Some(_) => match CLEAN.first_not_in(&raw[at..]) {
                None => break,
                Some(clean) => at += clean,
            },
        }
    }
    out.extend_from_slice(&raw[copied..]);
    Some(notes)
}

#[cfg(test)]
mod tests;
