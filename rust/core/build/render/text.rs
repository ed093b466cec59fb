//! Values of a catalog as text in XML 1.0.

use crate::flow::cell::Cell;
use crate::flow::value::Value;
use crate::sitemap::characters::trim;
use crate::sitemap::escape::{escape_into, legal_text};

/// Whether a value is null or blank.
pub(crate) fn is_empty(value: Value<'_>) -> bool {
    match value.cell() {
        Some(Cell::Null) => true,
        Some(Cell::Text(text)) => trim(text).is_empty(),
        _ => false,
    }
}

/// Leaves the value as text in `out`, without blanks at its ends and without characters that are
/// illegal in XML. Returns whether illegal characters were left out; `None` if the value is not text.
pub(crate) fn plain(value: Value<'_>, out: &mut Vec<u8>) -> Option<bool> {
    out.clear();
    value.cell()?.write(out);
    let text = std::str::from_utf8(trim(out)).ok()?;
    if legal_text(text) {
        if text.len() < out.len() {
            *out = text.as_bytes().to_vec();
        }
        return Some(false);
    }
    let legal = |c: &char| matches!(*c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    let kept: String = text.chars().filter(legal).collect();
    *out = kept.trim_matches([' ', '\t', '\r', '\n']).as_bytes().to_vec();
    Some(true)
}

/// Appends text. A CR becomes a reference, since a reader would take it for a line feed.
pub(crate) fn escape_text(text: &[u8], out: &mut Vec<u8>) {
    escape_with_references(text, b"\r", out);
}

/// Appends the text of an attribute. A reader would take tabs and line breaks for spaces.
pub(crate) fn escape_attribute(text: &[u8], out: &mut Vec<u8>) {
    escape_with_references(text, b"\t\n\r", out);
}

fn escape_with_references(text: &[u8], references: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| references.contains(byte)) {
        escape_into(&rest[..at], out);
        out.extend_from_slice(format!("&#{};", rest[at]).as_bytes());
        rest = &rest[at + 1..];
    }
    escape_into(rest, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text() {
        for (raw, wanted, dropped) in [
            ("", "", false),
            ("  Größe <L> & 🛒\n", "Größe <L> & 🛒", false),
            ("a\x0bb\u{fffe}c", "abc", true),
            ("\x07 a \x07", "a", true),
            ("a\r\nb", "a\r\nb", false),
        ] {
            let mut out = Vec::new();
            let value = Value::Cell(Cell::Text(raw.as_bytes()));
            assert_eq!(plain(value, &mut out), Some(dropped), "{raw:?}");
            assert_eq!(out, wanted.as_bytes());
        }
        assert_eq!(plain(Value::Cell(Cell::Text(b"\xff")), &mut Vec::new()), None);
        let mut out = Vec::new();
        escape_text(b"a\r\r\n<", &mut out);
        assert_eq!(out, b"a&#13;&#13;\n&lt;");
        out.clear();
        escape_attribute(b"a\t\r\n\"", &mut out);
        assert_eq!(out, b"a&#9;&#13;&#10;&quot;");
    }
}
