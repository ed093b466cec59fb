//! The short cut against the XML parser, and damage of every kind.

use std::ops::ControlFlow;

use proptest::prelude::*;

use crate::inspect::check::entry::EntryChecks;
use crate::inspect::document::entry::{Entry, Form, Visitor};
use crate::inspect::document::inflate::{Bytes, from_memory};
use crate::inspect::document::parse;
use crate::inspect::finding::{Location, Log};
use crate::sitemap::hosts::AllowedHosts;

/// Loc; lastmod, changefreq, priority; the places of all four and of the entry; its parts;
/// whether it has a bare apostrophe, and padded values.
type Row = (Vec<u8>, [Option<Vec<u8>>; 3], [Location; 4], Location, Vec<SeenPart>, bool, u8);
type SeenPart = (String, Vec<u8>, Location);

/// Everything that a visitor can see.
#[derive(Default, Debug, PartialEq)]
struct Seen(Vec<Row>);

impl Visitor for Seen {
    fn checks(&self) -> bool {
        true
    }

    fn entry(&mut self, _: Form, entry: &Entry<'_>, _: &mut Log) -> ControlFlow<()> {
        let own = |text: Option<&[u8]>| text.map(<[u8]>::to_vec);
        let written = [entry.lastmod, entry.changefreq, entry.priority];
        // an element that is not there has no place
        let place = |n: usize| match n == 0 || written[n - 1].is_some() {
            true => entry.location(n),
            false => Location::default(),
        };
        self.0.push((
            entry.loc.to_vec(),
            written.map(own),
            std::array::from_fn(place),
            entry.at,
            entry
                .parts
                .iter()
                .map(|part| (format!("{:?}", part.field), entry.text(part).to_vec(), part.at))
                .collect(),
            entry.bare_apostrophe,
            entry.padded,
        ));
        ControlFlow::Continue(())
    }
}

type Found = Vec<(&'static str, Location, String)>;

fn seen(bytes: Bytes, short_cut: bool) -> (Seen, Found, u64, u64) {
    let (mut seen, mut log) = (Seen::default(), Log::new(1000));
    let (summary, _) = parse(bytes, &mut seen, &mut log, short_cut);
    let listed = log.into_listed();
    let found = listed.into_iter().map(|f| (f.code.name, f.at, f.message)).collect();
    (seen, found, summary.entries, summary.bytes)
}

/// In small pieces, so that entries lie across the boundary of a window.
struct SmallReads(Vec<u8>, usize, usize);

impl std::io::Read for SmallReads {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let end = self.0.len().min(self.1 + self.2.min(out.len()));
        let piece = &self.0[self.1..end];
        out[..piece.len()].copy_from_slice(piece);
        self.1 = end;
        Ok(piece.len())
    }
}

/// Pieces of sitemaps, right and wrong.
fn piece() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "<url>",
        "</url>",
        "<loc>",
        "</loc>",
        "<lastmod>",
        "</lastmod>",
        "<changefreq>",
        "</changefreq>",
        "<priority>",
        "</priority>",
        "<url",
        ">",
        "<",
        "&",
        "&amp;",
        "&apos;",
        "&#65;",
        "&copy;",
        "'",
        "\n",
        " ",
        "\r\n",
        "]]>",
        "<!-- c -->",
        "<![CDATA[x]]>",
        "<loc/>",
        "<url/>",
        "ü",
        "\u{fffe}",
        "\u{1}",
        "<image:image>",
        "</image:image>",
        "<xhtml:link rel='alternate' hreflang='de' href='https://a.example/'/>",
        "2026-01-01",
        "0.5",
        "daily",
        "</urlset>",
        "<urlset>",
        "<?pi x?>",
        "<!DOCTYPE a>",
        "https://a.example/",
    ])
    .prop_map(str::to_owned);
    let extended = ("[a-z&;'<>\" ]{0,4}", prop::collection::vec(0..6usize, 0..5), "[ \n]{0,2}").prop_map(|(text, parts, gap)| {
        let all = [
            format!("<image:image>{gap}<image:loc>https://a.example/{text}</image:loc>{gap}</image:image>"),
            format!("<xhtml:link rel=\"alternate\" hreflang=\"de\" href=\"https://a.example/{text}\"{gap}/>"),
            "<xhtml:link rel=\"alternate\" hreflang=\"en-UK\" href=\"https://a.example/\"/>".to_owned(),
            format!("<image:image><image:loc>{text}</image:loc><image:title>t</image:title></image:image>"),
            "<image:image><image:loc>https://b.example/x</image:loc></image:image>".to_owned(),
            "<xhtml:link rel=\"alternate\" hreflang=\"x-default\" href=\"https://c.example\"/>".to_owned(),
        ];
        let parts: Vec<_> = parts.into_iter().map(|n| all[n].as_str()).collect();
        format!("{gap}<url><loc>https://a.example/</loc>{gap}{}{gap}</url>", parts.join(&gap))
    });
    let whole = ("[a-z&;'<> ]{0,6}", any::<[bool; 3]>(), "[ \n]{0,2}").prop_map(|(text, [a, b, c], gap)| {
        let lastmod = if a { "<lastmod>2026-02-03</lastmod>" } else { "" };
        let changefreq = if b { "<changefreq>daily</changefreq>" } else { "" };
        let priority = if c { "<priority>0.5</priority>" } else { "" };
        format!("{gap}<url>{gap}<loc>https://a.example/{text}</loc>{gap}{lastmod}{gap}{changefreq}{priority}{gap}</url>")
    });
    prop_oneof![2 => fixed, 3 => whole, 3 => extended]
}

fn document() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..24).prop_map(|pieces| {
        format!(
            "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
             xmlns:image=\"http://www.google.com/schemas/sitemap-image/1.1\" \
             xmlns:xhtml=\"http://www.w3.org/1999/xhtml\">{}</urlset>",
            pieces.concat()
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_fast_path_agrees_with_the_parser(text in document(), step in 1usize..400) {
        let slow = seen(Bytes::Whole(text.clone().into_bytes()), false);
        let fast = seen(Bytes::Whole(text.clone().into_bytes()), true);
        prop_assert_eq!(&slow, &fast);
        let drip = SmallReads(text.into_bytes(), 0, step);
        prop_assert_eq!(&seen(Bytes::Stream(Box::new(drip)), true), &slow);
    }

    #[test]
    fn random_bytes_do_not_break_it(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        seen(from_memory(bytes.clone()).0, true);
        let mut zipped = vec![0x1f, 0x8b, 8, 0];
        zipped.extend(bytes);
        seen(from_memory(zipped).0, true);
    }
}

const SMALL: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
    <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
    xmlns:i=\"http://www.google.com/schemas/sitemap-image/1.1\">\n\
    <url><loc>https://a.example/</loc><lastmod>2026-01-01</lastmod></url>\n\
    <url><loc>https://a.example/ü&amp;</loc><i:image><i:loc>https://a.example/i</i:loc></i:image></url>\n\
    </urlset>";

#[test]
fn cut_at_every_byte_it_is_an_error() {
    for end in 0..SMALL.len() {
        let (_, found, ..) = seen(Bytes::Whole(SMALL.as_bytes()[..end].to_vec()), true);
        assert!(!found.is_empty(), "cut at {end}");
    }
    assert_eq!(seen(Bytes::Whole(SMALL.into()), true).1, []);
}

#[test]
fn gzip_cut_at_every_byte_is_an_error() {
    let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
    let mut zipped = vec![0; compressor.gzip_compress_bound(SMALL.len())];
    let size = compressor.gzip_compress(SMALL.as_bytes(), &mut zipped).unwrap();
    zipped.truncate(size);
    for end in 2..size {
        let (_, found, ..) = seen(from_memory(zipped[..end].to_vec()).0, true);
        assert!(found.iter().any(|f| f.0 == "gzip.truncated"), "cut at {end}: {found:?}");
    }
    for at in 0..size * 8 {
        let mut flipped = zipped.clone();
        flipped[at / 8] ^= 1 << (at % 8);
        seen(from_memory(flipped).0, true);
    }
}

#[test]
fn entries_across_the_boundary_of_a_window() {
    let head = SMALL.split("<url>").next().unwrap();
    let row = "<url><loc>https://a.example/some/longer/path</loc></url>\n";
    let text = format!("{head}{}</urlset>", row.repeat(30_000));
    let (all, found, entries, bytes) =
        seen(Bytes::Stream(Box::new(SmallReads(text.clone().into(), 0, 70_001))), true);
    assert_eq!((all.0.len(), entries, bytes), (30_000, 30_000, text.len() as u64));
    assert_eq!(found, []);
    let last = &all.0[29_999].2[0];
    assert_eq!(last.line, text.matches('\n').count() as u64);
    assert!(text[last.offset as usize..].starts_with("<loc>"));
}

/// The checks of `verify`.
struct Checked<'a>(EntryChecks<'a>);

impl Visitor for Checked<'_> {
    fn checks(&self) -> bool {
        true
    }

    fn entry(&mut self, form: Form, entry: &Entry<'_>, log: &mut Log) -> ControlFlow<()> {
        self.0.entry(form, entry, log);
        ControlFlow::Continue(())
    }
}

/// The steps of a document whose root has the attributes `root`.
fn steps(root: &str, content: &str) -> u64 {
    let mut log = Log::new(0);
    let hosts = AllowedHosts::Same;
    let mut visitor = Checked(EntryChecks::new(None, 0, &hosts, &[]));
    let namespace = crate::sitemap::namespaces::SITEMAP;
    let all = format!("<urlset xmlns=\"{namespace}\" {root}>{content}</urlset>");
    parse(Bytes::Whole(all.into_bytes()), &mut visitor, &mut log, true);
    log.spent()
}

#[test]
fn the_comparison_of_prefixes_costs_steps() {
    let declare = |prefix: &str, count: usize| {
        (0..count).map(|n| format!("xmlns:{prefix}{n:02}=\"u\" ")).collect::<String>()
    };
    let long = "a".repeat(15_000);
    for count in [100, 200] {
        let content = |prefix: &str| format!("<{prefix}00:b/>").repeat(count as usize);
        let few = steps(&declare("a", 5), &content("a"));
        let many = steps(&declare("a", 60), &content("a"));
        let same = steps(&declare(&long, 60), &content(&long));
        let other = steps(&declare(&format!("{long}b"), 60), &content(&long));
        assert!(few - steps("xmlns:a00=\"u\"", &content("a")) < 4, "{few}"); // of the root
        assert!(few < 10 * count, "{few}");
        // the root is looked up twice, and its attributes are compared: 60 and 5, with xmlns
        let bytes = |count: usize| (declare("a", count).len() + 40) as u64;
        let root = 6 + 61 * 61 / 32 - 6 * 6 / 32 + (61 * bytes(60) - 6 * bytes(5)) / 2048;
        let more = many - few - count * 3;
        assert!(more.abs_diff(root) < 4, "{more} {root}");
        // a prefix of another length is not compared; it is not declared, which is a finding
        let compared = same + 6 * count - other;
        assert!(compared.abs_diff(count * (60 * 15_002 / 1024)) < 100, "{same} {other}");
    }
}

#[test]
fn the_comparison_of_attributes_costs_steps() {
    let tag = |name: &str, count: usize| {
        let each = (0..count).map(|n| format!(" {name}{n:02}=\"\""));
        format!("<a{}/>", each.collect::<String>()).repeat(100)
    };
    let none = steps("", &tag("a", 0));
    assert_eq!(none, steps("", &tag("a", 3)));
    assert!(steps("", &tag("a", 60)) - none >= 100 * (60 * 60 / 32));
    assert!(steps("", &tag(&"a".repeat(10_000), 60)) - none > 100 * (60 * 60 * 10_000 / 2048));
}

#[test]
fn each_change_of_the_host_costs_steps() {
    let entries = |hosts: &[&str]| {
        let each = hosts.iter().map(|host| format!("<url><loc>https://{host}/a</loc></url>"));
        each.collect::<String>().repeat(1_000)
    };
    let one = steps("", &entries(&["a.example"; 6]));
    let two = steps("", &entries(&["a.example", "b.example"].repeat(3)));
    let three = steps("", &entries(&["a.example", "b.example", "c.example"].repeat(2)));
    assert!(two - one < 100, "{two} {one}"); // the hosts of the last two entries are known
    assert_eq!(three - one, 4_000 * 8); // b and c, in turn
}
