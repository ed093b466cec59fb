//! Inputs of any kind, and their rows to elements.

use crate::build::render::row::Renderer;
use crate::error::Result;
use crate::flow::cell::Columns;
use crate::flow::chunk::{Chunk, MAX_REJECT_VALUE, Reject};
use crate::flow::row::Row;
use crate::flow::source::{BadRow, Batch, BatchEnd, RowConsumer, Source};

/// Any [`Source`]. The rendering of rows is compiled for each kind of batch, so that there is one
/// dynamic call for each batch and none for each row.
pub trait AnySource: Send {
    /// See [`Source::name`].
    fn name(&self) -> &str;
    /// See [`Source::open`].
    fn open(&mut self) -> Result<Columns>;
    /// See [`Source::select`].
    fn select(&mut self, slots: &[usize]);
    /// See [`Source::next`].
    fn next(&mut self, spare: Vec<u8>) -> Result<Option<Box<dyn AnyBatch>>>;
    /// See [`Source::consumed`].
    fn consumed(&self) -> u64;
    /// See [`Source::batch_memory`].
    fn batch_memory(&self) -> usize;
}

impl<S: Source> AnySource for S {
    fn name(&self) -> &str {
        Source::name(self)
    }

    fn open(&mut self) -> Result<Columns> {
        Source::open(self)
    }

    fn select(&mut self, slots: &[usize]) {
        Source::select(self, slots);
    }

    fn next(&mut self, spare: Vec<u8>) -> Result<Option<Box<dyn AnyBatch>>> {
        Ok(Source::next(self, spare)?.map(|batch| Box::new(batch) as _))
    }

    fn consumed(&self) -> u64 {
        Source::consumed(self)
    }

    fn batch_memory(&self) -> usize {
        Source::batch_memory(self)
    }
}

/// Any [`Batch`].
pub trait AnyBatch: Send {
    /// Renders all rows.
    fn render(&mut self, scratch: &mut Vec<u64>, rendering: &mut Rendering<'_>) -> BatchEnd;
    /// See [`Batch::join`].
    fn join(&mut self, open: Vec<u8>);
    /// See [`Batch::into_buffer`].
    fn into_buffer(self: Box<Self>) -> Vec<u8>;
}

impl<B: Batch> AnyBatch for B {
    fn render(&mut self, scratch: &mut Vec<u64>, rendering: &mut Rendering<'_>) -> BatchEnd {
        self.rows(scratch, rendering)
    }

    fn join(&mut self, open: Vec<u8>) {
        Batch::join(self, open);
    }

    fn into_buffer(self: Box<Self>) -> Vec<u8> {
        Batch::into_buffer(*self)
    }
}

/// Renders rows into a chunk.
pub struct Rendering<'r> {
    renderer: Renderer<'r>,
    /// The rendered rows that were not handed on yet.
    pub chunk: Chunk,
}

impl<'r> Rendering<'r> {
    /// Renders into `chunk`, and hands it on when it is full, if the renderer has an outlet.
    pub fn new(renderer: Renderer<'r>, chunk: Chunk) -> Rendering<'r> {
        Rendering { renderer, chunk }
    }
}

impl RowConsumer for Rendering<'_> {
    // always: the compiler would call it for each row
    #[inline(always)]
    fn row(&mut self, row: &impl Row, number: u32) -> bool {
        self.renderer.render(row, number, &mut self.chunk);
        self.renderer.hand_on(&mut self.chunk)
    }

    #[cold]
    fn bad_row(&mut self, row: BadRow<'_>, number: u32) -> bool {
        let BadRow { code, message, bytes } = row;
        let value = bytes[..bytes.len().min(MAX_REJECT_VALUE)].to_vec();
        self.chunk.rows += 1;
        self.chunk.rejects.push(Reject { row: number, column: None, code, message, value });
        self.renderer.hand_on(&mut self.chunk)
    }

    fn blank(&mut self) {
        self.chunk.blank += 1;
    }

    fn filtered(&mut self, rows: u64) {
        self.chunk.rows += rows;
        self.chunk.filtered += rows;
    }
}
