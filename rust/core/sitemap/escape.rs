//! Text in XML 1.0.

use crate::sitemap::characters::{XML_ILLEGAL, XML_SPECIAL};

/// Appends a text with all five special characters as entities, as the sitemap protocol requires
/// (docs/protocol.md, *Escaping*). The text must be legal, see [`legal_text`].
#[inline]
pub fn escape_into(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = XML_SPECIAL.first_in(rest) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(entity(rest[at]));
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

/// The entity of one of the five special characters.
#[inline]
fn entity(byte: u8) -> &'static [u8] {
    match byte {
        b'&' => b"&amp;",
        b'\'' => b"&apos;",
        b'"' => b"&quot;",
        b'<' => b"&lt;",
        _ => b"&gt;",
    }
}

/// The text that [`escape_into`] has escaped.
pub fn unescaped(escaped: &[u8]) -> String {
    let text = String::from_utf8_lossy(escaped).into_owned();
    // that of & last: the others begin with it
    let bytes = [b'\'', b'"', b'<', b'>', b'&'];
    bytes.into_iter().fold(text, |text, byte| {
        let entity = String::from_utf8_lossy(entity(byte));
        text.replace(&*entity, &char::from(byte).to_string())
    })
}

/// Whether a text has only characters of XML 1.0 (its production 2, `Char`):
/// no controls but tab, LF and CR, and neither U+FFFE nor U+FFFF. The other
/// illegal characters, the surrogates, cannot occur in a `str`.
#[inline]
pub fn legal_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    if XML_ILLEGAL.first_in(bytes).is_some() {
        return false;
    }
    // U+FFFE and U+FFFF are EF BF BE and EF BF BF.
    memchr::memchr_iter(0xef, bytes)
        .all(|at| !matches!(bytes.get(at + 1..at + 3), Some([0xbf, 0xbe | 0xbf])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str) -> String {
        let mut out = b">".to_vec();
        escape_into(text.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn all_five_and_nothing_else() {
        assert_eq!(escaped(""), ">");
        assert_eq!(escaped("a&b"), ">a&amp;b");
        assert_eq!(escaped("&&'\"<>"), ">&amp;&amp;&apos;&quot;&lt;&gt;");
        assert_eq!(unescaped(&escaped("&&'\"<>&amp;apos;").as_bytes()[1..]), "&&'\"<>&amp;apos;");
        let long = "Größe 🛒 ".repeat(9);
        assert_eq!(escaped(&format!("{long}<{long}")), format!(">{long}&lt;{long}"));
        assert_eq!(escaped("&amp;"), ">&amp;amp;");
    }

    #[test]
    fn legal_is_what_the_production_says() {
        for number in 0..=0x10_ffff_u32 {
            let Some(char) = char::from_u32(number) else { continue };
            let legal =
                matches!(number, 0x9 | 0xa | 0xd | 0x20..=0xd7ff | 0xe000..=0xfffd | 0x10000..);
            let mut buffer = [b'a'; 8];
            let len = char.encode_utf8(&mut buffer[1..]).len();
            let text = std::str::from_utf8(&buffer[..1 + len]).unwrap();
            assert_eq!(legal_text(text), legal, "U+{number:04X}");
        }
        assert!(legal_text(""));
        assert!(!legal_text("\u{ff01}\u{ffff}"));
    }
}
