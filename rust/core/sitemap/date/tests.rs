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
