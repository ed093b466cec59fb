//! read and diff: rows as Arrow streams.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use urlset_core::Error;
use urlset_core::error::ErrorCode;
use urlset_core::inspect::diff::{DiffCounts, Options as DiffOptions, SetFile};
use urlset_core::inspect::parquet::{self, Failure};
use urlset_core::inspect::read::{BatchStream, read};
use urlset_core::inspect::workers::POLL_INTERVAL;
use urlset_core::inspect::{changes, rows};

use crate::error::exception;
use crate::verify::interrupted;

/// Starts the threads that read or compare.
type Start = Arc<dyn Fn() -> BatchStream + Send + Sync>;

/// Rows that can be read any number of times, each time from the files.
#[pyclass(frozen)]
pub struct Stream {
    start: Start,
    schema: SchemaRef,
    counts: Arc<Mutex<Option<DiffCounts>>>,
    closed: Arc<AtomicBool>,
    /// Owns the fetched files; it lives as long as this object and all readings.
    keep: Py<PyAny>,
}

/// One pass over the rows.
#[pyclass(frozen)]
pub struct Reading {
    run: Arc<Mutex<Pass>>,
    schema: SchemaRef,
}

/// The state of one pass. The threads start with the request for the first batch: many consumers
/// ask for the schema only.
struct Pass {
    start: Start,
    closed: Arc<AtomicBool>,
    batches: Option<BatchStream>,
    ended: bool,
    /// The error that ended the pass. The C stream carries only its text.
    failed: Option<Error>,
    _keep: Py<PyAny>,
}

impl Pass {
    /// The remaining batches; None at the end, where the threads stop.
    fn batches(&mut self) -> Option<&mut BatchStream> {
        if self.ended || self.closed.load(Ordering::Relaxed) {
            self.batches = None;
            return None;
        }
        Some(self.batches.get_or_insert_with(|| (self.start)()))
    }

    fn next(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        let next = if self.closed.load(Ordering::Relaxed) && !self.ended {
            self.batches = None;
            Err(closed())
        } else {
            self.batches()?.next()?
        };
        self.ended = next.is_err();
        Some(next.map_err(|error| {
            // the text crosses as a C string
            let text = format!("[{}] {error}", error.code).replace('\0', " ");
            self.failed = Some(error);
            ArrowError::ExternalError(text.into())
        }))
    }
}

/// The files may be deleted already.
fn closed() -> Error {
    ErrorCode::ReadClosed.error("the rows were closed before they were read; read first")
}

/// A reading behind a C stream. Dropping it stops the threads.
struct Consumer {
    run: Arc<Mutex<Pass>>,
    schema: SchemaRef,
}

impl Iterator for Consumer {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.run.lock().ok()?.next()
    }
}

impl RecordBatchReader for Consumer {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        if let Ok(mut run) = self.run.lock() {
            run.ended = true;
            run.batches = None;
        }
    }
}

impl Stream {
    fn new(
        schema: SchemaRef,
        counts: Arc<Mutex<Option<DiffCounts>>>,
        keep: Py<PyAny>,
        start: impl Fn() -> BatchStream + Send + Sync + 'static,
    ) -> Stream {
        Stream { start: Arc::new(start), schema, counts, closed: Arc::default(), keep }
    }

    fn run(&self, py: Python<'_>) -> PyResult<Pass> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(exception(py, &closed()));
        }
        Ok(Pass {
            start: self.start.clone(),
            closed: self.closed.clone(),
            batches: None,
            ended: false,
            failed: None,
            _keep: self.keep.clone_ref(py),
        })
    }
}

#[pymethods]
impl Stream {
    /// A new pass over the rows.
    fn open(&self, py: Python<'_>) -> PyResult<Reading> {
        let run = Arc::new(Mutex::new(self.run(py)?));
        Ok(Reading { run, schema: self.schema.clone() })
    }

    /// The columns as a capsule (the Arrow PyCapsule interface).
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref())
            .map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Writes all rows as Parquet to an object with `write`; returns the number of rows.
    fn write_parquet(&self, py: Python<'_>, file: Py<PyAny>, threads: usize) -> PyResult<u64> {
        let run = self.run(py)?;
        let mut signal = None;
        let out = BufWriter::with_capacity(1 << 20, PythonFile(file));
        let written = py.detach(|| {
            let batches = (run.start)();
            parquet::write(batches, out, threads, &mut || interrupted(&mut signal))
        });
        if let Some(signal) = signal {
            return Err(signal);
        }
        written.map_err(|failure| match failure {
            Failure::Rows(error) => exception(py, &error),
            Failure::Output(error) => error.into(),
            Failure::Cancelled => PyKeyboardInterrupt::new_err(()),
        })
    }

    /// The totals of a diff that was read to its end: added, changed, removed, equal files.
    fn counts(&self) -> Option<(u64, u64, u64, u64)> {
        let counts = (*self.counts.lock().ok()?)?;
        Some((counts.added, counts.changed, counts.removed, counts.skipped))
    }

    /// Ends all passes: the next batch is an error.
    fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

#[pymethods]
impl Reading {
    /// The rows as a capsule (the Arrow PyCapsule interface).
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema; // the interface allows to ignore it
        let consumer = Consumer { run: self.run.clone(), schema: self.schema.clone() };
        let stream = FFI_ArrowArrayStream::new(Box::new(consumer));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Raises the error that ended the pass, if there was one.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        match self.run.lock().ok().and_then(|mut run| run.failed.take()) {
            Some(error) => Err(exception(py, &error)),
            None => Ok(()),
        }
    }

    /// Blocks until the next batch or the end is available; a signal ends the wait.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        let ready = || match self.run.lock() {
            Ok(mut run) => run.batches().is_none_or(|batches| batches.wait(POLL_INTERVAL)),
            Err(_) => true, // the next batch reports it
        };
        while !py.detach(ready) {
            py.check_signals()?;
        }
        Ok(())
    }
}

/// A Python object with `write`. The I/O error contains its exception.
struct PythonFile(Py<PyAny>);

impl Write for PythonFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let wrote = self.0.call_method1(py, "write", (PyBytes::new(py, bytes),))?;
            wrote.extract::<usize>(py)
        })
        .map_err(io::Error::from)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads sitemaps: (path, name) each. The stream and its readings own `keep`.
#[pyfunction]
pub fn read_stream(
    files: Vec<(PathBuf, String)>,
    threads: usize,
    lenient: bool,
    keep: Py<PyAny>,
) -> Stream {
    let start = move || read(files.clone(), threads, lenient);
    Stream::new(rows::schema(), Arc::default(), keep, start)
}

/// A file: path, name, digest from a manifest.
type DiffFile = (PathBuf, String, Option<String>);

/// Compares two sets of sitemaps. The stream and its readings own `keep`.
#[pyfunction]
pub fn diff_stream(
    old: Vec<DiffFile>,
    new: Vec<DiffFile>,
    threads: usize,
    memory: usize,
    lenient: bool,
    keep: Py<PyAny>,
) -> Stream {
    let counts = Arc::new(Mutex::new(None));
    let found = counts.clone();
    let start = move || {
        let shards = |files: &[DiffFile]| {
            files
                .iter()
                .cloned()
                .map(|(path, name, digest)| SetFile { path, name, digest })
                .collect()
        };
        let options = DiffOptions { threads, memory, spill_folder: None, lenient };
        changes::stream(shards(&old), shards(&new), options, found.clone())
    };
    Stream::new(changes::schema(), counts, keep, start)
}

/// Writes the part of two generations of a shard that differs to two files. Returns which files
/// were written, or None if the whole shards must be compared.
#[pyfunction]
pub fn write_differences(
    py: Python<'_>,
    old: PathBuf,
    new: PathBuf,
    cut_old: PathBuf,
    cut_new: PathBuf,
) -> PyResult<Option<(bool, bool)>> {
    let written = py.detach(|| {
        urlset_core::inspect::overlap::write_differences(&old, &new, [&cut_old, &cut_new])
    });
    Ok(written.map_err(|e| exception(py, &e))?.map(|[old, new]| (old, new)))
}
