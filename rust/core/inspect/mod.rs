//! Sitemaps to findings and rows. The sitemaps may be of any producer, and are assumed to be hostile.
//!
//! [`document`] parses the bytes of a file into entries; [`verify`], [`read`] and [`diff`] use them.

pub mod changes;
pub mod check;
pub mod codes;
mod cross_file;
mod entry_buf;

pub mod diff;
pub mod document;
pub mod finding;
pub mod index;
pub mod overlap;
pub mod parquet;
pub mod partition;
pub mod read;
mod records;
pub mod rows;
pub mod target;
pub mod verify;
pub mod workers;
