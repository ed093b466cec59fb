//! What reading found: findings with their places, counted exactly, listed up to a bound.

use std::fmt::Write;

use crate::error::Error;
use crate::inspect::codes;
use crate::inspect::codes::Code;

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

impl Finding {
    /// The finding as an error of reading the file.
    pub fn error(&self) -> Error {
        let Finding { code, at, message, .. } = self;
        let line = if at.line > 0 { format!("line {}: ", at.line) } else { String::new() };
        Error::input(code.name, format!("{line}{message}; {}", code.help))
    }
}

/// What any file may cost, in steps of at most 100 ns, however small it is.
const STEPS: u64 = 4_000_000;
/// What it may cost more for each of its bytes on disk. A whole entry of a real sitemap takes at
/// least three bytes in gzip and at most some forty steps.
const STEPS_A_BYTE: u64 = 30;
/// Steps of a finding.
const FINDING: u64 = 6;
/// Steps of a token of XML or of a line of text.
pub const TOKEN: u64 = 2;
/// Faults of form (`xml.`, `utf8.`, `file.`) after which the rest of a file is not read.
const MOST_FAULTS: u64 = 2_000_000;

/// The findings of one file: all counted, the first ones of each code listed. And what reading the
/// file may still cost.
#[derive(Debug)]
pub struct Log {
    listed: Vec<Finding>,
    /// few codes, so that a search beats a table
    counts: Vec<(&'static Code, u64)>,
    most: u64,
    first_break: Option<Finding>,
    faults: u64,
    steps: u64,
}

impl Log {
    /// A log that lists the first `most` findings of each code, of a file that may cost whatever
    /// it costs.
    pub fn new(most: u64) -> Log {
        let counts = Vec::new();
        Log { listed: Vec::new(), counts, most, first_break: None, faults: 0, steps: u64::MAX }
    }

    /// The same for a file of `size` bytes on disk, which bound what it may cost.
    pub fn of_file(most: u64, size: u64) -> Log {
        let steps = STEPS.saturating_add(size.saturating_mul(STEPS_A_BYTE));
        Log { steps, ..Log::new(most) }
    }

    /// Takes `steps` off what the file may cost; false where nothing is left.
    #[inline]
    pub fn spend(&mut self, steps: u64) -> bool {
        self.steps = self.steps.saturating_sub(steps);
        self.steps > 0
    }

    /// Why the rest of the file is not worth its cost, where that is so.
    pub fn exhausted(&self) -> Option<String> {
        if self.faults >= MOST_FAULTS {
            return Some(format!("{MOST_FAULTS} faults"));
        }
        let found: u64 = self.counts.iter().map(|(_, count)| count).sum();
        (self.steps == 0).then(|| match found {
            0 => "far more elements or lines than a file of this size holds".to_owned(),
            _ => format!("far more than a file of this size holds, and {found} findings in it"),
        })
    }

    /// Notes a finding. `message` and `url` are only made where it will be listed.
    pub fn add(
        &mut self,
        code: &'static Code,
        at: At,
        url: Option<&[u8]>,
        message: impl FnOnce() -> String,
    ) {
        let finding = self.count(code, at, url, message);
        if !breaks(code) {
            return;
        }
        self.faults += 1;
        if self.faults >= MOST_FAULTS {
            self.steps = 0;
        }
        if self.first_break.as_ref().is_none_or(|first| at.offset < first.at.offset) {
            // where it is not listed, the code says enough
            self.first_break = Some(finding.unwrap_or_else(|| Finding {
                code,
                at,
                url: None,
                message: "damaged".to_owned(),
            }));
        }
    }

    /// Notes a finding of a code that makes files unreliable, in a file that is not.
    pub fn tell(&mut self, code: &'static Code, at: At, message: impl FnOnce() -> String) {
        self.count(code, at, None, message);
    }

    /// Counts a finding and lists it; gives it where it may be the first that breaks the file.
    fn count(
        &mut self,
        code: &'static Code,
        at: At,
        url: Option<&[u8]>,
        message: impl FnOnce() -> String,
    ) -> Option<Finding> {
        self.spend(FINDING);
        let count = match self.counts.iter_mut().find(|(known, _)| std::ptr::eq(*known, code)) {
            Some((_, count)) => count,
            None => {
                self.counts.push((code, 0));
                &mut self.counts.last_mut()?.1
            }
        };
        *count += 1;
        if *count > self.most {
            return None;
        }
        let url = url.filter(|url| !url.is_empty()).map(|url| text(url, 2048));
        let finding = Finding { code, at, url, message: message() };
        self.listed.push(finding.clone());
        Some(finding)
    }

    /// The listed findings in the order of their places.
    pub fn into_listed(mut self) -> Vec<Finding> {
        self.listed.sort_by_key(|finding| finding.at.offset);
        self.listed
    }

    /// The first finding that makes the rest of the file unreliable.
    pub fn first_break(&self) -> Option<&Finding> {
        self.first_break.as_ref()
    }

    /// Whether the bytes themselves are broken: gzip, UTF-8 or XML.
    pub fn is_broken(&self) -> bool {
        self.first_break.is_some()
    }

    /// How many findings of each code there were, listed or not.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counts.iter().map(|(code, count)| (code.name, *count))
    }
}

/// The codes of bytes that are not a readable sitemap.
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
