//! What changed between two sets of sitemaps, in bounded memory.
//!
//! Files with the same bytes on both sides are left out before anything is inflated. The entries
//! of the others are cast into partitions by the hash of their URL, on disk above the memory, and
//! compared partition by partition: there an entry of the one side cancels its equal of the other.
//! A URL counts once, however often a side lists it: it is changed where the entries of the two
//! sides differ as sets. What stands in a file that was left out is not looked for elsewhere.

use std::collections::HashMap;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::error::{Error, Result};
use crate::inspect::document::entry::{Entry, Form, Visitor};
use crate::inspect::document::inflate::Inflater;
use crate::inspect::document::{parse, regular};
use crate::inspect::finding::Log;
use crate::inspect::spill::{Hasher, PARTITIONS, Parts, Spill, Writer, partitions};
use crate::inspect::workers::Workers;

/// A sitemap file of one side.
#[derive(Debug, Clone)]
pub struct Shard {
    /// Where it lies.
    pub path: PathBuf,
    /// What to call it in errors.
    pub name: String,
    /// Digest of its uncompressed bytes, where a manifest has it.
    pub digest: Option<String>,
}

/// What happened to a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Only the new side has it.
    Added,
    /// Both have it, with another lastmod or other fields.
    Changed,
    /// Only the old side has it.
    Removed,
}

impl Kind {
    /// `added`, `changed`, `removed`
    pub fn name(self) -> &'static str {
        match self {
            Kind::Added => "added",
            Kind::Changed => "changed",
            Kind::Removed => "removed",
        }
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// The URL.
    pub loc: Vec<u8>,
    /// What happened to it.
    pub kind: Kind,
    /// Its lastmod on the new side, as written.
    pub lastmod: Option<Vec<u8>>,
    /// Its lastmod on the old side, as written.
    pub old_lastmod: Option<Vec<u8>>,
}

/// How to compare.
#[derive(Debug, Clone)]
pub struct Options {
    /// Threads that read files.
    pub threads: usize,
    /// Bytes for entries; above, they go to disk.
    pub memory: usize,
    /// Folder for that, the system's temporary one if `None`.
    pub spill: Option<PathBuf>,
    /// Leave out what cannot be read of a file, instead of failing.
    pub lenient: bool,
}

/// How much was compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// URLs only on the new side.
    pub added: u64,
    /// URLs with other fields.
    pub changed: u64,
    /// URLs only on the old side.
    pub removed: u64,
    /// Files of the new side that were left out because the old one has their equal.
    pub skipped: u64,
}

/// Compares two sets of files and gives every change to `sink`: sorted by URL as long as they
/// fit into the memory, else in an order that depends on the URLs alone.
pub fn diff(
    old: &[Shard],
    new: &[Shard],
    options: &Options,
    poll: &mut dyn FnMut() -> bool,
    sink: &mut (dyn FnMut(&Change) -> Result<()> + Send),
) -> Result<Counts> {
    let (old, new, skipped) = without_equals(old, new, poll)?;
    let files: Vec<(&Shard, u8)> = old
        .into_iter()
        .map(|shard| (shard, 0))
        .chain(new.into_iter().map(|shard| (shard, 1)))
        .collect();
    let threads = options.threads.clamp(1, files.len().max(1));
    let spill = Spill::new(options.memory, threads, options.spill.clone());
    let hasher = Hasher::fixed();
    let next = AtomicUsize::new(0);
    let mut workers = Workers::new(threads, poll);
    let parts: Vec<Parts> = workers.run(|stop| {
        let mut inflater = Inflater::default();
        let mut writer = spill.writer();
        while !stop.load(Ordering::Relaxed) {
            let Some((shard, side)) = files.get(next.fetch_add(1, Ordering::Relaxed)) else {
                break;
            };
            let casting = Casting {
                side: *side,
                hasher: &hasher,
                writer: &mut writer,
                failed: None,
                fields: Vec::new(),
                stop,
            };
            one(shard, casting, &mut inflater, options.lenient)?;
        }
        Ok(writer.into_parts())
    })?;
    let mut counts = Counts { skipped, ..Counts::default() };
    if spill.has_spilled() {
        // partition after partition, so that no more than one waits; each sorted
        for part in 0..PARTITIONS {
            workers.check()?;
            give(compare(&spill, &parts, part)?, &mut counts, sink)?;
        }
        return Ok(counts);
    }
    let gather = |all: &mut Vec<Change>, part| {
        all.extend(compare(&spill, &parts, part)?);
        Ok(())
    };
    let changes = partitions(&mut workers, Vec::new, gather)?.into_iter().flatten().collect();
    give(changes, &mut counts, sink)?;
    Ok(counts)
}

fn give(
    mut changes: Vec<Change>,
    counts: &mut Counts,
    sink: &mut (dyn FnMut(&Change) -> Result<()> + Send),
) -> Result<()> {
    changes.sort_unstable();
    for change in &changes {
        match change.kind {
            Kind::Added => counts.added += 1,
            Kind::Changed => counts.changed += 1,
            Kind::Removed => counts.removed += 1,
        }
        sink(change)?;
    }
    Ok(())
}

/// Leaves out the pairs of files with equal bytes: by the digests of manifests where all files
/// have one, else by the digest of the files as they lie on disk.
fn without_equals<'a>(
    old: &'a [Shard],
    new: &'a [Shard],
    poll: &mut dyn FnMut() -> bool,
) -> Result<(Vec<&'a Shard>, Vec<&'a Shard>, u64)> {
    let known = old.iter().chain(new).all(|shard| shard.digest.is_some());
    let mut digest = |shard: &Shard| match (&shard.digest, known) {
        (Some(digest), true) => Ok(digest.clone()),
        _ if poll() => Err(Error::cancelled()),
        _ => digest_of(&shard.path, poll).map_err(|error| unreadable(shard, &error)),
    };
    let mut left: HashMap<String, Vec<&Shard>> = HashMap::new();
    for shard in old {
        left.entry(digest(shard)?).or_default().push(shard);
    }
    let mut rest = Vec::new();
    let mut skipped = 0;
    for shard in new {
        match left.get_mut(&digest(shard)?).and_then(Vec::pop) {
            Some(_) => skipped += 1,
            None => rest.push(shard),
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

fn unreadable(shard: &Shard, error: &std::io::Error) -> Error {
    Error::input("file.unreadable", crate::error::plain(error)).in_input(&shard.name)
}

fn one(
    shard: &Shard,
    mut visitor: Casting<'_, '_>,
    inflater: &mut Inflater,
    lenient: bool,
) -> Result<()> {
    let opened = inflater.open(&shard.path).map_err(|error| unreadable(shard, &error))?;
    let mut log = Log::of_file(1, opened.size);
    let (_, buffer) = parse(opened.bytes, &mut visitor, &mut log, true);
    inflater.recycle(buffer);
    if let Some(error) = visitor.failed {
        return Err(error);
    }
    opened.stamp.check(&shard.path, &mut log);
    match log.first_break() {
        Some(first) if !lenient => Err(first.error().in_input(&shard.name)),
        _ => Ok(()),
    }
}

/// Casts entries into partitions: side, digest of the fields, lengths, loc, lastmod.
struct Casting<'a, 's> {
    side: u8,
    hasher: &'a Hasher,
    writer: &'a mut Writer<'s>,
    failed: Option<Error>,
    fields: Vec<u8>,
    stop: &'a AtomicBool,
}

const NONE: u32 = u32::MAX;
/// Bytes of a record before its texts.
const HEAD: usize = 1 + 16 + 8 + 4 + 4;

impl Visitor for Casting<'_, '_> {
    const CHECKS: bool = false;

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn entry(&mut self, form: Form, entry: &Entry<'_>, _: &mut Log) -> ControlFlow<()> {
        if form == Form::Index || entry.loc.is_empty() {
            return ControlFlow::Continue(());
        }
        let fields = &mut self.fields;
        fields.clear();
        for text in [entry.lastmod, entry.changefreq, entry.priority] {
            fields.extend_from_slice(&text.map_or(NONE, |text| text.len() as u32).to_le_bytes());
            fields.extend_from_slice(text.unwrap_or_default());
        }
        for part in entry.parts {
            let text = entry.text(part);
            let (kind, name) = part.field.key();
            fields.extend_from_slice(&[kind, name.len() as u8]);
            fields.extend_from_slice(name.as_bytes());
            fields.extend_from_slice(&(text.len() as u32).to_le_bytes());
            fields.extend_from_slice(text);
        }
        let (a, b) = self.hasher.hash(fields);
        let (place, pass) = self.hasher.hash(entry.loc);
        let lastmod = entry.lastmod.unwrap_or_default();
        let pushed = self.writer.push(
            place,
            &[
                &[self.side],
                &a.to_le_bytes(),
                &b.to_le_bytes(),
                &pass.to_le_bytes(),
                &(entry.loc.len() as u32).to_le_bytes(),
                &entry.lastmod.map_or(NONE, |lastmod| lastmod.len() as u32).to_le_bytes(),
                entry.loc,
                lastmod,
            ],
        );
        match pushed {
            Ok(()) if self.stopped() => ControlFlow::Break(()),
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

/// So many different entries of one URL are told apart one by one; hostile sets have millions.
const MOST_LISTED: usize = 64;

/// The digest of the fields, the lastmod, the sides that list it.
type Listed = ([u8; 16], Option<Box<[u8]>>, u8);

/// The entries of a URL on both sides (bit 0 old, bit 1 new).
#[derive(Default)]
struct Url {
    /// The different ones.
    listed: Vec<Listed>,
    /// Those beyond the most.
    more: Option<Box<More>>,
}

/// Entries that are not told apart: compared by the sum of their digests.
#[derive(Default)]
struct More {
    sides: u8,
    sums: [u128; 2],
    newest: [Option<Box<[u8]>>; 2],
}

impl Url {
    fn add(&mut self, side: usize, digest: [u8; 16], lastmod: Option<&[u8]>) {
        if let Some(equal) = self.listed.iter_mut().find(|listed| listed.0 == digest) {
            equal.2 |= 1 << side;
        } else if self.listed.len() < MOST_LISTED {
            self.listed.push((digest, lastmod.map(Box::from), 1 << side));
        } else {
            let more = self.more.get_or_insert_default();
            more.sides |= 1 << side;
            more.sums[side] = more.sums[side].wrapping_add(u128::from_le_bytes(digest));
            if lastmod > more.newest[side].as_deref() {
                more.newest[side] = lastmod.map(Box::from);
            }
        }
    }

    fn kind(&self) -> Option<Kind> {
        let more = self.more.as_ref().map_or(0, |more| more.sides);
        match self.listed.iter().fold(more, |sides, listed| sides | listed.2) {
            1 => Some(Kind::Removed),
            2 => Some(Kind::Added),
            _ => {
                let equal = self.listed.iter().all(|listed| listed.2 == 3)
                    && self.more.as_ref().is_none_or(|more| more.sums[0] == more.sums[1]);
                (!equal).then_some(Kind::Changed)
            }
        }
    }

    /// Of several the last in the order of their characters.
    fn lastmod(&self, side: usize) -> Option<Vec<u8>> {
        let listed = self.listed.iter().filter(|listed| listed.2 & (1 << side) != 0);
        let more = self.more.as_ref().and_then(|more| more.newest[side].as_deref());
        listed.filter_map(|listed| listed.1.as_deref()).chain(more).max().map(<[u8]>::to_vec)
    }
}

/// The changes of one partition.
fn compare(spill: &Spill, parts: &[Parts], part: usize) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    let passes = spill.passes(part, parts);
    for pass in 0..passes {
        let mut urls: HashMap<Box<[u8]>, Url> = HashMap::new();
        spill.scan(part, parts, |mut bytes| {
            while let Some((head, rest)) = bytes.split_at_checked(HEAD) {
                let word = |at: usize| head[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
                let (loc_len, lastmod_len) = (word(25), word(29));
                let loc_end = loc_len as usize;
                let end = loc_end + if lastmod_len == NONE { 0 } else { lastmod_len as usize };
                let Some((texts, after)) = rest.split_at_checked(end) else { return };
                bytes = after;
                let of_pass = head[17..25].try_into().map_or(0, u64::from_le_bytes);
                if of_pass % passes != pass {
                    continue;
                }
                let (loc, lastmod) = texts.split_at(loc_end);
                let mut digest = [0; 16];
                digest.copy_from_slice(&head[1..17]);
                let side = usize::from(head[0] & 1);
                let lastmod = (lastmod_len != NONE).then_some(lastmod);
                match urls.get_mut(loc) {
                    Some(url) => url.add(side, digest, lastmod),
                    None => urls.entry(loc.into()).or_default().add(side, digest, lastmod),
                }
            }
        })?;
        for (loc, url) in urls {
            if let Some(kind) = url.kind() {
                let (lastmod, old_lastmod) = (url.lastmod(1), url.lastmod(0));
                changes.push(Change { loc: loc.into_vec(), kind, lastmod, old_lastmod });
            }
        }
    }
    Ok(changes)
}
