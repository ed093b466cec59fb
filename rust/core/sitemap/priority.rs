//! Priority: 0.0 to 1.0 with one decimal.
//!
//! The range is checked on the value itself, before rounding: 1.04 is not 1.0.
//! Rounding is half up from the shortest decimal form of the value, so that equal numbers give the
//! same bytes as text, decimal and float.

use crate::sitemap::characters::trim;
use std::fmt::Write;

/// A priority in canonical form: `0.0` to `1.0`.
pub type Priority = [u8; 3];

/// From text: digits with an optional point and an optional leading `+`,
/// blanks at the ends ignored. No exponent, no comma, no minus.
pub fn from_text(text: &[u8]) -> Option<Priority> {
    let text = trim(text);
    from_digits(text.strip_prefix(b"+").unwrap_or(text))
}

/// From a double.
pub fn from_f64(value: f64) -> Option<Priority> {
    if !(0.0..=1.0).contains(&value) {
        return None;
    }
    // Division rounds to the nearest number: if it is equal, the shortest form has two decimals. If the
    // sum was rounded up, it is not equal. `round` would be a function call (measured: 5 ns).
    let hundredths = (value * 100.0 + 0.5) as u8;
    if f64::from(hundredths) / 100.0 == value {
        return Some(tenths((hundredths + 5) / 10));
    }
    from_shortest(value, value < 0.01)
}

/// From a float, by its own shortest form, not that of the equal double.
pub fn from_f32(value: f32) -> Option<Priority> {
    if !(0.0..=1.0).contains(&value) {
        return None;
    }
    // as above
    let hundredths = (value * 100.0 + 0.5) as u8;
    if f32::from(hundredths) / 100.0 == value {
        return Some(tenths((hundredths + 5) / 10));
    }
    from_shortest(value, value < 0.01)
}

/// From a decimal, `unscaled` × 10^-`scale`.
pub fn from_decimal(unscaled: i128, scale: i8) -> Option<Priority> {
    let hundredths = match (unscaled, scale) {
        (0, _) => 0,
        (..0, _) => return None,
        (1, 0) => 100,
        (_, ..=0) => return None,
        (1..=10, 1) => unscaled * 10,
        (_, 1) => return None,
        // 10^39 and above is more than any i128: the value is below 1.
        (_, 41..) => 0,
        _ => {
            let one_hundredth = 10_i128.pow(scale as u32 - 2);
            // 1 is the maximum, with no digits after the hundredths.
            if unscaled / one_hundredth > 100
                || unscaled / one_hundredth == 100 && unscaled % one_hundredth != 0
            {
                return None;
            }
            unscaled / one_hundredth
        }
    };
    Some(tenths(((hundredths + 5) / 10) as u8))
}

/// From an integer: 0 or 1.
pub fn from_int(value: i64) -> Option<Priority> {
    matches!(value, 0 | 1).then(|| tenths(value as u8 * 10))
}

/// From a float in range; `Display` gives the shortest decimal form that reads
/// back as the same float, never with an exponent.
fn from_shortest(value: impl std::fmt::Display, tiny: bool) -> Option<Priority> {
    let mut digits = Digits { bytes: [0; 24], len: 0 };
    // A tiny number rounds to 0 but has up to 325 digits.
    if tiny || write!(digits, "{value}").is_err() {
        return tiny.then(|| tenths(0));
    }
    from_digits(&digits.bytes[..digits.len])
}

/// A buffer for the digits of a float from 0.01 to 1: at most 2 and 1 + 17 digits.
struct Digits {
    bytes: [u8; 24],
    len: usize,
}

impl Write for Digits {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let room = self.bytes.get_mut(self.len..self.len + text.len()).ok_or(std::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

/// `1`, `1.`, `.5`, `0.25`: digits with at most one point among or around them.
fn from_digits(text: &[u8]) -> Option<Priority> {
    let (whole, fraction) = match memchr::memchr(b'.', text) {
        Some(point) => (&text[..point], &text[point + 1..]),
        None => (text, &text[text.len()..]),
    };
    if whole.is_empty() && fraction.is_empty()
        || !whole.iter().chain(fraction).all(u8::is_ascii_digit)
    {
        return None;
    }
    let digit = |at: usize| fraction.get(at).map_or(0, |digit| digit - b'0');
    match whole.iter().position(|&digit| digit != b'0').map(|first| &whole[first..]) {
        None => Some(tenths(digit(0) + u8::from(digit(1) >= 5))),
        Some(b"1") if fraction.iter().all(|&digit| digit == b'0') => Some(tenths(10)),
        Some(_) => None,
    }
}

fn tenths(tenths: u8) -> Priority {
    [b'0' + tenths / 10, b'.', b'0' + tenths % 10]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Option<String> {
        form(from_text(value.as_bytes()))
    }

    fn form(priority: Option<Priority>) -> Option<String> {
        priority.map(|text| String::from_utf8(text.to_vec()).unwrap())
    }

    #[test]
    fn text_in_range() {
        for (value, form) in [
            ("0", "0.0"),
            ("1", "1.0"),
            ("0.5", "0.5"),
            (" +0.50\t", "0.5"),
            (".5", "0.5"),
            ("1.", "1.0"),
            ("0.25", "0.3"),
            ("0.249999", "0.2"),
            ("0.85", "0.9"),
            ("0.95", "1.0"),
            ("0.949", "0.9"),
            ("00001.000", "1.0"),
            ("0.04", "0.0"),
            ("0.05", "0.1"),
            ("000", "0.0"),
        ] {
            assert_eq!(text(value).as_deref(), Some(form), "{value}");
        }
    }

    #[test]
    fn text_that_makes_no_sense() {
        for value in [
            "",
            " ",
            ".",
            "+",
            "+.",
            "-0",
            "-0.0",
            "1.04",
            "1.0000001",
            "2",
            "10",
            "1e0",
            "0,5",
            "0.5.1",
            "0x1",
            "high",
            "NaN",
            "inf",
            "0 5",
            "++1",
            "\u{0661}",
            "1.1",
        ] {
            assert_eq!(text(value), None, "{value}");
        }
    }

    #[test]
    fn floats() {
        let double = |value| form(from_f64(value));
        for (value, form) in [
            (0.0, "0.0"),
            (-0.0, "0.0"),
            (1.0, "1.0"),
            (0.25, "0.3"),
            (0.85, "0.9"),
            (0.1 + 0.2, "0.3"),
            (0.15, "0.2"),
            (f64::MIN_POSITIVE, "0.0"),
            (5e-324, "0.0"),
            (0.05, "0.1"),
            (0.1_f64.next_down() / 2.0, "0.0"),
            (1.0_f64.next_down(), "1.0"),
            (0.01, "0.0"),
            (0.010000000000000002, "0.0"),
        ] {
            assert_eq!(double(value).as_deref(), Some(form), "{value}");
        }
        for value in [f64::NAN, f64::INFINITY, -0.1, -5e-324, 1.0_f64.next_up(), 1.04] {
            assert_eq!(double(value), None, "{value}");
        }
        let single = |value| form(from_f32(value));
        for (value, form) in
            [(0.15_f32, "0.2"), (0.85, "0.9"), (0.3, "0.3"), (1e-45, "0.0"), (1.0, "1.0")]
        {
            assert_eq!(single(value).as_deref(), Some(form), "{value}");
        }
        assert_eq!(single(f32::NAN), None);
        assert_eq!(single(1.0_f32.next_up()), None);
    }

    #[test]
    fn all_hundredths_and_their_neighbours() {
        for hundredths in 1..100_u8 {
            let text = format!("0.{hundredths:02}");
            let expected = |value: &str| self::text(value).unwrap();
            let (double, single): (f64, f32) = (text.parse().unwrap(), text.parse().unwrap());
            for value in [double.next_down(), double, double.next_up()] {
                assert_eq!(form(from_f64(value)).unwrap(), expected(&value.to_string()));
            }
            for value in [single.next_down(), single, single.next_up()] {
                assert_eq!(form(from_f32(value)).unwrap(), expected(&value.to_string()));
            }
        }
    }

    #[test]
    fn decimals_and_integers() {
        let decimal = |unscaled, scale| form(from_decimal(unscaled, scale));
        let power = |exponent| 10_i128.pow(exponent);
        for (unscaled, scale, form) in [
            (0, 0, "0.0"),
            (0, -5, "0.0"),
            (0, 127, "0.0"),
            (1, 0, "1.0"),
            (5, 1, "0.5"),
            (10, 1, "1.0"),
            (25, 2, "0.3"),
            (249, 3, "0.2"),
            (95, 2, "1.0"),
            (1000, 3, "1.0"),
            (power(38), 38, "1.0"),
            (power(38) / 4, 38, "0.3"),
            (i128::MAX, 39, "0.2"),
            (i128::MAX, 40, "0.0"),
            (i128::MAX, 41, "0.0"),
            (i128::MAX, 127, "0.0"),
        ] {
            assert_eq!(decimal(unscaled, scale).as_deref(), Some(form), "{unscaled} {scale}");
        }
        for (unscaled, scale) in [
            (-1, 5),
            (i128::MIN, 127),
            (2, 0),
            (1, -1),
            (1, -128),
            (11, 1),
            (101, 2),
            (1001, 3),
            (power(38) + 1, 38),
            (i128::MAX, 38),
            (i128::MAX, 1),
        ] {
            assert_eq!(decimal(unscaled, scale), None, "{unscaled} {scale}");
        }
        assert_eq!(form(from_int(0)).as_deref(), Some("0.0"));
        assert_eq!(form(from_int(1)).as_deref(), Some("1.0"));
        assert_eq!(form(from_int(2)), None);
        assert_eq!(form(from_int(-1)), None);
    }
}
