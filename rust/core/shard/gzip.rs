//! Compression of a whole shard: one member, no name, no time, so that same bytes give same bytes.

use super::packer::Piece;
use crate::error::{Error, Kind, Result};

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

/// Joins what is small, for an encoder that takes a call for each piece: where spilled rows come
/// back, a shard has thousands of pieces.
pub struct Joined<'i> {
    pieces: &'i mut dyn Iterator<Item = Piece>,
    next: Option<Piece>,
}

/// Pieces of fewer bytes are joined.
const SMALL: usize = 64 << 10;

impl<'i> Joined<'i> {
    /// The same bytes in fewer pieces.
    pub fn new(pieces: &'i mut dyn Iterator<Item = Piece>) -> Joined<'i> {
        Joined { pieces, next: None }
    }
}

impl Iterator for Joined<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        if let Some(piece) = self.next.take() {
            return Some(piece);
        }
        let mut joined = Vec::new();
        for piece in &mut *self.pieces {
            let bytes = piece.as_bytes();
            if bytes.len() >= SMALL {
                if joined.is_empty() {
                    return Some(piece);
                }
                self.next = Some(piece);
                break;
            }
            joined.extend_from_slice(bytes);
            if joined.len() >= SMALL * 4 {
                break;
            }
        }
        (!joined.is_empty()).then(|| Piece::of(joined))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(length: usize, fill: u8) -> Piece {
        Piece::of(vec![fill; length])
    }

    #[test]
    fn joined_gives_the_same_bytes() {
        for lengths in [
            &[][..],
            &[0, 0],
            &[1],
            &[SMALL],
            &[1, SMALL, 1, 1, SMALL - 1, SMALL, SMALL],
            &[SMALL - 1; 11],
            &[100; 5000],
        ] {
            let make = || lengths.iter().zip(0u8..=255).map(|(&length, fill)| piece(length, fill));
            let plain: Vec<u8> = make().flat_map(|piece| piece.as_bytes().to_vec()).collect();
            let mut pieces = make();
            let joined: Vec<Piece> = Joined::new(&mut pieces).collect();
            let bytes: Vec<u8> =
                joined.iter().flat_map(|piece| piece.as_bytes().to_vec()).collect();
            assert_eq!(bytes, plain);
            assert!(
                joined
                    .windows(2)
                    .all(|two| { two[0].as_bytes().len().max(two[1].as_bytes().len()) >= SMALL })
            );
        }
    }
}
