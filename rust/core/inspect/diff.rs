//! The changes between two sets of sitemaps, in bounded memory.
//!
//! Files with the same bytes on both sides are skipped before any is inflated. The entries of the
//! others go to partitions by the hash of their URL, on disk above the memory limit. Each partition is
//! compared separately: an entry of one side cancels an equal entry of the other. A URL that a side
//! lists several times counts once: it has changed if the two sides have different sets of entries.
//! Entries of skipped files are not compared with those of other files.

use std::collections::HashMap;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::error::{Error, ErrorCode, Result};
use crate::flow::hash::HashKey;
use crate::inspect::document::entry::{Entry, Form, Visitor};
use crate::inspect::document::inflate::Inflater;
use crate::inspect::document::{parse, regular};
use crate::inspect::finding::Log;
use crate::inspect::partition::{Partitioned, Partitions, Writer};
use crate::inspect::workers::Workers;

/// A sitemap file of one side.
#[derive(Debug, Clone)]
pub struct SetFile {
    /// Its path.
    pub path: PathBuf,
    /// Its name in errors.
    pub name: String,
    /// The digest of its uncompressed bytes, if a manifest has it.
    pub digest: Option<String>,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// Only the new side has the URL.
    Added,
    /// Both sides have it, with another lastmod or other fields.
    Changed,
    /// Only the old side has it.
    Removed,
}

impl ChangeKind {
    /// `added`, `changed`, `removed`
    pub fn name(self) -> &'static str {
        match self {
            ChangeKind::Added => "added",
            ChangeKind::Changed => "changed",
            ChangeKind::Removed => "removed",
        }
    }
}

/// One change. Sorts by URL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// The URL.
    pub loc: Vec<u8>,
    /// The kind.
    pub kind: ChangeKind,
    /// The lastmod on the new side, as written.
    pub lastmod: Option<Vec<u8>>,
    /// The lastmod on the old side, as written.
    pub old_lastmod: Option<Vec<u8>>,
}

/// The options of a comparison.
#[derive(Debug, Clone)]
pub struct Options {
    /// Threads that read files.
    pub threads: usize,
    /// Bytes for entries; above that they go to disk.
    pub memory: usize,
    /// The folder for spilled entries; by default the temporary folder of the system.
    pub spill_folder: Option<PathBuf>,
    /// Skip the unreadable part of a file, instead of failing.
    pub lenient: bool,
}

/// The totals of a comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiffCounts {
    /// URLs only on the new side.
    pub added: u64,
    /// URLs with other fields.
    pub changed: u64,
    /// URLs only on the old side.
    pub removed: u64,
    /// Files of the new side that were skipped because the old side has the same bytes.
    pub skipped: u64,
}

/// The side of a file or entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Old = 0,
    New = 1,
}

/// A set of sides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sides(u8);

impl Sides {
    const NONE: Sides = Sides(0);
    const OLD: Sides = Sides::of(Side::Old);
    const NEW: Sides = Sides::of(Side::New);
    const BOTH: Sides = Sides(3);

    const fn of(side: Side) -> Sides {
        Sides(1 << side as u8)
    }

    fn with(self, other: Sides) -> Sides {
        Sides(self.0 | other.0)
    }

    fn contains(self, side: Side) -> bool {
        self.0 & Sides::of(side).0 != 0
    }
}

/// Compares two sets of files and passes every change to `sink`: sorted by URL if the entries fit
/// into the memory, otherwise in an order that depends on the URLs alone.
///
/// # Errors
/// A file cannot be read or is damaged, unless lenient; the disk is full; cancelled.
pub fn diff(
    old: &[SetFile],
    new: &[SetFile],
    options: &Options,
    poll: &mut dyn FnMut() -> bool,
    sink: &mut (dyn FnMut(&Change) -> Result<()> + Send),
) -> Result<DiffCounts> {
    let (old, new, skipped) = without_equals(old, new, poll)?;
    let files: Vec<(&SetFile, Side)> = old
        .into_iter()
        .map(|file| (file, Side::Old))
        .chain(new.into_iter().map(|file| (file, Side::New)))
        .collect();
    let threads = options.threads.clamp(1, files.len().max(1));
    let partitions = Partitions::new(options.memory, threads, options.spill_folder.clone());
    let next = AtomicUsize::new(0);
    let mut workers = Workers::new(threads, poll);
    let writers = workers.run(|stop| {
        let mut inflater = Inflater::default();
        let mut writer = partitions.writer();
        while !stop.load(Ordering::Relaxed) {
            let Some((file, side)) = files.get(next.fetch_add(1, Ordering::Relaxed)) else {
                break;
            };
            let partitioner = Partitioner {
                side: *side,
                writer: &mut writer,
                failed: None,
                fields: Vec::new(),
                stop,
            };
            read_file(file, partitioner, &mut inflater, options.lenient)?;
        }
        Ok(writer)
    })?;
    let entries = partitions.collect(writers)?;
    let mut counts = DiffCounts { skipped, ..DiffCounts::default() };
    if entries.is_on_disk() {
        // one partition at a time, to bound the memory; each is sorted
        for partition in entries.partitions() {
            workers.check()?;
            report(compare(&entries, partition)?, &mut counts, sink)?;
        }
        return Ok(counts);
    }
    let gather = |all: &mut Vec<Change>, partition| {
        all.extend(compare(&entries, partition)?);
        Ok(())
    };
    let changes = entries.for_each(&mut workers, Vec::new, gather)?.into_iter().flatten().collect();
    report(changes, &mut counts, sink)?;
    Ok(counts)
}

fn report(
    mut changes: Vec<Change>,
    counts: &mut DiffCounts,
    sink: &mut (dyn FnMut(&Change) -> Result<()> + Send),
) -> Result<()> {
    changes.sort_unstable();
    for change in &changes {
        match change.kind {
            ChangeKind::Added => counts.added += 1,
            ChangeKind::Changed => counts.changed += 1,
            ChangeKind::Removed => counts.removed += 1,
        }
        sink(change)?;
    }
    Ok(())
}

/// The files of both sides without pairs of equal bytes, and the number of pairs. Compares the
/// digests of manifests if all files have one, else the digests of the files on disk.
fn without_equals<'a>(
    old: &'a [SetFile],
    new: &'a [SetFile],
    poll: &mut dyn FnMut() -> bool,
) -> Result<(Vec<&'a SetFile>, Vec<&'a SetFile>, u64)> {
    let known = old.iter().chain(new).all(|file| file.digest.is_some());
    let mut digest = |file: &SetFile| match (&file.digest, known) {
        (Some(digest), true) => Ok(digest.clone()),
        _ if poll() => Err(Error::cancelled()),
        _ => digest_of(&file.path, poll).map_err(|error| unreadable(file, &error)),
    };
    let mut left: HashMap<String, Vec<&SetFile>> = HashMap::new();
    for file in old {
        left.entry(digest(file)?).or_default().push(file);
    }
    let mut rest = Vec::new();
    let mut skipped = 0;
    for file in new {
        match left.get_mut(&digest(file)?).and_then(Vec::pop) {
            Some(_) => skipped += 1,
            None => rest.push(file),
        }
    }
    let mut old: Vec<_> = left.into_values().flatten().collect();
    old.sort_by(|a, b| a.name.cmp(&b.name));
    Ok((old, rest, skipped))
}

fn digest_of(path: &Path, poll: &mut dyn FnMut() -> bool) -> std::io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    let (mut file, _) = regular::open(path)?;
    let mut block = [0u8; 1 << 16];
    loop {
        match file.read(&mut block) {
            Ok(0) => return Ok(hasher.finalize().to_hex().to_string()),
            Ok(_) if poll() => return Err(std::io::Error::other("stopped")),
            Ok(n) => hasher.update(&block[..n]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => &mut hasher,
            Err(error) => return Err(error),
        };
    }
}

fn unreadable(file: &SetFile, error: &std::io::Error) -> Error {
    ErrorCode::FileUnreadable.error(crate::error::plain(error)).in_input(&file.name)
}

fn read_file(
    file: &SetFile,
    mut partitioner: Partitioner<'_, '_>,
    inflater: &mut Inflater,
    lenient: bool,
) -> Result<()> {
    let opened = inflater.open(&file.path).map_err(|error| unreadable(file, &error))?;
    let mut log = Log::of_file(1, opened.size);
    let (_, buffer) = parse(opened.bytes, &mut partitioner, &mut log, true);
    inflater.recycle(buffer);
    if let Some(error) = partitioner.failed {
        return Err(error);
    }
    regular::check(opened.identity, &file.path, &mut log);
    match log.first_break() {
        Some(first) if !lenient => Err(first.error().in_input(&file.name)),
        _ => Ok(()),
    }
}

/// An entry in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EntryRecord<'a> {
    side: Side,
    /// The hash of all fields but the URL.
    fields: u128,
    /// The part of the hash of the URL that selects the pass over a partition.
    pass: u64,
    loc: &'a [u8],
    lastmod: Option<&'a [u8]>,
}

/// The length of a text that is missing.
const MISSING: u32 = u32::MAX;

fn length(text: Option<&[u8]>) -> [u8; 4] {
    text.map_or(MISSING, |text| text.len() as u32).to_le_bytes() // texts have at most 8 MiB
}

impl<'a> EntryRecord<'a> {
    /// Passes the bytes of the record to `write`, in pieces.
    fn encode<T>(&self, write: impl FnOnce(&[&[u8]]) -> T) -> T {
        write(&[
            &[self.side as u8],
            &self.fields.to_le_bytes(),
            &self.pass.to_le_bytes(),
            &length(Some(self.loc)),
            &length(self.lastmod),
            self.loc,
            self.lastmod.unwrap_or_default(),
        ])
    }

    /// Splits off the first record; `None` at the end.
    fn decode(bytes: &mut &'a [u8]) -> Option<EntryRecord<'a>> {
        let [side] = take(bytes)?;
        let fields = u128::from_le_bytes(take(bytes)?);
        let pass = u64::from_le_bytes(take(bytes)?);
        let (loc_length, lastmod_length) = (take(bytes)?, take(bytes)?);
        let loc = take_text(bytes, u32::from_le_bytes(loc_length))?;
        let lastmod = match u32::from_le_bytes(lastmod_length) {
            MISSING => None,
            length => Some(take_text(bytes, length)?),
        };
        let side = if side == Side::Old as u8 { Side::Old } else { Side::New };
        Some(EntryRecord { side, fields, pass, loc, lastmod })
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}

fn take_text<'a>(bytes: &mut &'a [u8], length: u32) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length as usize)?;
    *bytes = rest;
    Some(taken)
}

/// The key is fixed, so that the order of changes from disk is the same in every run.
const KEY: HashKey = HashKey::fixed(0x75726c, 0x736574);

/// Writes the entries of a file to partitions.
struct Partitioner<'a, 'p> {
    side: Side,
    writer: &'a mut Writer<'p>,
    failed: Option<Error>,
    /// All fields but the URL, to be hashed.
    fields: Vec<u8>,
    stop: &'a AtomicBool,
}

impl Partitioner<'_, '_> {
    fn hash_fields(&mut self, entry: &Entry<'_>) -> u128 {
        let fields = &mut self.fields;
        fields.clear();
        for text in [entry.lastmod, entry.changefreq, entry.priority] {
            fields.extend_from_slice(&length(text));
            fields.extend_from_slice(text.unwrap_or_default());
        }
        for part in entry.parts {
            let text = entry.text(part);
            let (kind, name) = part.field.key();
            fields.extend_from_slice(&[kind, name.len() as u8]);
            fields.extend_from_slice(name.as_bytes());
            fields.extend_from_slice(&length(Some(text)));
            fields.extend_from_slice(text);
        }
        KEY.hash128(fields)
    }
}

impl Visitor for Partitioner<'_, '_> {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn entry(&mut self, form: Form, entry: &Entry<'_>, _: &mut Log) -> ControlFlow<()> {
        if form == Form::Index || entry.loc.is_empty() {
            return ControlFlow::Continue(());
        }
        let fields = self.hash_fields(entry);
        let hash = KEY.hash128(entry.loc);
        let (partition, pass) = (hash as u64, (hash >> 64) as u64);
        let (loc, lastmod) = (entry.loc, entry.lastmod);
        let record = EntryRecord { side: self.side, fields, pass, loc, lastmod };
        match record.encode(|pieces| self.writer.push_pieces(partition, pieces)) {
            Ok(()) if self.stopped() => ControlFlow::Break(()),
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

/// The number of different entries of one URL that are kept apart; hostile sets have millions.
const MAX_VARIANTS: usize = 64;

/// One of the different entries of a URL.
struct Variant {
    fields: u128,
    lastmod: Option<Box<[u8]>>,
    sides: Sides,
}

/// The entries of a URL.
#[derive(Default)]
struct UrlEntries {
    variants: Vec<Variant>,
    /// The entries beyond [`MAX_VARIANTS`].
    rest: Option<Box<Rest>>,
}

/// Entries that are compared only by the sum of their hashes.
#[derive(Default)]
struct Rest {
    sides: Sides,
    /// By side.
    sums: [u128; 2],
    /// The newest lastmod by side.
    newest: [Option<Box<[u8]>>; 2],
}

impl UrlEntries {
    fn add(&mut self, record: &EntryRecord<'_>) {
        let EntryRecord { side, fields, lastmod, .. } = *record;
        let sides = Sides::of(side);
        if let Some(equal) = self.variants.iter_mut().find(|variant| variant.fields == fields) {
            equal.sides = equal.sides.with(sides);
        } else if self.variants.len() < MAX_VARIANTS {
            self.variants.push(Variant { fields, lastmod: lastmod.map(Box::from), sides });
        } else {
            let rest = self.rest.get_or_insert_default();
            let side = side as usize;
            rest.sides = rest.sides.with(sides);
            rest.sums[side] = rest.sums[side].wrapping_add(fields);
            if lastmod > rest.newest[side].as_deref() {
                rest.newest[side] = lastmod.map(Box::from);
            }
        }
    }

    fn kind(&self) -> Option<ChangeKind> {
        let rest = self.rest.as_ref().map_or(Sides::NONE, |rest| rest.sides);
        match self.variants.iter().fold(rest, |sides, variant| sides.with(variant.sides)) {
            Sides::OLD => Some(ChangeKind::Removed),
            Sides::NEW => Some(ChangeKind::Added),
            _ => {
                let equal = self.variants.iter().all(|variant| variant.sides == Sides::BOTH)
                    && self.rest.as_ref().is_none_or(|rest| rest.sums[0] == rest.sums[1]);
                (!equal).then_some(ChangeKind::Changed)
            }
        }
    }

    /// The greatest lastmod of a side, compared as text.
    fn lastmod(&self, side: Side) -> Option<Vec<u8>> {
        let of_side = self.variants.iter().filter(|variant| variant.sides.contains(side));
        let rest = self.rest.as_ref().and_then(|rest| rest.newest[side as usize].as_deref());
        of_side
            .filter_map(|variant| variant.lastmod.as_deref())
            .chain(rest)
            .max()
            .map(<[u8]>::to_vec)
    }
}

/// The changes of one partition.
fn compare(entries: &Partitioned, partition: usize) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    let passes = entries.passes(partition);
    for pass in 0..passes {
        let mut urls: HashMap<Box<[u8]>, UrlEntries> = HashMap::new();
        entries.scan(partition, |mut bytes| {
            while let Some(record) = EntryRecord::decode(&mut bytes) {
                if record.pass % passes != pass {
                    continue;
                }
                match urls.get_mut(record.loc) {
                    Some(url) => url.add(&record),
                    None => urls.entry(record.loc.into()).or_default().add(&record),
                }
            }
        })?;
        for (loc, url) in urls {
            if let Some(kind) = url.kind() {
                let (lastmod, old_lastmod) = (url.lastmod(Side::New), url.lastmod(Side::Old));
                changes.push(Change { loc: loc.into_vec(), kind, lastmod, old_lastmod });
            }
        }
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_decoded_as_it_was_encoded() {
        let record =
            EntryRecord { side: Side::New, fields: 1 << 100, pass: 7, loc: b"", lastmod: None };
        let records = [
            EntryRecord { side: Side::Old, loc: b"https://a.example/", ..record },
            EntryRecord { loc: b"x", lastmod: Some(b""), ..record },
            EntryRecord { lastmod: Some(b"2026-11-21"), ..record },
        ];
        let mut bytes = Vec::new();
        for record in &records {
            record.encode(|pieces| pieces.iter().for_each(|piece| bytes.extend_from_slice(piece)));
        }
        let mut rest = &bytes[..];
        for record in records {
            assert_eq!(EntryRecord::decode(&mut rest), Some(record));
        }
        assert_eq!(EntryRecord::decode(&mut rest), None);
        assert_eq!(EntryRecord::decode(&mut &bytes[..20]), None);
    }
}
