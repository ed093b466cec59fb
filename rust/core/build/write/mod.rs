//! Complete shards to files.

pub mod dir;
pub mod gzip;
pub mod rejects;

use crate::error::Result;
use crate::flow::outcome::ShardEntry;
use crate::flow::shard::Shard;

/// Takes complete shards, from several threads at once and in any order.
///
/// The pipeline drives; an error ends the run. What a sink has written is of no use unless the
/// run succeeds: the caller publishes it or throws it away.
pub trait Sink: Sync {
    /// Writes one shard and tells what was written.
    fn write(&self, shard: Shard) -> Result<ShardEntry>;
    /// Called once, after the last shard: all is on the disk when it returns.
    fn finish(&self) -> Result<()>;
}
