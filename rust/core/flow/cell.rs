//! One value of one row, in any input format.

/// The columns of an input, in their order.
#[derive(Debug, Clone, Default)]
pub struct Columns {
    /// Their names.
    pub names: Vec<String>,
    /// The kind of each; all are text in CSV.
    pub kinds: Vec<ColumnKind>,
}

/// The kind of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text, also in a dictionary.
    Text,
    /// Numbers, times, truth values.
    Scalar,
    /// Lists, structs, maps.
    Nested,
    /// Types that urlset does not read (binary, intervals).
    Other,
}

/// One value. Empty text counts as [`Cell::Null`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// No value.
    Null,
    /// Text, not yet known to be UTF-8.
    Text(&'a [u8]),
    /// A truth value.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A single-precision number.
    Float32(f32),
    /// A number.
    Float(f64),
    /// `unscaled / 10^scale`.
    Decimal(i128, i8),
    /// Days since 1970-01-01.
    Date(i32),
    /// Seconds since the epoch, UTC; the fraction is cut.
    Instant(i64),
    /// Seconds since 1970-01-01T00:00:00 on a clock of an unknown zone; the fraction is cut.
    Local(i64),
}

impl Cell<'_> {
    /// Whether the cell, as text, is `value`. Null is the empty text.
    pub fn is(&self, value: &[u8]) -> bool {
        match *self {
            Cell::Null => value.is_empty(),
            Cell::Text(text) => text == value,
            Cell::Bool(b) => {
                if b {
                    value.eq_ignore_ascii_case(b"true") || value == b"1"
                } else {
                    value.eq_ignore_ascii_case(b"false") || value == b"0"
                }
            }
            // numbers compare as numbers: 1.50 is 1.5
            Cell::Int(n) => number(value).is_some_and(|v: i64| v == n),
            Cell::UInt(n) => number(value).is_some_and(|v: u64| v == n),
            Cell::Float32(n) => number(value).is_some_and(|v: f32| v == n),
            Cell::Float(n) => number(value).is_some_and(|v: f64| v == n),
            Cell::Decimal(..) => {
                let mut text = Vec::new();
                self.write(&mut text);
                std::str::from_utf8(value).is_ok_and(|value| same_decimal(value.trim(), &text))
            }
            _ => {
                let mut text = Vec::new();
                self.write(&mut text);
                text == value
            }
        }
    }

    /// Appends the value as text, as a template or a reject shows it.
    pub fn write(&self, out: &mut Vec<u8>) {
        use std::io::Write;
        // writing to a Vec cannot fail
        let _ = match *self {
            Cell::Null => Ok(()),
            Cell::Text(text) => {
                out.extend_from_slice(text);
                Ok(())
            }
            Cell::Bool(b) => write!(out, "{b}"),
            Cell::Int(n) => write!(out, "{n}"),
            Cell::UInt(n) => write!(out, "{n}"),
            Cell::Float32(n) => write!(out, "{n}"),
            Cell::Float(n) => write!(out, "{n}"),
            Cell::Decimal(n, scale) => {
                decimal(n, scale, out);
                Ok(())
            }
            Cell::Date(days) => {
                if let Some(date) = crate::sitemap::date::Lastmod::from_days(days) {
                    date.write(out);
                }
                Ok(())
            }
            Cell::Instant(seconds) | Cell::Local(seconds) => {
                if let Some(time) = crate::sitemap::date::Lastmod::from_seconds(seconds) {
                    time.write(out);
                }
                Ok(())
            }
        };
    }
}

fn number<T: std::str::FromStr>(value: &[u8]) -> Option<T> {
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

/// Whether a user's number is the decimal `text`, as [`decimal`] writes it.
fn same_decimal(value: &str, text: &[u8]) -> bool {
    let plain = value.strip_prefix('-').unwrap_or(value);
    let number = plain.bytes().all(|c| c.is_ascii_digit() || c == b'.')
        && plain.bytes().filter(|&c| c == b'.').count() <= 1
        && plain.bytes().any(|c| c.is_ascii_digit());
    let short = |text: &[u8]| -> Vec<u8> {
        let (minus, digits) = match text.strip_prefix(b"-") {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let (whole, fraction) = match memchr::memchr(b'.', digits) {
            Some(at) => (&digits[..at], &digits[at + 1..]),
            None => (digits, &b""[..]),
        };
        let zeros = whole.iter().take_while(|&&c| c == b'0').count();
        let mut out = whole[zeros..].to_vec();
        let kept = fraction.iter().rposition(|&c| c != b'0').map_or(0, |at| at + 1);
        if kept > 0 {
            out.push(b'.');
            out.extend_from_slice(&fraction[..kept]);
        }
        if minus && !out.is_empty() {
            out.insert(0, b'-');
        }
        out
    };
    number && short(value.as_bytes()) == short(text)
}

fn decimal(unscaled: i128, scale: i8, out: &mut Vec<u8>) {
    let digits = unscaled.unsigned_abs().to_string();
    if unscaled < 0 {
        out.push(b'-');
    }
    if scale <= 0 {
        out.extend_from_slice(digits.as_bytes());
        out.extend(std::iter::repeat_n(b'0', usize::from(scale.unsigned_abs())));
        return;
    }
    let scale = usize::from(scale.unsigned_abs());
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    out.extend_from_slice(whole.as_bytes());
    out.push(b'.');
    out.extend_from_slice(fraction.as_bytes());
}
