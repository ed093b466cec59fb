//! `<url>` elements to shards that keep every limit.

mod merge;
mod name;
pub mod packer;
pub mod sort;
pub mod split;
pub mod stable;

use std::sync::Arc;

use crate::config::Layout;
use crate::flow::chunk::Chunk;
use crate::flow::shard::{Piece, Shard};

/// Fills shards by a layout.
pub enum Packing {
    /// Shards are as full as the limits allow.
    Packed(packer::Packer),
    /// Shards end at boundaries that the rows choose.
    Stable(stable::StablePacker),
}

impl Packing {
    /// A packer of a layout.
    pub fn new(layout: Layout, limits: packer::Limits) -> Packing {
        match layout {
            Layout::Packed => Packing::Packed(packer::Packer::new(limits)),
            Layout::Stable => Packing::Stable(stable::StablePacker::new(limits)),
        }
    }

    /// Takes the elements of a chunk, and calls `emit` with each complete shard.
    pub fn push<E>(
        &mut self,
        chunk: &Arc<Chunk>,
        emit: &mut impl FnMut(Shard) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Packing::Packed(packer) => packer.push(chunk, emit),
            Packing::Stable(packer) => packer.push(chunk, emit),
        }
    }

    /// The pieces that belong to no complete shard yet, in their order.
    pub fn pieces(&mut self) -> &mut Vec<Piece> {
        match self {
            Packing::Packed(packer) => packer.pieces(),
            Packing::Stable(packer) => packer.pieces(),
        }
    }

    /// The last shard, if elements are left.
    pub fn finish(self) -> Option<Shard> {
        match self {
            Packing::Packed(packer) => packer.finish(),
            Packing::Stable(packer) => packer.finish(),
        }
    }
}
