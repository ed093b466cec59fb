//! `<url>` elements to shards that keep every limit.

pub mod frame;
pub mod gzip;
pub mod packer;
