//! Names of encodings: those of the WHATWG, and those of Python, Excel and others.

use encoding_rs::Encoding;

/// An encoding that a file may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// UTF-8.
    Utf8,
    /// UTF-16 with a byte order mark; little-endian without one.
    Utf16,
    /// ISO 8859-1: each byte is the code point, unlike windows-1252, which the web calls latin1.
    Latin1,
    /// Any other.
    Other(&'static Encoding),
}

/// Names that are not WHATWG labels, in lower case and without `-`, `_`, `.` and blanks.
const ALIASES: &[(&str, &str)] = &[
    ("cp65001", "utf-8"),
    ("u8", "utf-8"),
    ("utf8sig", "utf-8"),
    ("utf8bom", "utf-8"),
    ("u16", "utf-16"),
    ("ucs2", "utf-16"),
    ("unicode", "utf-16"),
    ("macroman", "macintosh"),
    ("applemac", "macintosh"),
    ("maccyrillic", "x-mac-cyrillic"),
    ("cp932", "shift_jis"),
    ("shiftjis", "shift_jis"),
    ("mskanji", "shift_jis"),
    ("cp936", "gbk"),
    ("cp949", "euc-kr"),
    ("uhc", "euc-kr"),
    ("cp950", "big5"),
    ("cp874", "windows-874"),
    ("latin9", "iso-8859-15"),
    ("latin7", "iso-8859-13"),
    ("latin8", "iso-8859-14"),
    ("latin10", "iso-8859-16"),
    ("ansi", "windows-1252"),
    ("1252", "windows-1252"),
];

/// The common form of the spellings of a name: `UTF_16_LE`, `utf-16-le` and `utf16le`.
fn bare(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '-' | '_' | '.' | ' '))
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

impl Label {
    /// The encoding of this name; `None` for an unknown name.
    pub fn of(name: &str) -> Option<Label> {
        let bare = bare(name);
        let alias = ALIASES.iter().find(|(alias, _)| *alias == bare).map(|(_, label)| *label);
        match alias.unwrap_or(&bare) {
            "utf8" | "utf-8" => return Some(Label::Utf8),
            "utf16" | "utf-16" => return Some(Label::Utf16),
            "latin1" | "iso88591" | "88591" | "8859" | "l1" | "cp819" | "ibm819" | "latin" => {
                return Some(Label::Latin1);
            }
            "utf16le" => return Some(Label::Other(encoding_rs::UTF_16LE)),
            "utf16be" => return Some(Label::Other(encoding_rs::UTF_16BE)),
            _ => {}
        }
        let lower = name.trim().to_ascii_lowercase();
        // `iso8859_15` is iso-8859-15, `cp1252` is a label itself, and so is `windows1252` nearly
        let spelled = [
            alias.map(str::to_owned),
            Some(lower.replace('_', "-")),
            Some(lower),
            Some(bare.clone()),
            bare.strip_prefix("windows").map(|n| format!("windows-{n}")),
            bare.strip_prefix("iso8859").map(|n| format!("iso-8859-{n}")),
            bare.strip_prefix("8859").map(|n| format!("iso-8859-{n}")),
            bare.strip_prefix("euc").map(|n| format!("euc-{n}")),
            bare.strip_prefix("koi8").map(|n| format!("koi8-{n}")),
            bare.strip_prefix("iso2022").map(|n| format!("iso-2022-{n}")),
            bare.strip_prefix("tis").map(|n| format!("tis-{n}")),
            bare.strip_prefix("big5hkscs").map(|_| "big5-hkscs".to_owned()),
        ];
        let found = spelled
            .into_iter()
            .flatten()
            .find_map(|name| Encoding::for_label_no_replacement(name.as_bytes()))?;
        Some(if found == encoding_rs::UTF_8 { Label::Utf8 } else { Label::Other(found) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_encoding_has_many_names() {
        for (names, wanted) in [
            ("utf-8 UTF8 utf_8 utf-8-sig utf_8_sig cp65001 U8", "UTF-8"),
            ("utf-16-le utf_16_le UTF-16LE utf16le utf-16le", "UTF-16LE"),
            ("utf-16-be utf_16_be UTF-16BE", "UTF-16BE"),
            ("mac_roman mac-roman MacRoman macintosh", "macintosh"),
            ("cp1252 windows-1252 windows_1252 Windows1252 1252", "windows-1252"),
            ("shift_jis shift-jis shiftjis sjis s_jis cp932 ms_kanji windows-31j", "Shift_JIS"),
            ("euc_jp euc-jp eucjp", "EUC-JP"),
            ("iso8859_15 iso-8859-15 iso8859-15 latin9 8859_15", "ISO-8859-15"),
            ("iso8859_2 latin2 latin-2 l2", "ISO-8859-2"),
            ("koi8_r koi8-r", "KOI8-R"),
            ("gb2312 gbk cp936", "GBK"),
            ("big5 cp950 big5hkscs big5-hkscs", "Big5"),
            ("iso2022_jp iso-2022-jp", "ISO-2022-JP"),
        ] {
            for name in names.split(' ') {
                let found = match Label::of(name) {
                    Some(Label::Utf8) => "UTF-8",
                    Some(Label::Other(encoding)) => encoding.name(),
                    other => panic!("{name}: {other:?}"),
                };
                assert_eq!(found, wanted, "{name}");
            }
        }
        for name in ["latin1", "latin-1", "Latin_1", "iso-8859-1", "iso8859_1", "ISO8859-1", "L1"] {
            assert_eq!(Label::of(name), Some(Label::Latin1), "{name}");
        }
        for name in ["utf-16", "utf_16", "UTF16"] {
            assert_eq!(Label::of(name), Some(Label::Utf16), "{name}");
        }
        for name in ["", "utf-9", "klingon", "cp437", "replacement", "hz-gb-2312"] {
            assert_eq!(Label::of(name), None, "{name}");
        }
    }
}
