//! Complete shards to compressed files.
//!
//! ```text
//! shard -> writer: name, header and footer, digest, encoder -> sink: create, write, close
//! ```
//!
//! A [`sink::Sink`] stores bytes under names and knows nothing else. The folder is one sink, the
//! memory is another.

mod claims;
pub mod folder;
pub mod gzip;
pub mod live;
pub mod memory;
pub mod rejects;
pub mod sink;
pub mod writer;
