//! Rows to shards.
//!
//! ```text
//!  CSV, Arrow      columns         <url> bytes       shards           files
//!  stream    -->   of a batch -->  + offsets    -->  by count    -->  staged, gz,
//!                                                    and bytes        fsynced
//!     read             render           shard            write
//! ```
//!
//! [`pipeline`] is the only module that knows all stages and the threads. The stages exchange the
//! types of [`crate::flow`] and do not import each other.

pub mod duplicates;
pub mod pipeline;
pub mod read;
pub mod render;
pub mod shard;
pub mod stamps;
pub mod write;
