//! Rows to `<url>` elements. Each part checks a value and appends its canonical form to the buffer of
//! a chunk. No I/O; no allocation for the values of a usual catalog.

mod alternate;
mod block;
mod content;
mod expansion;
mod extension;
mod field;
mod field_writer;
pub mod hreflang_groups;
mod image;
mod invalid;
pub mod loc;
mod mapping;
mod number;
pub mod plan;
mod prefix;
pub mod row;
pub mod rules;
mod split;
mod stamper;
pub mod template;
mod text;
