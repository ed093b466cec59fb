//! Rows that share a key are the languages of one page, and each of them gets the list of all
//! (docs/protocol.md, *hreflang*). The rows of a group are adjacent, but may be in several chunks.
//! Therefore the lists are inserted after the chunks are in order again.

use std::sync::Arc;

use crate::build::render::alternate::{X_DEFAULT, write_link};
use crate::config::MAX_BYTES;
use crate::error::{ErrorCode, Result};
use crate::flow::chunk::Chunk;
use crate::flow::entry::{Entry, LOC_OFFSET};
use crate::flow::key_set::KeySet;
use crate::flow::member::Member;
use crate::sitemap::extension::alternate::LIMIT;
use crate::sitemap::namespaces;

/// A row that waits for the rest of its group.
struct Waiting {
    bytes: Vec<u8>,
    entry: Entry,
    member: Member,
    boundary: Option<u64>,
    split: Vec<u8>,
}

impl Waiting {
    fn loc(&self) -> &[u8] {
        &self.bytes[LOC_OFFSET..LOC_OFFSET + self.member.loc as usize]
    }
}

/// Inserts the lists of alternates.
pub struct HreflangGroups {
    x_default: Option<Vec<u8>>,
    max_bytes: u64,
    /// the keys of the groups that have ended
    ended: KeySet,
    open: Vec<Waiting>,
}

impl HreflangGroups {
    /// With the language whose pages also serve all other languages.
    pub fn new(x_default: Option<Vec<u8>>, max_bytes: u64) -> HreflangGroups {
        HreflangGroups { x_default, max_bytes, ended: KeySet::default(), open: Vec::new() }
    }

    /// Takes a chunk, and passes complete elements to `emit`. `row` is the number of the first row of
    /// the chunk, for errors.
    pub fn push(&mut self, chunk: &Chunk, row: u64, emit: &mut Emit<'_>) -> Result<()> {
        let mut done = Done { chunk: Chunk::default(), emit };
        let mut at = 0;
        for (i, entry) in chunk.entries.iter().enumerate() {
            let bytes = &chunk.bytes[at..at + entry.len as usize];
            at += entry.len as usize;
            let member = chunk.members.get(i).copied().unwrap_or_default();
            let begins = self.open.first().is_some_and(|first| first.member.key != member.key);
            if begins {
                self.end(&mut done)?;
            }
            let split = chunk.split_of(i).to_vec();
            let boundary = chunk.boundaries.get(i).copied();
            let waiting = Waiting { bytes: bytes.to_vec(), entry: *entry, member, boundary, split };
            if member.key == 0 {
                done.write(&waiting, &[])?;
                continue;
            }
            if self.open.is_empty() {
                let mut known = Vec::new();
                self.ended.insert(&[member.key], &mut known);
                if !known.is_empty() {
                    let message =
                        "the rows of its group of languages are not adjacent; sort by that column";
                    let error = ErrorCode::AlternateApart.error(message);
                    return Err(error.at_row(row + u64::from(entry.row)));
                }
            }
            if self.open.len() == LIMIT.count as usize {
                let message =
                    "a group of languages has more than 1,000 rows; is its column the right one?";
                let error = ErrorCode::AlternateGroup.error(message);
                return Err(error.at_row(row + u64::from(entry.row)));
            }
            self.open.push(waiting);
        }
        done.finish()
    }

    /// Ends the last group.
    pub fn finish(&mut self, emit: &mut Emit<'_>) -> Result<()> {
        let mut done = Done { chunk: Chunk::default(), emit };
        self.end(&mut done)?;
        done.finish()
    }

    fn end(&mut self, done: &mut Done<'_, '_>) -> Result<()> {
        let mut list = Vec::new();
        let mut listed: Vec<(&[u8], &[u8])> = Vec::new();
        for row in &self.open {
            let own = row.member.code();
            if own.is_empty() {
                continue;
            }
            if listed.iter().any(|(code, _)| code.eq_ignore_ascii_case(own)) {
                done.chunk.note("alternate.duplicate");
                done.chunk.end_row(true);
            } else {
                listed.push((own, row.loc()));
            }
        }
        if listed.len() > 1 {
            for (code, loc) in &listed {
                write_link(code, loc, &mut list);
            }
            let default = self.x_default.as_ref().and_then(|wanted| {
                listed.iter().find(|(code, _)| code.eq_ignore_ascii_case(wanted))
            });
            let given = listed.iter().any(|(code, _)| code.eq_ignore_ascii_case(X_DEFAULT));
            if let (Some((_, loc)), false) = (default, given) {
                write_link(X_DEFAULT, loc, &mut list);
            }
        }
        let frame = namespaces::length(namespaces::ALL);
        let mut together = 0;
        for row in &self.open {
            let bytes = row.bytes.len() as u64 + list.len() as u64;
            together += bytes;
            // the size is the square of that of the rows: it must not exhaust the memory
            if bytes + frame > self.max_bytes || together > MAX_BYTES {
                let message = "the alternates of a group exceed the size limit of a sitemap file";
                return Err(ErrorCode::AlternateGroup.error(message));
            }
            done.write(row, if row.member.code().is_empty() { &[] } else { &list })?;
        }
        self.open.clear();
        Ok(())
    }
}

/// Takes complete elements.
pub type Emit<'e> = dyn FnMut(Arc<Chunk>) -> Result<()> + 'e;

/// Complete elements. A list in each row of a group makes the square of their size, so they are
/// passed on in chunks of a bounded size.
struct Done<'d, 'e> {
    chunk: Chunk,
    emit: &'d mut Emit<'e>,
}

impl Done<'_, '_> {
    fn write(&mut self, row: &Waiting, list: &[u8]) -> Result<()> {
        let done = &mut self.chunk;
        let start = done.bytes.len();
        let (before, after) = row.bytes.split_at(row.member.insertion_offset as usize);
        for part in [before, list, after] {
            done.bytes.extend_from_slice(part);
        }
        let mut entry = row.entry;
        entry.len = (done.bytes.len() - start) as u32;
        if !list.is_empty() {
            entry.namespaces |= namespaces::XHTML;
        }
        done.entries.push(entry);
        done.boundaries.extend(row.boundary);
        done.push_split(&row.split);
        if done.is_full() { (self.emit)(Arc::new(done.take_full(None))) } else { Ok(()) }
    }

    fn finish(self) -> Result<()> {
        (self.emit)(Arc::new(self.chunk))
    }
}
