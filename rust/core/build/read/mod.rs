//! Input files and streams to batches of rows.

mod ahead;
pub mod arrow;
pub mod block;
pub mod csv;
pub mod csv_batch;
pub mod decode;
pub mod detect;
mod extent;
mod foreign;
mod groups;
pub mod header;
mod import;
pub mod ipc;
pub mod label;
pub mod lines;
mod message;
pub mod parquet;
pub mod positioned;
pub mod scan;
pub mod stream;
pub mod unpack;
