//! Any bytes: no panic, no endless loop, and the short cut gives what the XML parser gives.
#![no_main]

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use urlset_core::parse::check::entry::EntryChecks;
use urlset_core::parse::entry::{Entry, Form, Visitor};
use urlset_core::parse::finding::{Finding, Log};
use urlset_core::parse::inflate::from_memory;
use urlset_core::parse::parse;
use urlset_core::parse::rows::{Rows, schema};

struct Seen {
    checks: EntryChecks,
    rows: Rows,
    locs: Vec<Vec<u8>>,
}

impl Visitor for Seen {
    const CHECKS: bool = true;

    fn entry(&mut self, form: Form, entry: &Entry<'_>, log: &mut Log) -> ControlFlow<()> {
        self.checks.entry(form, entry, log);
        self.rows.push(entry);
        self.locs.push(entry.loc.to_vec());
        ControlFlow::Continue(())
    }
}

fn run(data: &[u8], short_cut: bool) -> (Vec<Vec<u8>>, Vec<(&'static str, u64, u64)>) {
    let mut log = Log::new(1000);
    let own = Some("https://www.shop.example/maps/s.xml");
    let mut seen = Seen {
        checks: EntryChecks::new(own, 1_700_000_000_000_000),
        rows: Rows::new(schema(), "s".to_owned()),
        locs: Vec::new(),
    };
    let (summary, _) = parse(from_memory(data.to_vec()).0, &mut seen, &mut log, short_cut);
    seen.checks.finish(summary.form, summary.bytes, &mut log);
    let batch = seen.rows.finish().expect("a batch of the schema");
    assert_eq!(batch.num_rows(), seen.locs.len());
    let found = log.into_listed();
    // how many bytes come out before damaged gzip data fails depends on the sizes of the reads
    let place = |f: &Finding| match f.code.name.starts_with("gzip.") {
        true => (f.code.name, 0, 0),
        false => (f.code.name, f.at.offset, f.at.line),
    };
    (seen.locs, found.iter().map(place).collect())
}

fuzz_target!(|data: &[u8]| {
    assert_eq!(run(data, true), run(data, false));
});
