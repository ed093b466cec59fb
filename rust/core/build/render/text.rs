//! Values of a catalog as text in XML 1.0 (PROTOCOL section 8).

use crate::flow::cell::Cell;
use crate::flow::value::Value;
use crate::sitemap::characters::trim;
use crate::sitemap::escape::{escape_into, legal_text};

/// Whether a value says nothing.
pub(crate) fn is_empty(value: Value<'_>) -> bool {
    match value.cell() {
        Some(Cell::Null) => true,
        Some(Cell::Text(text)) => trim(text).is_empty(),
        _ => false,
    }
}

/// Leaves the value as text in `out`, without blanks at its ends and characters that are illegal
/// in XML. Tells how many characters it has, and whether illegal ones were left out; `None` if it
/// is no text.
pub(crate) fn plain(value: Value<'_>, out: &mut Vec<u8>) -> Option<(usize, bool)> {
    out.clear();
    value.cell()?.write(out);
    let text = std::str::from_utf8(trim(out)).ok()?;
    if legal_text(text) {
        let chars = text.chars().count();
        if text.len() < out.len() {
            *out = text.as_bytes().to_vec();
        }
        return Some((chars, false));
    }
    let legal = |c: &char| matches!(*c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    let kept: String = text.chars().filter(legal).collect();
    let kept = kept.trim_matches([' ', '\t', '\r', '\n']);
    let chars = kept.chars().count();
    *out = kept.as_bytes().to_vec();
    Some((chars, true))
}

/// Appends text; a CR is written as a reference, or a reader would take it for a line feed.
pub(crate) fn escape_text(text: &[u8], out: &mut Vec<u8>) {
    let mut parts = text.split(|byte| *byte == b'\r');
    escape_into(parts.next().unwrap_or_default(), out);
    for part in parts {
        out.extend_from_slice(b"&#13;");
        escape_into(part, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text() {
        for (raw, wanted, chars, dropped) in [
            ("", "", 0, false),
            ("  Größe <L> & 🛒\n", "Größe <L> & 🛒", 13, false),
            ("a\x0bb\u{fffe}c", "abc", 3, true),
            ("\x07 a \x07", "a", 1, true),
            ("a\r\nb", "a\r\nb", 4, false),
        ] {
            let mut out = Vec::new();
            let value = Value::Cell(Cell::Text(raw.as_bytes()));
            assert_eq!(plain(value, &mut out), Some((chars, dropped)), "{raw:?}");
            assert_eq!(out, wanted.as_bytes());
        }
        assert_eq!(plain(Value::Cell(Cell::Text(b"\xff")), &mut Vec::new()), None);
        let mut out = Vec::new();
        escape_text(b"a\r\r\n<", &mut out);
        assert_eq!(out, b"a&#13;&#13;\n&lt;");
    }
}
