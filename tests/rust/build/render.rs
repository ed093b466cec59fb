//! The leaf functions of the renderer against slow models and other libraries.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use urlset_core::build::render::loc::{Folder, Hosts, LocRules, Site};
use urlset_core::build::render::template::Template;
use urlset_core::sitemap::date::{Lastmod, local_to_instant};
use urlset_core::sitemap::{characters, escape, priority};

/// Valid and invalid parts of URLs.
const PIECES: &[&str] = &[
    "https://shop.example",
    "http://shop.example",
    "HTTPS://",
    "https://",
    "http://",
    "m.example",
    "Münster.de",
    "://",
    "shop.example",
    ":443",
    ":8080",
    ":",
    "/",
    "//",
    "?",
    "#",
    "&",
    "'",
    "\"",
    "<",
    ">",
    "%",
    "%41",
    "%e4",
    "%4",
    ".",
    "..",
    "/../",
    "/./",
    "%2e",
    "/%2E./",
    "&amp;",
    "&#38;",
    "N/A",
    "null",
    "a",
    "product-name-1234567",
    "ü",
    "中",
    "🛒",
    " ",
    "\t",
    "\n",
    "\0",
    "\x7f",
    "@",
    "[",
    "]",
    "[::1]",
    "{",
    "|",
    "\\",
    "^",
    "+",
    "=",
    ",",
    ";",
    "xn--",
    "\u{85}",
];

fn raw_url() -> impl Strategy<Value = Vec<u8>> {
    let start = prop_oneof![
        4 => Just("https://shop.example/".to_owned()),
        2 => Just("https://shop.example".to_owned()),
        2 => Just("/".to_owned()),
        1 => Just("https://m.example/".to_owned()),
        2 => Just(String::new()),
    ];
    let pieces = prop::collection::vec(prop::sample::select(PIECES), 0..12);
    let noise = prop_oneof![9 => Just(Vec::new()), 1 => prop::collection::vec(any::<u8>(), 0..4)];
    (start, pieces, noise).prop_map(|(start, pieces, noise)| {
        [start.into_bytes(), pieces.concat().into_bytes(), noise].concat()
    })
}

fn hosts() -> impl Strategy<Value = Hosts> {
    prop_oneof![
        Just(Hosts::Same),
        Just(Hosts::Any),
        Just(Hosts::List(vec!["m.example".into(), "a:8080".into(), "münster.de".into()])),
    ]
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('\'', "&apos;")
        .replace('"', "&quot;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// A plain model of percent-encoding a path.
fn percent(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::new();
    for (at, &byte) in bytes.iter().enumerate() {
        let hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
        let kept = byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?".contains(&byte);
        if kept || byte == b'%' && hex(at + 1) && hex(at + 2) {
            out.push(byte as char);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, max_global_rejects: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_short_way_equals_the_rules(
        raw in raw_url(), hosts in hosts(), strict: bool, join: bool, max_chars in prop_oneof![Just(2047_usize), 12..60_usize],
        site in prop::sample::select(&["https://shop.example", "https://shop.example/a/b", "http://shop.example:8080/c/"][..]),
        folder in prop::sample::select(&[None, Some("https://shop.example/"), Some("https://shop.example/a"), Some("https://{host}/"), Some("http://cdn.example")][..]),
    ) {
        let folder = folder.map(|url| Folder::parse(url).unwrap());
        let rules = LocRules::new(Site::parse(site).unwrap(), hosts, strict, max_chars, folder).unwrap().joining(join);
        let (mut scratch, mut exact, mut out) = (Vec::new(), Vec::new(), b">".to_vec());
        let expected = rules.encode(&raw, &mut exact);
        let result = rules.write(&raw, &mut scratch, &mut out);
        prop_assert_eq!(result, expected);
        if let Ok(info) = result {
            let exact = String::from_utf8(exact).unwrap();
            prop_assert_eq!(String::from_utf8(out).unwrap(), format!(">{}", escaped(&exact)));
            prop_assert_eq!(info.notes().any(|code| code == "loc.over_1024"), exact.len() > 1024);
            prop_assert!((12..=max_chars).contains(&exact.len()));
            prop_assert!(exact.bytes().all(|b| b.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&b)), "{}", exact);
            // Encoded once: an encoded URL does not change.
            let mut again = Vec::new();
            let twice = rules.encode(exact.as_bytes(), &mut again).unwrap();
            let place = |code: &&str| ["loc.over_1024", "loc.outside_folder"].contains(code);
            prop_assert!(twice.notes().filter(place).eq(info.notes().filter(place)));
            prop_assert_eq!(String::from_utf8(again).unwrap(), exact.clone());
            prop_assert!(oxiri::Iri::parse(exact.as_str()).is_ok(), "{}", exact);
        } else {
            prop_assert_eq!(out, b">");
        }
    }

    #[test]
    fn references_resolve_as_in_oxiri(
        path in prop::collection::vec(prop::sample::select(&["a", "b:c", ".", "..", "/", "/", "...", "%41", "é", "&"][..]), 1..10),
        query in prop::option::of("[a-z/.?]{0,4}"), fragment in prop::option::of("[a-z/.?]{0,4}"),
        site in prop::sample::select(&["https://shop.example", "https://shop.example/", "https://shop.example/x/y", "https://shop.example/x/y/"][..]),
    ) {
        let mut reference = path.concat();
        query.iter().for_each(|query| reference += &format!("?{query}"));
        fragment.iter().for_each(|fragment| reference += &format!("#{fragment}"));
        let rules = LocRules::new(Site::parse(site).unwrap(), Hosts::Any, false, 2047, None).unwrap().joining(true);
        let mut url = Vec::new();
        let base = oxiri::Iri::parse(site).unwrap();
        // Other tests cover a colon in the first segment, and hosts that RFC 3986 allows but urlset does not.
        prop_assume!(!reference.starts_with("//") && !reference.split(['/', '?', '#']).next().unwrap().contains(':'));
        let encoded: Vec<_> = reference.splitn(2, '#').map(percent).collect();
        let expected = base.resolve(&oxiri::IriRef::parse(encoded.join("#")).unwrap()).unwrap();
        prop_assert!(rules.encode(reference.as_bytes(), &mut url).is_ok(), "{}", reference);
        prop_assert_eq!(String::from_utf8(url).unwrap(), expected.as_str(), "{}", reference);
    }

    #[test]
    fn absolute_urls_are_encoded_as_the_model_says(path in "[ -~ü中]{0,40}", query in prop::option::of("[ -\"$-~é]{0,20}")) {
        let path: String = path.chars().filter(|c| !"?#".contains(*c)).collect();
        let tail = query.map(|query| format!("?{query}")).unwrap_or_default();
        let raw = format!("https://shop.example/{path}{tail}|");
        let rules = LocRules::new(Site::parse("https://shop.example").unwrap(), Hosts::Same, false, 2047, None).unwrap();
        let mut url = Vec::new();
        rules.encode(raw.as_bytes(), &mut url).unwrap();
        // before the query a backslash means a slash
        let slashed = format!("https://shop.example/{}{tail}|", path.replace('\\', "/"));
        let expected = if tail.is_empty() { slashed.replace('\\', "/") } else { slashed };
        prop_assert_eq!(String::from_utf8(url).unwrap(), percent(&expected));
    }

    #[test]
    fn text_is_escaped_as_the_model_says(text in "[ -~é中🛒&<>'\"]{0,80}") {
        let mut out = Vec::new();
        escape::escape_into(text.as_bytes(), &mut out);
        prop_assert_eq!(String::from_utf8(out).unwrap(), escaped(&text));
        prop_assert_eq!(characters::trim(text.as_bytes()), text.trim_matches(' ').as_bytes());
    }

    #[test]
    fn instants_are_those_of_jiff(
        seconds in -62_135_596_800_i64..253_402_207_200, form in 0..6_usize, offset in -14 * 60..=14 * 60_i64,
    ) {
        let utc = |seconds: i64| TimeZone::UTC.to_datetime(jiff::Timestamp::from_second(seconds).unwrap());
        let local = |format: &str| utc(seconds + offset * 60).strftime(format).to_string();
        let sign = if offset < 0 { '-' } else { '+' };
        let (hours, minutes) = (offset.abs() / 60, offset.abs() % 60);
        prop_assume!((-62_135_596_800..253_402_207_200).contains(&(seconds + offset * 60)));
        let text = match form {
            0 => utc(seconds).strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            1 => utc(seconds).strftime("%Y-%m-%d %H:%M:%S").to_string(),
            2 => utc(seconds).strftime("%Y-%m-%dt%H:%M:%S.999 UTC").to_string(),
            3 => format!("{}{sign}{hours:02}:{minutes:02}", local("%Y-%m-%dT%H:%M:%S")),
            4 => format!("{} {sign}{hours:02}{minutes:02}", local("%Y-%m-%d %H:%M:%S,5")),
            _ => format!("{}{sign}{hours:02}:{minutes:02}", local("%Y-%m-%dT%H:%M:%S.1234567890")),
        };
        prop_assert_eq!(Lastmod::parse(text.as_bytes(), None), Some(Lastmod::Instant(seconds)), "{}", text);
        let mut out = Vec::new();
        Lastmod::Instant(seconds).write(&mut out);
        prop_assert_eq!(String::from_utf8(out).unwrap(), utc(seconds).strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    }

    #[test]
    fn local_times_are_those_of_jiff(
        seconds in -5_000_000_000_i64..200_000_000_000,
        name in prop::sample::select(&["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"][..]),
    ) {
        let zone = TimeZone::get(name).unwrap();
        let local: DateTime = TimeZone::UTC.to_datetime(jiff::Timestamp::from_second(seconds).unwrap());
        let expected = zone.to_ambiguous_timestamp(local).compatible().unwrap().as_second();
        prop_assert_eq!(local_to_instant(seconds, &zone), Some(expected));
        prop_assert_eq!(Lastmod::parse(local.strftime("%Y-%m-%d %H:%M:%S").to_string().as_bytes(), Some(&zone)), Some(Lastmod::Instant(expected)));
    }

    #[test]
    fn no_text_panics(text in prop_oneof![prop::collection::vec(any::<u8>(), 0..40), "[0-9TZ:. +-]{0,30}".prop_map(String::into_bytes)]) {
        let mut out = Vec::new();
        if let Some(lastmod) = Lastmod::parse(&text, None) {
            lastmod.write(&mut out);
            let again = Lastmod::parse(&out, None);
            prop_assert_eq!(again, Some(lastmod));
        }
        if let Some(priority) = priority::from_text(&text) {
            prop_assert_eq!(priority::from_text(&priority), Some(priority));
        }
        if let Ok(text) = std::str::from_utf8(&text) && let Ok(template) = Template::parse(text) {
            let mut out = Vec::new();
            prop_assert!(template.write(|_| Some(b"x"), &mut out));
        }
    }

    #[test]
    fn priorities_agree_in_every_type(digits in 0..=100_000_i128) {
        // Rounds half up from the decimal form, by integers.
        let tenths = (digits + 5_000) / 10_000;
        let expected = format!("{}.{}", tenths / 10, tenths % 10);
        let text = format!("{}.{:05}", digits / 100_000, digits % 100_000);
        let form = |priority: Option<priority::Priority>| String::from_utf8(priority.unwrap().to_vec()).unwrap();
        prop_assert_eq!(form(priority::from_text(text.as_bytes())), expected.clone());
        prop_assert_eq!(form(priority::from_f64(text.parse().unwrap())), expected.clone());
        prop_assert_eq!(form(priority::from_f32(text.parse().unwrap())), expected.clone());
        prop_assert_eq!(form(priority::from_decimal(digits, 5)), expected);
    }

    #[test]
    fn template_values_decode_to_what_they_were(value in "[!-~ü中🛒][ -~ü中🛒]{0,30}[!-~ü中🛒]") {
        let template = Template::parse("/{a}").unwrap();
        let mut out = Vec::new();
        prop_assert!(template.write(|_| Some(value.as_bytes()), &mut out));
        let url = String::from_utf8(out).unwrap();
        prop_assert!(url[1..].bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~%".contains(&b)));
        let mut decoded = Vec::new();
        let mut bytes = url.bytes().skip(1);
        while let Some(byte) = bytes.next() {
            if byte == b'%' {
                let hex: String = [bytes.next().unwrap(), bytes.next().unwrap()].map(char::from).iter().collect();
                decoded.push(u8::from_str_radix(&hex, 16).unwrap());
            } else {
                decoded.push(byte);
            }
        }
        prop_assert_eq!(String::from_utf8(decoded).unwrap(), value);
    }
}
