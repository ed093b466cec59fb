//! Dates of sitemaps: W3C Datetime, what the schema makes of it, and the instant it means.

/// The forms of W3C Datetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// `2026`
    Year,
    /// `2026-11`
    Month,
    /// `2026-11-21`
    Day,
    /// `2026-11-21T08:30Z`
    Minute,
    /// `2026-11-21T08:30:00Z`, with or without fraction.
    Second,
}

impl Precision {
    /// Whether the official schemas know the form, too (PROTOCOL: prose and schema disagree).
    pub fn is_in_schema(self) -> bool {
        matches!(self, Precision::Day | Precision::Second)
    }
}

/// A parsed date: microseconds since 1970 in UTC (a date counts as its midnight), and its form.
pub type Date = (i64, Precision);

/// Parses a W3C Datetime. The error says what is wrong.
pub fn parse(text: &[u8]) -> Result<Date, &'static str> {
    let year = digits(text, 0, 4).ok_or("no four-digit year at its start")?;
    if year == 0 {
        return Err("there is no year 0");
    }
    if text.len() == 4 {
        return Ok((midnight(year, 1, 1), Precision::Year));
    }
    let month = part(text, 4, b'-')
        .filter(|m| (1..=12).contains(m))
        .ok_or("no month -01 to -12 after the year")?;
    if text.len() == 7 {
        return Ok((midnight(year, month, 1), Precision::Month));
    }
    let day = part(text, 7, b'-')
        .filter(|&d| d >= 1 && d <= days_in(year, month))
        .ok_or("no day of that month after it")?;
    let date = midnight(year, month, day);
    if text.len() == 10 {
        return Ok((date, Precision::Day));
    }
    if text[10] != b'T' {
        return Err("something else than T after the date");
    }
    let hour = digits(text, 11, 2).filter(|&h| h < 24).ok_or("no hour 00 to 23")?;
    let minute = part(text, 13, b':').filter(|&m| m < 60).ok_or("no minute 00 to 59")?;
    let mut micros = date + (i64::from(hour) * 3600 + i64::from(minute) * 60) * 1_000_000;
    let mut at = 16;
    let mut precision = Precision::Minute;
    if text.get(at) == Some(&b':') {
        let second = part(text, at, b':').filter(|&s| s < 60).ok_or("no second 00 to 59")?;
        micros += i64::from(second) * 1_000_000;
        at += 3;
        precision = Precision::Second;
        if text.get(at) == Some(&b'.') {
            at += 1;
            let from = at;
            let mut unit = 100_000;
            while let Some(digit @ b'0'..=b'9') = text.get(at) {
                micros += i64::from(digit - b'0') * unit;
                unit /= 10;
                at += 1;
            }
            if at == from {
                return Err("no digit after the point");
            }
        }
    }
    match text.get(at) {
        None => Err("a time without zone"),
        Some(b'Z') if text.len() == at + 1 => Ok((micros, precision)),
        Some(sign @ (b'+' | b'-')) if text.len() == at + 6 => {
            let hours = digits(text, at + 1, 2).ok_or("a bad zone")?;
            let minutes = part(text, at + 3, b':').filter(|&m| m < 60).ok_or("a bad zone")?;
            let offset = hours * 60 + minutes;
            if offset > 14 * 60 {
                return Err("a zone beyond 14:00");
            }
            let offset = i64::from(offset) * 60_000_000;
            Ok((if *sign == b'+' { micros - offset } else { micros + offset }, precision))
        }
        Some(_) => Err("something else than Z, +hh:mm or -hh:mm after the time"),
    }
}

/// `count` digits at `at`.
fn digits(text: &[u8], at: usize, count: usize) -> Option<u32> {
    let mut value = 0;
    for &b in text.get(at..at + count)? {
        if !b.is_ascii_digit() {
            return None;
        }
        value = value * 10 + u32::from(b - b'0');
    }
    Some(value)
}

/// A separator and two digits.
fn part(text: &[u8], at: usize, separator: u8) -> Option<u32> {
    if text.get(at) != Some(&separator) {
        return None;
    }
    digits(text, at + 1, 2)
}

fn days_in(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        _ => 31,
    }
}

/// Midnight UTC of a civil date (days from civil, H. Hinnant's published algorithm).
fn midnight(year: u32, month: u32, day: u32) -> i64 {
    let y = i64::from(year) - i64::from(month <= 2);
    let era = y.div_euclid(400);
    let of_era = y.rem_euclid(400);
    let of_year = (153 * ((i64::from(month) + 9) % 12) + 2) / 5 + i64::from(day) - 1;
    let day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    (era * 146_097 + day_of_era - 719_468) * 86_400_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_jiff() {
        for text in [
            "1970-01-01T00:00:00Z",
            "2026-11-21T08:30:15.123456+05:30",
            "2000-02-29T23:59:59-14:00",
            "0001-01-01T00:00:00Z",
            "9999-12-30T00:00:00Z",
            "1900-03-01T00:00:00Z",
        ] {
            let expected: jiff::Timestamp = text.parse().unwrap();
            assert_eq!(parse(text.as_bytes()).unwrap().0, expected.as_microsecond(), "{text}");
        }
        assert_eq!(parse(b"2024-02-29").unwrap(), (1_709_164_800_000_000, Precision::Day));
    }

    #[test]
    fn every_day_of_two_cycles_follows_the_one_before() {
        let mut last = midnight(1600, 12, 31);
        for year in 1601..2401 {
            for month in 1..=12 {
                for day in 1..=days_in(year, month) {
                    let this = midnight(year, month, day);
                    assert_eq!(this - last, 86_400_000_000);
                    last = this;
                }
            }
        }
    }

    #[test]
    fn refuses_what_is_not_w3c_datetime() {
        for bad in [
            "",
            "26",
            "0000-01-01",
            "2026-13",
            "2026-1-1",
            "2023-02-29",
            "2026-11-21 08:30:00Z",
            "2026-11-21T08:30:00",
            "2026-11-21T24:00:00Z",
            "2026-11-21Z",
            "2026-11-21t08:30:00z",
            "2026-11-21T08:30:00+0100",
            "2026-11-21T08:30:00.Z",
            "2026-11-21T08Z",
            "2026-11-21T08:30:00+15:00",
            "2026-11-21T08:30:00Zx",
        ] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
        assert_eq!(parse(b"2026").unwrap().1, Precision::Year);
        assert_eq!(parse(b"2026-05").unwrap().1, Precision::Month);
        assert_eq!(parse(b"2026-05-01T10:00Z").unwrap().1, Precision::Minute);
    }
}
