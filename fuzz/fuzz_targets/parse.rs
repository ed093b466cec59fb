//! Any bytes: no panic, no endless loop, and the fast path agrees with the XML parser.
#![no_main]

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use urlset_core::inspect::check::entry::EntryChecks;
use urlset_core::inspect::document::entry::{Entry, Form, Visitor};
use urlset_core::inspect::document::inflate::from_memory;
use urlset_core::inspect::document::parse;
use urlset_core::inspect::finding::Log;
use urlset_core::inspect::rows::{Rows, schema};
use urlset_core::sitemap::hosts::AllowedHosts;

struct Seen<'a> {
    checks: EntryChecks<'a>,
    rows: Rows,
    locs: Vec<Vec<u8>>,
}

impl Visitor for Seen<'_> {
    fn checks(&self) -> bool {
        true
    }

    fn entry(&mut self, form: Form, entry: &Entry<'_>, log: &mut Log) -> ControlFlow<()> {
        self.checks.entry(form, entry, log);
        self.rows.push(entry);
        self.locs.push(entry.loc.to_vec());
        ControlFlow::Continue(())
    }
}

/// A finding: code, offset, line.
type Told = (&'static str, u64, u64);

fn run(data: &[u8], short_cut: bool) -> (Vec<Vec<u8>>, Vec<Told>) {
    let mut log = Log::new(1000);
    let own = Some("https://www.shop.example/maps/s.xml");
    let mut seen = Seen {
        checks: EntryChecks::new(own, 1_700_000_000_000_000, &AllowedHosts::Same, &[]),
        rows: Rows::new(schema(), "s".to_owned()),
        locs: Vec::new(),
    };
    let (summary, _) = parse(from_memory(data.to_vec()).0, &mut seen, &mut log, short_cut);
    seen.checks.finish(summary.form, summary.bytes, &mut log);
    let batch = seen.rows.finish().expect("a batch of the schema");
    assert_eq!(batch.num_rows(), seen.locs.len());
    let found = log.into_listed();
    (seen.locs, found.iter().map(|f| (f.code.name, f.at.offset, f.at.line)).collect())
}

/// The number of bytes before an error of damaged gzip data depends on the sizes of the reads: the
/// findings of one path are then the beginning of those of the other.
fn agree<T: PartialEq>(one: &[T], other: &[T], damaged: bool) -> bool {
    if damaged { one.starts_with(other) || other.starts_with(one) } else { one == other }
}

fuzz_target!(|data: &[u8]| {
    let [(locs, found), (other_locs, other_found)] = [true, false].map(|short| run(data, short));
    let of_xml = |found: &[Told]| -> Vec<Told> {
        found.iter().filter(|finding| !finding.0.starts_with("gzip.")).copied().collect()
    };
    let (xml, other_xml) = (of_xml(&found), of_xml(&other_found));
    let damaged = xml.len() < found.len();
    assert_eq!(damaged, other_xml.len() < other_found.len());
    assert!(agree(&locs, &other_locs, damaged), "{locs:?} {other_locs:?}");
    assert!(agree(&xml, &other_xml, damaged), "{xml:?} {other_xml:?}");
});
