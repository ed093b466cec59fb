//! An input and its batches, as the pipeline sees them.
//!
//! A new input is one module in `build/read`: a type that implements [`Source`], whose batches
//! implement [`Batch`] and whose rows implement [`Row`]. The pipeline wraps any source, so that it
//! makes one dynamic call for each batch and none for each row.

use crate::error::{Error, Result};
use crate::flow::cell::Columns;
use crate::flow::row::Row;

/// An input that returns rows in batches.
///
/// The reader thread calls [`Source::open`] once, then [`Source::select`], then [`Source::next`]
/// until it returns `None` or an error.
pub trait Source: Send {
    /// The type of its batches.
    type Batch: Batch + 'static;

    /// The name in errors and in the reject file.
    fn name(&self) -> &str;
    /// Opens the source and returns its columns.
    fn open(&mut self) -> Result<Columns>;
    /// Selects the columns that are read, in the order of their slots.
    fn select(&mut self, slots: &[usize]);
    /// The next batch. `spare` is a used buffer for the batch, if the source needs one.
    fn next(&mut self, spare: Vec<u8>) -> Result<Option<Self::Batch>>;
    /// Bytes of the input consumed so far, for the progress line.
    fn consumed(&self) -> u64;
    /// Bytes in memory of the last batch, not counting the spare buffer.
    fn batch_memory(&self) -> usize {
        0
    }
}

/// Some rows of an input. A worker thread takes them out.
pub trait Batch: Send {
    /// Hands all rows to `consumer`, in their order, until it wants no more. `scratch` is memory
    /// that the thread keeps from batch to batch.
    ///
    /// The batch drops what it does not need for [`Batch::join`] and [`Batch::into_buffer`].
    fn rows(&mut self, scratch: &mut Vec<u64>, consumer: &mut impl RowConsumer) -> BatchEnd;

    /// Puts the beginning of a row in front: the batch before ended with [`BatchEnd::Open`]. After
    /// that the rows are taken out again. Only batches of inputs whose batches can end so need it.
    fn join(&mut self, open: Vec<u8>) {
        debug_assert!(open.is_empty(), "batches of this input end at the end of a row");
    }

    /// The buffer that the batch was read into, for reuse.
    fn into_buffer(self) -> Vec<u8>
    where
        Self: Sized,
    {
        Vec::new()
    }
}

/// How a batch ended.
#[derive(Debug)]
pub enum BatchEnd {
    /// At the end of a row.
    Complete,
    /// Within a row. These are its bytes, which the next batch continues.
    Open(Vec<u8>),
    /// The rows from here on cannot be trusted. The caller knows the position of the error: the row
    /// after the last one that was handed out.
    Failed(Error),
}

/// A row that cannot be read, such as one that is not UTF-8.
#[derive(Debug)]
pub struct BadRow<'a> {
    /// Such as `row.ragged`.
    pub code: &'static str,
    /// What is wrong and what to do.
    pub message: String,
    /// The bytes of the row.
    pub bytes: &'a [u8],
}

/// Takes the rows of a batch. The methods that return a value return false when no further rows are
/// wanted.
pub trait RowConsumer {
    /// Takes a row. `number` counts from 0 in the batch.
    fn row(&mut self, row: &impl Row, number: u32) -> bool;
    /// Takes a row that cannot be read.
    fn bad_row(&mut self, row: BadRow<'_>, number: u32) -> bool;
    /// Counts a blank line, which is not a row but has a number.
    fn blank(&mut self);
    /// Counts rows that the filters leave out and that were therefore not read.
    fn filtered(&mut self, rows: u64);
}
