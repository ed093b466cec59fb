//! An Arrow C stream as a source: Polars, DuckDB, pandas, pyarrow, ADBC, JSON Lines.
//!
//! The stream comes from a library in the same process. It is checked as far as the C interface
//! allows:
//!
//! - Before an array is imported: lengths, offsets and null counts are in range, the numbers of
//!   buffers and children are those of the type, and no size that the import takes from the data is
//!   negative.
//! - Before a column is read: it is validated in full, with all its children. Offsets ascend and end
//!   within the data, views are within their buffers, keys within their dictionary, text is UTF-8,
//!   null counts match the bitmaps. A dictionary that does not change is validated once.
//!
//! The sizes of buffers and the types of single arrays cannot be checked, since the interface carries
//! neither. A producer is trusted in these two points: it could as well write into the memory of this
//! process. Bytes from outside the process are checked where they are read: this crate reads IPC and
//! Parquet itself, and pyarrow compares its objects with their schema and validates them on the way
//! here (`python/urlset/build/source`).

#![allow(unsafe_code)] // the callbacks of the C stream interface

use std::collections::VecDeque;
use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_schema::{DataType, Field, Fields, Schema};

use crate::build::read::arrow::{ArrowBatch, ArrowRows, columns};
use crate::build::read::import::Importer;
use crate::error::{Error, ErrorCode, Result};
use crate::flow::cell::Columns;
use crate::flow::source::Source;
use crate::panic::silenced;

/// Limit of the nesting of lists and structs.
const MAX_DEPTH: usize = 64;
/// The number of empty record batches in a row after which the reader can notice a stop.
const MAX_EMPTY: usize = 64;

/// Rows that a stream lacks, since the filters left them out before.
#[derive(Debug, Clone, Copy)]
pub struct Gap {
    /// The row of the stream before which they were.
    pub before: u64,
    /// Their number.
    pub rows: u64,
}

/// A stream of record batches.
pub struct ArrowStream {
    name: String,
    producer: Producer,
    schema: Schema,
    importer: Importer,
    /// record batches received
    batches: u64,
    /// the remaining rows of the current record batch
    rest: Option<ArrowRows>,
    /// limit of the rows of a batch
    rows: usize,
    /// rows that the filters left out before the stream
    gaps: VecDeque<Gap>,
    /// rows of the stream returned so far
    returned: u64,
    /// bytes of the last batch
    batch_memory: usize,
}

impl ArrowStream {
    /// Takes ownership of a C stream. A batch has up to `rows` rows.
    ///
    /// # Errors
    /// `input.damaged` if its schema cannot be read.
    pub fn new(
        name: impl Into<String>,
        stream: FFI_ArrowArrayStream,
        rows: usize,
    ) -> Result<ArrowStream> {
        let name = name.into();
        let mut producer = Producer(stream);
        let fields = guarded(|| producer.fields(), "its columns cannot be read")
            .map_err(|e| e.in_input(&name))?;
        Ok(ArrowStream {
            name,
            producer,
            schema: Schema::new(fields.clone()),
            importer: Importer::new(fields),
            batches: 0,
            rest: None,
            rows: rows.max(1),
            gaps: VecDeque::new(),
            returned: 0,
            batch_memory: 0,
        })
    }

    /// Adds the gaps of the stream, in their order.
    pub fn with_gaps(mut self, gaps: impl IntoIterator<Item = Gap>) -> ArrowStream {
        self.gaps = gaps.into_iter().collect();
        self
    }

    /// The next record batch, checked.
    fn batch(&mut self) -> Result<Option<ArrowRows>> {
        let Some(array) = guarded(|| self.producer.next(), "cannot be read further")? else {
            return Ok(None);
        };
        self.batches += 1;
        let what = format!("batch {} cannot be read", self.batches);
        guarded(|| self.importer.import(array).map_err(|e| damaged(&e)), &what).map(Some)
    }
}

impl Source for ArrowStream {
    type Batch = ArrowBatch;

    fn name(&self) -> &str {
        &self.name
    }

    fn open(&mut self) -> Result<Columns> {
        Ok(columns(&self.schema))
    }

    fn select(&mut self, slots: &[usize]) {
        self.importer.select(slots);
    }

    fn next(&mut self, _spare: Vec<u8>) -> Result<Option<ArrowBatch>> {
        let mut empty = 0;
        loop {
            if self.gaps.front().is_some_and(|gap| gap.before <= self.returned) {
                return Ok(self.gaps.pop_front().map(|gap| ArrowBatch::Filtered(gap.rows)));
            }
            if let Some(rest) = self.rest.as_mut().filter(|rest| !rest.is_empty()) {
                let before_gap =
                    self.gaps.front().map_or(u64::MAX, |gap| gap.before - self.returned);
                let rows =
                    rest.take(self.rows.min(usize::try_from(before_gap).unwrap_or(usize::MAX)));
                self.returned += (rows.end - rows.start) as u64;
                self.batch_memory = rows.bytes();
                return Ok(Some(ArrowBatch::Rows(rows)));
            }
            if empty == MAX_EMPTY {
                return Ok(Some(ArrowBatch::Filtered(0)));
            }
            empty += 1;
            let batch = self.batch().map_err(|e| e.in_input(&self.name))?;
            let Some(batch) = batch else { return Ok(None) };
            self.rest = Some(batch);
        }
    }

    fn consumed(&self) -> u64 {
        0
    }

    fn batch_memory(&self) -> usize {
        self.batch_memory
    }
}

/// The producer of a stream.
struct Producer(FFI_ArrowArrayStream);

impl Producer {
    fn fields(&mut self) -> Result<Fields> {
        let Some(get) = self.0.release().and(self.0.get_schema()) else {
            return Err(damaged(&"the stream was taken already"));
        };
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: the stream is not released, and the callback belongs to it.
        if unsafe { get(&raw mut self.0, &raw mut schema) } != 0 {
            return Err(damaged(&self.last_error()));
        }
        if schema.release().is_none() {
            return Err(damaged(&"the stream returns no schema"));
        }
        if depth(&schema, MAX_DEPTH).is_none() {
            return Err(damaged(&format!("its columns are nested deeper than {MAX_DEPTH} levels")));
        }
        match Field::try_from(&schema).map_err(|e| damaged(&e))?.data_type() {
            DataType::Struct(fields) => Ok(fields.clone()),
            other => Err(damaged(&format!("the stream has values of {other}, not rows"))),
        }
    }

    /// The next array; `None` at the end.
    fn next(&mut self) -> Result<Option<FFI_ArrowArray>> {
        let Some(get) = self.0.get_next() else {
            return Err(damaged(&"the stream has no get_next"));
        };
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: the stream is not released, and the callback belongs to it.
        if unsafe { get(&raw mut self.0, &raw mut array) } != 0 {
            return Err(damaged(&self.last_error()));
        }
        Ok((!array.is_released()).then_some(array))
    }

    /// The message of the producer for the error that a callback has just returned.
    fn last_error(&mut self) -> String {
        let silent = || "its producer failed without a reason".to_owned();
        let Some(get) = self.0.get_last_error() else { return silent() };
        // SAFETY: a callback of this stream, which is not released, has just failed.
        let text = unsafe { get(&raw mut self.0) };
        if text.is_null() {
            return silent();
        }
        // SAFETY: it is a C string that is valid until the next call.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        // the prefix and the suffix of pyarrow
        let text = text.strip_prefix("Invalid: ").unwrap_or(&text);
        let text = text.split_once(" Detail: Python exception").map_or(text, |(reason, _)| reason);
        text.lines().next().unwrap_or_default().trim_end_matches('.').to_owned()
    }
}

/// The levels that remain of `left` below a schema; `None` if it is deeper.
fn depth(schema: &FFI_ArrowSchema, left: usize) -> Option<usize> {
    let left = left.checked_sub(1)?;
    let below = schema.children().chain(schema.dictionary());
    below.map(|child| depth(child, left)).try_fold(left, |least, child| Some(least.min(child?)))
}

/// Runs code that trusts a producer: a panic means that the producer broke the rules.
fn guarded<T>(read: impl FnOnce() -> Result<T>, what: &str) -> Result<T> {
    silenced(|| catch_unwind(AssertUnwindSafe(read)))
        .unwrap_or_else(|_| Err(damaged(&"its parts contradict one another")))
        .map_err(|error| Error { message: format!("{what}: {}", error.message), ..error })
}

fn damaged(error: &dyn std::fmt::Display) -> Error {
    ErrorCode::InputDamaged.error(error.to_string())
}
