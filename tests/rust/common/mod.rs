//! What several tests use.

pub mod random;
