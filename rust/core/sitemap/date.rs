//! Dates and times: one grammar for catalogs and for `verify`.

use crate::sitemap::characters::trim;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

const DAY: i64 = 86_400;
/// 0001-01-01 and 9999-12-31 in days since 1970-01-01.
const FIRST_DAY: i32 = -719_162;
const LAST_DAY: i32 = 2_932_896;
/// Limit of the offset of a zone from UTC (`+14:00`, Kiritimati).
const MAX_OFFSET: i64 = 14 * 3600;

/// The treatment of a date that is not in the form of W3C Datetime.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DatePolicy {
    /// Accept ISO 8601 as catalogs contain it: see [`Lastmod::parse`]. A year or month alone is a
    /// fault.
    Repair,
    /// Accept W3C Datetime only, with any of its precisions.
    Report,
}

/// The precisions of W3C Datetime.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Precision {
    /// `2026`
    Year,
    /// `2026-11`
    Month,
    /// `2026-11-21`
    Day,
    /// `2026-11-21T08:30Z`
    Minute,
    /// `2026-11-21T08:30:00Z`, with or without a fraction.
    Second,
}

impl Precision {
    /// Whether the official schemas allow it, too (docs/protocol.md: prose and schema disagree).
    pub fn is_in_schema(self) -> bool {
        matches!(self, Precision::Day | Precision::Second)
    }
}

/// What is wrong with a date.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // the messages explain them
pub enum DateFault {
    Year,
    YearZero,
    Month,
    Day,
    Separator,
    Hour,
    Minute,
    Second,
    Fraction,
    NoZone,
    Zone,
    ZoneRange,
    AfterTime,
}

impl DateFault {
    /// The fault in a few words.
    pub fn message(self) -> &'static str {
        match self {
            DateFault::Year => "does not start with a four-digit year",
            DateFault::YearZero => "there is no year 0",
            DateFault::Month => "no month -01 to -12 after the year",
            DateFault::Day => "no day of that month after it",
            DateFault::Separator => "a character other than T after the date",
            DateFault::Hour => "no hour 00 to 23",
            DateFault::Minute => "no minute 00 to 59",
            DateFault::Second => "no second 00 to 59",
            DateFault::Fraction => "no digit after the decimal point",
            DateFault::NoZone => "a time without a zone",
            DateFault::Zone => "an invalid zone",
            DateFault::ZoneRange => "a zone of more than 14 hours",
            DateFault::AfterTime => "text other than Z, +hh:mm or -hh:mm after the time",
        }
    }
}

/// A date as it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Written {
    /// The form.
    pub precision: Precision,
    /// Days since 1970-01-01 on the local calendar; the first day of a year or month.
    days: i32,
    /// Seconds since midnight on the local clock.
    second: u32,
    /// The fraction of the second, cut to microseconds.
    micros: u32,
    /// Seconds east of UTC; `None` for a time without a zone.
    offset: Option<i64>,
}

impl Written {
    /// Parses a date without blanks around it.
    ///
    /// # Errors
    /// The first fault.
    pub fn parse(text: &[u8], policy: DatePolicy) -> Result<Written, DateFault> {
        let repair = policy == DatePolicy::Repair;
        let parsed = text.split_first_chunk::<10>();
        let Some((days, rest)) = parsed.and_then(|(date, rest)| Some((parse_date(date)?, rest)))
        else {
            return Written::parse_part(text).and_then(|date| match policy {
                DatePolicy::Repair => Err(DateFault::Day),
                DatePolicy::Report => Ok(date),
            });
        };
        let mut date =
            Written { precision: Precision::Day, days, second: 0, micros: 0, offset: None };
        match rest {
            [] => return Ok(date),
            [b'T', ..] => {}
            [b't' | b' ', ..] if repair => {}
            _ => return Err(DateFault::Separator),
        }
        let hour = number(rest, 1, 24).ok_or(DateFault::Hour)?;
        let minute = after(rest, 3, b':', 60).ok_or(DateFault::Minute)?;
        date.second = hour * 3600 + minute * 60;
        date.precision = Precision::Minute;
        let mut rest = &rest[6..];
        if rest.first() == Some(&b':') {
            date.second += after(rest, 0, b':', 60).ok_or(DateFault::Second)?;
            date.precision = Precision::Second;
            rest = &rest[3..];
            if matches!(rest, [b'.', ..]) || repair && matches!(rest, [b',', ..]) {
                let digits = rest[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                let (fraction, zone) = rest[1..].split_at(digits);
                if fraction.is_empty() {
                    return Err(DateFault::Fraction);
                }
                for (digit, unit) in fraction.iter().zip([100_000, 10_000, 1_000, 100, 10, 1]) {
                    date.micros += u32::from(digit - b'0') * unit;
                }
                rest = zone;
            }
        }
        date.offset = match rest {
            [] if repair => None,
            [] => return Err(DateFault::NoZone),
            [b'Z'] => Some(0),
            _ => Some(parse_offset(rest, repair)?),
        };
        Ok(date)
    }

    /// A year, a month, or the fault of a date.
    #[cold]
    fn parse_part(text: &[u8]) -> Result<Written, DateFault> {
        let year = |at| Some(number(text, at, 100)? * 100 + number(text, at + 2, 100)?);
        let year = year(0).ok_or(DateFault::Year)?;
        if year == 0 {
            return Err(DateFault::YearZero);
        }
        let first = |precision, month| Written {
            precision,
            days: days_from_civil(year, month, 1),
            second: 0,
            micros: 0,
            offset: None,
        };
        if text.len() == 4 {
            return Ok(first(Precision::Year, 1));
        }
        let month = after(text, 4, b'-', 13).filter(|&month| month > 0).ok_or(DateFault::Month)?;
        if text.len() == 7 {
            return Ok(first(Precision::Month, month));
        }
        Err(DateFault::Day)
    }

    /// Parses W3C Datetime.
    ///
    /// # Errors
    /// The first fault.
    pub fn w3c(text: &[u8]) -> Result<Written, DateFault> {
        Written::parse(text, DatePolicy::Report)
    }

    /// Microseconds since 1970 in UTC; a date counts as its midnight UTC, and so does a time without
    /// a zone.
    pub fn instant(&self) -> i64 {
        let local = i64::from(self.days) * DAY + i64::from(self.second);
        (local - self.offset.unwrap_or(0)) * 1_000_000 + i64::from(self.micros)
    }
}

/// Two digits at `at`, below `end`.
fn number(text: &[u8], at: usize, end: u32) -> Option<u32> {
    two(*text.get(at)?, *text.get(at + 1)?).filter(|&number| number < end)
}

/// A separator at `at`, then two digits below `end`.
fn after(text: &[u8], at: usize, separator: u8, end: u32) -> Option<u32> {
    (text.get(at) == Some(&separator)).then(|| number(text, at + 1, end))?
}

/// Seconds east of UTC.
fn parse_offset(text: &[u8], repair: bool) -> Result<i64, DateFault> {
    let zone = if repair { text.strip_prefix(b" ").unwrap_or(text) } else { text };
    let (sign, hours, minutes) = match *zone {
        [b'Z' | b'z'] | [b'U', b'T', b'C'] | [b'G', b'M', b'T'] if repair => return Ok(0),
        [sign @ (b'+' | b'-'), h1, h2] if repair => (sign, two(h1, h2), Some(0)),
        [sign @ (b'+' | b'-'), h1, h2, m1, m2] if repair => (sign, two(h1, h2), two(m1, m2)),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => (sign, two(h1, h2), two(m1, m2)),
        _ => return Err(DateFault::AfterTime),
    };
    let hours = hours.ok_or(DateFault::Zone)?;
    let minutes = minutes.filter(|&minutes| minutes < 60).ok_or(DateFault::Zone)?;
    let offset = i64::from(hours * 3600 + minutes * 60);
    if offset > MAX_OFFSET {
        return Err(DateFault::ZoneRange);
    }
    Ok(if sign == b'-' { -offset } else { offset })
}

/// A date, or an instant in full seconds, of the years 0001 to 9999 in UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lastmod {
    /// Days since 1970-01-01.
    Date(i32),
    /// Seconds since 1970-01-01T00:00:00Z.
    Instant(i64),
}

impl Lastmod {
    /// Parses ISO 8601 as catalogs contain it: `YYYY-MM-DD`, alone or followed by `T`, `t` or one
    /// space, `hh:mm`, optional seconds, an optional fraction (cut), and an optional zone: `Z`, `UTC`,
    /// `GMT`, `±hh:mm`, `±hhmm` or `±hh` up to 14 hours, with an optional space before it. Blanks at
    /// the ends are ignored.
    ///
    /// A time without a zone is in `zone`, or in UTC. Where the clock of a zone skips or repeats the
    /// time, the offset before the change is used (RFC 5545, section 3.3.5).
    ///
    /// `None` for everything else: a year or month alone, days that do not exist, 24:00, leap seconds,
    /// years outside of 0001 to 9999 in UTC.
    #[inline]
    pub fn parse(text: &[u8], zone: Option<&TimeZone>) -> Option<Lastmod> {
        match <&[u8; 20]>::try_from(text).ok().and_then(parse_canonical) {
            Some(instant) => Some(instant),
            None => Lastmod::parse_any(text, zone),
        }
    }

    fn parse_any(text: &[u8], zone: Option<&TimeZone>) -> Option<Lastmod> {
        let written = Written::parse(trim(text), DatePolicy::Repair).ok()?;
        let local = i64::from(written.days) * DAY + i64::from(written.second);
        match (written.precision, written.offset, zone) {
            (Precision::Day, ..) => Some(Lastmod::Date(written.days)),
            (_, Some(offset), _) => Lastmod::from_seconds(local - offset),
            (_, None, None) => Lastmod::from_seconds(local),
            (_, None, Some(zone)) => Lastmod::from_seconds(local_to_instant(local, zone)?),
        }
    }

    /// From seconds since the epoch; `None` outside of the years 0001 to 9999.
    #[inline]
    pub fn from_seconds(seconds: i64) -> Option<Lastmod> {
        let days = seconds.div_euclid(DAY);
        (i64::from(FIRST_DAY)..=i64::from(LAST_DAY))
            .contains(&days)
            .then_some(Lastmod::Instant(seconds))
    }

    /// From days since 1970-01-01; `None` outside of the years 0001 to 9999.
    #[inline]
    pub fn from_days(days: i32) -> Option<Lastmod> {
        (FIRST_DAY..=LAST_DAY).contains(&days).then_some(Lastmod::Date(days))
    }

    /// Seconds since the epoch, for comparison; a date counts as its midnight UTC.
    #[inline]
    pub fn instant(&self) -> i64 {
        match *self {
            Lastmod::Date(days) => i64::from(days) * DAY,
            Lastmod::Instant(seconds) => seconds,
        }
    }

    /// Writes `YYYY-MM-DD` or `YYYY-MM-DDThh:mm:ssZ` to `out`; returns its length and order.
    #[inline]
    pub fn text(&self, out: &mut [u8; 20]) -> (usize, Order) {
        let (days, second) = match *self {
            Lastmod::Date(days) => (days, None),
            Lastmod::Instant(seconds) => {
                (seconds.div_euclid(DAY) as i32, Some(seconds.rem_euclid(DAY) as u32))
            }
        };
        let (year, month, day) = civil_from_days(days);
        let [y1, y2, y3, y4, m1, m2, d1, d2] = digits([year / 100, year % 100, month, day]);
        let date_order = i64::from(year * 10_000 + month * 100 + day) * 1_000_000;
        let Some(second) = second else {
            out[..10].copy_from_slice(&[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2]);
            return (10, date_order * 2);
        };
        let time = [second / 3600, second / 60 % 60, second % 60, 0];
        let [h1, h2, n1, n2, s1, s2, ..] = digits(time);
        *out = [
            y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T', h1, h2, b':', n1, n2, b':', s1, s2,
            b'Z',
        ];
        let time_order = i64::from(time[0] * 10_000 + time[1] * 100 + time[2]);
        (20, (date_order + time_order) * 2 + 1)
    }

    /// Appends the text.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut text = [0; 20];
        let (length, _) = self.text(&mut text);
        out.extend_from_slice(&text[..length]);
    }
}

/// The instant at which the clocks of a zone show a time, given as seconds from 1970-01-01T00:00:00
/// on the same clock. Skipped and repeated times as in [`Lastmod::parse`]. `None` outside of the
/// years that jiff supports.
pub fn local_to_instant(local_seconds: i64, zone: &TimeZone) -> Option<i64> {
    let days = i32::try_from(local_seconds.div_euclid(DAY)).ok()?;
    if !(FIRST_DAY..=LAST_DAY).contains(&days) {
        return None;
    }
    let (year, month, day) = civil_from_days(days);
    let second = local_seconds.rem_euclid(DAY);
    let (hour, minute) = ((second / 3600) as i8, (second / 60 % 60) as i8);
    let time =
        DateTime::new(year as i16, month as i8, day as i8, hour, minute, (second % 60) as i8, 0);
    // not `compatible()`: the instants of jiff end a day before the year 9999 does
    let offset = match zone.to_ambiguous_timestamp(time.ok()?).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset,
        AmbiguousOffset::Gap { before, .. } | AmbiguousOffset::Fold { before, .. } => before,
    };
    Some(local_seconds - i64::from(offset.seconds()))
}

/// The most frequent form, which is that of the output: `YYYY-MM-DDThh:mm:ssZ`.
#[inline]
fn parse_canonical(text: &[u8; 20]) -> Option<Lastmod> {
    // The last eight bytes begin with the second digit of the hour.
    let date = pairs::<{ form(b"0000-00-") }>(text.first_chunk()?)?;
    let time = pairs::<{ form(b"00T00:00") }>(text[8..].first_chunk()?)?;
    let end = pairs::<{ form(b"0:00:00Z") }>(text.last_chunk()?)?;
    let ([day, _, _, hours, ..], [_, _, minutes, _, _, seconds, ..]) = (time, end);
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let second = u32::from(hours) * 3600 + u32::from(minutes) * 60 + u32::from(seconds);
    Some(Lastmod::Instant(i64::from(days_of(date, day)?) * DAY + i64::from(second)))
}

/// `YYYY-MM-DD` in days since 1970-01-01.
#[inline]
fn parse_date(text: &[u8; 10]) -> Option<i32> {
    let month = pairs::<{ form(b"0000-00-") }>(text.first_chunk()?)?;
    days_of(month, two(text[8], text[9])? as u8)
}

/// The day, given the [`pairs`] of `YYYY-MM-`.
#[inline]
fn days_of([century, _, year, _, _, month, ..]: [u8; 8], day: u8) -> Option<i32> {
    let year = u32::from(century) * 100 + u32::from(year);
    let (month, day) = (u32::from(month), u32::from(day));
    let valid = year >= 1
        && (1..=12).contains(&month)
        && day >= 1
        && (day <= 28 || day <= days_in_month(year, month));
    valid.then(|| days_from_civil(year, month, day))
}

/// A form as a parameter that is known when the program is compiled.
const fn form(form: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*form)
}

/// All bits of the bytes of a form that stand for themselves.
const fn separators(form: u64) -> u64 {
    let (mut bytes, mut at) = (form.to_le_bytes(), 0);
    while at < 8 {
        bytes[at] = if bytes[at] == b'0' { 0 } else { 0xff };
        at += 1;
    }
    u64::from_le_bytes(bytes)
}

/// Checks eight bytes at once against a form, in which `0` stands for any digit and any other
/// character for itself. In the result, the position of the first of two digits has their number.
#[inline]
fn pairs<const FORM: u64>(text: &[u8; 8]) -> Option<[u8; 8]> {
    let digits = u64::from_le_bytes(*text) ^ FORM;
    // Each byte plus its limit reaches 0x80 when it is too large: above 9 for a
    // digit, above 0 elsewhere. A carry only comes from a byte that is 0x80 itself.
    let limits = const { 0x7676_7676_7676_7676 | separators(FORM) & 0x7f7f_7f7f_7f7f_7f7f };
    let sums = digits.wrapping_add(limits);
    if (sums | digits) & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    Some((digits * 10 + (digits >> 8)).to_le_bytes())
}

#[inline]
fn two(tens: u8, ones: u8) -> Option<u32> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens <= 9 && ones <= 9).then_some(u32::from(tens) * 10 + u32::from(ones))
}

fn days_in_month(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a date of the Gregorian calendar, from year 1 on.
/// Years begin in March here, which puts the leap day last; after Howard
/// Hinnant, "chrono-Compatible Low-Level Date Algorithms".
#[inline]
fn days_from_civil(year: u32, month: u32, day: u32) -> i32 {
    let shifted = month <= 2;
    let year = year - u32::from(shifted);
    let month = if shifted { month + 9 } else { month - 3 };
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let days = year * 365 + year / 4 - year / 100 + year / 400 + day_of_year;
    days as i32 - 719_468
}

/// The inverse of [`days_from_civil`]: year, month and day. After Cassio Neri and
/// Lorenz Schneider, "Euclidean affine functions and their application to
/// calendar algorithms" (2022).
#[inline]
fn civil_from_days(days: i32) -> (u32, u32, u32) {
    let days = 4 * (days + 719_468) as u32 + 3; // since 0000-03-01, in quarters
    let (century, day_of_century) = (days / 146_097, days % 146_097 / 4);
    let product = 2_939_745 * u64::from(4 * day_of_century + 3);
    let year = 100 * century + (product >> 32) as u32;
    let day_of_year = product as u32 / 2_939_745 / 4;
    let month = 2141 * day_of_year + 197_913;
    let day = (month & 0xffff) / 2141 + 1;
    let month = month >> 16;
    if day_of_year >= 306 { (year + 1, month - 12, day) } else { (year, month, day) }
}

/// Four numbers below 100 in two digits each.
#[inline]
fn digits([a, b, c, d]: [u32; 4]) -> [u8; 8] {
    let numbers = u64::from(a | b << 16) | u64::from(c | d << 16) << 32;
    // n * 103 / 1024 is n / 10 for n < 100; no lane of 16 bits overflows.
    let tens = ((numbers * 103) >> 10) & 0x000f_000f_000f_000f;
    let ones = numbers - tens * 10;
    (tens | ones << 8 | 0x3030_3030_3030_3030).to_le_bytes()
}

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

fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
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

/// The digits of a text whose other characters are those of the template.
#[inline]
fn match_digits<const FORM: u64>(text: &[u8; 8]) -> Option<[u8; 8]> {
    // a digit becomes its value, an equal separator 0
    let values = u64::from_le_bytes(*text) ^ FORM;
    let above_nine = (values.wrapping_add(0x7676_7676_7676_7676) | values) & 0x8080_8080_8080_8080;
    if above_nine != 0 || values & const { separators(FORM) } != 0 {
        return None;
    }
    Some(values.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str, zone: Option<&TimeZone>) -> Option<String> {
        Lastmod::parse(value.as_bytes(), zone).map(|lastmod| {
            let mut out = [0; 20];
            let (length, order) = lastmod.text(&mut out);
            let text = String::from_utf8(out[..length].to_vec()).unwrap();
            assert_eq!(order_text(order), text);
            text
        })
    }

    #[test]
    fn usual_forms() {
        for (value, form) in [
            ("2026-11-21", "2026-11-21"),
            (" 2024-02-29\t", "2024-02-29"),
            ("0001-01-01", "0001-01-01"),
            ("9999-12-31", "9999-12-31"),
            ("2026-11-21T08:09:10Z", "2026-11-21T08:09:10Z"),
            ("2026-11-21t08:09:10z", "2026-11-21T08:09:10Z"),
            ("2026-11-21 08:09:10", "2026-11-21T08:09:10Z"),
            ("2026-11-21 08:09", "2026-11-21T08:09:00Z"),
            ("2026-11-21T08:09:10.999999999999Z", "2026-11-21T08:09:10Z"),
            ("2026-11-21T08:09:10,5", "2026-11-21T08:09:10Z"),
            ("2026-11-21 08:09:10.5 UTC", "2026-11-21T08:09:10Z"),
            ("2026-11-21 08:09:10GMT", "2026-11-21T08:09:10Z"),
            ("2026-11-21T08:09+02:00", "2026-11-21T06:09:00Z"),
            ("2026-11-21 08:09:10 -0330", "2026-11-21T11:39:10Z"),
            ("2026-11-21T08:09:10+14", "2026-11-20T18:09:10Z"),
            ("2026-12-31T23:59:59-14:00", "2027-01-01T13:59:59Z"),
            ("1969-12-31T23:59:59.9Z", "1969-12-31T23:59:59Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(text(value, None).as_deref(), Some(form), "{value}");
        }
    }

    #[test]
    fn invalid_forms() {
        for value in [
            "",
            " ",
            "2026",
            "2026-11",
            "20261121",
            "0000-00-00",
            "0000-01-01",
            "2026-02-30",
            "2026-02-29",
            "1900-02-29",
            "2026-04-31",
            "2026-13-01",
            "2026-00-10",
            "2026-01-00",
            "2026-01-32",
            "2026/11/21",
            "21-11-2026",
            "2026-1-1",
            "+2026-11-21",
            "02026-11-21",
            "2026-11-21Z",
            "2026-11-21T",
            "2026-11-21T08",
            "2026-11-21T24:00:00Z",
            "2026-11-21T23:60:00Z",
            "2026-11-21T23:59:60Z",
            "2026-11-21T08:09:10.Z",
            "2026-11-21  08:09",
            "2026-11-21T08:09:1",
            "2026-11-21T8:09:10",
            "2026-11-21T08:09.5Z",
            "2026-11-21T08:09:10+14:01",
            "2026-11-21T08:09:10+15",
            "2026-11-21T08:09:10+01:60",
            "2026-11-21T08:09:10+1",
            "2026-11-21T08:09:10+01:",
            "2026-11-21T08:09:10  Z",
            "2026-11-21T08:09:10 EST",
            "2026-11-21T08:09:10Zx",
            "2026-11-21x08:09",
            "yesterday",
            "0001-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-00:01",
            "2026-11-21T08:09:10\u{2212}01:00",
            "\u{0661}026-11-21",
        ] {
            assert_eq!(text(value, None), None, "{value}");
        }
    }

    #[test]
    fn zones() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        for (value, form) in [
            ("2026-11-21 08:00", "2026-11-21T07:00:00Z"),
            ("2026-07-21 08:00", "2026-07-21T06:00:00Z"),
            ("2026-11-21 08:00Z", "2026-11-21T08:00:00Z"),
            ("2026-11-21", "2026-11-21"),
            // Skipped: an hour later on the new clock. Repeated: the first time.
            ("2026-03-29T02:30:00", "2026-03-29T01:30:00Z"),
            ("2026-10-25T02:30:00", "2026-10-25T00:30:00Z"),
            ("9999-12-31 23:59:59", "9999-12-31T22:59:59Z"),
        ] {
            assert_eq!(text(value, Some(&zone)).as_deref(), Some(form), "{value}");
        }
        assert_eq!(text("0001-01-01 00:00", Some(&zone)), None);
        assert_eq!(local_to_instant(i64::MAX, &zone), None);
        assert_eq!(local_to_instant(i64::MIN, &zone), None);
    }

    #[test]
    fn typed_values() {
        let last = i64::from(LAST_DAY) * DAY + DAY - 1;
        let first = i64::from(FIRST_DAY) * DAY;
        assert_eq!(Lastmod::from_seconds(last), Some(Lastmod::Instant(last)));
        assert_eq!(Lastmod::from_seconds(last + 1), None);
        assert_eq!(Lastmod::from_seconds(first), Some(Lastmod::Instant(first)));
        assert_eq!(Lastmod::from_seconds(first - 1), None);
        assert_eq!(Lastmod::from_seconds(i64::MIN), None);
        assert_eq!(Lastmod::from_days(LAST_DAY + 1), None);
        assert_eq!(Lastmod::from_days(FIRST_DAY - 1), None);
        assert_eq!(Lastmod::Date(1).instant(), DAY);
        assert_eq!(Lastmod::Instant(-1).instant(), -1);
    }

    #[test]
    fn every_day_of_ten_thousand_years() {
        let mut date = jiff::civil::date(1, 1, 1);
        for days in FIRST_DAY..=LAST_DAY {
            let form = date.to_string();
            assert_eq!(text(&form, None).as_deref(), Some(&*form));
            assert_eq!(Lastmod::parse(form.as_bytes(), None), Lastmod::from_days(days));
            if days < LAST_DAY {
                date = date.tomorrow().unwrap();
            }
        }
    }

    #[test]
    fn canonical_agrees_with_parse() {
        let mut texts: Vec<String> = [
            "2026-11-20",
            "2026-11-20T10:11:12Z",
            "2026-11-20 10:11:12",
            "2026-11-20 10:11:12Z",
            "2026-11-20T10:11:12",
            "0000-01-01",
            "0001-01-01",
            "9999-12-28T23:59:59Z",
            "2026-02-30",
            "2026-02-29",
            "2024-02-29",
            "2026-13-01",
            "2026-00-01",
            "2026-01-00",
            "2026-01-01T24:00:00Z",
            "2026-01-01T23:60:00Z",
            "2026-01-01T23:59:60Z",
            "2026-01-01T23:59:59",
            "2026/01/01",
        ]
        .map(str::to_owned)
        .to_vec();
        // every byte of two good texts replaced by every other byte
        for good in ["2026-11-20", "2026-11-20T10:11:12Z"] {
            for at in 0..good.len() {
                for byte in 0..128u8 {
                    let mut text = good.as_bytes().to_vec();
                    text[at] = byte;
                    texts.push(String::from_utf8(text).unwrap());
                }
            }
        }
        let mut short_ways = 0;
        for text in &texts {
            let mut out = [0; 20];
            let long = Lastmod::parse(text.as_bytes(), None).map(|lastmod| {
                let mut text = [0; 20];
                let (length, order) = lastmod.text(&mut text);
                (text[..length].to_vec(), order)
            });
            if let Some((length, order)) = canonical(text.as_bytes(), true, &mut out) {
                short_ways += 1;
                assert_eq!(Some((out[..length].to_vec(), order)), long, "{text}");
                assert_eq!(order_text(order).as_bytes(), &out[..length]);
            }
        }
        assert!(short_ways > 100, "{short_ways}");
        assert_eq!(canonical(b"2026-11-20 10:11:12", false, &mut [0; 20]), None);
    }

    fn report(text: &str) -> Result<Written, DateFault> {
        Written::parse(text.as_bytes(), DatePolicy::Report)
    }

    #[test]
    fn w3c_instants_agree_with_jiff() {
        for text in [
            "1970-01-01T00:00:00Z",
            "2026-11-21T08:30:15.123456+05:30",
            "2000-02-29T23:59:59-14:00",
            "0001-01-01T00:00:00Z",
            "9999-12-30T00:00:00Z",
            "1900-03-01T00:00:00Z",
        ] {
            let expected: jiff::Timestamp = text.parse().unwrap();
            assert_eq!(report(text).unwrap().instant(), expected.as_microsecond(), "{text}");
        }
        assert_eq!(report("2024-02-29").unwrap().instant(), 1_709_164_800_000_000);
        assert_eq!(report("2024").unwrap().instant(), report("2024-01-01").unwrap().instant());
    }

    #[test]
    fn w3c_faults() {
        use DateFault as F;
        for (text, fault) in [
            ("", F::Year),
            ("26", F::Year),
            ("0000-01-01", F::YearZero),
            ("2026-13", F::Month),
            ("2026-1-1", F::Month),
            ("2023-02-29", F::Day),
            ("2026-11-2", F::Day),
            ("2026-11-21 08:30:00Z", F::Separator),
            ("2026-11-21T08:30:00", F::NoZone),
            ("2026-11-21T24:00:00Z", F::Hour),
            ("2026-11-21Z", F::Separator),
            ("2026-11-21t08:30:00z", F::Separator),
            ("2026-11-21T08:30:00+0100", F::AfterTime),
            ("2026-11-21T08:30:00.Z", F::Fraction),
            ("2026-11-21T08:30:00,5Z", F::AfterTime),
            ("2026-11-21T08:30:61Z", F::Second),
            ("2026-11-21T08Z", F::Minute),
            ("2026-11-21T08:30:00+15:00", F::ZoneRange),
            ("2026-11-21T08:30:00+01:60", F::Zone),
            ("2026-11-21T08:30:00Zx", F::AfterTime),
            ("2026-11-21T08:30:00 Z", F::AfterTime),
        ] {
            assert_eq!(report(text), Err(fault), "{text}");
        }
        for (text, precision) in [
            ("2026", Precision::Year),
            ("2026-05", Precision::Month),
            ("2026-05-01", Precision::Day),
            ("2026-05-01T10:00Z", Precision::Minute),
            ("2026-05-01T10:00:00.5-01:00", Precision::Second),
        ] {
            assert_eq!(report(text).unwrap().precision, precision);
        }
    }
}
