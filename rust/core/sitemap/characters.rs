//! Classes of characters, by the encoding that they need.

use crate::simd::AsciiSet;

/// Characters that need no encoding in the path, query and fragment of a URL (RFC 3986,
/// sections 2.2, 2.3, 3.3 to 3.5), nor in XML: unreserved characters, the
/// sub-delimiters without `&` and `'`, and `:` `@` `/` `?`.
pub const CLEAN: AsciiSet = AsciiSet::new(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$()*+,;=:@/?",
);

/// Characters that need no encoding in the path, query and fragment of a URL.
pub const URL: AsciiSet = AsciiSet::new(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@/?",
);

/// Characters that never need percent-encoding (RFC 3986, section 2.3).
pub const UNRESERVED: AsciiSet =
    AsciiSet::new(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~");

/// C0 controls and DEL, which no URL contains.
pub const CONTROL: AsciiSet = AsciiSet::new(
    b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\
      \x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x7f",
);

/// The controls that XML 1.0 does not allow.
pub const XML_ILLEGAL: AsciiSet = AsciiSet::new(
    b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f\
      \x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f",
);

/// The five characters that are written as entities.
pub const XML_SPECIAL: AsciiSet = AsciiSet::new(b"&'\"<>");

/// A value without ASCII spaces, tabs and line breaks at its ends.
#[inline]
pub fn trim(bytes: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let mut rest = bytes;
    while let [first, inner @ ..] = rest
        && blank(first)
    {
        rest = inner;
    }
    while let [inner @ .., last] = rest
        && blank(last)
    {
        rest = inner;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_clean(bytes: &[u8]) -> bool {
        CLEAN.first_not_in(bytes).is_none()
    }

    #[test]
    fn clean_is_rfc_3986_without_what_xml_escapes() {
        for byte in 0..=255_u8 {
            let allowed = byte.is_ascii_alphanumeric() || b"-._~!$()*+,;=:@/?".contains(&byte);
            assert_eq!(all_clean(&[byte]), allowed, "{byte:#x}");
            assert_eq!(all_clean(&[&b"a".repeat(40)[..], &[byte]].concat()), allowed, "{byte:#x}");
            assert_eq!(URL.contains(byte), allowed || byte == b'&' || byte == b'\'');
            assert_eq!(CONTROL.contains(byte), byte.is_ascii_control());
            let legal = byte >= 0x20 || matches!(byte, b'\t' | b'\n' | b'\r');
            assert_eq!(XML_ILLEGAL.contains(byte), !legal);
        }
        assert!(all_clean(b""));
    }

    #[test]
    fn trims_only_the_four_blanks() {
        assert_eq!(trim(b" \t\r\na b\n\r\t "), b"a b");
        assert_eq!(trim(b" \n "), b"");
        assert_eq!(trim(b"\x0ba\xc2\xa0"), b"\x0ba\xc2\xa0");
    }
}
