//! An Arrow C stream as a source: Polars, DuckDB, pandas, pyarrow, ADBC, JSON Lines.
//!
//! The stream comes from a library in the same process. What it gives is checked as far as the C
//! interface lets anybody check it:
//!
//! - Before an array is imported: lengths, offsets and null counts are in range, the numbers of
//!   buffers and children are those of the type, and no size that the import takes from the data is
//!   negative.
//! - Before a column is read: it is validated in full, with all its children. Offsets ascend and end
//!   within the data, views lie within their buffers, keys within their dictionary, text is UTF-8,
//!   null counts are those of the bitmaps. A dictionary that stays the same is validated once.
//!
//! What cannot be checked is whether memory is as long as an array says: the interface carries no
//! lengths of buffers, and no types of arrays, only the one schema of the stream. That a producer
//! fulfils these two is trusted: it could as well write into this process's memory. Where bytes come
//! from outside the process, whoever reads them knows the lengths and checks against them: IPC and
//! Parquet are read by this crate, and what objects of pyarrow give is compared with its schema and
//! validated by pyarrow itself on the way here (`urlset/source.py`).

#![allow(unsafe_code)] // the callbacks of the C stream interface

use std::collections::VecDeque;
use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_schema::{DataType, Field, Fields, Schema};

use crate::build::read::arrow::{Rows, columns};
use crate::build::read::import::Importer;
use crate::build::read::{Batch, Source};
use crate::error::{Error, Result};
use crate::flow::cell::Columns;
use crate::quiet::quiet;

/// Lists within lists, structs within structs.
const DEPTH: usize = 64;
/// Batches without rows after which whoever drives is asked whether to go on.
const EMPTY: usize = 64;

/// A stream of record batches.
pub struct Stream {
    name: String,
    producer: Producer,
    schema: Schema,
    importer: Importer,
    /// record batches taken
    batches: u64,
    /// what is left of the batch at hand
    rest: Option<Rows>,
    /// rows that one renderer takes at once
    rows: usize,
    /// where rows are missing that the filters leave out: before which row of the stream, how many
    gaps: VecDeque<(u64, u64)>,
    /// rows of the stream given out
    given: u64,
    /// bytes of the rows given out last
    held: usize,
}

impl Stream {
    /// Takes over a C stream. `rows` are rendered at once.
    ///
    /// # Errors
    /// `input.damaged` where it gives no schema that can be read.
    pub fn new(
        name: impl Into<String>,
        stream: FFI_ArrowArrayStream,
        rows: usize,
    ) -> Result<Stream> {
        let name = name.into();
        let mut producer = Producer(stream);
        let fields = guarded(|| producer.fields(), "its columns cannot be read")
            .map_err(|e| e.in_input(&name))?;
        Ok(Stream {
            name,
            producer,
            schema: Schema::new(fields.clone()),
            importer: Importer::new(fields),
            batches: 0,
            rest: None,
            rows: rows.max(1),
            gaps: VecDeque::new(),
            given: 0,
            held: 0,
        })
    }

    /// The same stream, which lacks rows that the filters leave out: for each gap the row of the
    /// stream before which it lies, and how many rows it has, in their order.
    pub fn with_gaps(mut self, gaps: Vec<(u64, u64)>) -> Stream {
        self.gaps = gaps.into();
        self
    }

    /// The next batch, checked.
    fn batch(&mut self) -> Result<Option<Rows>> {
        let Some(array) = guarded(|| self.producer.next(), "cannot be read further")? else {
            return Ok(None);
        };
        self.batches += 1;
        let what = format!("batch {} cannot be read", self.batches);
        guarded(|| self.importer.import(array).map_err(|e| damaged(&e)), &what).map(Some)
    }
}

impl Source for Stream {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&mut self) -> Result<Columns> {
        Ok(columns(&self.schema))
    }

    fn select(&mut self, slots: &[usize]) {
        self.importer.select(slots);
    }

    fn next(&mut self, _spare: Vec<u8>) -> Result<Option<Batch>> {
        let mut empty = 0;
        loop {
            if self.gaps.front().is_some_and(|&(at, _)| at <= self.given) {
                return Ok(self.gaps.pop_front().map(|(_, rows)| Batch::Skipped(rows)));
            }
            if let Some(rest) = self.rest.as_mut().filter(|rest| !rest.is_empty()) {
                let before_gap = self.gaps.front().map_or(u64::MAX, |&(at, _)| at - self.given);
                let rows =
                    rest.take(self.rows.min(usize::try_from(before_gap).unwrap_or(usize::MAX)));
                self.given += (rows.end - rows.start) as u64;
                self.held = rows.bytes();
                return Ok(Some(Batch::Arrow(rows)));
            }
            if empty == EMPTY {
                return Ok(Some(Batch::Skipped(0)));
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

    fn held(&self) -> usize {
        self.held
    }
}

/// The stream of a producer.
struct Producer(FFI_ArrowArrayStream);

impl Producer {
    fn fields(&mut self) -> Result<Fields> {
        let Some(get) = self.0.release().and(self.0.get_schema()) else {
            return Err(damaged(&"the stream was taken already"));
        };
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: the stream is not released, and the callback is its own.
        if unsafe { get(&raw mut self.0, &raw mut schema) } != 0 {
            return Err(damaged(&self.said()));
        }
        if schema.release().is_none() {
            return Err(damaged(&"the stream gives no schema"));
        }
        if depth(&schema, DEPTH).is_none() {
            return Err(damaged(&format!("its columns are nested deeper than {DEPTH} levels")));
        }
        match Field::try_from(&schema).map_err(|e| damaged(&e))?.data_type() {
            DataType::Struct(fields) => Ok(fields.clone()),
            other => Err(damaged(&format!("the stream has values of {other}, not rows"))),
        }
    }

    /// The next array; nothing at the end.
    fn next(&mut self) -> Result<Option<FFI_ArrowArray>> {
        let Some(get) = self.0.get_next() else {
            return Err(damaged(&"the stream has no get_next"));
        };
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: the stream is not released, and the callback is its own.
        if unsafe { get(&raw mut self.0, &raw mut array) } != 0 {
            return Err(damaged(&self.said()));
        }
        Ok((!array.is_released()).then_some(array))
    }

    /// What the producer says of the error that a callback has just told.
    fn said(&mut self) -> String {
        let silent = || "its producer failed and does not say why".to_owned();
        let Some(get) = self.0.get_last_error() else { return silent() };
        // SAFETY: a callback of this stream, which is not released, has just failed.
        let text = unsafe { get(&raw mut self.0) };
        if text.is_null() {
            return silent();
        }
        // SAFETY: it is a C string that is there until the next call.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        // what pyarrow puts around it
        let text = text.strip_prefix("Invalid: ").unwrap_or(&text);
        let text = text.split_once(" Detail: Python exception").map_or(text, |(said, _)| said);
        text.lines().next().unwrap_or_default().trim_end_matches('.').to_owned()
    }
}

/// How many of `left` levels remain below a schema; nothing if it is deeper.
fn depth(schema: &FFI_ArrowSchema, left: usize) -> Option<usize> {
    let left = left.checked_sub(1)?;
    let below = schema.children().chain(schema.dictionary());
    below.map(|child| depth(child, left)).try_fold(left, |least, child| Some(least.min(child?)))
}

/// Runs what takes a producer's word: a panic on the way is a word that it did not keep.
fn guarded<T>(read: impl FnOnce() -> Result<T>, what: &str) -> Result<T> {
    quiet(|| catch_unwind(AssertUnwindSafe(read)))
        .unwrap_or_else(|_| Err(damaged(&"its parts contradict one another")))
        .map_err(|error| Error { message: format!("{what}: {}", error.message), ..error })
}

fn damaged(error: &dyn std::fmt::Display) -> Error {
    Error::input("input.damaged", error.to_string())
}
