//! What passes between the stages: cells of rows, chunks of elements, shards, the outcome.

pub mod cell;
pub mod chunk;
pub mod outcome;
pub mod room;
pub mod value;
