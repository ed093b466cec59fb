//! What reading found: findings with their places, counted exactly, listed up to a bound.

use std::collections::HashMap;
use std::fmt::Write;

use super::codes::{Code, Severity};

/// A place in the uncompressed bytes of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct At {
    /// Byte offset, 0 for the first byte.
    pub offset: u64,
    /// Line, 1 for the first one; 0 where the finding is of the file as a whole.
    pub line: u64,
}

/// One finding.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What kind, how bad, what to do.
    pub code: &'static Code,
    /// Where.
    pub at: At,
    /// The URL it is about, as far as it is known.
    pub url: Option<String>,
    /// What is wrong, in one line; values in it are cut short.
    pub message: String,
}

/// The findings of one file: all counted, the first ones of each code listed.
#[derive(Debug)]
pub struct Log {
    listed: Vec<Finding>,
    counts: HashMap<&'static str, (u64, Severity)>,
    most: u64,
    broken: bool,
}

impl Log {
    /// A log that lists the first `most` findings of each code.
    pub fn new(most: u64) -> Log {
        Log { listed: Vec::new(), counts: HashMap::new(), most, broken: false }
    }

    /// Notes a finding. `message` and `url` are only made where it will be listed.
    pub fn add(
        &mut self,
        code: &'static Code,
        at: At,
        url: Option<&[u8]>,
        message: impl FnOnce() -> String,
    ) {
        let (count, _) = self.counts.entry(code.name).or_insert((0, code.severity));
        *count += 1;
        self.broken |= code.severity == Severity::Error && breaks(code.name);
        if *count <= self.most {
            let url = url.filter(|url| !url.is_empty()).map(|url| text(url, 2048));
            self.listed.push(Finding { code, at, url, message: message() });
        }
    }

    /// The listed findings in the order of their places.
    pub fn into_listed(mut self) -> Vec<Finding> {
        self.listed.sort_by_key(|finding| finding.at.offset);
        self.listed
    }

    /// The first finding that makes the rest of the file unreliable.
    pub fn first_break(&self) -> Option<&Finding> {
        let breaking = |f: &&Finding| f.code.severity == Severity::Error && breaks(f.code.name);
        self.listed.iter().filter(breaking).min_by_key(|f| f.at.offset)
    }

    /// Whether the bytes themselves are broken: gzip, UTF-8 or XML.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// How many findings of each code there were, listed or not.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counts.iter().map(|(name, (count, _))| (*name, *count))
    }
}

/// Codes that say that the bytes are not a readable sitemap.
fn breaks(name: &str) -> bool {
    let area = name.split('.').next().unwrap_or_default();
    matches!(area, "file" | "gzip" | "utf8" | "xml") && name != "file.name"
}

/// `bytes` as text of at most `most` characters, control characters escaped.
pub fn text(bytes: &[u8], most: usize) -> String {
    let cut = &bytes[..bytes.len().min(most.saturating_mul(4))];
    let all = String::from_utf8_lossy(cut);
    let mut out = String::with_capacity(all.len().min(most) + 3);
    for (n, c) in all.chars().enumerate() {
        if n == most {
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

/// A value in quotes, cut short for a message.
pub fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", text(bytes, 120))
}
