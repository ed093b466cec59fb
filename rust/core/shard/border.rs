//! Shards whose borders are set by the rows themselves, so that an edit touches one of them.
//!
//! A shard ends at the row with the smallest hash of its loc between 30 % of the limits and the
//! point where they would be overrun. An inserted, removed or longer row moves that point a little,
//! and mostly leaves the row of the smallest hash, and so the border, where it is; after it all is
//! as before. A fixed border would shift all shards that follow.

use std::collections::VecDeque;
use std::sync::Arc;

use super::frame;
use super::packer::{Limits, MAX_NEWS, Piece, Shard};
use crate::render::chunk::{Chunk, NO_LASTMOD};

/// The least share of the limits that a shard fills, in percent. Simulated: 30 gives 67 % fill.
const LEAST: u64 = 30;

/// A row that belongs to no shard yet.
#[derive(Clone, Copy)]
struct Row {
    hash: u64,
    newest: i64,
    /// which of the chunks at hand, counted from the first that ever was
    chunk: u64,
    at: u32,
    len: u32,
    namespaces: u8,
}

/// Fills shards up to borders. Holds at most the rows of one shard.
pub struct Borders {
    limits: Limits,
    rows: VecDeque<Row>,
    chunks: VecDeque<Arc<Chunk>>,
    /// how many chunks were there before the first of `chunks`
    gone: u64,
    body: u64,
    namespaces: u8,
    /// how many of the rows are news
    news: u32,
    number: u64,
}

impl Borders {
    /// A packer whose first shard has number 1.
    pub fn new(limits: Limits) -> Borders {
        Borders {
            limits,
            rows: VecDeque::new(),
            chunks: VecDeque::new(),
            gone: 0,
            body: 0,
            namespaces: 0,
            news: 0,
            number: 1,
        }
    }

    /// As [`super::packer::Packer::push`].
    pub fn push<E>(
        &mut self,
        chunk: &Arc<Chunk>,
        skip: &[u32],
        emit: &mut impl FnMut(Shard) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut skip = skip.iter().peekable();
        let mut at = 0u32;
        self.chunks.push_back(chunk.clone());
        let index = self.gone + self.chunks.len() as u64 - 1;
        for (i, (entry, &hash)) in chunk.entries.iter().zip(&chunk.borders).enumerate() {
            let start = at;
            at += entry.len;
            if skip.next_if(|&&s| s as usize == i).is_some() {
                continue;
            }
            while !self.rows.is_empty() && !self.fits(entry.len, entry.namespaces) {
                let border = self.border();
                emit(self.cut(border + 1))?;
            }
            self.body += u64::from(entry.len);
            self.namespaces |= entry.namespaces;
            self.news += u32::from(entry.namespaces & frame::NEWS != 0);
            self.rows.push_back(Row {
                hash,
                newest: entry.newest,
                chunk: index,
                at: start,
                len: entry.len,
                namespaces: entry.namespaces,
            });
        }
        Ok(())
    }

    fn fits(&self, len: u32, namespaces: u8) -> bool {
        let frame = self.limits.frame(self.namespaces | namespaces);
        (self.rows.len() as u64) < u64::from(self.limits.urls)
            && self.body + u64::from(len) + frame <= self.limits.bytes
            && self.news + u32::from(namespaces & frame::NEWS != 0) <= MAX_NEWS
    }

    /// The row of the smallest hash behind the least fill; the first of equals.
    fn border(&self) -> usize {
        let (urls, bytes) = (u64::from(self.limits.urls) * LEAST, self.limits.bytes * LEAST);
        let mut body = 0;
        let mut best: Option<(u64, usize)> = None;
        for (i, row) in self.rows.iter().enumerate() {
            body += u64::from(row.len);
            let enough = (i as u64 + 1) * 100 >= urls || body * 100 >= bytes;
            if enough && best.is_none_or(|(hash, _)| row.hash < hash) {
                best = Some((row.hash, i));
            }
        }
        best.map_or(self.rows.len() - 1, |(_, i)| i)
    }

    /// The first `count` rows as a shard.
    fn cut(&mut self, count: usize) -> Shard {
        let mut shard = Shard {
            number: self.number,
            pieces: Vec::new(),
            urls: count as u32,
            bytes: 0,
            namespaces: 0,
            newest: NO_LASTMOD,
            border: None,
            set: None,
        };
        self.number += 1;
        let mut body = 0;
        let mut of = None;
        for row in self.rows.drain(..count) {
            body += u64::from(row.len);
            shard.namespaces |= row.namespaces;
            self.news -= u32::from(row.namespaces & frame::NEWS != 0);
            shard.newest = shard.newest.max(row.newest);
            shard.border = Some(row.hash);
            let (start, end) = (row.at as usize, (row.at + row.len) as usize);
            match shard.pieces.last_mut() {
                Some(Piece::Chunk(_, bytes)) if of == Some(row.chunk) && bytes.end == start => {
                    bytes.end = end
                }
                _ => {
                    let chunk = self.chunks[(row.chunk - self.gone) as usize].clone();
                    shard.pieces.push(Piece::Chunk(chunk, start..end));
                    of = Some(row.chunk);
                }
            }
        }
        let needed = self.rows.front().map_or(u64::MAX, |row| row.chunk);
        while self.gone < needed && self.chunks.len() > 1 {
            self.chunks.pop_front();
            self.gone += 1;
        }
        self.body -= body;
        self.namespaces = self.rows.iter().fold(0, |all, row| all | row.namespaces);
        shard.bytes = body + self.limits.frame(shard.namespaces);
        shard
    }

    /// The last shard, if there is one.
    pub fn finish(mut self) -> Option<Shard> {
        (!self.rows.is_empty()).then(|| self.cut(self.rows.len()))
    }
}
