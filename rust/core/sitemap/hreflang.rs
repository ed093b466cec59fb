//! Codes of languages and regions (docs/protocol.md, *hreflang*).

use crate::sitemap::iso::{FORMER_LANGUAGES, LANGUAGES, REGIONS};

/// Which codes to accept that a build does not write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodePolicy {
    /// For building: only codes whose meaning is certain. `UK` alone is an error: in lower case it is
    /// Ukrainian.
    Write,
    /// For verifying: also former codes of languages, `XK` (Kosovo, free for use in ISO 3166-1) and
    /// `UK` alone.
    Report,
}

/// What is wrong with a code, given the code and its language.
type Message = fn(&str, &str) -> String;

/// Checks a code of `hreflang`: a language of ISO 639-1, then optionally a script of ISO 15924 and
/// a region of ISO 3166-1, with hyphens; or `x-default`. Case does not matter.
///
/// # Errors
/// What is wrong, and what to write instead.
pub fn check(code: &[u8], policy: CodePolicy) -> Result<(), String> {
    let Some(message) = fault(code, policy) else { return Ok(()) };
    let code = String::from_utf8_lossy(&code[..code.len().min(40)]);
    Err(message(&code, code.split('-').next().unwrap_or_default()))
}

/// Whether [`check`] accepts a code, without the cost of the message.
pub fn is_legal(code: &[u8], policy: CodePolicy) -> bool {
    fault(code, policy).is_none()
}

fn fault(code: &[u8], policy: CodePolicy) -> Option<Message> {
    if code.eq_ignore_ascii_case(b"x-default") {
        return None;
    }
    if !code.is_ascii() || code.is_empty() {
        return Some(|code, _| {
            format!("{code:?} is not a language code; write for example de or de-CH")
        });
    }
    if code.contains(&b'_') {
        return Some(|code, _| {
            format!("{code:?} has an underscore; write {}", code.replace('_', "-"))
        });
    }
    let report = policy == CodePolicy::Report;
    let mut parts = code.split(|byte| *byte == b'-').peekable();
    let language = parts.next().unwrap_or_default();
    let alone = language.len() == code.len();
    if alone && language == b"UK" && !report {
        return Some(|_, _| {
            "\"UK\" alone is not a language; write en-GB, or uk for Ukrainian".to_owned()
        });
    }
    if !(LANGUAGES.has(language) || report && FORMER_LANGUAGES.has(language)) {
        return Some(match language.len() {
            _ if alone && REGIONS.has(language) => |code, _| {
                let region = code.to_ascii_uppercase();
                format!("{code:?} is a region without a language; write for example en-{region}")
            },
            3 => |code, _| format!("{code:?} has three letters; write the two of ISO 639-1"),
            _ => |code, _| {
                format!(
                    "{code:?} does not start with a language of ISO 639-1; write for example de"
                )
            },
        });
    }
    parts.next_if(|script| script.len() == 4 && script.iter().all(u8::is_ascii_alphabetic));
    let region = parts.next()?;
    if parts.next().is_some() {
        return Some(|code, _| format!("{code:?} has too many parts; write language-REGION"));
    }
    if REGIONS.has(region) || report && region.eq_ignore_ascii_case(b"XK") {
        return None;
    }
    Some(match region.to_ascii_uppercase().as_slice() {
        b"UK" => |code, language| {
            format!("{code:?}: the code of the United Kingdom is GB; write {language}-GB")
        },
        b"EU" | b"UN" => {
            |code, language| format!("{code:?} does not name a country; write {language} alone")
        }
        digits if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => {
            |code, language| {
                let known = "search engines do not support regions by number";
                format!("{code:?}: {known}; write {language} alone")
            }
        }
        _ => |code, language| {
            format!("{code:?} does not name a country of ISO 3166-1; write {language} alone")
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes() {
        for good in [
            "de",
            "DE",
            "de-CH",
            "de-ch",
            "zh-Hans",
            "zh-hant-TW",
            "x-default",
            "X-Default",
            "uk",
            "en-GB",
            "sr-Latn-RS",
            "uk-UA",
            "EN-us",
            "pt-br",
        ] {
            assert_eq!(check(good.as_bytes(), CodePolicy::Write), Ok(()), "{good}");
            assert_eq!(check(good.as_bytes(), CodePolicy::Report), Ok(()), "{good}");
        }
        for (wrong, hint) in [
            ("en_US", "write en-US"),
            ("US", "en-US"),
            ("us", "en-US"),
            ("es-419", "write es alone"),
            ("en-UK", "write en-GB"),
            ("en-EU", "write en alone"),
            ("eng", "three letters"),
            ("", "write for example"),
            ("xx", "ISO 639-1"),
            ("de-", "ISO 3166-1"),
            ("de--CH", "too many parts"),
            ("de-DE-x", "too many parts"),
            ("zh-Hant-", "ISO 3166-1"),
            ("de-DEUT-XX", "ISO 3166-1"),
            ("d", "ISO 639-1"),
            ("dé", "language code"),
            ("de\"><", "ISO 639-1"),
        ] {
            for policy in [CodePolicy::Write, CodePolicy::Report] {
                let message = check(wrong.as_bytes(), policy).unwrap_err();
                assert!(message.contains(hint), "{wrong}: {message}");
            }
        }
        assert!(check(b"\xff\xff", CodePolicy::Report).is_err());
        for reported in ["UK", "iw", "sq-XK", "mo-xk"] {
            assert!(check(reported.as_bytes(), CodePolicy::Write).is_err(), "{reported}");
            assert!(is_legal(reported.as_bytes(), CodePolicy::Report), "{reported}");
        }
    }
}
