//! A Parquet file as a source, read column chunk by column chunk.
//!
//! pyarrow needs 260 ns of CPU for a row and 290 MiB; this module needs 100 ns and 12 MiB (10 M rows
//! of loc, lastmod and priority, Snappy). The import of pyarrow alone takes 60 ms.

use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::RecordBatch;
use crossbeam_channel::{Receiver, unbounded};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::Length;

use crate::build::read::ahead::Ahead;
use crate::build::read::arrow::{ArrowBatch, ArrowRows, columns};
use crate::build::read::groups::left_out;
use crate::build::read::positioned::{Access, Positioned};
use crate::config::Filter;
use crate::error::{Error, ErrorCode, Result, plain};
use crate::flow::cell::Columns;
use crate::flow::source::Source;
use crate::panic::silenced;
use crate::thread::{inject, start};

/// Minimum number of rows that a thread decodes before the next thread continues.
const STEP_ROWS: u64 = 1 << 17;
/// Limit of the bytes that threads decode ahead; each thread may have one batch more.
const MAX_AHEAD: u64 = 64 << 20;
/// Target size of the rows of a batch, by the column sizes in the file. It is no bound: an encoding
/// can make those arbitrarily small.
const BATCH_BYTES: i64 = 4 << 20;

/// A Parquet file.
pub struct Parquet {
    path: String,
    open_file: Option<Arc<dyn Access>>,
    options: ParquetOptions,
    file: Option<OpenParquet>,
}

/// Options of a Parquet file.
#[derive(Debug, Clone)]
pub struct ParquetOptions {
    /// Limit of the rows of a batch.
    pub rows: usize,
    /// Threads that decode; with 1 it is the reader thread.
    pub threads: usize,
    /// Row groups without a row that satisfies all of these are not read.
    pub filters: Vec<Filter>,
}

struct OpenParquet {
    decoder: Decoder,
    /// the index of each slot's column among the columns that are read
    places: Vec<usize>,
    /// the steps that have not begun; `None` before the first call of `next`
    steps: Option<VecDeque<Step>>,
    /// the steps that have begun, in the order of the rows
    decoding: VecDeque<Decoding>,
    /// rows returned or skipped
    done: u64,
    /// bytes of the last batch
    batch_memory: usize,
}

/// Reads row groups.
#[derive(Clone)]
struct Decoder {
    file: Positioned,
    metadata: ArrowReaderMetadata,
    /// columns of the file, by slot
    slots: Vec<usize>,
    rows: usize,
    ahead: Arc<Ahead>,
}

/// The treatment of some adjacent row groups.
enum Step {
    /// Read these groups, which have `rows` rows.
    Read { groups: Vec<usize>, rows: u64 },
    /// Leave out this number of rows.
    Skip(u64),
}

/// A step that has begun.
enum Decoding {
    Here(Box<ParquetRecordBatchReader>),
    /// In a separate thread.
    There(Receiver<Result<RecordBatch>>),
    Skip(u64),
}

/// The next rows.
enum NextRows {
    Batch(RecordBatch),
    Skipped(u64),
}

impl Parquet {
    /// A source that has not been opened yet.
    pub fn new(path: impl Into<String>, options: ParquetOptions) -> Parquet {
        Parquet { path: path.into(), open_file: None, options, file: None }
    }

    /// Reads a file that is open already, or an object in a store; the path is then only its name.
    pub fn with_file(self, file: Arc<dyn Access>) -> Parquet {
        Parquet { open_file: Some(file), ..self }
    }
}

impl Source for Parquet {
    type Batch = ArrowBatch;

    fn name(&self) -> &str {
        &self.path
    }

    fn open(&mut self) -> Result<Columns> {
        let rows = self.options.rows.max(1);
        let file = match self.open_file.take() {
            Some(file) => Ok(file),
            None => File::open(&self.path).map(|file| Arc::new(file) as Arc<dyn Access>),
        };
        let (opened, columns) =
            guarded(|| OpenParquet::new(file, rows)).map_err(|e| e.in_input(&self.path))?;
        self.file = Some(opened);
        Ok(columns)
    }

    fn select(&mut self, slots: &[usize]) {
        if let Some(file) = &mut self.file {
            let mut read = slots.to_vec();
            read.sort_unstable();
            read.dedup();
            file.places = slots.iter().map(|slot| read.partition_point(|at| at < slot)).collect();
            file.decoder.slots = slots.to_vec();
        }
    }

    fn next(&mut self, _spare: Vec<u8>) -> Result<Option<ArrowBatch>> {
        let Some(file) = &mut self.file else { return Ok(None) };
        let next = guarded(|| file.next(&self.options)).map_err(|e| e.in_input(&self.path))?;
        Ok(next.map(|next| match next {
            NextRows::Batch(batch) => {
                let columns = file.places.iter().map(|&place| batch.column(place));
                ArrowBatch::Rows(ArrowRows::new(columns, batch.num_rows()))
            }
            NextRows::Skipped(rows) => ArrowBatch::Filtered(rows),
        }))
    }

    fn consumed(&self) -> u64 {
        self.file.as_ref().map_or(0, OpenParquet::consumed)
    }

    fn batch_memory(&self) -> usize {
        self.file.as_ref().map_or(0, |file| file.batch_memory)
    }
}

impl OpenParquet {
    fn new(file: std::io::Result<Arc<dyn Access>>, rows: usize) -> Result<(OpenParquet, Columns)> {
        let system = |e: std::io::Error| ErrorCode::InputUnreadable.error(plain(&e)).caused_by(e);
        let file = file.and_then(Positioned::new).map_err(system)?;
        let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new());
        // the Arrow schema that a writer embeds is used if it fits the Parquet schema
        let metadata = metadata.or_else(|_| {
            let bare = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
            ArrowReaderMetadata::load(&file, bare)
        });
        let metadata = metadata.map_err(|e| damaged(&e))?;
        let columns = columns(metadata.schema());
        let opened = OpenParquet {
            decoder: Decoder {
                file,
                metadata,
                slots: Vec::new(),
                rows,
                ahead: Arc::new(Ahead::new(MAX_AHEAD)),
            },
            places: Vec::new(),
            steps: None,
            decoding: VecDeque::new(),
            done: 0,
            batch_memory: 0,
        };
        Ok((opened, columns))
    }

    /// The row groups that are read, in steps for one thread each.
    fn plan(&self, options: &ParquetOptions) -> VecDeque<Step> {
        let step = if options.threads > 1 { STEP_ROWS } else { u64::MAX };
        let metadata = &self.decoder.metadata;
        let mut steps = VecDeque::new();
        for (number, group) in metadata.metadata().row_groups().iter().enumerate() {
            let more = u64::try_from(group.num_rows()).unwrap_or(0);
            let skip = options.filters.iter().any(|filter| left_out(filter, metadata, group));
            match steps.back_mut() {
                Some(Step::Skip(rows)) if skip => *rows = rows.saturating_add(more),
                Some(Step::Read { groups, rows }) if !skip && *rows < step => {
                    groups.push(number);
                    *rows = rows.saturating_add(more);
                }
                _ if skip => steps.push_back(Step::Skip(more)),
                _ => steps.push_back(Step::Read { groups: vec![number], rows: more }),
            }
        }
        steps
    }

    fn next(&mut self, options: &ParquetOptions) -> Result<Option<NextRows>> {
        self.batch_memory = 0;
        loop {
            self.decode_ahead(options)?;
            let batch = match self.decoding.front_mut() {
                None => return self.check_complete().map(|()| None),
                Some(Decoding::Here(reader)) => {
                    reader.next().transpose().map_err(|e| damaged(&e))?
                }
                Some(Decoding::There(batches)) => {
                    let batch = batches.recv().ok().transpose()?;
                    batch.inspect(|batch| self.decoder.ahead.give(memory(batch)))
                }
                Some(Decoding::Skip(rows)) => {
                    let rows = *rows;
                    self.decoding.pop_front();
                    self.done = self.done.saturating_add(rows);
                    return Ok(Some(NextRows::Skipped(rows)));
                }
            };
            match batch {
                Some(batch) => {
                    self.done += batch.num_rows() as u64;
                    self.batch_memory = batch.get_array_memory_size();
                    return Ok(Some(NextRows::Batch(batch)));
                }
                None => drop(self.decoding.pop_front()),
            }
        }
    }

    /// Checks that the number of rows is that of the directory, both of the groups and of the file. If
    /// a column or a thread ended early, no row may be lost silently.
    fn check_complete(&self) -> Result<()> {
        let metadata = self.decoder.metadata.metadata();
        let groups: i128 = metadata.row_groups().iter().map(|g| i128::from(g.num_rows())).sum();
        let declared = i128::from(metadata.file_metadata().num_rows());
        if groups == declared && declared == i128::from(self.done) {
            return Ok(());
        }
        let found = self.done;
        Err(damaged(&format!(
            "{found} rows where its directory says {declared}, {groups} in groups"
        )))
    }

    /// Begins as many steps as there are threads.
    fn decode_ahead(&mut self, options: &ParquetOptions) -> Result<()> {
        if self.steps.is_none() {
            self.steps = Some(self.plan(options));
        }
        let Some(steps) = &mut self.steps else { return Ok(()) };
        while self.decoding.len() < options.threads.max(1) {
            let decoding = match steps.pop_front() {
                None => break,
                Some(Step::Skip(rows)) => Decoding::Skip(rows),
                Some(Step::Read { groups, .. }) if options.threads <= 1 => {
                    let reader = self.decoder.read(groups).map_err(|e| damaged(&e))?;
                    Decoding::Here(Box::new(reader))
                }
                Some(Step::Read { groups, .. }) => self.decoder.clone().decode(groups)?,
            };
            self.decoding.push_back(decoding);
        }
        Ok(())
    }

    /// Bytes, in proportion to the rows.
    fn consumed(&self) -> u64 {
        let rows = self.decoder.metadata.metadata().file_metadata().num_rows().max(1) as u128;
        let size = u128::from(self.decoder.file.len());
        (size * u128::from(self.done) / rows).min(size) as u64
    }
}

impl Drop for OpenParquet {
    fn drop(&mut self) {
        self.decoder.ahead.end(); // threads may be waiting for room
    }
}

impl Decoder {
    fn read(
        &self,
        groups: Vec<usize>,
    ) -> std::result::Result<ParquetRecordBatchReader, ParquetError> {
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), self.slots.clone());
        let rows = self.rows_of_batch(&groups, &mask);
        self.file.plan(self.ranges(&groups, &mask))?;
        ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), self.metadata.clone())
            .with_projection(mask)
            .with_row_groups(groups)
            .with_batch_size(rows)
            .build()
    }

    /// Where the chunks of each column that is read are in the file.
    fn ranges(&self, groups: &[usize], mask: &ProjectionMask) -> Vec<Vec<Range<u64>>> {
        let groups: Vec<_> =
            groups.iter().filter_map(|&at| self.metadata.metadata().row_groups().get(at)).collect();
        let leaves = self.metadata.parquet_schema().num_columns();
        let chunk = |group: &&RowGroupMetaData, leaf: usize| {
            let (start, length) = group.columns().get(leaf)?.byte_range();
            Some(start..start.saturating_add(length))
        };
        (0..leaves)
            .filter(|&leaf| mask.leaf_included(leaf))
            .map(|leaf| groups.iter().filter_map(|group| chunk(group, leaf)).collect())
            .collect()
    }

    /// The number of rows of a batch: fewer for large rows, such as those with a map of a hundred
    /// languages.
    fn rows_of_batch(&self, groups: &[usize], mask: &ProjectionMask) -> usize {
        let metadata = self.metadata.metadata();
        let (mut rows, mut bytes) = (0_i64, 0_i64);
        for group in groups.iter().filter_map(|&number| metadata.row_groups().get(number)) {
            rows = rows.saturating_add(group.num_rows().max(0));
            let columns = group.columns().iter().enumerate();
            for (_, column) in columns.filter(|&(leaf, _)| mask.leaf_included(leaf)) {
                bytes = bytes.saturating_add(column.uncompressed_size().max(0));
            }
        }
        let fit = BATCH_BYTES / (bytes / rows.max(1)).max(1);
        usize::try_from(fit).unwrap_or(1).clamp(1, self.rows)
    }

    /// Reads in a new thread, which ends when its batches are no longer received.
    fn decode(self, groups: Vec<usize>) -> Result<Decoding> {
        let (sender, batches) = unbounded();
        let failure = sender.clone();
        let work = move || {
            inject("decoder.group");
            let decoded = guarded(|| {
                for batch in self.read(groups).map_err(|e| damaged(&e))? {
                    let batch = batch.map_err(|e| damaged(&e))?;
                    if !self.ahead.take(memory(&batch), || sender.is_empty())
                        || sender.send(Ok(batch)).is_err()
                    {
                        break;
                    }
                }
                Ok(())
            });
            if let Err(error) = decoded {
                let _ = sender.send(Err(error)); // or the receiver has ended
            }
        };
        let failed = move |error| drop(failure.send(Err(error))); // or the receiver has ended
        start("decoder", work, failed)?;
        Ok(Decoding::There(batches))
    }
}

/// The memory of a batch.
fn memory(batch: &RecordBatch) -> u64 {
    batch.get_array_memory_size() as u64
}

/// Runs code that reads a file, which may be damaged: a panic of the library counts as damage.
fn guarded<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    silenced(|| catch_unwind(AssertUnwindSafe(read)))
        .unwrap_or_else(|_| Err(damaged(&"its pages are not what its directory says")))
}

fn damaged(error: &dyn std::fmt::Display) -> Error {
    let text = error.to_string();
    let text = text.lines().next().unwrap_or_default();
    // the prefixes of arrow and parquet carry no information
    let text = ["External: ", "Parquet argument error: ", "Parquet error: ", "Arrow: "]
        .iter()
        .fold(text, |text, prefix| text.strip_prefix(prefix).unwrap_or(text));
    ErrorCode::InputDamaged.error(format!("cannot be read as Parquet: {text}"))
}
