//! The tests of the core, by module as in `rust/core`.

mod build;
mod common;
mod flow;
