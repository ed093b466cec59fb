//! The parts of a `<url>`: each function checks one value and appends its
//! canonical form to a buffer of the caller. No I/O, and no allocation for
//! the values that make up a usual catalog.

pub mod address;
mod alternate;
mod block;
pub mod changefreq;
pub mod chunk;
pub mod class;
pub mod escape;
mod expansion;
mod extension;
pub mod family;
pub mod fault;
pub mod hreflang;
mod image;
pub mod lastmod;
pub mod loc;
mod mapped;
mod news;
mod placeholder;
pub mod plan;
mod prefix;
pub mod priority;
pub mod room;
pub mod row;
mod split;
mod tail;
pub mod template;
mod text;
mod video;
