//! `<url>` elements to shards that keep every limit.

pub mod border;
pub mod gzip;
mod merge;
mod name;
pub mod packer;
pub mod sort;
mod spill;
pub mod split;

use std::sync::Arc;

use crate::config::Layout;
use crate::flow::chunk::Chunk;

/// How the shards of a run are filled.
pub enum Packing {
    /// As full as the limits allow.
    Packed(packer::Packer),
    /// Up to borders that the rows set.
    Stable(border::Borders),
}

impl Packing {
    /// Of a layout.
    pub fn new(layout: Layout, limits: packer::Limits) -> Packing {
        match layout {
            Layout::Packed => Packing::Packed(packer::Packer::new(limits)),
            Layout::Stable => Packing::Stable(border::Borders::new(limits)),
        }
    }

    /// Takes the elements of a chunk; gives each shard that became complete to `emit`.
    pub fn push<E>(
        &mut self,
        chunk: &Arc<Chunk>,
        emit: &mut impl FnMut(packer::Shard) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            Packing::Packed(packer) => packer.push(chunk, emit),
            Packing::Stable(borders) => borders.push(chunk, emit),
        }
    }

    /// The pieces that belong to no complete shard yet, in their order.
    pub fn pieces(&mut self) -> &mut Vec<packer::Piece> {
        match self {
            Packing::Packed(packer) => packer.pieces(),
            Packing::Stable(borders) => borders.pieces(),
        }
    }

    /// The last shard, if there is one.
    pub fn finish(self) -> Option<packer::Shard> {
        match self {
            Packing::Packed(packer) => packer.finish(),
            Packing::Stable(borders) => borders.finish(),
        }
    }
}
