//! Findings with their positions: all are counted, the first of each code are listed. The log also
//! limits the time that a file may take.
//!
//! The time is counted in steps, not measured, so that the same file always has the same findings.
//! A step takes at most 100 ns. A small file may expand to a document with millions of elements and
//! findings. The limit depends on the size on disk, so that no file takes far longer than a sitemap of
//! its size. `tests/python/test_hostile_documents.py` measures it.

use std::fmt::Write;

use crate::error::{Error, ErrorCode};
use crate::inspect::codes;
use crate::inspect::codes::Code;

/// A position in the uncompressed bytes of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Location {
    /// Byte offset, 0 for the first byte.
    pub offset: u64,
    /// The line, from 1; 0 for a finding about the whole file.
    pub line: u64,
}

/// One finding.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The code, with severity and help.
    pub code: &'static Code,
    /// The position.
    pub at: Location,
    /// The URL of the entry, if known.
    pub url: Option<String>,
    /// What is wrong, in one line; long values are cut.
    pub message: String,
}

impl Finding {
    /// The finding as an error of reading the file.
    pub fn error(&self) -> Error {
        let Finding { code, at, message, .. } = self;
        let line = if at.line > 0 { format!("line {}: ", at.line) } else { String::new() };
        ErrorCode::Finding(code.name).error(format!("{line}{message}; {}", code.help))
    }
}

/// The steps of the smallest file: 0.4 s.
const MIN_STEPS: u64 = 4_000_000;
/// The further steps for each byte on disk. An entry of a real sitemap takes at least three bytes in
/// gzip, and at most about forty steps.
const STEPS_PER_BYTE: u64 = 20;
/// The steps of a finding.
const FINDING_STEPS: u64 = 6;
/// The steps of a token of XML, or of a line of text.
pub const TOKEN_STEPS: u64 = 2;
/// The limit of damage (`xml.`, `utf8.`, `file.`) in a file of any size.
const MAX_FAULTS: u64 = 2_000_000;
/// The characters of a URL in a finding.
pub const MAX_URL_SHOWN: usize = 2_048;
/// The characters of any other value in a message.
const MAX_VALUE_SHOWN: usize = 120;

/// The findings of one file, and the steps that are left.
#[derive(Debug)]
pub struct Log {
    listed: Vec<Finding>,
    /// A list, since few codes occur in one file.
    counts: Vec<(&'static Code, u64)>,
    /// The number of findings of each code to list.
    limit: u64,
    first_break: Option<Finding>,
    faults: u64,
    steps: u64,
}

impl Log {
    /// A log that lists the first `limit` findings of each code, without a limit of steps.
    pub fn new(limit: u64) -> Log {
        let counts = Vec::new();
        Log { listed: Vec::new(), counts, limit, first_break: None, faults: 0, steps: u64::MAX }
    }

    /// A log with the limit of steps for a file of `size` bytes on disk.
    pub fn of_file(limit: u64, size: u64) -> Log {
        let steps = MIN_STEPS.saturating_add(size.saturating_mul(STEPS_PER_BYTE));
        Log { steps, ..Log::new(limit) }
    }

    /// Counts steps; false if none are left.
    #[inline]
    pub fn spend(&mut self, steps: u64) -> bool {
        self.steps = self.steps.saturating_sub(steps);
        self.steps > 0
    }

    /// The steps so far of a log without a limit.
    #[cfg(test)]
    pub fn spent(&self) -> u64 {
        u64::MAX - self.steps
    }

    /// The message for a file that has reached a limit.
    pub fn exhausted(&self) -> Option<String> {
        if self.faults >= MAX_FAULTS {
            return Some(format!("{MAX_FAULTS} faults"));
        }
        let found: u64 = self.counts.iter().map(|(_, count)| count).sum();
        (self.steps == 0).then(|| match found {
            0 => "far more elements or lines than in a sitemap of this size".to_owned(),
            _ => format!("far more than in a sitemap of this size, with {found} findings"),
        })
    }

    /// Adds a finding. `message` is called only for a finding that is listed.
    pub fn add(
        &mut self,
        code: &'static Code,
        at: Location,
        url: Option<&[u8]>,
        message: impl FnOnce() -> String,
    ) {
        let finding = self.count(code, at, url, message);
        if !breaks(code) {
            return;
        }
        self.faults += 1;
        if self.faults >= MAX_FAULTS {
            self.steps = 0;
        }
        if self.first_break.as_ref().is_none_or(|first| at.offset < first.at.offset) {
            // not listed: without its message
            self.first_break = Some(finding.unwrap_or_else(|| Finding {
                code,
                at,
                url: None,
                message: "damaged".to_owned(),
            }));
        }
    }

    /// Adds a finding about the whole file.
    pub fn whole_file(&mut self, code: &'static Code, message: impl FnOnce() -> String) {
        self.add(code, Location::default(), None, message);
    }

    /// Adds a finding whose code usually makes a file unreliable, but not here.
    pub fn add_harmless(
        &mut self,
        code: &'static Code,
        at: Location,
        message: impl FnOnce() -> String,
    ) {
        self.count(code, at, None, message);
    }

    /// Counts a finding; returns it if it is listed.
    fn count(
        &mut self,
        code: &'static Code,
        at: Location,
        url: Option<&[u8]>,
        message: impl FnOnce() -> String,
    ) -> Option<Finding> {
        self.spend(FINDING_STEPS);
        let count = match self.counts.iter_mut().find(|(known, _)| std::ptr::eq(*known, code)) {
            Some((_, count)) => count,
            None => {
                self.counts.push((code, 0));
                &mut self.counts.last_mut()?.1
            }
        };
        *count += 1;
        if *count > self.limit {
            return None;
        }
        let url = url.filter(|url| !url.is_empty()).map(|url| text(url, MAX_URL_SHOWN));
        let finding = Finding { code, at, url, message: message() };
        self.listed.push(finding.clone());
        Some(finding)
    }

    /// The listed findings in the order of their positions.
    pub fn into_listed(mut self) -> Vec<Finding> {
        self.listed.sort_by_key(|finding| finding.at.offset);
        self.listed
    }

    /// The first finding that makes the rest of the file unreliable.
    pub fn first_break(&self) -> Option<&Finding> {
        self.first_break.as_ref()
    }

    /// Whether the file is unreliable: its gzip data, UTF-8 or XML is damaged.
    pub fn is_broken(&self) -> bool {
        self.first_break.is_some()
    }

    /// The number of findings of each code, listed or not.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counts.iter().map(|(code, count)| (code.name, *count))
    }
}

/// The codes of files that are unreliable.
static BREAKS: &[&Code] = &[
    &codes::FILE_UNREADABLE,
    &codes::FILE_EMPTY,
    &codes::FILE_NOT_SITEMAP,
    &codes::FILE_CHANGED,
    &codes::FILE_ABANDONED,
    &codes::GZIP_CORRUPT,
    &codes::GZIP_TRUNCATED,
    &codes::GZIP_BOMB,
    &codes::UTF8_INVALID,
    &codes::XML_ENCODING,
    &codes::XML_DECLARATION,
    &codes::XML_DOCTYPE,
    &codes::XML_ENTITY,
    &codes::XML_CHARACTER,
    &codes::XML_MALFORMED,
    &codes::XML_MISMATCH,
    &codes::XML_TRUNCATED,
    &codes::XML_TRAILING,
    &codes::XML_DEPTH,
    &codes::XML_TOO_LONG,
];

fn breaks(code: &Code) -> bool {
    BREAKS.iter().any(|one| std::ptr::eq(*one, code))
}

/// `bytes` as text of at most `limit` characters, with control characters escaped.
pub fn text(bytes: &[u8], limit: usize) -> String {
    let cut = &bytes[..bytes.len().min(limit.saturating_mul(4))]; // 4 bytes per character at most
    let all = String::from_utf8_lossy(cut);
    let mut out = String::with_capacity(all.len().min(limit) + 3);
    for (n, c) in all.chars().enumerate() {
        if n == limit {
            out.push('…');
            return out;
        }
        match c {
            '\u{0}'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{fffe}'..='\u{ffff}' => {
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    if cut.len() < bytes.len() {
        out.push('…');
    }
    out
}

/// A value for a message: in quotes, cut if it is long.
pub fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", text(bytes, MAX_VALUE_SHOWN))
}
