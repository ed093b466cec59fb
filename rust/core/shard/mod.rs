//! `<url>` elements to shards that keep every limit.

pub mod frame;
pub mod gzip;
mod name;
pub mod packer;
mod spill;
pub mod split;
