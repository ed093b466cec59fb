//! Numbers as catalogs write them, in decimal notation.

use std::io::Write;

/// Numbers with at most 18 digits are one integer and the place of the decimal point.
pub(crate) const MAX_DIGITS: usize = 18;
/// Exponents that programs write: from 10⁷ on, and up to 10⁻⁴. Shorter numbers with an exponent are
/// more likely a name, such as `1e5`.
const WRITTEN_EXPONENTS: (i32, i32) = (-4, 7);

/// Powers of ten that a float of 64 bits has exactly.
pub(crate) const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Room for the text of a number, without an allocation.
#[derive(Default)]
pub(crate) struct Short([[u8; 32]; 2]);

impl Short {
    /// Writes a text; what does not fit becomes an empty one.
    pub(crate) fn fill(&mut self, text: std::fmt::Arguments<'_>) -> &str {
        let bytes = self.0.as_flattened_mut();
        let length = bytes.len();
        let mut rest = &mut *bytes;
        let written = rest.write_fmt(text).map_or(0, |()| length - rest.len());
        std::str::from_utf8(&bytes[..written]).unwrap_or("")
    }
}

/// A text of one to eight bytes as a word, with zeros at its end.
#[inline]
pub(crate) fn short_word(text: &[u8]) -> u64 {
    let (length, byte) = (text.len(), |at: usize| u64::from(text[at]));
    match (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            let half = |bytes: [u8; 4]| u64::from(u32::from_le_bytes(bytes));
            half(*first) | half(*last) << (8 * (length - 4))
        }
        _ => {
            byte(0)
                | byte(length / 2) << (8 * (length / 2))
                | byte(length - 1) << (8 * (length - 1))
        }
    }
}

/// The same byte in a word eight times.
const ONES: u64 = 0x0101_0101_0101_0101;

/// The bits of [`short_word`] that are not those of digits: the first bit of each such byte.
#[inline]
fn no_digits(word: u64, length: usize) -> u64 {
    let digits = word ^ ((ONES * 0x30) >> (64 - 8 * length));
    (((digits & (ONES * 0x7f)) + ONES * 0x76) | digits) & (ONES * 0x80)
}

/// Whether a text of one to eight bytes, which begins with a digit, is known to be what
/// [`number_word`] makes of it, or no number: digits, or digits with a point and no zero at the end.
#[inline]
pub(crate) fn is_common(text: &[u8], word: u64) -> bool {
    let others = no_digits(word, text.len());
    if others == 0 {
        return true;
    }
    let point = others.trailing_zeros() as usize / 8;
    let is_point = others & (others - 1) == 0 && word >> (8 * point) & 0xff == u64::from(b'.');
    is_point && text.len() < 8 && !matches!(text.last(), Some(b'0' | b'.'))
}

/// The text of `digits / 10^scale` as a word, and its length, if it has at most eight bytes.
#[inline]
pub(crate) fn number_word(digits: i64, scale: u8) -> Option<(u64, u32)> {
    let number = u64::try_from(digits).ok().filter(|&number| number < 100_000_000)?;
    // four digits and four digits, then pairs, then each in a byte, the first in the lowest one
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    let ones = tens | (twos - tens * 10) << 8;
    let scale = usize::from(scale);
    let count = (8 - ones.trailing_zeros() as usize / 8).max(scale + 1);
    let length = count + usize::from(scale > 0);
    if length > 8 {
        return None;
    }
    let text = (ones | (ONES * 0x30)) >> (64 - 8 * count);
    if scale == 0 {
        return Some((text, length as u32));
    }
    let whole = 8 * (count - scale);
    let before = text & ((1 << whole) - 1);
    Some((before | u64::from(b'.') << whole | text >> whole << (whole + 8), length as u32))
}

/// `digits / 10^scale` of a text of one to eight bytes without a minus, as [`Digits::parse`] has it
/// with zeros at the end. Eight bytes at once: a loop over digits ends where the processor does not
/// expect it.
#[inline]
pub(crate) fn short_number(text: &[u8]) -> Option<(i64, u8)> {
    let length = text.len();
    if !(1..=8).contains(&length) {
        return None;
    }
    let word = short_word(text);
    let digits = word ^ ((ONES * 0x30) >> (64 - 8 * length));
    let others = no_digits(word, length);
    let (digits, whole, count) = match others {
        0 => (digits, length, length),
        _ => {
            let point = others.trailing_zeros() as usize / 8;
            let is_one = others & (others - 1) == 0;
            if !is_one || text[point] != b'.' || point == 0 || point + 1 == length {
                return None;
            }
            let before = (1 << (8 * point)) - 1;
            (digits & before | digits >> 8 & !before, point, length - 1)
        }
    };
    if whole > 1 && text[0] == b'0' {
        return None;
    }
    // pairs of digits, then pairs of pairs
    let digits = digits << (64 - 8 * count);
    let twos = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos * 100 + (twos >> 16)) & 0x0000_ffff_0000_ffff;
    let value = (fours * 10_000 + (fours >> 32)) & 0xffff_ffff;
    Some((value as i64, (count - whole) as u8))
}

/// A number in decimal notation, without an exponent.
pub(crate) struct Digits {
    /// `digits / 10^scale` without zeros at the end, if it has at most [`MAX_DIGITS`] digits.
    pub(crate) exact: Option<(i64, u8)>,
    /// The end of the text without zeros at the end of a fraction.
    pub(crate) end: usize,
}

impl Digits {
    /// An optional minus, digits without a zero in front, and perhaps a point and digits.
    #[inline]
    pub(crate) fn parse(text: &[u8]) -> Option<Digits> {
        let minus = text.first() == Some(&b'-');
        let from = usize::from(minus);
        let (mut value, mut significant, mut at) = (0_u64, 0, from);
        let mut add = |digit: u8, significant: &mut usize| {
            // of longer numbers only the text counts
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            *significant += usize::from(*significant > 0 || digit != b'0');
        };
        while let Some(digit @ b'0'..=b'9') = text.get(at).copied() {
            add(digit, &mut significant);
            at += 1;
        }
        let whole = at - from;
        if whole == 0 || (whole > 1 && text[from] == b'0') {
            return None;
        }
        let mut end = at;
        if let Some(b'.') = text.get(at) {
            let rest = &text[at + 1..];
            if rest.is_empty() || !rest.iter().all(u8::is_ascii_digit) {
                return None;
            }
            let kept = rest.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
            rest[..kept].iter().for_each(|&digit| add(digit, &mut significant));
            end += if kept > 0 { kept + 1 } else { 0 };
            let scale = u8::try_from(kept).ok().filter(|_| significant <= MAX_DIGITS);
            let exact = scale.map(|scale| (signed(value, minus), scale));
            return Some(Digits { exact, end });
        }
        if at != text.len() {
            return None;
        }
        let exact = (significant <= MAX_DIGITS).then(|| (signed(value, minus), 0));
        Some(Digits { exact, end })
    }
}

fn signed(value: u64, minus: bool) -> i64 {
    if minus { -(value as i64) } else { value as i64 }
}

/// A number with an exponent, as programs write numbers that are large or small: `1.5e+20`.
#[cold]
pub(crate) fn with_exponent(text: &[u8]) -> Option<f64> {
    let at = text.iter().position(|byte| matches!(byte, b'e' | b'E'))?;
    let (factor, exponent) = (&text[..at], &text[at + 1..]);
    let digits = exponent.strip_prefix(b"-").or(exponent.strip_prefix(b"+")).unwrap_or(exponent);
    if digits.is_empty() || digits.len() > 3 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let text_of = |bytes| std::str::from_utf8(bytes).ok();
    let exponent: i32 = text_of(exponent)?.parse().ok()?;
    let (small, large) = WRITTEN_EXPONENTS;
    let whole = factor.split(|&byte| byte == b'.').next()?;
    let is_one_digit = matches!(whole, [b'1'..=b'9'] | [b'-', b'1'..=b'9']);
    if (small < exponent && exponent < large) || !is_one_digit || Digits::parse(factor).is_none() {
        return None;
    }
    text_of(text)?.parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_numbers_are_written_as_their_text() {
        let numbers = (0..1_000).chain((0..100_000_000).step_by(9_973)).chain([99_999_999]);
        for (digits, scale) in numbers.flat_map(|digits| (0..10).map(move |scale| (digits, scale)))
        {
            let text = format!("{digits:0>width$}", width = usize::from(scale) + 1);
            let (whole, fraction) = text.split_at(text.len() - usize::from(scale));
            let text = if scale > 0 { format!("{whole}.{fraction}") } else { text };
            let wanted =
                (text.len() <= 8).then(|| (short_word(text.as_bytes()), text.len() as u32));
            assert_eq!(number_word(digits, scale), wanted, "{digits} {scale}");
        }
        assert_eq!(number_word(100_000_000, 0), None);
        assert_eq!(number_word(-1, 0), None);
    }

    #[test]
    fn short_numbers_are_those_of_the_loop() {
        // each text of up to 8 of these characters with a common beginning
        let mut texts = vec![Vec::new()];
        for from in 0..8 {
            let longest = texts.iter().filter(|text: &&Vec<u8>| text.len() == from).cloned();
            let longer: Vec<_> = longest
                .flat_map(|text| b"0197.-e/:\x80".map(|byte| [&text[..], &[byte]].concat()))
                .filter(|text| {
                    text.len() < 5 || text.iter().filter(|b| b".-e/:".contains(b)).count() < 2
                })
                .filter(|text| text.len() < 6 || text[1..5].windows(2).all(|two| two[0] <= two[1]))
                .collect();
            texts.extend(longer);
        }
        assert!(texts.len() > 10_000);
        for text in texts {
            let short = short_number(&text).map(|(mut digits, mut scale)| {
                while scale > 0 && digits % 10 == 0 {
                    (digits, scale) = (digits / 10, scale - 1);
                }
                (digits, scale)
            });
            let plain = !text.starts_with(b"-");
            let long = Digits::parse(&text).filter(|_| plain).and_then(|number| number.exact);
            assert_eq!(short, long, "{}", text.escape_ascii());
            if !text.first().is_some_and(u8::is_ascii_digit) {
                continue;
            }
            let own = (short_word(&text), text.len() as u32);
            let word = short.map(|(digits, scale)| number_word(digits, scale));
            if let Some(word) = word {
                let written = word.unwrap();
                let bytes = &written.0.to_le_bytes()[..written.1 as usize];
                assert_eq!(short_number(bytes), short, "{}", text.escape_ascii());
                assert!(written == own || !is_common(&text, own.0), "{}", text.escape_ascii());
            }
        }
    }
}
