//! verify, read and diff: extract, detach, call the core once, convert.

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
use serde_json::json;
use urlset_core::inspect::changes;
use urlset_core::inspect::check::host::Hosts;
use urlset_core::inspect::codes;
use urlset_core::inspect::crew::PATIENCE;
use urlset_core::inspect::diff::{Counts, Options as DiffOptions, Shard};
use urlset_core::inspect::document::entry::Form;
use urlset_core::inspect::parquet;
use urlset_core::inspect::parquet::Failure;
use urlset_core::inspect::read::{BatchStream, read};
use urlset_core::inspect::rows;
use urlset_core::inspect::verify::{FileReport, Options, Rules, Target, verify};

use crate::error::exception;

/// An error of the core as JSON in a `RuntimeError`; the Python side makes the exception of it.
fn raise(error: urlset_core::Error) -> PyErr {
    let kind = format!("{:?}", error.kind).to_lowercase();
    let text = json!({ "kind": kind, "code": error.code, "message": error.to_string() });
    PyRuntimeError::new_err(text.to_string())
}

/// Whether Python wants to be interrupted.
fn interrupted(error: &mut Option<PyErr>) -> bool {
    *error = Python::attach(|py| py.check_signals().err());
    error.is_some()
}

fn form(form: Form) -> &'static str {
    match form {
        Form::Urlset => "urlset",
        Form::Index => "index",
        Form::Text => "text",
        Form::Feed => "feed",
        Form::Unknown => "unknown",
    }
}

fn report(file: &FileReport) -> serde_json::Value {
    let findings: Vec<_> = file
        .findings
        .iter()
        .map(|f| {
            json!({
                "code": f.code.name, "severity": f.code.severity, "line": f.at.line,
                "offset": f.at.offset, "url": f.url, "message": f.message, "help": f.code.help,
            })
        })
        .collect();
    let children: Vec<_> =
        file.children.iter().map(|c| json!([c.loc, c.lastmod, c.at.line, c.at.offset])).collect();
    json!({
        "kind": form(file.summary.form), "urls": file.summary.entries, "news": file.summary.news,
        "bytes": file.summary.bytes, "size": file.size, "gzip": file.gzip,
        "children": children, "findings": findings, "counts": file.counts,
    })
}

/// Verifies files: (path, name, url or None, whether an index lists it, which rules) each; JSON. Rules
/// are (hosts, added addresses, whether duplicates were kept) each: `hosts` without any means all
/// hosts, `None` that of the file alone.
#[pyfunction]
#[pyo3(signature = (targets, *, threads, memory, duplicates, reciprocity, most, rules))]
#[allow(clippy::too_many_arguments)] // keywords all
pub fn verify_files(
    py: Python<'_>,
    targets: Vec<(PathBuf, String, Option<String>, bool, usize)>,
    threads: Option<usize>,
    memory: usize,
    duplicates: bool,
    reciprocity: bool,
    most: u64,
    rules: Vec<(Option<Vec<String>>, Vec<String>, bool)>,
) -> PyResult<String> {
    let targets: Vec<_> = targets
        .into_iter()
        .map(|(path, name, url, listed, rules)| Target { path, name, url, listed, rules })
        .collect();
    let rules = rules.into_iter().map(|(hosts, added, kept_duplicates)| {
        let hosts = match hosts {
            None => Hosts::Same,
            Some(list) if list.is_empty() => Hosts::Any,
            Some(list) => Hosts::List(list),
        };
        Rules { hosts, added, kept_duplicates }
    });
    let rules = rules.collect();
    let mut options =
        Options { memory, duplicates, reciprocity, most, rules, ..Options::default() };
    options.threads = threads.unwrap_or(options.threads);
    let mut signal = None;
    let result = py.detach(|| verify(&targets, &options, &mut || interrupted(&mut signal)));
    if let Some(signal) = signal {
        return Err(signal);
    }
    let reports = result.map_err(raise)?;
    Ok(serde_json::Value::Array(reports.iter().map(report).collect()).to_string())
}

/// All codes of findings: (code, severity, what to do).
#[pyfunction]
pub fn finding_codes() -> Vec<(&'static str, String, &'static str)> {
    let severity = |code: &codes::Code| format!("{:?}", code.severity).to_lowercase();
    codes::all().iter().map(|code| (code.name, severity(code), code.help)).collect()
}

/// What a file is (`other`: XML, but no sitemap), and of an index its children: (loc, lastmod, line, offset) each.
#[pyfunction]
pub fn peek(py: Python<'_>, path: PathBuf) -> PyResult<(&'static str, Vec<Listed>)> {
    let start = py.detach(|| urlset_core::inspect::document::peek(&path))?;
    let kind = if start.other { "other" } else { form(start.form) };
    let children = start.children.into_iter().map(|c| (c.loc, c.lastmod, c.at.line, c.at.offset));
    Ok((kind, children.collect()))
}

/// An entry of an index: loc, lastmod, line, offset.
type Listed = (String, Option<String>, u64, u64);

/// Starts the threads that read or compare.
type Start = Arc<dyn Fn() -> BatchStream + Send + Sync>;

/// Rows that can be read any number of times, each time anew.
#[pyclass(frozen)]
pub struct Stream {
    start: Start,
    schema: SchemaRef,
    counts: Arc<Mutex<Option<Counts>>>,
    closed: Arc<AtomicBool>,
    /// what the files live in, for as long as anybody reads them
    keep: Py<PyAny>,
}

/// The rows, read once.
#[pyclass(frozen)]
pub struct Reading(Arc<Mutex<Run>>, SchemaRef);

/// One reading. The threads start when the first batch is asked for: many ask for the schema only.
struct Run {
    start: Start,
    closed: Arc<AtomicBool>,
    batches: Option<BatchStream>,
    ended: bool,
    _keep: Py<PyAny>,
}

impl Run {
    /// The batches to come; nothing at their end, where the threads are told to stop.
    fn batches(&mut self) -> Option<&mut BatchStream> {
        if self.ended || self.closed.load(Ordering::Relaxed) {
            self.batches = None;
            return None;
        }
        Some(self.batches.get_or_insert_with(|| (self.start)()))
    }

    fn next(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        if self.closed.load(Ordering::Relaxed) && !self.ended {
            self.ended = true;
            self.batches = None;
            return Some(Err(ArrowError::ExternalError(CLOSED.into())));
        }
        let next = self.batches()?.next();
        self.ended = !matches!(next, Some(Ok(_)));
        // a message goes on as a C string
        next.map(|batch| {
            batch.map_err(|e| ArrowError::ExternalError(e.to_string().replace('\0', " ").into()))
        })
    }
}

/// What a reader is told whose files may be gone.
const CLOSED: &str = "[read.closed] the rows were closed before they were read; read first";

/// A reading for whoever takes its C stream; when that goes, the threads stop.
struct Taken(Arc<Mutex<Run>>, SchemaRef);

impl Iterator for Taken {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.lock().ok()?.next()
    }
}

impl RecordBatchReader for Taken {
    fn schema(&self) -> SchemaRef {
        self.1.clone()
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Ok(mut run) = self.0.lock() {
            run.ended = true;
            run.batches = None;
        }
    }
}

impl Stream {
    fn new(
        schema: SchemaRef,
        counts: Arc<Mutex<Option<Counts>>>,
        keep: Py<PyAny>,
        start: impl Fn() -> BatchStream + Send + Sync + 'static,
    ) -> Stream {
        Stream { start: Arc::new(start), schema, counts, closed: Arc::default(), keep }
    }

    fn run(&self, py: Python<'_>) -> PyResult<Run> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(PyRuntimeError::new_err(CLOSED));
        }
        Ok(Run {
            start: self.start.clone(),
            closed: self.closed.clone(),
            batches: None,
            ended: false,
            _keep: self.keep.clone_ref(py),
        })
    }
}

#[pymethods]
impl Stream {
    /// The rows from the first one on.
    fn open(&self, py: Python<'_>) -> PyResult<Reading> {
        Ok(Reading(Arc::new(Mutex::new(self.run(py)?)), self.schema.clone()))
    }

    /// The columns in their capsule (the Arrow PyCapsule interface).
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref())
            .map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Writes all rows as Parquet to an object with `write`; returns their number.
    fn write_parquet(&self, py: Python<'_>, file: Py<PyAny>, threads: usize) -> PyResult<u64> {
        let run = self.run(py)?;
        let mut signal = None;
        let out = BufWriter::with_capacity(1 << 20, Output(file));
        let written = py.detach(|| {
            let batches = (run.start)();
            parquet::write(batches, out, threads, &mut || interrupted(&mut signal))
        });
        if let Some(signal) = signal {
            return Err(signal);
        }
        written.map_err(|failure| match failure {
            Failure::Rows(error) => PyRuntimeError::new_err(error.to_string()),
            Failure::Output(error) => error.into(),
            Failure::Cancelled => PyKeyboardInterrupt::new_err(()),
        })
    }

    /// Of a diff, once it was read to its end: added, changed, removed, files left out as equal.
    fn counts(&self) -> Option<(u64, u64, u64, u64)> {
        let counts = (*self.counts.lock().ok()?)?;
        Some((counts.added, counts.changed, counts.removed, counts.skipped))
    }

    /// Whoever reads gets an error from now on.
    fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

#[pymethods]
impl Reading {
    /// The stream in its capsule (the Arrow PyCapsule interface).
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema; // a wish that a producer need not grant
        let stream = FFI_ArrowArrayStream::new(Box::new(Taken(self.0.clone(), self.1.clone())));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Waits until the next batch can be taken without waiting; a signal ends it.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        let ready = || match self.0.lock() {
            Ok(mut run) => run.batches().is_none_or(|batches| batches.wait(PATIENCE)),
            Err(_) => true, // taking it fails, too
        };
        while !py.detach(ready) {
            py.check_signals()?;
        }
        Ok(())
    }
}

/// A Python object with `write`; an exception of it is kept in the error.
struct Output(Py<PyAny>);

impl Write for Output {
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

/// Reads sitemaps: (path, name) each. `keep` lives as long as anybody reads.
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
type File = (PathBuf, String, Option<String>);

/// Compares two sets of sitemaps. `keep` lives as long as anybody reads.
#[pyfunction]
pub fn diff_stream(
    old: Vec<File>,
    new: Vec<File>,
    threads: usize,
    memory: usize,
    lenient: bool,
    keep: Py<PyAny>,
) -> Stream {
    let counts = Arc::new(Mutex::new(None));
    let found = counts.clone();
    let start = move || {
        let shards = |files: &[File]| {
            files.iter().cloned().map(|(path, name, digest)| Shard { path, name, digest }).collect()
        };
        let options = DiffOptions { threads, memory, spill: None, lenient };
        changes::stream(shards(&old), shards(&new), options, found.clone())
    };
    Stream::new(changes::schema(), counts, keep, start)
}

/// Writes what differs in two generations of a shard to two files; which of them were written, or
/// nothing where the whole is to be compared.
#[pyfunction]
pub fn trim(
    py: Python<'_>,
    old: PathBuf,
    new: PathBuf,
    cut_old: PathBuf,
    cut_new: PathBuf,
) -> PyResult<Option<(bool, bool)>> {
    let written = py.detach(|| urlset_core::inspect::trim::trim(&old, &new, [&cut_old, &cut_new]));
    Ok(written.map_err(|e| exception(py, &e))?.map(|[old, new]| (old, new)))
}
