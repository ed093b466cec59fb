//! Duplicate and near-duplicate URLs.

pub mod seen;
pub mod variants;
