//! Dates and times: one grammar for catalogs and for `verify`.

mod calendar;
mod digits;
mod order;

pub use order::{Order, canonical, order_text, write_order};

use crate::sitemap::characters::trim;
use calendar::{civil_from_days, days_from_civil, days_in_month};
use digits::{digits, form, pairs, two};
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

#[cfg(test)]
mod tests;
