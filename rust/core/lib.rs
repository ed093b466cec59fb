//! Catalogs of millions of rows to sitemaps.
//!
//! ```text
//!  CSV, Arrow      columns         <url> bytes       shards           files
//!  stream    -->   of a batch -->  + offsets    -->  by count    -->  staged, gz,
//!                                                    and bytes        fsynced
//!     read             render           shard            write
//! ```
//!
//! [`pipeline`] is the only module that knows all stages and the threads. The
//! index and the publication are the caller's (the Python package `urlset`).

#![deny(unsafe_code)]

pub mod build;
pub mod config;
pub mod error;
pub mod file;
pub mod flow;
pub mod inspect;
mod panic;
#[cfg(test)]
#[path = "../../tests/rust/common/random.rs"]
mod random;
pub mod simd;
pub mod sitemap;
pub mod thread;

pub use error::{Error, ErrorCode, Kind, Position, Result};

/// Whether the checks of rows and of written files are compiled out, never in an installed package:
/// `benches/checks.py` measures their cost.
pub const UNCHECKED: bool = cfg!(feature = "unchecked");
