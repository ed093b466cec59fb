//! Elements to shards by count and bytes. Pure: no I/O, and "fits" is answered before an element
//! is taken.

use std::ops::Range;
use std::sync::Arc;

use super::frame;
use super::spill::Segment;
use crate::error::Result;
use crate::render::chunk::{Chunk, NO_LASTMOD};
use crate::render::lastmod::Order;

/// Articles in one sitemap at most (PROTOCOL section 2, *News*).
pub const MAX_NEWS: u32 = 1_000;

/// What a shard may hold.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// URLs at most.
    pub urls: u32,
    /// Uncompressed bytes at most, header and footer included.
    pub bytes: u64,
    /// A text sitemap: nothing stands around its lines.
    pub text: bool,
}

impl Limits {
    /// Bytes of header and footer.
    pub fn frame(&self, namespaces: u8) -> u64 {
        if self.text { 0 } else { frame::length(namespaces) }
    }
}

/// Elements that stand next to each other.
pub enum Piece {
    /// In a chunk.
    Chunk(Arc<Chunk>, Range<usize>),
    /// In the spill file.
    Spilled(Segment),
}

impl Piece {
    /// Bytes that are in no chunk.
    pub fn of(bytes: Vec<u8>) -> Piece {
        let all = 0..bytes.len();
        let mut chunk = Chunk::default();
        chunk.bytes = bytes;
        Piece::Chunk(Arc::new(chunk), all)
    }

    /// The bytes of the elements; a piece that was spilled has none until it is loaded.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Piece::Chunk(chunk, bytes) => &chunk.bytes[bytes.clone()],
            Piece::Spilled(_) => &[],
        }
    }

    /// How many bytes the elements have.
    pub fn length(&self) -> usize {
        match self {
            Piece::Chunk(_, bytes) => bytes.len(),
            Piece::Spilled(segment) => segment.length(),
        }
    }

    /// The first bytes, and those behind them.
    pub fn split(self, at: usize) -> (Piece, Piece) {
        match self {
            Piece::Chunk(chunk, bytes) => {
                let middle = bytes.start + at;
                let head = Piece::Chunk(chunk.clone(), bytes.start..middle);
                (head, Piece::Chunk(chunk, middle..bytes.end))
            }
            Piece::Spilled(segment) => {
                let (head, tail) = segment.split(at);
                (Piece::Spilled(head), Piece::Spilled(tail))
            }
        }
    }
}

/// Which of the sets that a build is split into.
#[derive(Debug)]
pub struct Set {
    /// Its place among the sets.
    pub number: usize,
    /// What the names of its files begin with, without the number: safe, and no other set's.
    pub stem: String,
    /// The host of its URLs, if it is split by hosts.
    pub host: Option<String>,
}

/// A shard that is complete.
pub struct Shard {
    /// Counts from 1 in the order of the rows.
    pub number: u64,
    /// Its elements.
    pub pieces: Vec<Piece>,
    /// How many there are.
    pub urls: u32,
    /// Their bytes, with header and footer.
    pub bytes: u64,
    /// The namespaces they use.
    pub namespaces: u8,
    /// The newest lastmod, as [`crate::render::chunk::Entry::newest`] has it.
    pub newest: Order,
    /// The hash of its last row's loc, under the stable layout.
    pub border: Option<u64>,
    /// The set that it belongs to, if the build is split.
    pub set: Option<Arc<Set>>,
}

impl Shard {
    /// Brings back what was spilled.
    pub fn load(&mut self) -> Result<()> {
        for piece in &mut self.pieces {
            if let Piece::Spilled(segment) = piece {
                *piece = Piece::of(segment.read()?);
            }
        }
        Ok(())
    }
}

/// Fills shards.
pub struct Packer {
    limits: Limits,
    open: Shard,
    /// bytes of the elements alone
    body: u64,
    /// how many of them are news
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
            border: None,
        }
    }

    /// Takes the elements of a chunk; gives each shard that became full to `emit`.
    pub fn push<E>(
        &mut self,
        chunk: &Arc<Chunk>,
        emit: &mut impl FnMut(Shard) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut at = 0;
        let mut from = 0; // where the run at hand begins
        for entry in &chunk.entries {
            let len = entry.len as usize;
            let namespaces = self.open.namespaces | entry.namespaces;
            let bytes = self.body + len as u64 + self.limits.frame(namespaces);
            let news = u32::from(entry.namespaces & frame::NEWS != 0);
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

    /// The last shard, if there is one.
    pub fn finish(mut self) -> Option<Shard> {
        (self.open.urls > 0).then(|| self.close())
    }
}
