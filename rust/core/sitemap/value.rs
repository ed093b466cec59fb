//! Kinds of values in extensions, and the rules of each.
//!
//! A build repairs a value where its meaning is clear ([`ValueKind::write`]); `verify` reports it as
//! it is ([`ValueKind::fault`]). What a build writes has no fault: `write` ends with that check.
//! URLs and dates have separate rules ([`crate::sitemap::url`], [`crate::sitemap::date`]).

use crate::sitemap::characters::trim;
use crate::sitemap::code::Code;
use crate::sitemap::iso::REGIONS;

/// What a URL may point to, besides being a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlRule {
    /// Anything.
    Any,
    /// Anything but the page itself.
    NotThePage(&'static Code),
    /// Only the host of the page; a build accepts its whole domain.
    SiteOfThePage(&'static Code),
}

/// The kind of a text or attribute value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Checked with the whole entry: loc, lastmod, changefreq, priority.
    Entry,
    /// Text of at most this many characters.
    Text(usize),
    /// An absolute URL.
    Url(UrlRule),
    /// A date, or a date with a time.
    Date,
    /// A decimal number from 0 to this single digit.
    Decimal(u32),
    /// A whole number from the first to the second.
    Integer(u64, u64),
    /// `yes` or `no`.
    YesNo,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Words of this list, separated by single spaces.
    Words(&'static [&'static str]),
    /// Words of this list, separated by commas.
    CommaWords(&'static [&'static str]),
    /// ISO 3166 codes, separated by spaces.
    Countries,
    /// An ISO 639 code, or `zh-cn`, `zh-tw`.
    Language,
    /// A currency of ISO 4217.
    Currency,
    /// Up to five `EXCHANGE:TICKER`, separated by commas.
    Tickers,
    /// Any text, also empty.
    Any,
}

/// Text without a limit.
pub const TEXT: ValueKind = ValueKind::Text(usize::MAX);
/// Any URL.
pub const URL: ValueKind = ValueKind::Url(UrlRule::Any);

/// The spellings that the schema allows.
const YES_NO: [&[u8]; 6] = [b"yes", b"Yes", b"YES", b"no", b"No", b"NO"];
const NO_COUNTRIES: &str = "is not a list of countries by their codes of ISO 3166";
const MAX_TICKERS: usize = 5;

impl ValueKind {
    /// What is wrong with a value as it is written; `None` for a valid one. URLs and dates are
    /// checked elsewhere.
    pub fn fault(self, text: &[u8]) -> Option<String> {
        let (valid, wrong) = match self {
            ValueKind::Entry | ValueKind::Any | ValueKind::Url(_) | ValueKind::Date => return None,
            ValueKind::Text(max) => {
                // a character has at least one byte
                let short =
                    text.len() <= max || String::from_utf8_lossy(text).chars().count() <= max;
                return (!short).then(|| format!("has more than {max} characters; shorten it"));
            }
            ValueKind::Decimal(max) => {
                let wrong = || format!("is not a number from 0.0 to {max}.0");
                return (!decimal_in(trim(text), max)).then(wrong);
            }
            ValueKind::Integer(min, max) => {
                let valid = integer(trim(text)).is_some_and(|n| (min..=max).contains(&n));
                let wrong = || match max {
                    u64::MAX => format!("is not a whole number, {min} or more"),
                    _ => format!("is not a whole number from {min} to {max}"),
                };
                return (!valid).then(wrong);
            }
            ValueKind::Word(words) => {
                let valid = words.iter().any(|word| word.as_bytes() == text);
                return (!valid).then(|| format!("is none of {}", words.join(", ")));
            }
            ValueKind::Words(words) => {
                let known = |one: &[u8]| words.iter().any(|word| word.as_bytes() == one);
                let valid = text.split(|&b| b == b' ').all(known);
                return (!valid).then(|| format!("is not a list of {}", words.join(", ")));
            }
            ValueKind::CommaWords(words) => {
                let known = |one: &[u8]| words.iter().any(|word| word.as_bytes() == one);
                let valid = by_commas(text, known);
                return (!valid).then(|| format!("is not a list of {}", words.join(", ")));
            }
            ValueKind::YesNo => (YES_NO.contains(&text), "is neither yes nor no"),
            ValueKind::Countries => {
                let is_code = |one: &[u8]| one.len() == 2 && one.iter().all(u8::is_ascii_uppercase);
                let outer = text.starts_with(b" ") || text.ends_with(b" ");
                let mut all = text.split(|&b| b == b' ').filter(|one| !one.is_empty());
                (!outer && all.all(is_code), NO_COUNTRIES)
            }
            ValueKind::Language => {
                let short =
                    (2..=3).contains(&text.len()) && text.iter().all(u8::is_ascii_lowercase);
                let wrong =
                    "is not a language of ISO 639; write two or three letters, zh-cn or zh-tw";
                (short || text == b"zh-cn" || text == b"zh-tw", wrong)
            }
            ValueKind::Currency => {
                let valid = text.len() == 3 && text.iter().all(u8::is_ascii_uppercase);
                (valid, "is not a currency of ISO 4217")
            }
            ValueKind::Tickers => {
                let one = |one: &[u8]| {
                    let one = String::from_utf8_lossy(one).into_owned();
                    let word =
                        |part: &str| !part.is_empty() && part.chars().all(char::is_alphanumeric);
                    one.split_once(':').is_some_and(|(a, b)| word(a) && word(b))
                };
                let few = text.split(|&b| b == b',').count() <= MAX_TICKERS;
                (few && by_commas(text, one), "is not a list of up to five tickers")
            }
        };
        (!valid).then(|| wrong.to_owned())
    }

    /// Whether a list of values is written as one value with separators.
    pub fn joins_lists(self) -> bool {
        matches!(self, ValueKind::Words(_) | ValueKind::Countries)
    }

    /// Appends the canonical form of a value.
    ///
    /// # Errors
    /// What is wrong with a value that has no valid form; nothing useful is appended then.
    pub fn write(self, text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let start = out.len();
        match self {
            ValueKind::YesNo => out.extend_from_slice(match &text.to_ascii_lowercase()[..] {
                b"yes" | b"true" | b"1" => b"yes",
                b"no" | b"false" | b"0" => b"no",
                _ => text,
            }),
            ValueKind::Word(words) => {
                let known = words.iter().find(|word| word.as_bytes().eq_ignore_ascii_case(text));
                out.extend_from_slice(known.map_or(text, |word| word.as_bytes()));
            }
            ValueKind::Language => out.extend(text.iter().map(u8::to_ascii_lowercase)),
            ValueKind::Words(_) => join(text, u8::to_ascii_lowercase, out),
            ValueKind::Countries => {
                join(text, u8::to_ascii_uppercase, out);
                // the schema allows any two letters
                if !out[start..].split(|&b| b == b' ').all(|code| REGIONS.has(code)) {
                    return Err(NO_COUNTRIES.to_owned());
                }
            }
            ValueKind::Integer(..) => {
                // pandas stores integers with gaps as floats: 90.0
                let digits = match memchr::memchr(b'.', text) {
                    Some(point) if text[point + 1..].iter().all(|&b| b == b'0') => &text[..point],
                    _ => text,
                };
                match integer(digits) {
                    Some(number) => out.extend_from_slice(number.to_string().as_bytes()),
                    None => out.extend_from_slice(text),
                }
            }
            ValueKind::Decimal(max) => {
                let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
                match number.filter(|number: &f64| (0.0..=f64::from(max)).contains(number)) {
                    // the schema allows no exponent; -0 loses its sign
                    Some(number) => {
                        out.extend_from_slice(format!("{}", number.abs()).as_bytes());
                    }
                    None => out.extend_from_slice(text),
                }
            }
            _ => out.extend_from_slice(text),
        }
        self.fault(&out[start..]).map_or(Ok(()), Err)
    }
}

/// Appends the words of a text, changed by `case`, with one space between two.
fn join(text: &[u8], case: fn(&u8) -> u8, out: &mut Vec<u8>) {
    let start = out.len();
    let words = text.split(|byte| matches!(byte, b' ' | b',' | b'\t' | b'\n' | b'\r'));
    for word in words.filter(|word| !word.is_empty()) {
        if out.len() > start {
            out.push(b' ');
        }
        out.extend(word.iter().map(case));
    }
}

/// Whether `one` accepts every part between commas, each without the spaces before it.
fn by_commas(text: &[u8], one: impl Fn(&[u8]) -> bool) -> bool {
    text.split(|&b| b == b',').enumerate().all(|(n, part)| {
        let start = part.iter().position(|&b| b != b' ').unwrap_or(part.len());
        one(if n == 0 { part } else { &part[start..] })
    })
}

fn integer(digits: &[u8]) -> Option<u64> {
    let digits = digits.strip_prefix(b"+").unwrap_or(digits);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Whether `text` is an `xsd:decimal` from 0 to `max` (a single digit).
pub fn decimal_in(text: &[u8], max: u32) -> bool {
    let minus = text.starts_with(b"-");
    let digits = text.strip_prefix(b"+").or(text.strip_prefix(b"-")).unwrap_or(text);
    let point = memchr::memchr(b'.', digits).unwrap_or(digits.len());
    let (before, after) = (&digits[..point], digits.get(point + 1..).unwrap_or_default());
    let all_digits = before.iter().chain(after).all(u8::is_ascii_digit);
    if !all_digits || before.len() + after.len() == 0 {
        return false;
    }
    let zero = |part: &[u8]| part.iter().all(|&b| b == b'0');
    let Some(last) = before.last() else { return !minus || zero(after) };
    let high = zero(&before[..before.len() - 1]);
    let value = u32::from(last - b'0');
    let small = high && (value < max || (value == max && zero(after)));
    small && (!minus || (value == 0 && zero(after)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals() {
        for good in ["0", "1", "0.5", ".5", "1.", "+0.5", "00.50", "1.000", "-0.0"] {
            assert!(decimal_in(good.as_bytes(), 1), "{good}");
        }
        for bad in ["", ".", "1.1", "2", "10", "-0.1", "1e0", "0,5", "NaN", "--1", "1.0.0"] {
            assert!(!decimal_in(bad.as_bytes(), 1), "{bad}");
        }
        assert!(decimal_in(b"4.9", 5) && !decimal_in(b"5.01", 5));
    }

    #[test]
    fn what_is_written_is_valid_and_stays_as_it_is() {
        let kinds = [
            ValueKind::Text(3),
            ValueKind::Decimal(5),
            ValueKind::Integer(1, 28_800),
            ValueKind::YesNo,
            ValueKind::Word(&["allow", "deny"]),
            ValueKind::Words(&["web", "tv"]),
            ValueKind::Countries,
            ValueKind::Language,
        ];
        let texts = [
            "",
            ",",
            "a",
            "abcd",
            "0",
            "1",
            "+7",
            "007",
            "90.0",
            "90.",
            "28801",
            "4.50",
            "-0",
            "6",
            "1e0",
            "inf",
            "YES",
            "True",
            "Allow",
            "WEB, tv",
            "web radio",
            "de,at",
            "XX",
            "EN",
            "zh-CN",
            "en-US",
        ];
        let mut written = 0;
        for (kind, text) in kinds.iter().flat_map(|kind| texts.map(|text| (kind, text))) {
            let mut once = Vec::new();
            if kind.write(text.as_bytes(), &mut once).is_ok() {
                assert_eq!(kind.fault(&once), None, "{kind:?} {text:?}");
                let mut twice = Vec::new();
                assert_eq!(kind.write(&once, &mut twice), Ok(()), "{kind:?} {text:?}");
                assert_eq!(once, twice);
                written += 1;
            }
        }
        assert!((30..100).contains(&written), "{written}");
    }
}
