//! Compression of a whole shard: one member, no name, no time, so that same bytes give same bytes.

use crate::error::{Error, Kind, Result};
use crate::flow::shard::Piece;

/// Takes the next bytes of a file.
pub type Output<'o> = dyn FnMut(&[u8]) -> Result<()> + 'o;

/// Compresses shards. Called by several threads at once.
pub trait Encoder: Send + Sync {
    /// Gives the gzip file of the pieces to `output`, in parts, in their order. Each piece is let
    /// go as soon as it is compressed: its memory serves the next rows.
    ///
    /// # Errors
    /// When memory or the library behind it fails, or `output` does.
    fn encode(
        &self,
        pieces: &mut dyn Iterator<Item = Piece>,
        output: &mut Output<'_>,
    ) -> Result<()>;
}

/// libdeflate, where ISA-L is missing and for the best compression.
pub struct Libdeflate {
    level: libdeflater::CompressionLvl,
}

impl Libdeflate {
    /// With a level of 1 to 12.
    pub fn new(level: i32) -> Result<Libdeflate> {
        let level = libdeflater::CompressionLvl::new(level).map_err(|_| {
            Error::config("config.level", format!("libdeflate has no level {level}"))
        })?;
        Ok(Libdeflate { level })
    }
}

impl Encoder for Libdeflate {
    fn encode(
        &self,
        pieces: &mut dyn Iterator<Item = Piece>,
        output: &mut Output<'_>,
    ) -> Result<()> {
        let mut input = Vec::new(); // it takes a file as a whole only
        for piece in pieces {
            input.extend_from_slice(piece.as_bytes());
        }
        // to make a compressor takes little beside the 20 ms and more that a shard takes
        let mut compressor = libdeflater::Compressor::new(self.level);
        let mut packed = vec![0; compressor.gzip_compress_bound(input.len())];
        let length = compressor.gzip_compress(&input, &mut packed).map_err(|e| {
            let message = format!("libdeflate could not compress a shard: {e}");
            Error::new(Kind::Output, "internal.gzip", message)
        })?;
        output(&packed[..length])
    }
}

/// Cuts the bytes of a shard into blocks at fixed offsets, for an encoder that takes a call per
/// block.
///
/// What a streaming encoder writes depends on where its calls begin and end. The pieces of a shard
/// depend on the format, the batch size, spilling and sorting; its blocks depend on its bytes alone.
pub struct Blocks<'i> {
    pieces: &'i mut dyn Iterator<Item = Piece>,
    /// what is left of the last piece
    rest: Option<Piece>,
}

/// Bytes of a block; the last one of a shard may be shorter. Only a block that spans pieces is
/// copied: with pieces of about a megabyte that is every fourth or fifth.
pub const BLOCK: usize = 256 << 10;

impl<'i> Blocks<'i> {
    /// The same bytes, cut anew.
    pub fn new(pieces: &'i mut dyn Iterator<Item = Piece>) -> Blocks<'i> {
        Blocks { pieces, rest: None }
    }

    /// At most `room` bytes: the next piece, or the beginning of it.
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

impl Iterator for Blocks<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let first = self.take(BLOCK)?;
        if first.length() == BLOCK {
            return Some(first);
        }
        let mut block = Vec::with_capacity(BLOCK);
        block.extend_from_slice(first.as_bytes());
        drop(first);
        while block.len() < BLOCK
            && let Some(piece) = self.take(BLOCK - block.len())
        {
            block.extend_from_slice(piece.as_bytes());
        }
        (!block.is_empty()).then(|| Piece::of(block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(pieces: impl Iterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
        let mut pieces = pieces.map(Piece::of);
        Blocks::new(&mut pieces).map(|block| block.as_bytes().to_vec()).collect()
    }

    #[test]
    fn blocks_depend_on_the_bytes_alone() {
        for length in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK, 7 * BLOCK + 12_345] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let wanted: Vec<Vec<u8>> = bytes.chunks(BLOCK).map(<[u8]>::to_vec).collect();
            for size in [997, 64 << 10, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7, usize::MAX] {
                let cut = bytes.chunks(size).map(<[u8]>::to_vec);
                assert_eq!(blocks(cut), wanted, "{length} bytes in pieces of {size}");
            }
            let mut seed = 5_u64;
            let mut rest = &bytes[..];
            let mut cut = vec![Vec::new()];
            while !rest.is_empty() {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let (now, later) = rest.split_at(((seed >> 33) as usize % 600_000).min(rest.len()));
                cut.extend([now.to_vec(), Vec::new()]);
                rest = later;
            }
            assert_eq!(blocks(cut.into_iter()), wanted, "{length} bytes in random pieces");
        }
    }
}
