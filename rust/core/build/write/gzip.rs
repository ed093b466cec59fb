//! Compression of a shard: one member without a name and a time, so that equal bytes have equal files.

use crate::error::{ErrorCode, Result};
use crate::flow::shard::Piece;

/// Takes the next bytes of the compressed file.
pub type OutputFn<'o> = dyn FnMut(&[u8]) -> Result<()> + 'o;

/// Compresses shards. Called by several threads at once.
pub trait Encoder: Send + Sync {
    /// Compresses the pieces to one gzip file, and passes it to `output` in parts. Each piece is
    /// dropped as soon as it is compressed: the next rows reuse its memory.
    ///
    /// # Errors
    /// Those of the library and of `output`.
    fn encode(
        &self,
        pieces: &mut dyn Iterator<Item = Piece>,
        output: &mut OutputFn<'_>,
    ) -> Result<()>;
}

/// libdeflate: without ISA-L, and for the best compression.
pub struct Libdeflate {
    level: libdeflater::CompressionLvl,
}

impl Libdeflate {
    /// An encoder with a level from 1 to 12.
    pub fn new(level: i32) -> Result<Libdeflate> {
        let level = libdeflater::CompressionLvl::new(level).map_err(|_| {
            ErrorCode::ConfigLevel.error(format!("libdeflate has no level {level}"))
        })?;
        Ok(Libdeflate { level })
    }
}

impl Encoder for Libdeflate {
    fn encode(
        &self,
        pieces: &mut dyn Iterator<Item = Piece>,
        output: &mut OutputFn<'_>,
    ) -> Result<()> {
        let mut input = Vec::new(); // the library compresses only whole files
        for piece in pieces {
            input.extend_from_slice(piece.as_bytes());
        }
        // creating a compressor is cheap compared with the 20 ms and more for a shard
        let mut compressor = libdeflater::Compressor::new(self.level);
        let mut packed = vec![0; compressor.gzip_compress_bound(input.len())];
        let length = compressor.gzip_compress(&input, &mut packed).map_err(|e| {
            let message = format!("libdeflate could not compress a shard: {e}");
            ErrorCode::InternalGzip.error(message)
        })?;
        output(&packed[..length])
    }
}

/// The bytes of a shard in blocks of a fixed size, for a streaming encoder.
///
/// The output of a streaming encoder depends on where its calls begin and end. The pieces of a shard
/// depend on the format, the batch size, spilling and sorting; its blocks depend on its bytes alone.
pub struct FixedBlocks<'i> {
    pieces: &'i mut dyn Iterator<Item = Piece>,
    /// the remainder of the last piece
    rest: Option<Piece>,
}

/// The size of a block; the last block of a shard may be shorter. Only a block that spans pieces is
/// copied: every fourth or fifth, with pieces of about a megabyte.
pub const BLOCK_BYTES: usize = 256 << 10;

impl<'i> FixedBlocks<'i> {
    /// The blocks of these pieces.
    pub fn new(pieces: &'i mut dyn Iterator<Item = Piece>) -> FixedBlocks<'i> {
        FixedBlocks { pieces, rest: None }
    }

    /// Up to `room` bytes: the next piece, or its beginning.
    fn take(&mut self, room: usize) -> Option<Piece> {
        let piece = self.rest.take().or_else(|| self.pieces.next())?;
        if piece.length() <= room {
            return Some(piece);
        }
        let (head, tail) = piece.split(room);
        self.rest = Some(tail);
        Some(head)
    }
}

impl Iterator for FixedBlocks<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let first = self.take(BLOCK_BYTES)?;
        if first.length() == BLOCK_BYTES {
            return Some(first);
        }
        let mut block = Vec::with_capacity(BLOCK_BYTES);
        block.extend_from_slice(first.as_bytes());
        drop(first);
        while block.len() < BLOCK_BYTES
            && let Some(piece) = self.take(BLOCK_BYTES - block.len())
        {
            block.extend_from_slice(piece.as_bytes());
        }
        (!block.is_empty()).then(|| Piece::of(block))
    }
}
