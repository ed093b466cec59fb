//! How often a page changes.

use crate::sitemap::characters::trim;

/// The seven values of the protocol (docs/protocol.md), in lower case as in the schema.
const VALUES: [&str; 7] = ["always", "hourly", "daily", "weekly", "monthly", "yearly", "never"];

/// The canonical value, or `None` for any other text. Blanks at the ends and the case of ASCII
/// letters are ignored.
pub fn parse(text: &[u8]) -> Option<&'static str> {
    let text = trim(text);
    VALUES.into_iter().find(|value| value.as_bytes().eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seven_values_only() {
        for value in VALUES {
            assert_eq!(parse(value.as_bytes()), Some(value));
            assert_eq!(parse(format!(" {}\t", value.to_uppercase()).as_bytes()), Some(value));
        }
        assert_eq!(parse(b"Daily"), Some("daily"));
        for wrong in ["", " ", "dail", "dailyy", "dai ly", "often", "d\u{e4}ily", "weekly,daily"] {
            assert_eq!(parse(wrong.as_bytes()), None, "{wrong:?}");
        }
    }
}
