//! The checks: of one value, one entry, one file.

pub mod entry;
pub(crate) mod extension;
pub mod other_hosts;
pub mod url;
pub mod value;
