//! Codes of languages and regions (PROTOCOL section 2, *hreflang*).

use crate::sitemap::iso::{LANGUAGES, REGIONS};

/// Checks a code of `hreflang`: a language of ISO 639-1, then if need be a script of ISO 15924 and
/// a region of ISO 3166-1, with hyphens; or `x-default`. The case of letters does not count, but
/// for `UK`, which is no region and in lower case Ukrainian.
///
/// # Errors
/// What to write instead.
pub fn check(code: &[u8]) -> Result<(), String> {
    if code.eq_ignore_ascii_case(b"x-default") {
        return Ok(());
    }
    let shown = || String::from_utf8_lossy(&code[..code.len().min(40)]);
    if !code.is_ascii() || code.is_empty() {
        return Err(format!("{:?} is no language code; write for example de or de-CH", shown()));
    }
    if code.contains(&b'_') {
        return Err(format!(
            "{:?} has an underscore; write {}",
            shown(),
            shown().replace('_', "-")
        ));
    }
    let mut parts = code.split(|byte| *byte == b'-');
    let language = parts.next().unwrap_or_default();
    let alone = language.len() == code.len();
    if alone && language == b"UK" {
        return Err("\"UK\" alone is no language; write en-GB, or uk for Ukrainian".into());
    }
    if !LANGUAGES.has(language) {
        if alone && REGIONS.has(language) {
            let region = shown().to_ascii_uppercase();
            return Err(format!(
                "{:?} is a region without a language; write for example en-{region}",
                shown()
            ));
        }
        if language.len() == 3 {
            return Err(format!("{:?} has three letters; write the two of ISO 639-1", shown()));
        }
        return Err(format!("{:?} names no language of ISO 639-1; write for example de", shown()));
    }
    let mut next = parts.next();
    if let Some(script) = next
        && script.len() == 4
        && script.iter().all(u8::is_ascii_alphabetic)
    {
        next = parts.next();
    }
    let Some(region) = next else { return Ok(()) };
    let language = String::from_utf8_lossy(language);
    if parts.next().is_some() {
        return Err(format!("{:?} has too many parts; write language-REGION", shown()));
    }
    if REGIONS.has(region) {
        return Ok(());
    }
    Err(match region.to_ascii_uppercase().as_slice() {
        b"UK" => {
            format!("{:?}: the code of the United Kingdom is GB; write {language}-GB", shown())
        }
        b"EU" | b"UN" => format!("{:?} names no country; write {language} alone", shown()),
        digits if digits.iter().all(u8::is_ascii_digit) && !digits.is_empty() => {
            format!("{:?}: regions by number are not understood; write {language} alone", shown())
        }
        _ => format!("{:?} names no country of ISO 3166-1; write {language} alone", shown()),
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
        ] {
            assert_eq!(check(good.as_bytes()), Ok(()), "{good}");
        }
        for (wrong, hint) in [
            ("en_US", "write en-US"),
            ("UK", "en-GB"),
            ("US", "en-US"),
            ("us", "en-US"),
            ("es-419", "write es alone"),
            ("en-UK", "write en-GB"),
            ("en-EU", "write en alone"),
            ("eng", "three letters"),
            ("", "write for example"),
            ("xx", "ISO 639-1"),
            ("de-", "ISO 3166-1"),
            ("de-DE-x", "too many parts"),
            ("de-DEUT-XX", "ISO 3166-1"),
            ("d", "ISO 639-1"),
            ("dé", "language code"),
            ("de\"><", "ISO 639-1"),
        ] {
            let message = check(wrong.as_bytes()).unwrap_err();
            assert!(message.contains(hint), "{wrong}: {message}");
        }
        assert!(check(b"\xff\xff").is_err());
    }
}
