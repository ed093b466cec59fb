//! Elements to shards by count and bytes.
//!
//! # For maintainers
//!
//! **What must stay true.** The limits are exact: the check runs before an element is taken, and
//! counts the header for the namespaces that the shard has with that element. `push_whole` takes a
//! chunk by its totals and must pack as the loop over its elements does; it exists because the loop
//! costs a cache miss for each entry. The module does no I/O.
//!
//! **Which test fails.** `whole_chunks_are_packed_as_their_elements_are` compares both ways with a
//! plain model. In Python, `test_limits.py` builds shards at the limits of the protocol.

use std::ops::Range;
use std::sync::Arc;

use crate::flow::chunk::Chunk;
use crate::flow::entry::NO_LASTMOD;
use crate::flow::shard::{Piece, Shard};
use crate::sitemap::namespaces;

/// Limit of the articles in one sitemap (Google News).
pub const MAX_NEWS: u32 = 1_000;

/// The limits of a shard.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// URLs.
    pub urls: u32,
    /// Uncompressed bytes, with header and footer.
    pub bytes: u64,
    /// A text sitemap, which has no header and footer.
    pub text: bool,
}

impl Limits {
    /// Bytes of header and footer.
    pub fn frame(&self, namespaces: u8) -> u64 {
        if self.text { 0 } else { namespaces::length(namespaces) }
    }
}

/// Fills shards.
pub struct Packer {
    limits: Limits,
    open: Shard,
    /// bytes of the elements alone
    body: u64,
    /// the news articles among them
    news: u32,
}

impl Packer {
    /// A packer whose first shard has number 1.
    pub fn new(limits: Limits) -> Packer {
        Packer { limits, open: Packer::empty(1), body: 0, news: 0 }
    }

    fn empty(number: u64) -> Shard {
        Shard {
            number,
            pieces: Vec::new(),
            urls: 0,
            bytes: 0,
            namespaces: 0,
            newest: NO_LASTMOD,
            set: None,
            boundary: None,
            reserved: None,
        }
    }

    /// Takes the elements of a chunk, and calls `emit` with each complete shard.
    pub fn push<E>(
        &mut self,
        chunk: &Arc<Chunk>,
        emit: &mut impl FnMut(Shard) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.push_whole(chunk) {
            return Ok(());
        }
        let mut at = 0;
        let mut from = 0; // the start of the current run of elements
        for entry in &chunk.entries {
            let len = entry.len as usize;
            let namespaces = self.open.namespaces | entry.namespaces;
            let bytes = self.body + len as u64 + self.limits.frame(namespaces);
            let news = u32::from(entry.namespaces & namespaces::NEWS != 0);
            if self.open.urls == self.limits.urls
                || bytes > self.limits.bytes
                || self.news + news > MAX_NEWS
            {
                self.run(chunk, from..at);
                from = at;
                emit(self.close())?;
            }
            self.open.urls += 1;
            self.news += news;
            self.open.namespaces |= entry.namespaces;
            self.open.newest = self.open.newest.max(entry.newest);
            self.body += len as u64;
            at += len;
        }
        self.run(chunk, from..at);
        Ok(())
    }

    /// Takes a whole chunk, if no shard ends in it and its totals are known.
    fn push_whole(&mut self, chunk: &Arc<Chunk>) -> bool {
        let Some(totals) = chunk.totals else { return false };
        let urls = u64::from(self.open.urls) + chunk.entries.len() as u64;
        let news = self.news.saturating_add(totals.news);
        let namespaces = self.open.namespaces | totals.namespaces;
        let body = self.body + chunk.bytes.len() as u64;
        if urls > u64::from(self.limits.urls)
            || news > MAX_NEWS
            || body + self.limits.frame(namespaces) > self.limits.bytes
        {
            return false;
        }
        self.run(chunk, 0..chunk.bytes.len());
        self.open.urls = urls as u32;
        self.open.namespaces = namespaces;
        self.open.newest = self.open.newest.max(totals.newest);
        (self.body, self.news) = (body, news);
        true
    }

    fn run(&mut self, chunk: &Arc<Chunk>, bytes: Range<usize>) {
        if !bytes.is_empty() {
            self.open.pieces.push(Piece::Chunk(chunk.clone(), bytes));
        }
    }

    /// The pieces of the shard that is not yet complete.
    pub fn pieces(&mut self) -> &mut Vec<Piece> {
        &mut self.open.pieces
    }

    fn close(&mut self) -> Shard {
        let next = Packer::empty(self.open.number + 1);
        let mut shard = std::mem::replace(&mut self.open, next);
        shard.bytes = self.body + self.limits.frame(shard.namespaces);
        self.body = 0;
        self.news = 0;
        shard
    }

    /// The last shard, if elements are left.
    pub fn finish(mut self) -> Option<Shard> {
        (self.open.urls > 0).then(|| self.close())
    }
}
