//! The checks: of one value, one entry, one file.

pub mod date;
pub mod entry;
pub(crate) mod extension;
pub mod host;
pub mod hreflang;
pub mod url;
pub mod value;
