//! Shared by several tests.

pub mod random;
