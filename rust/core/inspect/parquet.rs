//! Writes a stream of batches to a Parquet file. Several threads encode row groups, which are written
//! in order, so that the file does not depend on the number of threads.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowRowGroupWriterFactory, ArrowWriterOptions, compute_leaves,
};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use crate::error::Error;
use crate::inspect::read::{BatchStream, internal};
use crate::inspect::workers::POLL_INTERVAL;
use crate::thread::{FirstError, guard, inject, start, start_several};

/// Rows and bytes of a row group: small ones make slow files.
const ROWS: usize = 1 << 17;
const BYTES: usize = 64 << 20;

/// Columns whose values repeat; URLs do not.
const REPEATED: [&str; 3] = ["shard", "changefreq", "change"];

/// Why a file was not written.
#[derive(Debug)]
pub enum Failure {
    /// The rows cannot be read, or encoded.
    Rows(Error),
    /// The output cannot be written.
    Output(io::Error),
    /// The caller asked to stop.
    Cancelled,
}

impl From<ParquetError> for Failure {
    fn from(error: ParquetError) -> Failure {
        match error {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(error) => Failure::Output(*error),
                Err(other) => Failure::Rows(match other.downcast::<Error>() {
                    Ok(error) => *error,
                    Err(other) => internal(other.to_string()),
                }),
            },
            other => Failure::Rows(internal(other.to_string())),
        }
    }
}

type Encoded = Result<Vec<ArrowColumnChunk>, ParquetError>;
/// A row group to encode, and the channel for the result.
type Job = (usize, Vec<RecordBatch>, Sender<Encoded>);
/// The results of row groups in their order, or the error that ends them.
type Pending = Result<(usize, Receiver<Encoded>), Error>;

/// Writes all batches to `out` on `threads` threads; returns the number of rows. `poll` is called
/// ten times a second and returns whether to stop. Memory: one row group per thread, and one more.
pub fn write<W: Write + Send>(
    batches: BatchStream,
    out: W,
    threads: usize,
    poll: &mut dyn FnMut() -> bool,
) -> Result<u64, Failure> {
    let schema = batches.schema();
    let _stop = Stop(batches.stopper());
    let options = ArrowWriterOptions::new().with_properties(properties(&schema)?);
    let writer = ArrowWriter::try_new_with_options(out, schema.clone(), options)?;
    let (mut writer, factory) = writer.into_serialized_writer()?;
    let (jobs, work) = bounded::<Job>(0);
    let (queue, results) = bounded::<Pending>(threads.max(1));
    // not joined after a stop: the next batch can take long
    let factory = Arc::new(factory);
    let first_error = Arc::new(FirstError::default());
    let encoders = start_several(threads, || {
        let (factory, schema) = (factory.clone(), schema.clone());
        // `alive` keeps the queue open until the error is recorded
        let (work, alive, errors) = (work.clone(), work.clone(), first_error.clone());
        let run = move || {
            for (number, batches, to) in work {
                let encoded = guard("encode.group", || encode(&factory, &schema, number, &batches));
                // the receiver may be gone
                to.send(encoded.unwrap_or_else(|e| Err(ParquetError::External(Box::new(e))))).ok();
            }
        };
        let failed = move |error: Error| {
            errors.report(error);
            drop(alive);
        };
        start("encode", run, failed)
    })
    .map_err(Failure::Rows)?;
    drop(work);
    let errors = queue.clone();
    start(
        "group",
        move || group(batches, &jobs, &queue),
        move |error| drop(errors.send(Err(error))), // the receiver may be gone
    )
    .map_err(Failure::Rows)?;
    let mut total = 0;
    while let Some(next) = poll_receive(&results, poll)? {
        let (rows, encoded) = next.map_err(Failure::Rows)?;
        let died = || internal("a thread died; this is a defect of urlset");
        let columns = poll_receive(&encoded, poll)?
            .ok_or_else(|| Failure::Rows(first_error.take().unwrap_or_else(died)))??;
        let mut group = writer.next_row_group()?;
        for column in columns {
            column.append_to_row_group(&mut group)?;
        }
        group.close()?;
        total += rows as u64;
    }
    // everything is encoded: the threads end at once, unless they failed
    encoders.into_iter().for_each(|encoder| drop(encoder.join()));
    if let Some(error) = first_error.take() {
        return Err(Failure::Rows(error));
    }
    writer.close()?;
    Ok(total)
}

/// Sets the flag when it is dropped.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn properties(schema: &SchemaRef) -> Result<WriterProperties, ParquetError> {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_dictionary_enabled(false)
        .set_coerce_types(true); // lists in the standard form: list.element
    for name in REPEATED.iter().filter(|name| schema.index_of(name).is_ok()) {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(*name), true);
    }
    Ok(properties.build())
}

/// The next message; `None` if the channel is closed.
fn poll_receive<T>(
    from: &Receiver<T>,
    poll: &mut dyn FnMut() -> bool,
) -> Result<Option<T>, Failure> {
    loop {
        match from.recv_timeout(POLL_INTERVAL) {
            Ok(next) => return Ok(Some(next)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) if poll() => return Err(Failure::Cancelled),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Collects batches into row groups and queues their results in order, until the receiver is gone.
fn group(batches: BatchStream, jobs: &Sender<Job>, queue: &Sender<Pending>) {
    let (mut gathered, mut rows, mut bytes, mut number) = (Vec::new(), 0, 0, 0);
    let mut submit = |gathered: Vec<RecordBatch>, rows: usize| -> bool {
        let (to, encoded) = bounded(1);
        let job = (number, gathered, to);
        number += 1;
        queue.send(Ok((rows, encoded))).is_ok() && jobs.send(job).is_ok()
    };
    for batch in batches {
        inject("group.batch");
        match batch {
            Ok(batch) => {
                rows += batch.num_rows();
                bytes += batch.get_array_memory_size();
                gathered.push(batch);
            }
            Err(error) => {
                queue.send(Err(error)).ok(); // the receiver may be gone
                return;
            }
        }
        if rows >= ROWS || bytes >= BYTES {
            if !submit(std::mem::take(&mut gathered), rows) {
                return;
            }
            (rows, bytes) = (0, 0);
        }
    }
    if rows > 0 {
        submit(gathered, rows);
    }
}

fn encode(
    factory: &ArrowRowGroupWriterFactory,
    schema: &SchemaRef,
    number: usize,
    batches: &[RecordBatch],
) -> Encoded {
    let mut writers = factory.create_column_writers(number)?;
    for batch in batches {
        let mut leaves = writers.iter_mut();
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            for (leaf, writer) in compute_leaves(field, column)?.iter().zip(&mut leaves) {
                writer.write(leaf)?;
            }
        }
    }
    writers.into_iter().map(|writer| writer.close()).collect()
}
