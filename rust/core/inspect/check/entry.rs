//! The checks of one file's entries: each value, host and directory, limits, dates.

use std::collections::HashSet;

use crate::inspect::check::other_hosts::OtherHosts;
use crate::inspect::check::url as url_findings;
use crate::inspect::codes;
use crate::inspect::document::entry::{Entry, Form, PartField};
use crate::inspect::finding::{Location, Log, quoted, text};
use crate::sitemap::age::{AgeBounds, Ages};
use crate::sitemap::date::{Precision, Written};
use crate::sitemap::element::{Element, Limit};
use crate::sitemap::extension::{self, alternate};
use crate::sitemap::hosts::{AllowedHosts, Listed};
use crate::sitemap::hreflang::{self, CodePolicy};
use crate::sitemap::limits::{MAX_BYTES, MAX_ENTRIES, MAX_URL_CHARS, MIN_URL_CHARS};
use crate::sitemap::url::{self, Absolute, WrittenFault};
use crate::sitemap::value::decimal_in;

const FREQUENCIES: [&[u8]; 7] =
    [b"always", b"hourly", b"daily", b"weekly", b"monthly", b"yearly", b"never"];

/// Minimum number of entries for the finding that all have the same lastmod.
const MIN_SAME_LASTMOD: u64 = 10;
/// Tolerance for clocks that are wrong: one hour in microseconds.
const CLOCK_TOLERANCE: i64 = 3_600_000_000;
const DAY: i64 = 86_400_000_000;
/// The further steps of an entry on another host than the last ones (measured: 400 ns).
const HOST_STEPS: u64 = 8;

/// The state of the checks of one file.
pub struct EntryChecks<'a> {
    now: i64,
    /// Origin and directory of the URL of the file, if known.
    own: Option<(Vec<u8>, Vec<u8>)>,
    /// `https://host/` of the first entry as written, and its origin; of the last entry on another
    /// host, if other hosts are allowed.
    prefix: Vec<u8>,
    origin: Option<Vec<u8>>,
    hosts: &'a AllowedHosts,
    /// The URLs that an index may list on any host.
    added: &'a [String],
    other_hosts: OtherHosts,
    entries: u64,
    /// the number of blocks of each extension
    blocks: [u32; extension::ALL.len()],
    same: Option<Vec<u8>>,
    all_same: bool,
    dated: u64,
    bounds: AgeBounds,
    /// The ages of the lastmods of the entries.
    pub ages: Ages,
}

impl<'a> EntryChecks<'a> {
    /// `own`: the URL of the file, if known; `now`: microseconds since 1970; `hosts`: the hosts that
    /// its URLs may have; `added`: the URLs that an index may list on any host.
    pub fn new(
        own: Option<&str>,
        now: i64,
        hosts: &'a AllowedHosts,
        added: &'a [String],
    ) -> EntryChecks<'a> {
        let own = own.and_then(|own| {
            let own = own.as_bytes();
            let path = own.iter().position(|b| b"?#".contains(b)).map_or(own, |end| &own[..end]);
            let slash = memchr::memrchr(b'/', path)?;
            Some((url::origin(own)?, own[..=slash].to_vec()))
        });
        EntryChecks {
            now,
            own,
            prefix: Vec::new(),
            origin: None,
            hosts,
            added,
            other_hosts: OtherHosts::default(),
            entries: 0,
            blocks: [0; extension::ALL.len()],
            same: None,
            all_same: true,
            dated: 0,
            bounds: AgeBounds::of_micros(now),
            ages: Ages::default(),
        }
    }

    /// Checks one entry.
    pub fn entry(&mut self, form: Form, entry: &Entry<'_>, log: &mut Log) {
        self.entries += 1;
        if self.entries == MAX_ENTRIES + 1 {
            let code =
                if form == Form::Index { &codes::LIMIT_SITEMAPS } else { &codes::LIMIT_URLS };
            log.add(code, entry.at, None, || format!("more than {MAX_ENTRIES} entries"));
        }
        self.loc(form, entry, log);
        if let Some(lastmod) = entry.lastmod {
            let instant = self.lastmod(entry, lastmod, log);
            self.bounds.count(instant.unwrap_or(i64::MIN), &mut self.ages);
        } else {
            self.all_same = false;
            self.bounds.count(i64::MIN, &mut self.ages);
        }
        let loc = Some(entry.loc);
        if let Some(word) = entry.changefreq
            && !FREQUENCIES.contains(&word)
            && !word.is_empty()
        {
            log.add(&codes::CHANGEFREQ_INVALID, entry.location(2), loc, || {
                format!("changefreq is {}", quoted(word))
            });
        }
        if let Some(number) = entry.priority
            && !decimal_in(number, 1)
            && !number.is_empty()
        {
            log.add(&codes::PRIORITY_INVALID, entry.location(3), loc, || {
                format!("priority is {}", quoted(number))
            });
        }
        if entry.padded & 0b1011 != 0 {
            let which = entry.padded.trailing_zeros() as usize;
            log.add(&codes::LOC_SPACE, entry.location(which), loc, || {
                "white space around a value".to_owned()
            });
        }
        if !entry.parts.is_empty() {
            self.parts(entry, log);
        }
    }

    fn loc(&mut self, form: Form, entry: &Entry<'_>, log: &mut Log) {
        let (loc, at) = (entry.loc, entry.location(0));
        if loc.is_empty() {
            log.add(&codes::LOC_MISSING, at, None, || "an entry without loc".to_owned());
            return;
        }
        if let Some(fault) = url::written_fault(loc, &self.prefix) {
            let code = url_findings::loc_code(fault);
            log.add(code, at, Some(loc), || url_findings::message(fault, loc));
            // after these faults the host is legal, and the other checks are meaningful
            if !matches!(
                fault,
                WrittenFault::Character(_)
                    | WrittenFault::SecondFragment
                    | WrittenFault::Percent(_)
            ) {
                return;
            }
        }
        if loc.len() > MAX_URL_CHARS && String::from_utf8_lossy(loc).chars().count() > MAX_URL_CHARS
        {
            let count = loc.len();
            log.add(&codes::LOC_TOO_LONG, at, Some(loc), || format!("{count} bytes long"));
        } else if loc.len() < MIN_URL_CHARS {
            log.add(&codes::LOC_TOO_SHORT, at, Some(loc), || {
                format!("{} characters long", loc.len())
            });
        }
        if entry.bare_apostrophe {
            log.add(&codes::LOC_APOSTROPHE, at, Some(loc), || {
                "an apostrophe that is not escaped".to_owned()
            });
        }
        if memchr::memchr(b'#', loc).is_some() {
            log.add(&codes::LOC_FRAGMENT, at, Some(loc), || "a fragment".to_owned());
        }
        self.host_and_directory(form, loc, at, log);
    }

    /// Checks the host and the directory.
    fn host_and_directory(&mut self, form: Form, loc: &[u8], at: Location, log: &mut Log) {
        if self.prefix.is_empty() || !loc.starts_with(&self.prefix) {
            if self.other_hosts.repeat(loc) {
                return;
            }
            log.spend(HOST_STEPS);
            let Some(absolute) = url::split_absolute(loc) else { return };
            if absolute.authority.userinfo.is_some() {
                log.add(&codes::LOC_USERINFO, at, Some(loc), || {
                    "user information in the URL".to_owned()
                });
            }
            let origin = url::origin(loc).unwrap_or_default();
            let allowed = form != Form::Index && self.is_allowed(&absolute);
            let known = form == Form::Index && self.added.iter().any(|url| url.as_bytes() == loc);
            if known {
                return; // an option of the build added this URL
            }
            let own = self.own.as_ref().map(|(own, _)| own);
            // a list contains all hosts except that of the file
            let listed = form != Form::Index && matches!(self.hosts, AllowedHosts::List(_));
            let other = match &self.origin {
                _ if allowed || (listed && own == Some(&origin)) => false,
                _ if listed => true,
                first => first.as_ref().is_some_and(|first| *first != origin),
            };
            if other {
                let code = match form {
                    Form::Index => &codes::INDEX_OTHER_HOST,
                    _ => &codes::LOC_OTHER_HOST,
                };
                // an index may list single URLs, and user information is a finding of each URL
                let same = form != Form::Index && absolute.authority.userinfo.is_none();
                let start = absolute.with_root(loc).filter(|_| same);
                self.other_hosts.add(code, origin, loc, start, at, || match &self.origin {
                    Some(first) if !listed => {
                        format!("the first URL here is on {}", text(first, 300))
                    }
                    _ => "the host is neither that of the file nor a listed one".to_owned(),
                });
                return;
            }
            if self.origin.is_none()
                && !allowed
                && let Some(own) = own.filter(|own| **own != origin)
            {
                let code = match form {
                    Form::Index => &codes::INDEX_OTHER_HOST,
                    _ => &codes::LOC_CROSS_HOST,
                };
                log.add(code, at, Some(loc), || {
                    format!("this file is served by {}", text(own, 300))
                });
            }
            if self.origin.is_none() || allowed || listed {
                self.origin = Some(origin);
                if let Some(start) = absolute.with_root(loc)
                    && absolute.authority.userinfo.is_none()
                {
                    self.prefix = start.to_vec();
                }
            }
        }
        if let Some((own, directory)) = &self.own
            && !loc.starts_with(directory)
            && self.origin.as_ref() == Some(own)
            && !in_directory(loc, directory)
        {
            let code = if form == Form::Index { &codes::INDEX_SCOPE } else { &codes::LOC_SCOPE };
            log.add(code, at, Some(loc), || format!("not under {}", text(directory, 300)));
        }
    }

    /// Whether the host of a URL is one of those that are allowed besides the host of the file.
    fn is_allowed(&self, url: &Absolute<'_>) -> bool {
        let list = match self.hosts {
            AllowedHosts::Same => return false,
            AllowedHosts::Any => return true,
            AllowedHosts::List(list) => list,
        };
        let Some(https) = url::is_https(url.scheme) else { return false };
        let Some(port) = url.authority.port() else { return false };
        let Ok(host) = std::str::from_utf8(url.authority.host) else { return false };
        list.find(https, host, port.unwrap_or(url::default_port(https))) == Listed::Yes
    }

    /// Returns the time, if it is one.
    fn lastmod(&mut self, entry: &Entry<'_>, lastmod: &[u8], log: &mut Log) -> Option<i64> {
        self.dated += 1;
        match &self.same {
            None => self.same = Some(lastmod.to_vec()),
            Some(same) => self.all_same &= same == lastmod,
        }
        if lastmod.is_empty() {
            return None; // reported as element.empty
        }
        let loc = Some(entry.loc);
        match Written::w3c(lastmod) {
            Err(fault) => {
                log.add(&codes::LASTMOD_INVALID, entry.location(1), loc, || {
                    format!("{}: {}", quoted(lastmod), fault.message())
                });
                None
            }
            Ok(date) => {
                let (instant, precision) = (date.instant(), date.precision);
                if !precision.is_in_schema() {
                    log.add(&codes::LASTMOD_PRECISION, entry.location(1), loc, || {
                        format!("{} is not in the schema", quoted(lastmod))
                    });
                }
                // today's date anywhere on earth is not the future
                let tolerance = if precision == Precision::Day { DAY } else { CLOCK_TOLERANCE };
                if instant > self.now + tolerance {
                    log.add(&codes::LASTMOD_FUTURE, entry.location(1), loc, || {
                        format!("{} is in the future", quoted(lastmod))
                    });
                }
                Some(instant)
            }
        }
    }

    fn parts(&mut self, entry: &Entry<'_>, log: &mut Log) {
        let loc = Some(entry.loc);
        for (place, extension) in extension::ALL.iter().enumerate() {
            let Some(Limit { count: max, finding: Some(code), .. }) = extension.per_url else {
                continue;
            };
            let blocks =
                entry.parts.iter().filter(|part| part.field == PartField::Block(place)).count();
            if blocks > max as usize {
                log.add(code, entry.at, loc, || format!("{blocks} of {max}"));
            }
        }
        let mut langs = Langs::default();
        let (mut links, mut own) = (0u64, false);
        for part in entry.parts {
            let text = entry.text(part);
            match part.field {
                PartField::AlternateLang => {
                    if !langs.insert(text) {
                        log.add(&alternate::REPEATED, part.at, loc, || {
                            format!("{} occurs twice", quoted(text))
                        });
                    }
                    links += u64::from(hreflang::is_legal(text, CodePolicy::Report));
                }
                PartField::AlternateHref => own |= text == entry.loc,
                PartField::Block(place) => self.block(place, part.at, loc, log),
                PartField::Text(&Element { max_age: Some(max_age), .. }) => {
                    if let Ok(date) = Written::w3c(text)
                        && date.instant() < self.now - max_age.verify_seconds * 1_000_000
                    {
                        log.add(max_age.finding, part.at, loc, || {
                            format!("published {}", quoted(text))
                        });
                    }
                }
                _ => {}
            }
        }
        if links > 0 && !own {
            log.add(&alternate::NO_SELF, entry.at, loc, || {
                "the page is not among its own alternates".to_owned()
            });
        }
    }

    /// Counts a block of an extension.
    fn block(&mut self, place: usize, at: Location, loc: Option<&[u8]>, log: &mut Log) {
        let Some(Limit { count: max, finding: Some(code), .. }) = extension::ALL[place].per_file
        else {
            return;
        };
        self.blocks[place] += 1;
        if self.blocks[place] == max + 1 {
            log.add(code, at, loc, || format!("more than {max} in one file"));
        }
    }

    /// Checks the file as a whole, after its last entry. `bytes` is its size before compression.
    pub fn finish(&mut self, form: Form, bytes: u64, log: &mut Log) {
        let whole_file = Location::default();
        self.other_hosts.report(log);
        if bytes > MAX_BYTES {
            log.add(&codes::LIMIT_BYTES, whole_file, None, || format!("{bytes} bytes"));
        }
        if self.entries == 0 && matches!(form, Form::Urlset | Form::Index) && !log.is_broken() {
            log.add(&codes::URLSET_EMPTY, whole_file, None, || "no entry".to_owned());
        }
        if form == Form::Urlset && self.all_same && self.dated >= MIN_SAME_LASTMOD {
            let same = self.same.as_deref().unwrap_or_default();
            let count = self.dated;
            log.add(&codes::LASTMOD_SAME, whole_file, None, || {
                format!("{} on all {count} entries", quoted(same))
            });
        }
    }
}

/// The languages of a page. Most pages have few, so comparing each is faster than a hash.
#[derive(Default)]
struct Langs<'t> {
    few: Vec<&'t [u8]>,
    many: HashSet<Vec<u8>>,
}

impl<'t> Langs<'t> {
    /// Adds a language; returns false if it was added before, in upper or lower case.
    fn insert(&mut self, lang: &'t [u8]) -> bool {
        if self.few.iter().any(|known| known.eq_ignore_ascii_case(lang)) {
            return false;
        }
        if self.few.len() < 32 {
            self.few.push(lang);
            return true;
        }
        self.many.insert(lang.to_ascii_lowercase())
    }
}

/// Whether the path of `loc` is in that of `directory`; both have the same origin.
fn in_directory(loc: &[u8], directory: &[u8]) -> bool {
    let (Some(loc), Some(directory)) = (url::split_absolute(loc), url::split_absolute(directory))
    else {
        return false;
    };
    // an empty path is the root (RFC 3986, section 6.2.3)
    let path = if loc.parts.path.is_empty() { b"/" } else { loc.parts.path };
    path.starts_with(directory.parts.path)
}
