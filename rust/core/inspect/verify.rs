//! Verifies a list of files in parallel: first each file, then duplicates and the reciprocity of
//! alternates across all files ([`super::cross_file`]). The caller finds the files of a set.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::error::{Error, Result};
use crate::flow::hash::HashKey;
use crate::inspect::check::entry::EntryChecks;
use crate::inspect::codes;
use crate::inspect::cross_file::{self, Place};
use crate::inspect::document::entry::{Entry, Form, PartField, Visitor};
use crate::inspect::document::inflate::{Inflater, OpenedFile};
use crate::inspect::document::{Summary, parse, regular};
use crate::inspect::finding::{Location, Log};
use crate::inspect::index::Child;
use crate::inspect::partition::{Partitioned, Partitions, Writer};
use crate::inspect::workers::Workers;
use crate::sitemap::limits::MAX_ENTRIES;

pub use crate::inspect::target::{FileReport, SetRules, Target};

/// The options.
#[derive(Debug, Clone)]
pub struct Options {
    /// Threads that read files.
    pub threads: usize,
    /// Bytes for the hashes of all URLs; above that they go to disk.
    pub memory: usize,
    /// The folder for spilled hashes; by default the temporary folder of the system.
    pub spill_folder: Option<PathBuf>,
    /// Report duplicates within and across files.
    pub duplicates: bool,
    /// Report alternates that do not link back.
    pub reciprocity: bool,
    /// The number of findings to list for each code and file; all are counted.
    pub limit: u64,
    /// The current time in microseconds since 1970.
    pub now: i64,
    /// The rules of each set of files.
    pub rules: Vec<SetRules>,
    /// Use the fast path for common entries; false to compare it with the XML parser.
    pub fast: bool,
}

impl Default for Options {
    fn default() -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Options {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            memory: 256 << 20,
            spill_folder: None,
            duplicates: true,
            reciprocity: false,
            limit: 100,
            now: now.map_or(0, |now| now.as_micros() as i64),
            rules: Vec::new(),
            fast: true,
        }
    }
}

/// Verifies `targets`; the reports are in their order. `poll` is called ten times a second and
/// returns true to cancel.
///
/// # Errors
/// The disk is full, a thread cannot be started, or cancelled. A file that cannot be read is a
/// finding.
pub fn verify(
    targets: &[Target],
    options: &Options,
    poll: &mut dyn FnMut() -> bool,
) -> Result<Vec<FileReport>> {
    let threads = options.threads.clamp(1, targets.len().max(1));
    let mut workers = Workers::new(threads, poll);
    let Checked { mut reports, pages, links } = check_files(targets, options, &mut workers)?;
    // more than enough to list `limit` findings of the first files
    let limit = usize::try_from(options.limit).unwrap_or(usize::MAX).saturating_mul(10);
    if let Some(pages) = pages {
        let found = cross_file::duplicates(&pages, &mut workers, limit)?;
        let code = |target: &Target| {
            let kept = rules_of(target, options).is_some_and(|rules| rules.kept_duplicates);
            if kept { &codes::LOC_KEPT_DUPLICATE } else { &codes::LOC_DUPLICATE }
        };
        let kind = cross_file::duplicate(&code);
        cross_file::report(targets, &mut reports, found, &kind, &mut workers)?;
    }
    if let Some(links) = links {
        let found = cross_file::one_way(&links, &mut workers, limit)?;
        cross_file::report(targets, &mut reports, found, &cross_file::ONE_WAY, &mut workers)?;
    }
    Ok(reports)
}

fn rules_of<'a>(target: &Target, options: &'a Options) -> Option<&'a SetRules> {
    options.rules.get(target.rules)
}

/// The reports of all files, and the records for the checks across files.
struct Checked {
    reports: Vec<FileReport>,
    pages: Option<Partitioned>,
    links: Option<Partitioned>,
}

fn check_files(
    targets: &[Target],
    options: &Options,
    workers: &mut Workers<'_>,
) -> Result<Checked> {
    let threads = options.threads.clamp(1, targets.len().max(1));
    let key = HashKey::random();
    let partitions = |memory| Partitions::new(memory, threads, options.spill_folder.clone());
    let pages = options.duplicates.then(|| partitions(options.memory));
    let links = options.reciprocity.then(|| partitions(options.memory / 2));
    let next = AtomicUsize::new(0);
    let strict = SetRules::default();
    let results = workers.run(|stop| {
        let mut inflater = Inflater::default();
        let mut pages = pages.as_ref().map(Partitions::writer);
        let mut links = links.as_ref().map(Partitions::writer);
        let mut done = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(target) = targets.get(number) else { break };
            let SetRules { hosts, added, .. } = rules_of(target, options).unwrap_or(&strict);
            let mut visitor = FileVisitor {
                checks: EntryChecks::new(target.url.as_deref(), options.now, hosts, added),
                key,
                pages: pages.as_mut(),
                links: links.as_mut(),
                file: number as u32,
                children: Vec::new(),
                failed: None,
                stop,
            };
            done.push((number, check_file(target, options, &mut inflater, &mut visitor)?));
        }
        Ok((done, pages, links))
    })?;
    let (mut reports, mut page_writers, mut link_writers) = (Vec::new(), Vec::new(), Vec::new());
    for (done, pages, links) in results {
        reports.extend(done);
        page_writers.extend(pages);
        link_writers.extend(links);
    }
    reports.sort_by_key(|(number, _)| *number);
    Ok(Checked {
        reports: reports.into_iter().map(|(_, report)| report).collect(),
        pages: pages.as_ref().map(|pages| pages.collect(page_writers)).transpose()?,
        links: links.as_ref().map(|links| links.collect(link_writers)).transpose()?,
    })
}

fn check_file(
    target: &Target,
    options: &Options,
    inflater: &mut Inflater,
    visitor: &mut FileVisitor<'_, '_>,
) -> Result<FileReport> {
    let mut log = Log::new(options.limit);
    let (mut gzip, mut size, mut summary) = (false, 0, Summary::EMPTY);
    match inflater.open(&target.path) {
        Err(error) => log.whole_file(&codes::FILE_UNREADABLE, || crate::error::plain(&error)),
        Ok(opened) => {
            (gzip, size) = (opened.gzip, opened.size);
            log = Log::of_file(options.limit, size);
            check_suffix(target, &opened, &mut log);
            let (read, buffer) = parse(opened.bytes, visitor, &mut log, options.fast);
            inflater.recycle(buffer);
            regular::check(opened.identity, &target.path, &mut log);
            summary = read;
            if summary.form == Form::Text && !is_named_text(&target.name) {
                log.whole_file(&codes::FILE_TEXT_NAME, || {
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
        let url = target.url.as_deref().map(str::as_bytes);
        log.add(&codes::INDEX_NESTED, Location::default(), url, || {
            "an index lists an index".to_owned()
        });
    }
    Ok(FileReport {
        summary,
        gzip,
        size,
        ages: visitor.checks.ages,
        children: std::mem::take(&mut visitor.children),
        counts: log.counts().collect(),
        findings: log.into_listed(),
    })
}

fn check_suffix(target: &Target, opened: &OpenedFile, log: &mut Log) {
    let named_gz = target.name.to_ascii_lowercase().ends_with(".gz");
    if named_gz != opened.gzip && opened.size > 0 {
        log.whole_file(&codes::FILE_NAME, || {
            let what = if opened.gzip { "gzip data without" } else { "no gzip data, but" };
            format!("{what} the suffix .gz")
        });
    }
}

/// Google: the name of a text sitemap ends in `.txt`, with `.gz` after it if it is compressed.
fn is_named_text(name: &str) -> bool {
    let path = name.split(['?', '#']).next().unwrap_or(name).to_ascii_lowercase();
    path.strip_suffix(".gz").unwrap_or(&path).ends_with(".txt")
}

struct FileVisitor<'a, 'p> {
    checks: EntryChecks<'a>,
    key: HashKey,
    pages: Option<&'a mut Writer<'p>>,
    links: Option<&'a mut Writer<'p>>,
    /// The number of the file.
    file: u32,
    children: Vec<Child>,
    failed: Option<Error>,
    stop: &'a AtomicBool,
}

impl FileVisitor<'_, '_> {
    /// Stores the records for the checks across files.
    fn store(&mut self, form: Form, entry: &Entry<'_>) -> Result<()> {
        if form == Form::Index || entry.loc.is_empty() {
            return Ok(());
        }
        let place = Place { file: self.file, offset: entry.at.offset as u32 };
        if let Some(pages) = &mut self.pages {
            pages.push(cross_file::page(self.key, entry.loc, place))?;
        }
        if let Some(links) = &mut self.links {
            for part in entry.parts.iter().filter(|part| part.field == PartField::AlternateHref) {
                let href = entry.text(part);
                if href != entry.loc {
                    links.push(cross_file::link(self.key, entry.loc, href, place))?;
                }
            }
        }
        Ok(())
    }
}

impl Visitor for FileVisitor<'_, '_> {
    fn checks(&self) -> bool {
        true
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn entry(&mut self, form: Form, entry: &Entry<'_>, log: &mut Log) -> ControlFlow<()> {
        self.checks.entry(form, entry, log);
        if form == Form::Index && self.children.len() < MAX_ENTRIES as usize {
            self.children.extend(Child::of(entry));
        }
        if let Err(error) = self.store(form, entry) {
            self.failed = Some(error);
            return ControlFlow::Break(());
        }
        if self.stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
