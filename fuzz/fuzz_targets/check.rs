//! The fast paths of the renderer's checks agree with the complete rules.
#![no_main]

use libfuzzer_sys::fuzz_target;
use urlset_core::build::render::loc::{Folder, Hosts, LocRules, Site};
use urlset_core::sitemap::characters;
use urlset_core::sitemap::date::{Lastmod, canonical};
use urlset_core::sitemap::escape::escape_into;

/// Compares with a loop over bytes, at any alignment of the slice.
fn sets(text: &[u8]) {
    for set in [characters::CLEAN, characters::CONTROL] {
        assert_eq!(set.first_in(text), text.iter().position(|&byte| set.contains(byte)));
        assert_eq!(set.first_not_in(text), text.iter().position(|&byte| !set.contains(byte)));
    }
}

fn loc(choice: u8, raw: &[u8]) {
    let site = ["https://shop.example", "https://shop.example/a/b", "http://shop.example:8080/c/"];
    let site = Site::parse(site[usize::from(choice) % 3]).expect("a site");
    let hosts = match choice >> 2 & 3 {
        0 => Hosts::Same,
        1 => Hosts::List(vec!["m.example".into(), "a:8080".into()]),
        _ => Hosts::Any,
    };
    let folder =
        (choice & 0x10 != 0).then(|| Folder::parse("https://shop.example/a").expect("one"));
    let most = if choice & 0x20 == 0 { 2_047 } else { 30 };
    let rules = LocRules::new(site, hosts, choice & 0x40 != 0, most, folder).expect("rules");
    let (mut scratch, mut encoded, mut out) = (Vec::new(), Vec::new(), b">".to_vec());
    let exact = rules.encode(raw, &mut encoded);
    assert_eq!(rules.write(raw, &mut scratch, &mut out), exact);
    let mut wanted = b">".to_vec();
    if exact.is_ok() {
        escape_into(&encoded, &mut wanted);
    }
    assert_eq!(out, wanted);
}

fn lastmod(text: &[u8]) {
    let (mut short, mut whole) = ([0; 20], [0; 20]);
    if let Some((length, order)) = canonical(text, true, &mut short) {
        let parsed = Lastmod::parse(text, None).expect("the fast path accepts only valid dates");
        assert_eq!((length, order), parsed.text(&mut whole));
        assert_eq!(short[..length], whole[..length]);
    }
}

fuzz_target!(|data: &[u8]| {
    let [choice, text @ ..] = data else { return };
    sets(text);
    loc(*choice, text);
    lastmod(text);
});
