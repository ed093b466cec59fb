//! Duplicate and near-duplicate URLs.

pub mod exclusion;
pub mod seen;
pub mod variants;
