//! The values of extensions: dates, numbers, words, lists.

use crate::inspect::check::url::message;
use crate::inspect::codes;
use crate::inspect::codes::Code;
use crate::inspect::document::model::Value;
use crate::inspect::finding::quoted;
use crate::sitemap::date::Written;
use crate::sitemap::url::written_fault;

/// White space of XML cut off, as the schema types that collapse it do.
pub fn trim(text: &[u8]) -> &[u8] {
    let is_space = |b: &u8| matches!(b, b' ' | b'\t' | b'\r' | b'\n');
    let start = text.iter().position(|b| !is_space(b)).unwrap_or(text.len());
    let end = text.iter().rposition(|b| !is_space(b)).map_or(start, |at| at + 1);
    &text[start..end]
}

/// What is wrong with a value of the given kind: `code`, or a more exact one, and the message.
pub fn fault(kind: Value, code: &'static Code, text: &[u8]) -> Option<(&'static Code, String)> {
    let bad = |what: &str| Some((code, format!("{} {what}", quoted(text))));
    match kind {
        Value::Entry => None,
        Value::Text(most) if String::from_utf8_lossy(text).chars().count() > most => {
            bad(&format!("has more than {most} characters"))
        }
        Value::Text(_) => None,
        Value::Url => {
            let url = trim(text);
            Some((code, message(written_fault(url, b"")?, url)))
        }
        Value::Date => match Written::w3c(trim(text)) {
            Ok(date) if date.precision.is_in_schema() => None,
            Ok(_) => {
                Some((&codes::DATE_PRECISION, format!("{} is not in the schema", quoted(text))))
            }
            Err(fault) => {
                Some((&codes::DATE_INVALID, format!("{}: {}", quoted(text), fault.message())))
            }
        },
        Value::Decimal(most) if decimal_in(trim(text), most) => None,
        Value::Decimal(most) => bad(&format!("is no number from 0.0 to {most}.0")),
        Value::Integer(least, most) => {
            let digits = trim(text);
            let digits = digits.strip_prefix(b"+").unwrap_or(digits);
            let number = whole(digits);
            match number {
                Some(n) if n >= least && n <= most => None,
                _ => bad("is no whole number in range"),
            }
        }
        Value::Word(words) if words.iter().any(|word| word.as_bytes() == text) => None,
        Value::Word(words) => bad(&format!("is none of {}", words.join(", "))),
        Value::Words(words) => {
            let mut all = text.split(|&b| b == b' ');
            match all.all(|one| words.iter().any(|word| word.as_bytes() == one)) {
                true => None,
                false => bad(&format!("is no list of {}", words.join(", "))),
            }
        }
        Value::Countries => {
            let is_code = |one: &[u8]| one.len() == 2 && one.iter().all(u8::is_ascii_uppercase);
            let outer = text.starts_with(b" ") || text.ends_with(b" ");
            let mut all = text.split(|&b| b == b' ').filter(|one| !one.is_empty());
            if !outer && all.all(is_code) { None } else { bad("is no list of country codes") }
        }
        Value::Language => {
            let short = (2..=3).contains(&text.len()) && text.iter().all(u8::is_ascii_lowercase);
            if short || text == b"zh-cn" || text == b"zh-tw" {
                None
            } else {
                bad("is no language code")
            }
        }
        Value::Genres => {
            const GENRES: [&[u8]; 6] =
                [b"PressRelease", b"Satire", b"Blog", b"OpEd", b"Opinion", b"UserGenerated"];
            match by_commas(text, |one| GENRES.contains(&one)) {
                true => None,
                false => bad("is no list of genres"),
            }
        }
        Value::Tickers => {
            let one = |one: &[u8]| {
                let one = String::from_utf8_lossy(one).into_owned();
                let word = |part: &str| !part.is_empty() && part.chars().all(char::is_alphanumeric);
                one.split_once(':').is_some_and(|(a, b)| word(a) && word(b))
            };
            let count = text.split(|&b| b == b',').count();
            if count <= 5 && by_commas(text, one) {
                None
            } else {
                bad("is no list of up to five tickers")
            }
        }
        Value::Price => None,
    }
}

/// `one` holds for every part between commas that spaces may follow.
fn by_commas(text: &[u8], one: impl Fn(&[u8]) -> bool) -> bool {
    text.split(|&b| b == b',').enumerate().all(|(n, part)| {
        let start = part.iter().position(|&b| b != b' ').unwrap_or(part.len());
        one(if n == 0 { part } else { &part[start..] })
    })
}

fn whole(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    digits.iter().try_fold(0u64, |n, b| n.checked_mul(10)?.checked_add(u64::from(b - b'0')))
}

/// Whether `text` is an `xsd:decimal` from 0 to `most` (a single digit).
pub fn decimal_in(text: &[u8], most: u32) -> bool {
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
    let small = high && (value < most || (value == most && zero(after)));
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
}
