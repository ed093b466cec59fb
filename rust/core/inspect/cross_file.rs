//! Findings that need all files: duplicates, and alternates that do not link back.
//!
//! Each URL and each link is a record of its hash and its place. Records with equal hashes are grouped.
//! Files with findings are read again for the URLs and the lines.

use std::cell::RefCell;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::ControlFlow;

use crate::error::Result;
use crate::flow::hash::HashKey;
use crate::inspect::codes::Code;
use crate::inspect::document::entry::{Entry, Form, Visitor};
use crate::inspect::document::inflate::Inflater;
use crate::inspect::document::parse;
use crate::inspect::finding::{Finding, Location, Log, MAX_URL_SHOWN, text};
use crate::inspect::partition::{HashRecord, Partitioned};
use crate::inspect::target::{FileReport, Target};
use crate::inspect::workers::Workers;
use crate::sitemap::extension::alternate;

/// The place of an entry. Sorts in the order of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The number of the file: fewer than 2³¹.
    pub file: u32,
    /// The byte offset in it; files are read up to 1 GiB.
    pub offset: u32,
}

impl Place {
    fn to_word(self) -> u64 {
        u64::from(self.file) << 32 | u64::from(self.offset)
    }

    fn from_word(word: u64) -> Place {
        Place { file: (word >> 32) as u32, offset: word as u32 }
    }
}

/// The bit of a record of a link that has its direction.
const DIRECTION: u64 = 1 << 63;

/// The record of a page.
pub fn page(key: HashKey, loc: &[u8], place: Place) -> HashRecord {
    HashRecord::new(key.hash128(loc), place.to_word())
}

/// The record of a link. Both directions have the same hash and differ in [`DIRECTION`].
pub fn link(key: HashKey, from: &[u8], to: &[u8], place: Place) -> HashRecord {
    let (from, to) = (key.hash128(from), key.hash128(to));
    let mut both = [0; 32];
    both[..16].copy_from_slice(&from.min(to).to_le_bytes());
    both[16..].copy_from_slice(&from.max(to).to_le_bytes());
    let direction = if from < to { DIRECTION } else { 0 };
    HashRecord::new(key.hash128(&both), place.to_word() | direction)
}

/// A place with a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    place: Place,
    /// The place of the other entry that it is about.
    other: Place,
}

/// The first places with a finding, and the number of findings by file.
pub struct FirstFound {
    /// The last one on top.
    first: BinaryHeap<Found>,
    limit: usize,
    by_file: BTreeMap<u32, u64>,
}

impl FirstFound {
    fn new(limit: usize) -> FirstFound {
        FirstFound { first: BinaryHeap::new(), limit, by_file: BTreeMap::new() }
    }

    fn add(&mut self, place: Place, other: Place) {
        *self.by_file.entry(place.file).or_default() += 1;
        let found = Found { place, other };
        if self.first.len() < self.limit {
            self.first.push(found);
        } else if let Some(mut last) = self.first.peek_mut()
            && found < *last
        {
            *last = found;
        }
    }

    /// All places of a URL but the first.
    fn repeated(&mut self, same: &[HashRecord]) {
        for again in &same[1..] {
            self.add(Place::from_word(again.value), Place::from_word(same[0].value));
        }
    }
}

/// The URLs that are listed more than once; the first `limit` with their places.
pub fn duplicates(
    pages: &Partitioned,
    workers: &mut Workers<'_>,
    limit: usize,
) -> Result<Vec<FirstFound>> {
    pages.groups(
        workers,
        || FirstFound::new(limit),
        |found, same, kept| {
            found.repeated(same);
            kept.extend(same.first());
        },
        FirstFound::repeated,
    )
}

/// The links without a link in the other direction; the first `limit` with their places.
pub fn one_way(
    links: &Partitioned,
    workers: &mut Workers<'_>,
    limit: usize,
) -> Result<Vec<FirstFound>> {
    let direction = |record: &HashRecord| record.value & DIRECTION;
    links.groups(
        workers,
        || FirstFound::new(limit),
        |_, same, kept| {
            let runs = same.chunk_by(|a, b| direction(a) == direction(b));
            kept.extend(runs.filter_map(|run| run.first()));
        },
        |found, same| {
            if same.iter().all(|record| direction(record) == direction(&same[0])) {
                let place = Place::from_word(same[0].value & !DIRECTION);
                found.add(place, place);
            }
        },
    )
}

/// A kind of finding: the code for a file, and the message for the name of the other file.
pub struct FindingKind<'a> {
    code: &'a dyn Fn(&Target) -> &'static Code,
    message: fn(&str) -> String,
}

/// A URL that is listed more than once.
pub fn duplicate<'a>(code: &'a dyn Fn(&Target) -> &'static Code) -> FindingKind<'a> {
    FindingKind { code, message: |other| format!("listed already in {other}") }
}

/// An alternate that does not link back.
pub const ONE_WAY: FindingKind<'static> = FindingKind {
    code: &|_| &alternate::ONE_WAY,
    message: |_| "an alternate of it does not link back, or is not in these sitemaps".to_owned(),
};

/// Adds findings to the reports. Reads the files again for URLs and lines; if a file can no longer be
/// read, its findings are counted and not listed.
pub fn report(
    targets: &[Target],
    reports: &mut [FileReport],
    found: Vec<FirstFound>,
    kind: &FindingKind<'_>,
    workers: &mut Workers<'_>,
) -> Result<()> {
    let limit = found.first().map_or(0, |found| found.limit);
    let mut all = Vec::new();
    for FirstFound { first, by_file, .. } in found {
        for (file, count) in by_file {
            let file = file as usize;
            if let (Some(target), Some(report)) = (targets.get(file), reports.get_mut(file)) {
                *report.counts.entry((kind.code)(target).name).or_default() += count;
            }
        }
        all.extend(first);
    }
    all.sort_unstable();
    all.truncate(limit);
    for found in all.chunk_by(|a, b| a.place.file == b.place.file) {
        let file = found[0].place.file as usize;
        let (Some(target), Some(report)) = (targets.get(file), reports.get_mut(file)) else {
            continue;
        };
        let mut locator =
            Locator { found, located: Vec::new(), entries: 0, workers: RefCell::new(workers) };
        if let Ok(opened) = Inflater::default().open(&target.path) {
            parse(opened.bytes, &mut locator, &mut Log::of_file(0, opened.size), true);
        }
        let located = locator.located;
        workers.check()?;
        for Located { at, url, other } in located {
            let other = targets.get(other.file as usize).map_or("?", |other| other.name.as_str());
            report.findings.push(Finding {
                code: (kind.code)(target),
                at,
                url: Some(url),
                message: (kind.message)(other),
            });
        }
    }
    Ok(())
}

/// The URL and line of a place.
struct Located {
    at: Location,
    /// As shown: a URL may have 1 MiB.
    url: String,
    other: Place,
}

/// Finds the entries at known offsets.
struct Locator<'a, 'w, 'p> {
    found: &'a [Found],
    located: Vec<Located>,
    entries: u64,
    workers: RefCell<&'w mut Workers<'p>>,
}

/// Entries between two polls.
const POLL_ENTRIES: u64 = 1 << 14;

impl Visitor for Locator<'_, '_, '_> {
    fn stopped(&self) -> bool {
        self.workers.borrow_mut().check().is_err()
    }

    fn entry(&mut self, _: Form, entry: &Entry<'_>, _: &mut Log) -> ControlFlow<()> {
        let offset = entry.at.offset as u32;
        while let Some((first, rest)) = self.found.split_first()
            && first.place.offset <= offset
        {
            if first.place.offset == offset {
                let (at, url) = (entry.location(0), text(entry.loc, MAX_URL_SHOWN));
                self.located.push(Located { at, url, other: first.other });
            }
            self.found = rest;
        }
        self.entries += 1;
        let poll = self.entries.is_multiple_of(POLL_ENTRIES);
        match self.found.is_empty() || (poll && self.stopped()) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
