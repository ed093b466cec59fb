//! Placeholders: texts that stand for a missing value. `docs/urls.md` has the same lists.

use crate::simd::AsciiSet;
use crate::sitemap::characters::trim;

/// Placeholders in any column.
const ALWAYS: &[&str] = &[
    "n/a",
    "n/a.",
    "n.a.",
    "#n/a",
    "#na",
    "<na>",
    "null",
    "(null)",
    "<null>",
    "#null!",
    "\\n",
    "nil",
    "none",
    "(none)",
    "<none>",
    "nan",
    "-nan",
    "undefined",
    "[object object]",
    "tbd",
    "tba",
    "#ref!",
    "#value!",
    "#name?",
    "#num!",
    "#div/0!",
    "#error!",
    "-",
    "--",
    "---",
    "–",
    "—",
    "?",
    "??",
    "???",
    "%s",
    "%d",
];

/// Placeholders in a column of URLs. In other columns they may be a number, a country or a word.
const NOT_A_URL: &[&str] = &[
    "0", "0.0", "-1", "na", "nat", "unknown", "empty", "(empty)", "(blank)", "todo", "xxx", "true",
    "false",
];

/// The start and the end of a template variable that was not replaced.
const UNFILLED: &[(&str, &str)] = &[
    ("{{", "}}"),
    ("${", "}"),
    ("#{", "}"),
    ("%{", "}"),
    ("{%", "%}"),
    ("<%", "%>"),
    ("[[", "]]"),
];

/// Bytes of the longest text in the lists.
const MAX_LENGTH: usize = 15;

/// The first characters of [`ALWAYS`] and [`UNFILLED`]; all others are rejected without a search.
const FIRST: AsciiSet = AsciiSet::new(b"nNuUtT#<([\\-?%{$");

/// Whether a value for a template is a placeholder.
#[inline]
pub(crate) fn is_missing_value(text: &[u8]) -> bool {
    text.first().is_some_and(|&first| FIRST.contains(first) || first == 0xe2) && is_always(text)
}

/// Whether a cell that should contain a URL contains a placeholder.
#[cold]
pub(crate) fn is_missing_url(text: &[u8]) -> bool {
    is_always(text) || is_listed(trim(text), NOT_A_URL)
}

/// Whether a URL contains a placeholder that a program did not replace: `{{slug}}` or `${slug}`.
/// Such a URL is legal once it is percent-encoded, so it is counted and not rejected.
#[cold]
pub(crate) fn is_in_url(text: &[u8]) -> bool {
    let find = memchr::memmem::find;
    [(&b"{{"[..], &b"}}"[..]), (b"${", b"}")].iter().any(|(open, close)| {
        find(text, open).is_some_and(|at| find(&text[at + open.len()..], close).is_some())
    })
}

fn is_always(text: &[u8]) -> bool {
    let text = trim(text);
    is_listed(text, ALWAYS) || is_unfilled(text)
}

fn is_listed(text: &[u8], list: &[&str]) -> bool {
    text.len() <= MAX_LENGTH && list.iter().any(|one| one.as_bytes().eq_ignore_ascii_case(text))
}

/// `{{slug}}`, `${slug}` and the like. `{slug}` only with a name inside: an id may be in braces.
fn is_unfilled(text: &[u8]) -> bool {
    let name = |inside: &[u8]| {
        inside.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
            && inside.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(byte))
    };
    let inside = |open: &str, close: &str| {
        text.strip_prefix(open.as_bytes())?.strip_suffix(close.as_bytes())
    };
    UNFILLED.iter().any(|(open, close)| inside(open, close).is_some())
        || inside("{", "}").is_some_and(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_as_the_code_expects() {
        for one in ALWAYS.iter().chain(NOT_A_URL) {
            assert!(one.len() <= MAX_LENGTH && *one == one.to_ascii_lowercase());
            assert!(
                is_missing_url(one.as_bytes())
                    && is_missing_url(one.to_ascii_uppercase().as_bytes())
            );
        }
        for one in ALWAYS {
            assert!(
                is_missing_value(one.as_bytes())
                    && is_missing_value(one.to_ascii_uppercase().as_bytes())
            );
        }
        for one in NOT_A_URL {
            assert!(!is_missing_value(one.as_bytes()), "{one}");
        }
        for (open, close) in UNFILLED {
            assert!(is_missing_value(format!("{open}slug{close}").as_bytes()), "{open}");
        }
    }

    #[test]
    fn placeholders_in_urls() {
        for text in ["https://a.example/{{slug}}", "/p/${id}/x", "/?q={{a}}", "/{{ a b }}"] {
            assert!(is_in_url(text.as_bytes()), "{text}");
        }
        for text in ["/{slug}", "/}}{{", "/{{slug", "/$5}", "/${", "/%7B%7Bslug%7D%7D", "/{a}{b}"] {
            assert!(!is_in_url(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_is_and_what_is_none() {
        for text in ["N/A", "Null", "NaN", "{{ url }}", "{slug}", "{a.b_1}", "${x}", "<%= u %>"] {
            assert!(is_missing_value(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "0",
            "NA",
            "a",
            "no",
            "null-modem",
            "nanny",
            "-1-",
            "{3F2504E0-4F89-11D3-9A0C-0305E82C3301}",
            "{}",
            "{1}",
            "/",
            "…",
            "#1",
        ] {
            assert!(!is_missing_value(text.as_bytes()), "{text}");
        }
    }
}
