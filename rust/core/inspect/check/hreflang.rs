//! `hreflang`: ISO 639-1 language, then ISO 15924 script, then ISO 3166-1 region, or `x-default`.

use crate::sitemap::iso::{FORMER_LANGUAGES, LANGUAGES, REGIONS};

/// Of no country in ISO 3166-1, but free for use, and in use.
const KOSOVO: &[u8] = b"XK";

/// What is wrong with a `hreflang`; `None` where it is right. Letters count in either case.
pub fn fault(code: &[u8]) -> Option<&'static str> {
    if code.eq_ignore_ascii_case(b"x-default") {
        return None;
    }
    if code.contains(&b'_') {
        return Some("has an underscore where a hyphen belongs");
    }
    let mut parts = code.split(|&b| b == b'-').peekable();
    let language = parts.next().unwrap_or_default();
    if !LANGUAGES.has(language) && !FORMER_LANGUAGES.has(language) {
        return Some("does not start with an ISO 639-1 language");
    }
    if parts.peek().is_some_and(|part| part.len() == 4 && part.iter().all(u8::is_ascii_alphabetic))
    {
        parts.next();
    }
    match (parts.next(), parts.next()) {
        (None, _) => None,
        (Some(region), None) if (REGIONS.has(region) || region.eq_ignore_ascii_case(KOSOVO)) => {
            None
        }
        _ => Some("does not end with an ISO 3166-1 region (GB, not UK; no es-419)"),
    }
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn codes() {
        for good in ["de", "de-CH", "zh-Hant", "zh-Hant-TW", "x-default", "EN-us", "pt-br"] {
            assert_eq!(fault(good.as_bytes()), None, "{good}");
        }
        for bad in [
            "", "en_US", "US", "xx", "es-419", "en-UK", "en-EU", "deu", "de-", "en-US-x", "de--CH",
            "zh-Hant-",
        ] {
            assert!(fault(bad.as_bytes()).is_some(), "{bad}");
        }
    }

    #[test]
    fn what_a_build_writes_is_right() {
        let letters = || b'a'..=b'z';
        for code in letters().flat_map(|a| letters().map(move |b| [a, b])) {
            for code in [code.to_vec(), [b"de-", &code[..]].concat()] {
                let written = crate::sitemap::hreflang::check(&code).is_ok();
                assert!(!written || fault(&code).is_none(), "{}", code.escape_ascii());
            }
        }
    }
}
