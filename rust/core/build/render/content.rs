//! The content of a row: a hash of the values of some columns (`--lastmod-from`).
//!
//! A value has the same form from every input, so that an export in another format changes no hash.
//! Equal are (docs/lastmod.md):
//! - numbers of the same value: `1`, `1.0`, `1.50` and `1.5`, integers, decimals and floats of any
//!   width, `-0` and `0`, `1.5E+20` and its digits; but not `007` and `7`, nor `1e5` and `100000`;
//! - a float of 32 bits, the same one in 64 bits, and its shortest decimal form;
//! - `true`, `True` and the truth value; likewise `false`;
//! - times of the same second with or without a zone (then UTC), a date and its midnight;
//! - nothing, an empty text, and a number that is none (NaN).
//!
//! Any other text is equal only to itself.

use std::hash::Hasher;
use std::io::Write;

use crate::build::render::plan::Plan;
use crate::flow::cell::Cell;
use crate::flow::hash::{HashKey, KeyHasher};
use crate::flow::row::Row;
use crate::flow::value::Value;
use crate::sitemap::date::Lastmod;

/// The first byte of each kind of value.
mod kind {
    pub const TEXT: u8 = 1;
    pub const NUMBER: u8 = 2;
    pub const LONG_NUMBER: u8 = 3;
    pub const TRUTH: u8 = 4;
    pub const TIME: u8 = 5;
    pub const LIST: u8 = 6;
    pub const FIELDS: u8 = 7;
    pub const END: u8 = 8;
}

/// Numbers with at most 18 digits are one integer and the place of the decimal point.
const MAX_DIGITS: usize = 18;
/// The largest number in the first word of a value.
const MAX_SHORT: u32 = 0xff_ffff;
/// Decimal numbers with up to this number of digits differ in a float of 32 bits.
const FLOAT32_DIGITS: i64 = 1_000_000;
/// The same for 64 bits.
const FLOAT_DIGITS: f64 = 1e15;
/// Exponents that programs write: from 10⁷ on, and up to 10⁻⁴. Shorter numbers with an exponent are
/// more likely a name, such as `1e5`.
const WRITTEN_EXPONENTS: (i32, i32) = (-4, 7);

/// Hashes the values of a row in their common form, which is words of eight bytes. The buffers are
/// reused for all rows.
pub(crate) struct Content {
    key: HashKey,
    /// of the current row
    hasher: KeyHasher,
    /// of the current column
    tag: u32,
    scratch: Vec<u8>,
    number: Vec<u8>,
}

impl Content {
    /// With the key of the hashes.
    pub fn new(key: HashKey) -> Content {
        Content { key, hasher: key.hasher(), tag: 0, scratch: Vec::new(), number: Vec::new() }
    }

    /// The hash of the values of a row: for each one of its column and its form.
    #[inline]
    pub fn of(&mut self, plan: &Plan, row: &impl Row) -> u64 {
        self.hasher = self.key.hasher();
        let mut scratch = std::mem::take(&mut self.scratch);
        for column in &plan.content {
            self.tag = column.tag;
            self.value(row.value(column.slot, &mut scratch));
        }
        self.scratch = scratch;
        self.hasher.finish()
    }

    #[inline]
    fn value(&mut self, value: Value<'_>) {
        match value.cell() {
            Some(Cell::Text(text)) => self.written(text),
            Some(cell) => self.typed(&cell),
            None => self.nested(value),
        }
    }

    /// A list, struct or map. Its JSON text is another value.
    #[cold]
    fn nested(&mut self, value: Value<'_>) {
        let start = self.hasher;
        self.begin(kind::LIST, 0);
        let is_list = value.items(|item| {
            self.value(item);
            self.begin(kind::END, 0);
        });
        if !is_list {
            self.hasher = start;
            self.begin(kind::FIELDS, 0);
            value.fields(|name, value| {
                self.value(Value::Cell(name));
                self.value(value);
                self.begin(kind::END, 0);
            });
        }
        self.begin(kind::END, 0);
    }

    /// Begins a value: its column, its kind and a small number.
    #[inline]
    fn begin(&mut self, kind: u8, more: u32) {
        let more = u64::from(more & MAX_SHORT);
        self.hasher.write_u64(u64::from(self.tag) << 32 | u64::from(kind) << 24 | more);
    }

    #[inline]
    fn typed(&mut self, cell: &Cell<'_>) {
        match *cell {
            Cell::Null | Cell::Text(_) => {}
            Cell::Bool(value) => self.truth(value),
            Cell::Int(n) if n.unsigned_abs() < 10_u64.pow(MAX_DIGITS as u32) => self.number(n, 0),
            Cell::UInt(n) if n < 10_u64.pow(MAX_DIGITS as u32) => self.number(n as i64, 0),
            Cell::Float(n) => self.float(n),
            Cell::Float32(n) => self.float32(n),
            Cell::Decimal(n, scale) => match (i64::try_from(n), u8::try_from(scale)) {
                (Ok(n), Ok(scale)) if n.unsigned_abs() < 10_u64.pow(MAX_DIGITS as u32) => {
                    self.number(n, scale)
                }
                _ => self.long(|out| cell.write(out)),
            },
            Cell::Int(_) | Cell::UInt(_) => self.long(|out| cell.write(out)),
            Cell::Date(days) => self.time(i64::from(days) * 86_400),
            Cell::Instant(seconds) | Cell::Local(seconds) => self.time(seconds),
        }
    }

    /// A cell of text.
    #[inline]
    fn written(&mut self, text: &[u8]) {
        let [first, ..] = *text else { return };
        if first.is_ascii_digit() || first == b'-' {
            if let Some((digits, scale)) = short_number(text) {
                return self.number(digits, scale);
            }
            if let [_, _, _, _, b'-', _, _, b'-', ..] = text
                && let Some(time) = Lastmod::parse(text, None)
            {
                return self.time(time.instant());
            }
            if let Some(number) = Digits::parse(text) {
                return self.digits(number, text);
            }
            if let Some(number) = with_exponent(text) {
                return self.float(number);
            }
        }
        match text {
            b"NaN" | b"nan" => {}
            b"true" | b"True" | b"TRUE" => self.truth(true),
            b"false" | b"False" | b"FALSE" => self.truth(false),
            text => self.plain(kind::TEXT, text),
        }
    }

    fn plain(&mut self, kind: u8, text: &[u8]) {
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX).min(MAX_SHORT);
        self.begin(kind, length);
        if length == MAX_SHORT {
            self.hasher.write_u64(text.len() as u64);
        }
        let (words, rest) = text.as_chunks::<8>();
        words.iter().for_each(|word| self.hasher.write_u64(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            // with zeros at the end, which the length tells from text
            self.hasher.write_u64(short_word(rest));
        }
    }

    fn truth(&mut self, value: bool) {
        self.begin(kind::TRUTH, u32::from(value));
    }

    fn time(&mut self, seconds: i64) {
        self.begin(kind::TIME, 0);
        self.hasher.write_u64(seconds as u64);
    }

    /// `digits / 10^scale`, with at most [`MAX_DIGITS`] digits.
    #[inline]
    fn number(&mut self, mut digits: i64, mut scale: u8) {
        while scale > 0 && digits % 10 == 0 {
            digits /= 10;
            scale -= 1;
        }
        if scale > 0 && digits.abs() >= FLOAT32_DIGITS && self.float32_in_64(digits, scale) {
            return;
        }
        self.begin(kind::NUMBER, scale.into());
        self.hasher.write_u64(digits as u64);
    }

    /// A number that a float of 64 bits has only because it was one of 32 bits gets the form that it
    /// had there: 19.989999771118164 is 19.99.
    fn float32_in_64(&mut self, digits: i64, scale: u8) -> bool {
        let mut text = Short::default();
        // both are exact, so the quotient is rounded as a parser rounds
        let float = match POWERS.get(usize::from(scale)) {
            Some(power) if digits.abs() < 1 << 53 => digits as f64 / power,
            _ => text.fill(format_args!("{digits}e-{scale}")).parse().unwrap_or(f64::NAN),
        };
        let short = float as f32;
        if f64::from(short) != float {
            return false;
        }
        let number = Digits::parse(text.fill(format_args!("{short}")).as_bytes());
        let Some((digits, scale)) = number.and_then(|number| number.exact) else { return false };
        self.begin(kind::NUMBER, scale.into());
        self.hasher.write_u64(digits as u64);
        true
    }

    fn float(&mut self, n: f64) {
        if n.fract() == 0.0 && n.abs() < FLOAT_DIGITS {
            return self.number(n as i64, 0);
        }
        // most prices: the shortest decimal form is this one, since it has at most 15 digits
        let hundredths = (n * 100.0).round();
        if hundredths.abs() < FLOAT_DIGITS && hundredths / 100.0 == n {
            return self.number(hundredths as i64, 2);
        }
        if n.is_nan() {
            return;
        }
        self.long(|out| {
            let _ = write!(out, "{n}");
        });
    }

    fn float32(&mut self, n: f32) {
        if n.fract() == 0.0 {
            return self.float(n.into());
        }
        let hundredths = (f64::from(n) * 100.0).round();
        if hundredths.abs() < FLOAT32_DIGITS as f64 && (hundredths / 100.0) as f32 == n {
            return self.number(hundredths as i64, 2);
        }
        if n.is_nan() {
            return;
        }
        self.long(|out| {
            let _ = write!(out, "{n}");
        });
    }

    /// A number in its decimal form.
    fn long(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut text = std::mem::take(&mut self.number);
        text.clear();
        write(&mut text);
        match Digits::parse(&text) {
            Some(number) => self.digits(number, &text),
            None => self.plain(kind::TEXT, &text), // infinity
        }
        self.number = text;
    }

    #[inline]
    fn digits(&mut self, number: Digits, text: &[u8]) {
        match number.exact {
            Some((digits, scale)) => self.number(digits, scale),
            None => self.plain(kind::LONG_NUMBER, &text[..number.end]),
        }
    }
}

/// Powers of ten that a float of 64 bits has exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Room for the text of a number, without an allocation.
#[derive(Default)]
struct Short([[u8; 32]; 2]);

impl Short {
    /// Writes a text; what does not fit becomes an empty one.
    fn fill(&mut self, text: std::fmt::Arguments<'_>) -> &str {
        let bytes = self.0.as_flattened_mut();
        let length = bytes.len();
        let mut rest = &mut *bytes;
        let written = rest.write_fmt(text).map_or(0, |()| length - rest.len());
        std::str::from_utf8(&bytes[..written]).unwrap_or("")
    }
}

/// A text of one to eight bytes as a word, with zeros at its end.
#[inline]
fn short_word(text: &[u8]) -> u64 {
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

/// `digits / 10^scale` of a text of one to eight bytes without a minus, as [`Digits::parse`] has it
/// with zeros at the end. Eight bytes at once: a loop over digits ends where the processor does not
/// expect it.
#[inline]
fn short_number(text: &[u8]) -> Option<(i64, u8)> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let length = text.len();
    if !(1..=8).contains(&length) {
        return None;
    }
    let digits = short_word(text) ^ ((ONES * 0x30) >> (64 - 8 * length));
    let others = (((digits & (ONES * 0x7f)) + ONES * 0x76) | digits) & (ONES * 0x80);
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
struct Digits {
    /// `digits / 10^scale` without zeros at the end, if it has at most [`MAX_DIGITS`] digits.
    exact: Option<(i64, u8)>,
    /// The end of the text without zeros at the end of a fraction.
    end: usize,
}

impl Digits {
    /// An optional minus, digits without a zero in front, and perhaps a point and digits.
    #[inline]
    fn parse(text: &[u8]) -> Option<Digits> {
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
fn with_exponent(text: &[u8]) -> Option<f64> {
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
        }
    }
}
