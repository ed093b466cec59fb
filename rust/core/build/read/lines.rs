//! The lines of a list of URLs.

use std::ops::Range;

/// The name of the one column.
pub const COLUMN: &str = "loc";

/// The offset after the last complete line. A CR at the end of the text may be followed by an LF that
/// has not been read.
pub fn cut(text: &[u8]) -> Option<usize> {
    if let Some(end) = memchr::memrchr(b'\n', text) {
        return Some(end + 1);
    }
    let end = memchr::memrchr(b'\r', text.get(..text.len().checked_sub(1)?)?)?;
    Some(end + 1)
}

/// The range of each line of a text, without the line break (LF, CRLF or CR). The text begins at the
/// start of a line.
pub struct Lines<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Lines<'a> {
    /// The lines of `text`.
    pub fn new(text: &'a [u8]) -> Lines<'a> {
        Lines { text, at: 0 }
    }
}

impl Iterator for Lines<'_> {
    type Item = Range<usize>;

    #[inline]
    fn next(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        let rest = self.text.get(start..).filter(|rest| !rest.is_empty())?;
        let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else {
            self.at = self.text.len();
            return Some(start..self.at);
        };
        let crlf = rest[end] == b'\r' && rest.get(end + 1) == Some(&b'\n');
        self.at = start + end + 1 + usize::from(crlf);
        Some(start..start + end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_lf_crlf_or_cr() {
        let lines = |text: &str| -> Vec<String> {
            Lines::new(text.as_bytes()).map(|line| text[line].to_owned()).collect()
        };
        assert_eq!(lines("a\nb\r\nc\rd"), ["a", "b", "c", "d"]);
        assert_eq!(lines("a\n\r\n\rb\r"), ["a", "", "", "b"]);
        assert_eq!(lines(""), [""; 0]);
    }

    #[test]
    fn a_cut_does_not_separate_cr_from_lf() {
        assert_eq!(cut(b"a\r\nb"), Some(3));
        assert_eq!(cut(b"a\rb\r"), Some(2));
        assert_eq!(cut(b"a\r"), None);
        assert_eq!(cut(b"ab"), None);
        assert_eq!(cut(b""), None);
    }
}
