//! The Gregorian calendar.

pub(super) fn days_in_month(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

pub(super) fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// Days since 1970-01-01 of a date of the Gregorian calendar, from year 1 on.
/// Years begin in March here, which puts the leap day last; after Howard
/// Hinnant, "chrono-Compatible Low-Level Date Algorithms".
#[inline]
pub(super) fn days_from_civil(year: u32, month: u32, day: u32) -> i32 {
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
pub(super) fn civil_from_days(days: i32) -> (u32, u32, u32) {
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
