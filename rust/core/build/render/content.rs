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

use std::io::Write;

use crate::build::render::number::{
    Digits, MAX_DIGITS, POWERS, Short, is_common, number_word, short_number, short_word,
    with_exponent,
};
use crate::build::render::plan::Plan;
use crate::flow::cell::Cell;
use crate::flow::hash::FastHash;
use crate::flow::row::Row;
use crate::flow::value::Value;
use crate::sitemap::date::{Lastmod, Order, canonical};

/// The kind of a value in its common form.
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

/// Beyond the integers of [`MAX_DIGITS`] digits.
const LIMIT: u64 = 10_u64.pow(MAX_DIGITS as u32);
/// The largest number in the head of a value.
const MAX_MORE: u32 = 0xff_ffff;
/// Bytes of the longest word with a meaning, `false`.
const MAX_WORD: usize = 5;
/// Decimal numbers with up to this number of digits differ in a float of 32 bits.
const FLOAT32_DIGITS: i64 = 1_000_000;
/// The same for 64 bits.
const FLOAT_DIGITS: f64 = 1e15;

/// Hashes the values of a row in their common form. The buffers are reused for all rows.
pub(crate) struct Content {
    hash: FastHash,
    /// the form of the current row: two words for each value
    form: Vec<[[u8; 8]; 2]>,
    /// of the current column
    tag: u32,
    scratch: Vec<u8>,
    number: Vec<u8>,
}

impl Content {
    /// With the hash that all builds of a set share.
    pub fn new(hash: FastHash) -> Content {
        Content { hash, form: Vec::new(), tag: 0, scratch: Vec::new(), number: Vec::new() }
    }

    /// The hash of the values of a row: for each one of its column and its form.
    #[inline]
    pub fn of(&mut self, plan: &Plan, row: &impl Row) -> u64 {
        self.form.clear();
        let mut scratch = std::mem::take(&mut self.scratch);
        for column in &plan.content {
            self.tag = column.tag;
            // the rows of CSV contain nothing else, which the compiler sees
            match row.value(column.slot, &mut scratch) {
                Value::Cell(Cell::Null) => {}
                Value::Cell(Cell::Text(text)) => self.text(text),
                value => self.value(value),
            }
        }
        self.scratch = scratch;
        self.hash.of(self.form.as_flattened().as_flattened())
    }

    #[inline(never)]
    fn value(&mut self, value: Value<'_>) {
        match value.cell() {
            Some(Cell::Text(text)) => self.text(text),
            Some(cell) => self.typed(&cell),
            None => self.nested(value),
        }
    }

    /// A list, struct or map. Its JSON text is another value.
    #[cold]
    fn nested(&mut self, value: Value<'_>) {
        let start = self.form.len();
        self.push(kind::LIST, 0, 0);
        let is_list = value.items(|item| {
            self.value(item);
            self.push(kind::END, 0, 0);
        });
        if !is_list {
            self.form.truncate(start);
            self.push(kind::FIELDS, 0, 0);
            value.fields(|name, value| {
                self.value(Value::Cell(name));
                self.value(value);
                self.push(kind::END, 0, 0);
            });
        }
        self.push(kind::END, 0, 0);
    }

    /// A value: its column, its kind, and what it contains.
    #[inline]
    fn push(&mut self, kind: u8, more: u32, word: u64) {
        let head = u64::from(self.tag) << 32 | u64::from(kind) << 24 | u64::from(more & MAX_MORE);
        self.form.push([head.to_le_bytes(), word.to_le_bytes()]);
    }

    #[inline]
    fn typed(&mut self, cell: &Cell<'_>) {
        match *cell {
            Cell::Null | Cell::Text(_) => {}
            Cell::Bool(value) => self.truth(value),
            Cell::Int(n) if n.unsigned_abs() < LIMIT => self.number(n, 0),
            Cell::UInt(n) if n < LIMIT => self.number(n as i64, 0),
            Cell::Float(n) => self.float(n),
            Cell::Float32(n) => self.float32(n),
            Cell::Decimal(n, scale) => match (i64::try_from(n), u8::try_from(scale)) {
                (Ok(n), Ok(scale)) if n.unsigned_abs() < LIMIT => self.number(n, scale),
                _ => self.long(|out| cell.write(out)),
            },
            Cell::Int(_) | Cell::UInt(_) => self.long(|out| cell.write(out)),
            Cell::Date(days) => self.seconds(i64::from(days) * 86_400),
            Cell::Instant(seconds) | Cell::Local(seconds) => self.seconds(seconds),
        }
    }

    /// A cell of text. Most are neither numbers nor words such as `true`.
    #[inline]
    fn text(&mut self, text: &[u8]) {
        match *text {
            [] => {}
            [b'0'..=b'9', ..] if text.len() <= 8 => {
                let word = short_word(text);
                match is_common(text, word) {
                    true => self.push(kind::TEXT, text.len() as u32, word),
                    false => self.number_text(text),
                }
            }
            [b'-' | b'0'..=b'9', ..] => self.number_text(text),
            _ if text.len() > MAX_WORD => self.plain(kind::TEXT, text),
            _ => self.word(text),
        }
    }

    /// A number, a time, or a text that begins like these.
    #[inline(never)]
    fn number_text(&mut self, text: &[u8]) {
        if let Some((digits, scale)) = short_number(text) {
            return self.number(digits, scale);
        }
        if let [_, _, _, _, b'-', _, _, b'-', ..] = text {
            if let Some((_, order)) = canonical(text, true, &mut [0; 20]) {
                return self.time(order);
            }
            if let Some(time) = Lastmod::parse(text, None) {
                return self.time(time.text(&mut [0; 20]).1);
            }
        }
        if let Some(number) = Digits::parse(text) {
            self.digits(number, text);
        } else if let Some(number) = with_exponent(text) {
            self.float(number);
        } else {
            self.plain(kind::TEXT, text);
        }
    }

    #[inline(never)]
    fn word(&mut self, text: &[u8]) {
        match text {
            b"NaN" | b"nan" => {}
            b"true" | b"True" | b"TRUE" => self.truth(true),
            b"false" | b"False" | b"FALSE" => self.truth(false),
            text => self.plain(kind::TEXT, text),
        }
    }

    /// A text by its first bytes if that is all, otherwise by its hash.
    #[inline]
    fn plain(&mut self, kind: u8, text: &[u8]) {
        let is_short = (1..=8).contains(&text.len());
        let word = if is_short { short_word(text) } else { self.hash.of(text) };
        self.push(kind, u32::try_from(text.len()).unwrap_or(MAX_MORE).min(MAX_MORE), word);
    }

    fn truth(&mut self, value: bool) {
        self.push(kind::TRUTH, u32::from(value), 0);
    }

    /// The order of a date is that of its midnight without the last bit.
    fn time(&mut self, order: Order) {
        self.push(kind::TIME, 0, (order >> 1) as u64);
    }

    fn seconds(&mut self, seconds: i64) {
        match Lastmod::from_seconds(seconds) {
            Some(time) => self.time(time.text(&mut [0; 20]).1),
            None => self.push(kind::TIME, 1, seconds as u64), // beyond the year 9999
        }
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
        self.exact(digits, scale);
    }

    /// The same without zeros at the end: as its text, if that is short.
    #[inline]
    fn exact(&mut self, digits: i64, scale: u8) {
        match number_word(digits, scale) {
            Some((word, length)) => self.push(kind::TEXT, length, word),
            None => self.push(kind::NUMBER, scale.into(), digits as u64),
        }
    }

    /// A number that a float of 64 bits has only because it was one of 32 bits gets the form that it
    /// had there: 19.989999771118164 is 19.99.
    #[inline(never)]
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
        self.exact(digits, scale);
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
