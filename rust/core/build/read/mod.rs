//! Input files and streams to batches of rows.

mod ahead;
pub mod arrow;
pub mod block;
pub mod csv;
pub mod decode;
mod extent;
mod foreign;
mod groups;
mod import;
pub mod ipc;
pub mod kind;
pub mod label;
pub mod lines;
mod message;
pub mod parquet;
mod positioned;
pub mod scan;
pub mod stream;
pub mod unpack;

use crate::error::Result;
use crate::flow::cell::Columns;

/// A batch of rows on its way to a renderer.
pub enum Batch {
    /// Whole rows of CSV, as far as can be told before they are scanned.
    Csv(block::Block),
    /// Some rows of an Arrow record batch.
    Arrow(arrow::Rows),
    /// So many rows that a filter was seen to leave out before they were read.
    Skipped(u64),
}

/// Something that gives rows.
///
/// The reader thread drives: it calls [`Source::open`] once, then [`Source::next`] until that
/// gives `None` or an error, after which it does not call again.
pub trait Source: Send {
    /// The name that errors and rejects show.
    fn name(&self) -> &str;
    /// Opens the source and tells its columns.
    fn open(&mut self) -> Result<Columns>;
    /// Whether only some columns will be asked for, in the order of their slots.
    fn select(&mut self, slots: &[usize]);
    /// The next batch; `spare` is a buffer to fill, if the source can use one.
    fn next(&mut self, spare: Vec<u8>) -> Result<Option<Batch>>;
    /// Bytes of the input consumed so far, for the progress line.
    fn consumed(&self) -> u64;
    /// Bytes in memory of the batch that was given last, unless they are in the buffer that was to
    /// be filled.
    fn held(&self) -> usize {
        0
    }
}
