//! Sitemaps to findings and rows: anybody's sitemaps, which are hostile by assumption.
//!
//! [`document`] turns the bytes of a file into entries; [`verify`], [`read`] and [`diff`] use them.

mod build;
pub mod changes;
pub mod check;
pub mod codes;

pub mod diff;
pub mod document;
pub mod finding;
pub mod index;
pub mod overlap;
pub mod parquet;
pub mod read;
mod records;
pub mod rows;
pub mod spill;
pub mod verify;
pub mod workers;
