//! A complete shard on its way to the writer.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Result;
use crate::flow::chunk::Chunk;
use crate::flow::memory::{Charge, MemoryUse};
use crate::flow::spill::Segment;
use crate::sitemap::date::Order;

/// Adjacent elements.
pub enum Piece {
    /// In a chunk.
    Chunk(Arc<Chunk>, Range<usize>),
    /// In the spill file.
    Spilled(Segment),
}

impl Piece {
    /// A piece of bytes that are in no chunk yet.
    pub fn of(bytes: Vec<u8>) -> Piece {
        let all = 0..bytes.len();
        let mut chunk = Chunk::default();
        chunk.bytes = bytes;
        Piece::Chunk(Arc::new(chunk), all)
    }

    /// The bytes of the elements; none for a spilled piece before [`Shard::load`].
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Piece::Chunk(chunk, bytes) => &chunk.bytes[bytes.clone()],
            Piece::Spilled(_) => &[],
        }
    }

    /// The length of the elements in bytes.
    pub fn length(&self) -> usize {
        match self {
            Piece::Chunk(_, bytes) => bytes.len(),
            Piece::Spilled(segment) => segment.length(),
        }
    }

    /// The first `at` bytes, and the rest.
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

/// One of the sets of a build that is split.
#[derive(Debug)]
pub struct Set {
    /// Its index among the sets.
    pub number: usize,
    /// The first part of the names of its files, before the number: safe, and unique in the job.
    pub stem: String,
    /// The host of its URLs, if the build is split by hosts.
    pub host: Option<String>,
}

/// A complete shard.
pub struct Shard {
    /// Counts from 1 in the order of the rows.
    pub number: u64,
    /// Its elements.
    pub pieces: Vec<Piece>,
    /// The number of its elements.
    pub urls: u32,
    /// Their bytes, with header and footer.
    pub bytes: u64,
    /// The namespaces they use.
    pub namespaces: u8,
    /// The newest lastmod, as [`crate::flow::entry::Entry::newest`].
    pub newest: Order,
    /// The boundary hash of its last row's loc, under the stable layout.
    pub boundary: Option<u64>,
    /// The set that it belongs to, if the build is split.
    pub set: Option<Arc<Set>>,
    /// The memory that its spilled pieces will take.
    pub reserved: Option<Reserved>,
}

/// Memory that is counted before spilled pieces are loaded.
pub struct Reserved {
    memory: MemoryUse,
    /// counts the spilled bytes until the load is complete
    _charge: Charge,
}

impl Shard {
    /// Loads the spilled pieces into memory.
    pub fn load(&mut self) -> Result<()> {
        for piece in &mut self.pieces {
            if let Piece::Spilled(segment) = piece {
                let loaded = Piece::of(segment.read()?);
                if let (Some(reserved), Piece::Chunk(chunk, _)) = (&self.reserved, &loaded) {
                    chunk.charge(&reserved.memory);
                }
                *piece = loaded;
            }
        }
        self.reserved = None;
        Ok(())
    }

    /// Counts its bytes in `memory` while they are in memory; spilled bytes count as if they were.
    pub fn charge(&mut self, memory: &MemoryUse) {
        let mut spilled = 0;
        for piece in &self.pieces {
            match piece {
                Piece::Chunk(chunk, _) => chunk.charge(memory),
                Piece::Spilled(segment) => spilled += segment.length(),
            }
        }
        self.reserved = Some(Reserved { memory: memory.clone(), _charge: memory.charge(spilled) });
    }
}
