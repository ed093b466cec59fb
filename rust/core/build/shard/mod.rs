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

/// How the shards of a run are filled.
pub enum Packing {
    /// As full as the limits allow.
    Packed(packer::Packer),
    /// Up to borders that the rows set.
    Stable(stable::Borders),
}

impl Packing {
    /// Of a layout.
    pub fn new(layout: Layout, limits: packer::Limits) -> Packing {
        match layout {
            Layout::Packed => Packing::Packed(packer::Packer::new(limits)),
            Layout::Stable => Packing::Stable(stable::Borders::new(limits)),
        }
    }

    /// Takes the elements of a chunk; gives each shard that became complete to `emit`.
    pub fn push<E>(
        &mut self,
        chunk: &Arc<Chunk>,
        emit: &mut impl FnMut(Shard) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Packing::Packed(packer) => packer.push(chunk, emit),
            Packing::Stable(borders) => borders.push(chunk, emit),
        }
    }

    /// The pieces that belong to no complete shard yet, in their order.
    pub fn pieces(&mut self) -> &mut Vec<Piece> {
        match self {
            Packing::Packed(packer) => packer.pieces(),
            Packing::Stable(borders) => borders.pieces(),
        }
    }

    /// The last shard, if there is one.
    pub fn finish(self) -> Option<Shard> {
        match self {
            Packing::Packed(packer) => packer.finish(),
            Packing::Stable(borders) => borders.finish(),
        }
    }
}
