//! Shards whose boundaries the rows choose, so that an edit changes one shard.
//!
//! A shard ends at the row with the smallest hash of its loc, between 30 % of the limits and the point
//! where they would be exceeded. An inserted, removed or longer row moves that point a little, and
//! usually not the row with the smallest hash, which is the boundary. All shards after it stay as they
//! are. Boundaries by count alone would shift in all shards that follow.
//!
//! # For maintainers
//!
//! Only rows that no later row undercuts can become a boundary. The packer keeps these rows alone,
//! about the logarithm of the number of rows, each with the totals of the rows before it
//! ([`Stretch`]). Their hashes ascend. Of equal hashes the first is the boundary. Any change of the
//! rule or of the hash changes the shards of every build with this layout.
//!
//! The test below compares it with the rule in plain words.

use std::ops::Range;
use std::sync::Arc;

use crate::build::shard::packer::{Limits, MAX_NEWS};
use crate::flow::chunk::Chunk;
use crate::flow::entry::{Entry, NO_LASTMOD};
use crate::flow::shard::{Piece, Shard};
use crate::sitemap::date::Order;
use crate::sitemap::namespaces;

/// The minimum fill of a shard in percent of the limits. Simulated: 30 leads to an average of 67 %.
const MIN_FILL: u64 = 30;

/// Adjacent rows, of which the last may become a boundary.
#[derive(Clone, Copy)]
struct Stretch {
    /// the hash of the last row; no later row has a smaller one
    hash: u64,
    urls: u32,
    news: u32,
    bytes: u64,
    newest: Order,
    namespaces: u8,
}

impl Stretch {
    const NONE: Stretch =
        Stretch { hash: 0, urls: 0, news: 0, bytes: 0, newest: NO_LASTMOD, namespaces: 0 };

    fn of(entry: &Entry, hash: u64) -> Stretch {
        Stretch {
            hash,
            urls: 1,
            news: u32::from(entry.namespaces & namespaces::NEWS != 0),
            bytes: u64::from(entry.len),
            newest: entry.newest,
            namespaces: entry.namespaces,
        }
    }

    /// This stretch and the next one.
    fn and(self, next: Stretch) -> Stretch {
        Stretch {
            hash: next.hash,
            urls: self.urls + next.urls,
            news: self.news + next.news,
            bytes: self.bytes + next.bytes,
            newest: self.newest.max(next.newest),
            namespaces: self.namespaces | next.namespaces,
        }
    }
}

/// Fills shards up to their boundaries.
pub struct StablePacker {
    limits: Limits,
    /// the rows that belong to no shard yet; their hashes ascend
    open: Vec<Stretch>,
    /// the totals of these rows
    total: Stretch,
    pieces: Vec<Piece>,
    number: u64,
}

impl StablePacker {
    /// A packer whose first shard has number 1.
    pub fn new(limits: Limits) -> StablePacker {
        StablePacker {
            limits,
            open: Vec::new(),
            total: Stretch::NONE,
            pieces: Vec::new(),
            number: 1,
        }
    }

    /// As [`super::packer::Packer::push`].
    pub fn push<E>(
        &mut self,
        chunk: &Arc<Chunk>,
        emit: &mut impl FnMut(Shard) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut at = 0;
        let mut from = 0; // the start of the current run of elements
        for (entry, &hash) in chunk.entries.iter().zip(&chunk.boundaries) {
            let start = at;
            at += entry.len as usize;
            while !self.open.is_empty() && !self.fits(entry) {
                self.run(chunk, from..start);
                from = start;
                let boundary = self.boundary();
                emit(self.cut(boundary))?;
            }
            let mut row = Stretch::of(entry, hash);
            self.total = self.total.and(row);
            // of equal hashes the first is the boundary
            while let Some(before) = self.open.pop_if(|before| before.hash > hash) {
                row = before.and(row);
            }
            self.open.push(row);
        }
        self.run(chunk, from..at);
        Ok(())
    }

    fn run(&mut self, chunk: &Arc<Chunk>, bytes: Range<usize>) {
        if !bytes.is_empty() {
            self.pieces.push(Piece::Chunk(chunk.clone(), bytes));
        }
    }

    /// The pieces of the rows that belong to no shard yet.
    pub fn pieces(&mut self) -> &mut Vec<Piece> {
        &mut self.pieces
    }

    fn fits(&self, entry: &Entry) -> bool {
        let all = self.total.and(Stretch::of(entry, 0));
        all.urls <= self.limits.urls
            && all.bytes + self.limits.frame(all.namespaces) <= self.limits.bytes
            && all.news <= MAX_NEWS
    }

    /// The index of the stretch that ends with the smallest hash after the minimum fill; the last one
    /// if there are fewer rows.
    fn boundary(&self) -> usize {
        let (urls, bytes) = (u64::from(self.limits.urls) * MIN_FILL, self.limits.bytes * MIN_FILL);
        let mut all = Stretch::NONE;
        let enough = self.open.iter().position(|stretch| {
            all = all.and(*stretch);
            u64::from(all.urls) * 100 >= urls || all.bytes * 100 >= bytes
        });
        enough.unwrap_or(self.open.len() - 1)
    }

    /// A shard of the rows up to the end of a stretch.
    fn cut(&mut self, boundary: usize) -> Shard {
        let all = self.open.drain(..=boundary).fold(Stretch::NONE, Stretch::and);
        self.total = self.open.iter().fold(Stretch::NONE, |all, next| all.and(*next));
        let mut pieces = Vec::new();
        let mut rest = all.bytes as usize;
        let mut open = std::mem::take(&mut self.pieces).into_iter();
        while rest > 0
            && let Some(piece) = open.next()
        {
            let length = piece.length();
            if length > rest {
                let (head, tail) = piece.split(rest);
                pieces.push(head);
                self.pieces.push(tail);
                break;
            }
            rest -= length;
            pieces.push(piece);
        }
        self.pieces.extend(open);
        self.number += 1;
        Shard {
            number: self.number - 1,
            pieces,
            urls: all.urls,
            bytes: all.bytes + self.limits.frame(all.namespaces),
            namespaces: all.namespaces,
            newest: all.newest,
            boundary: Some(all.hash),
            set: None,
            reserved: None,
        }
    }

    /// The last shard, if rows are left.
    pub fn finish(mut self) -> Option<Shard> {
        (!self.open.is_empty()).then(|| self.cut(self.open.len() - 1))
    }
}
