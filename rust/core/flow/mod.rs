//! The data that passes between the stages of a build.
//!
//! ```text
//! read --source: batches of rows of cells--> render --chunk--> shard --shard--> write --outcome-->
//! ```
//!
//! This layer uses the format ([`crate::sitemap`]) and errors, and no stage.

pub mod cell;
pub mod chunk;
pub mod entry;
pub mod hash;
pub mod json;
pub mod key_set;
pub mod member;
pub mod memory;
pub mod order;
pub mod outcome;
pub mod pool;
pub mod row;
pub mod sample;
pub mod shard;
pub mod source;
pub mod spill;
pub mod stamps;
pub mod transcode;
pub mod value;
