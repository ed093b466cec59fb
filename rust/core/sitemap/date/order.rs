//! Dates in the form of the output, as text and as one number, without calendar arithmetic.

use super::calendar::is_leap;
use super::digits::{digits, form, match_digits};

/// The order of lastmods as they are written: the digits as one number, doubled, plus 1 for a time.
///
/// The newest is the greatest; a time is greater than its date alone.
pub type Order = i64;

/// The text of an [`Order`].
pub fn order_text(order: Order) -> String {
    let mut text = [0; 20];
    let length = write_order(order, &mut text);
    String::from_utf8_lossy(&text[..length.unwrap_or(0)]).into_owned()
}

/// Writes the text of an [`Order`] to `out`, and returns its length; `None` if it is that of no date
/// of the years 0001 to 9999.
#[inline]
pub fn write_order(order: Order, out: &mut [u8; 20]) -> Option<usize> {
    let number = u64::try_from(order >> 1).ok().filter(|&n| n < 100_000_000_000_000)?;
    let (date, time) = ((number / 1_000_000) as u32, (number % 1_000_000) as u32);
    let (year, month, day) = (date / 10_000, date / 100 % 100, date % 100);
    let (hour, minute, second) = (time / 10_000, time / 100 % 100, time % 100);
    let last =
        if month == 2 { 28 + u32::from(is_leap(year)) } else { 30 + (month ^ month >> 3) % 2 };
    if year == 0 || !(1..=12).contains(&month) || !(1..=last).contains(&day) {
        return None;
    }
    let [y1, y2, y3, y4, m1, m2, d1, d2] = digits([year / 100, year % 100, month, day]);
    if order & 1 == 0 {
        out[..10].copy_from_slice(&[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2]);
        return (time == 0).then_some(10);
    }
    let [h1, h2, n1, n2, s1, s2, ..] = digits([hour, minute, second, 0]);
    *out = [
        y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T', h1, h2, b':', n1, n2, b':', s1, s2, b'Z',
    ];
    (hour < 24 && minute < 60 && second < 60).then_some(20)
}

/// The forms that most catalogs use, without calendar arithmetic: `YYYY-MM-DD`, and `YYYY-MM-DD` +
/// `T` or space + `hh:mm:ss` + `Z` or, if `zoneless`, nothing.
///
/// Writes the canonical form to `out` and returns its length and order. `None` does not mean that
/// the text is invalid: [`Lastmod::parse`] decides. Measured: 5 ns; parse and write take 26 ns.
#[inline]
pub fn canonical(text: &[u8], zoneless: bool, out: &mut [u8; 20]) -> Option<(usize, Order)> {
    let (date, rest) = text.split_first_chunk::<10>()?;
    let [y0, y1, y2, y3, _, m0, m1, _] =
        match_digits::<{ form(b"0000-00-") }>(date.first_chunk()?)?;
    let [.., d0, d1] = *date;
    let (d0, d1) = (d0.wrapping_sub(b'0'), d1.wrapping_sub(b'0'));
    if d0 > 9 || d1 > 9 {
        return None;
    }
    let year = u32::from(y0) * 1000 + u32::from(y1) * 100 + u32::from(y2) * 10 + u32::from(y3);
    let (month, day) = (u32::from(m0 * 10 + m1), u32::from(d0 * 10 + d1));
    // leap days need the calendar
    const LAST: [u32; 13] = [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    if year == 0 || day == 0 || day > LAST.get(month as usize).copied().unwrap_or(0) {
        return None;
    }
    let date_order = i64::from(year * 10_000 + month * 100 + day) * 1_000_000;
    out[..10].copy_from_slice(date);
    let time = match rest {
        [] => return Some((10, date_order * 2)),
        [b'T' | b' ', time @ .., b'Z'] => time.first_chunk::<8>().filter(|_| time.len() == 8)?,
        [b'T' | b' ', time @ ..] if zoneless => {
            time.first_chunk::<8>().filter(|_| time.len() == 8)?
        }
        _ => return None,
    };
    let [h0, h1, _, n0, n1, _, s0, s1] = match_digits::<{ form(b"00:00:00") }>(time)?;
    let (hour, minute, second) = (h0 * 10 + h1, n0 * 10 + n1, s0 * 10 + s1);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    out[10] = b'T';
    out[11..19].copy_from_slice(time);
    out[19] = b'Z';
    let order = date_order
        + i64::from(u32::from(hour) * 10_000 + u32::from(minute) * 100 + u32::from(second));
    Some((20, order * 2 + 1))
}
