//! The parts of a `<url>`: each function checks one value and appends its
//! canonical form to a buffer of the caller. No I/O, and no allocation for
//! the values that make up a usual catalog.

mod alternate;
mod block;
mod expansion;
mod extension;
pub mod hreflang_groups;
mod image;
mod invalid;
pub mod loc;
mod mapping;
pub mod plan;
mod prefix;
pub mod row;
pub mod rules;
mod split;
mod tail;
pub mod template;
mod text;
