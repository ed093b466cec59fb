//! Verifies a list of files in parallel: each for itself, then what needs all of them
//! (duplicates, reciprocity of alternates). Which files belong together is the caller's to find.

use std::cell::RefCell;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::error::{Error, Result};
use crate::inspect::check::entry::EntryChecks;
use crate::inspect::codes;
use crate::inspect::codes::Code;
use crate::inspect::document::entry::{Entry, Field, Form, Visitor};
use crate::inspect::document::inflate::Inflater;
use crate::inspect::document::{Summary, parse};
use crate::inspect::finding::{At, Finding, Log};
use crate::inspect::index::Child;
use crate::inspect::spill::{Hasher, Parts, Record, Spill, Writer, groups};
use crate::inspect::workers::Workers;
use crate::sitemap::extension::alternate;
use crate::sitemap::hosts::AllowedHosts;
use crate::sitemap::limits::MAX_ENTRIES;

/// A file to verify.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where it lies.
    pub path: PathBuf,
    /// What to call it in findings; its suffix is checked.
    pub name: String,
    /// Where it is served, if that is known: for the checks of host and directory.
    pub url: Option<String>,
    /// Whether an index lists it: an index may not.
    pub listed: bool,
    /// Which of [`Options::rules`] are those of its set; where there are none such, nothing unusual
    /// is allowed.
    pub rules: usize,
}

/// What is allowed in the files of a set though it is unusual.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Hosts that URLs may have beside that of their file.
    pub hosts: AllowedHosts,
    /// Addresses that an index may list, whatever their host.
    pub added: Vec<String>,
    /// Duplicates were kept on purpose: they are worth a note only.
    pub kept_duplicates: bool,
}

/// How to verify.
#[derive(Debug, Clone)]
pub struct Options {
    /// Threads that read files.
    pub threads: usize,
    /// Bytes for the hashes of all URLs; above, they go to disk.
    pub memory: usize,
    /// Folder for that, the system's temporary one if `None`.
    pub spill: Option<PathBuf>,
    /// Look for duplicates within and across files.
    pub duplicates: bool,
    /// Look for alternates that are not linked back.
    pub reciprocity: bool,
    /// List so many findings of each code and file; all are counted.
    pub most: u64,
    /// Microseconds since 1970.
    pub now: i64,
    /// Of each set of files.
    pub rules: Vec<Rules>,
    /// Take the short cut for the common shape (false: to compare).
    pub short_cut: bool,
}

impl Default for Options {
    fn default() -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Options {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            memory: 256 << 20,
            spill: None,
            duplicates: true,
            reciprocity: false,
            most: 100,
            now: now.map_or(0, |now| now.as_micros() as i64),
            rules: Vec::new(),
            short_cut: true,
        }
    }
}

/// What was found in one file.
#[derive(Debug)]
pub struct FileReport {
    /// What it is and how large.
    pub summary: Summary,
    /// Whether it is compressed.
    pub gzip: bool,
    /// Bytes on disk.
    pub size: u64,
    /// The newest lastmod, in microseconds since 1970.
    pub newest: Option<i64>,
    /// Of an index: what it lists, up to the limit of 50,000.
    pub children: Vec<Child>,
    /// The listed findings.
    pub findings: Vec<Finding>,
    /// All of them, by code.
    pub counts: BTreeMap<&'static str, u64>,
}

/// Verifies `targets`; the reports stand in their order. `poll` is asked ten times a second
/// whether to stop.
pub fn verify(
    targets: &[Target],
    options: &Options,
    poll: &mut dyn FnMut() -> bool,
) -> Result<Vec<FileReport>> {
    let threads = options.threads.clamp(1, targets.len().max(1));
    let hasher = Hasher::new();
    let pages = Spill::new(options.memory, threads, options.spill.clone());
    let links = Spill::new(options.memory / 2, threads, options.spill.clone());
    let next = AtomicUsize::new(0);
    let strict = Rules::default();
    let rules_of = |target: &Target| options.rules.get(target.rules).unwrap_or(&strict);
    let mut workers = Workers::new(threads, poll);
    let results = workers.run(|stop| {
        let mut inflater = Inflater::default();
        let mut pages = options.duplicates.then(|| pages.writer());
        let mut links = options.reciprocity.then(|| links.writer());
        let mut done = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(target) = targets.get(number) else { break };
            let rules = rules_of(target);
            let mut visitor = FileVisitor {
                checks: EntryChecks::new(
                    target.url.as_deref(),
                    options.now,
                    &rules.hosts,
                    &rules.added,
                ),
                hasher: &hasher,
                pages: pages.as_mut(),
                links: links.as_mut(),
                file: (number as u64) << 32,
                children: Vec::new(),
                failed: None,
                stop,
            };
            done.push((number, one(target, options, &mut inflater, &mut visitor)?));
        }
        Ok((done, pages.map(Writer::into_parts), links.map(Writer::into_parts)))
    })?;
    let mut reports = Vec::new();
    let (mut page_parts, mut link_parts): (Vec<Parts>, Vec<Parts>) = Default::default();
    for (done, pages, links) in results {
        reports.extend(done);
        page_parts.extend(pages);
        link_parts.extend(links);
    }
    reports.sort_by_key(|(number, _)| *number);
    let mut reports: Vec<FileReport> = reports.into_iter().map(|(_, report)| report).collect();
    let most = usize::try_from(options.most).unwrap_or(usize::MAX).saturating_mul(10);
    if options.duplicates {
        let found = groups(
            &pages,
            &page_parts,
            &mut workers,
            || Kept::new(most),
            |kept, same: &[Record<3>], rest| {
                repeated(kept, same);
                rest.extend(same.first());
            },
            repeated,
        )?;
        let code = |target: &Target| match rules_of(target).kept_duplicates {
            true => &codes::LOC_KEPT_DUPLICATE,
            false => &codes::LOC_DUPLICATE,
        };
        tell(targets, &mut reports, found, code, most, &mut workers, |other| {
            format!("listed already in {other}")
        })?;
    }
    if options.reciprocity {
        let found = groups(
            &links,
            &link_parts,
            &mut workers,
            || Kept::new(most),
            |_, same: &[Record<3>], rest| {
                // the first of each direction
                let first = same.chunk_by(|a, b| (a[2] ^ b[2]) >> 63 == 0);
                rest.extend(first.filter_map(|run| run.first()));
            },
            |kept, same| {
                let ways = same.iter().fold(0, |ways, record| ways | (1 << (record[2] >> 63)));
                if ways != 3 {
                    kept.add(same[0][2] & !(1 << 63), same[0][2] & !(1 << 63));
                }
            },
        )?;
        let code = |_: &Target| &alternate::ONE_WAY;
        tell(targets, &mut reports, found, code, most, &mut workers, |_| {
            "an alternate of it does not link back, or is not in these sitemaps".to_owned()
        })?;
    }
    Ok(reports)
}

fn one(
    target: &Target,
    options: &Options,
    inflater: &mut Inflater,
    visitor: &mut FileVisitor<'_, '_>,
) -> Result<FileReport> {
    let mut log = Log::new(options.most);
    let nothing = Summary { form: Form::Unknown, entries: 0, news: 0, bytes: 0 };
    let (mut gzip, mut size, mut summary) = (false, 0, nothing);
    match inflater.open(&target.path) {
        Err(error) => {
            log.add(&codes::FILE_UNREADABLE, At::default(), None, || crate::error::plain(&error));
        }
        Ok(opened) => {
            (gzip, size) = (opened.gzip, opened.size);
            log = Log::of_file(options.most, size);
            let named_gz = target.name.to_ascii_lowercase().ends_with(".gz");
            if named_gz != gzip && size > 0 {
                log.add(&codes::FILE_NAME, At::default(), None, || {
                    let what = if gzip { "gzip bytes without" } else { "no gzip bytes, but" };
                    format!("{what} the suffix .gz")
                });
            }
            let (read, buffer) = parse(opened.bytes, visitor, &mut log, options.short_cut);
            inflater.recycle(buffer);
            opened.stamp.check(&target.path, &mut log);
            summary = read;
            if summary.form == Form::Text && !is_named_text(&target.name) {
                log.add(&codes::FILE_TEXT_NAME, At::default(), None, || {
                    "a list of URLs without the suffix .txt".to_owned()
                });
            }
        }
    }
    if let Some(error) = visitor.failed.take() {
        return Err(error);
    }
    visitor.checks.finish(summary.form, summary.bytes, &mut log);
    if target.listed && summary.form == Form::Index {
        log.add(
            &codes::INDEX_NESTED,
            At::default(),
            target.url.as_deref().map(str::as_bytes),
            || "an index that an index lists".to_owned(),
        );
    }
    let counts = log.counts().collect();
    let findings = log.into_listed();
    let children = std::mem::take(&mut visitor.children);
    Ok(FileReport {
        summary,
        gzip,
        size,
        newest: visitor.checks.newest,
        children,
        findings,
        counts,
    })
}

/// Google: a text sitemap must end in `.txt`; compressed, `.gz` comes on top.
fn is_named_text(name: &str) -> bool {
    let path = name.split(['?', '#']).next().unwrap_or(name).to_ascii_lowercase();
    path.strip_suffix(".gz").unwrap_or(&path).ends_with(".txt")
}

struct FileVisitor<'a, 's> {
    checks: EntryChecks<'a>,
    hasher: &'a Hasher,
    pages: Option<&'a mut Writer<'s>>,
    links: Option<&'a mut Writer<'s>>,
    /// number of the file, in the upper half
    file: u64,
    children: Vec<Child>,
    failed: Option<Error>,
    stop: &'a AtomicBool,
}

impl FileVisitor<'_, '_> {
    fn remember(&mut self, form: Form, entry: &Entry<'_>) -> Result<()> {
        if form == Form::Index || entry.loc.is_empty() {
            return Ok(());
        }
        let place = self.file | (entry.at.offset & 0xffff_ffff);
        if let Some(pages) = &mut self.pages {
            let (a, b) = self.hasher.hash(entry.loc);
            pages.push_record([a, b, place])?;
        }
        if let Some(links) = &mut self.links {
            for part in entry.parts.iter().filter(|part| part.field == Field::AlternateHref) {
                let href = entry.text(part);
                if href != entry.loc {
                    links.push_record(self.hasher.pair(entry.loc, href, place))?;
                }
            }
        }
        Ok(())
    }
}

impl Hasher {
    /// One key for both directions of a link, the direction in the top bit of the place.
    fn pair(&self, from: &[u8], to: &[u8], place: u64) -> Record<3> {
        let (from, to) = (self.hash(from), self.hash(to));
        let (low, high) = if from < to { (from, to) } else { (to, from) };
        let mut both = [0u8; 32];
        for (word, bytes) in
            [low.0, low.1, high.0, high.1].into_iter().zip(both.chunks_exact_mut(8))
        {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        let (a, b) = self.hash(&both);
        [a, b, place | (u64::from(from < to) << 63)]
    }
}

impl Visitor for FileVisitor<'_, '_> {
    const CHECKS: bool = true;

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn entry(&mut self, form: Form, entry: &Entry<'_>, log: &mut Log) -> ControlFlow<()> {
        self.checks.entry(form, entry, log);
        if form == Form::Index && self.children.len() < MAX_ENTRIES as usize {
            self.children.extend(Child::of(entry));
        }
        if let Err(error) = self.remember(form, entry) {
            self.failed = Some(error);
            return ControlFlow::Break(());
        }
        if self.stop.load(Ordering::Relaxed) {
            return ControlFlow::Break(()); // nobody wants the report
        }
        ControlFlow::Continue(())
    }
}

/// All places of a URL but the first repeat it.
fn repeated(kept: &mut Kept, same: &[Record<3>]) {
    for again in &same[1..] {
        kept.add(again[2], same[0][2]);
    }
}

/// The first places of a kind of finding, and how many there are by file.
struct Kept {
    /// (place, place of the other one), the greatest on top
    first: BinaryHeap<(u64, u64)>,
    most: usize,
    by_file: BTreeMap<u64, u64>,
}

impl Kept {
    fn new(most: usize) -> Kept {
        Kept { first: BinaryHeap::new(), most, by_file: BTreeMap::new() }
    }

    fn add(&mut self, place: u64, other: u64) {
        *self.by_file.entry(place >> 32).or_default() += 1;
        self.first.push((place, other));
        if self.first.len() > self.most {
            self.first.pop();
        }
    }
}

/// Turns places into findings: the files are read once more for line and URL.
fn tell(
    targets: &[Target],
    reports: &mut [FileReport],
    found: Vec<Kept>,
    code: impl Fn(&Target) -> &'static Code,
    most: usize,
    workers: &mut Workers<'_>,
    message: impl Fn(&str) -> String,
) -> Result<()> {
    let mut all = Vec::new();
    for kept in found {
        for (file, count) in kept.by_file {
            let file = file as usize;
            if let (Some(target), Some(report)) = (targets.get(file), reports.get_mut(file)) {
                *report.counts.entry(code(target).name).or_default() += count;
            }
        }
        all.extend(kept.first);
    }
    all.sort_unstable();
    all.truncate(most);
    for places in all.chunk_by(|a, b| a.0 >> 32 == b.0 >> 32) {
        let file = (places[0].0 >> 32) as usize;
        let (Some(target), Some(report)) = (targets.get(file), reports.get_mut(file)) else {
            continue;
        };
        let mut locate =
            Locate { places, found: Vec::new(), entries: 0, workers: RefCell::new(workers) };
        // where it cannot be read any more, the findings are counted and not listed
        if let Ok(opened) = Inflater::default().open(&target.path) {
            parse(opened.bytes, &mut locate, &mut Log::of_file(0, opened.size), true);
        }
        let found = locate.found;
        let code = code(target);
        workers.check()?;
        for (at, url, other) in found {
            let other =
                targets.get((other >> 32) as usize).map_or("?", |other| other.name.as_str());
            let url = super::finding::text(&url, 2048);
            report.findings.push(Finding { code, at, url: Some(url), message: message(other) });
        }
    }
    Ok(())
}

/// Finds the entries at known offsets again.
struct Locate<'a, 'c, 'p> {
    places: &'a [(u64, u64)],
    found: Vec<(At, Vec<u8>, u64)>,
    entries: u64,
    workers: RefCell<&'c mut Workers<'p>>,
}

impl Visitor for Locate<'_, '_, '_> {
    const CHECKS: bool = false;

    fn stopped(&self) -> bool {
        self.workers.borrow_mut().check().is_err()
    }

    fn entry(&mut self, _: Form, entry: &Entry<'_>, _: &mut Log) -> ControlFlow<()> {
        while let Some(((place, other), rest)) = self.places.split_first() {
            let offset = place & 0xffff_ffff;
            if offset > entry.at.offset {
                break;
            }
            if offset == entry.at.offset {
                self.found.push((entry.place(0), entry.loc.to_vec(), *other));
            }
            self.places = rest;
        }
        self.entries += 1;
        let ask = self.entries.is_multiple_of(1 << 14);
        if self.places.is_empty() || (ask && self.stopped()) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}
