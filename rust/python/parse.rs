//! verify, read and diff: extract, detach, call the core once, convert.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use serde_json::json;
use urlset_core::parse::changes;
use urlset_core::parse::check::host::Hosts;
use urlset_core::parse::codes;
use urlset_core::parse::crew::PATIENCE;
use urlset_core::parse::diff::{Counts, Options as DiffOptions, Shard};
use urlset_core::parse::entry::Form;
use urlset_core::parse::parquet::{self, Failure};
use urlset_core::parse::read::{BatchStream, read};
use urlset_core::parse::verify::{FileReport, Options, Target, verify};

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

/// Verifies files: (path, name, url or None, whether an index lists it) each; JSON. `hosts` without
/// any means all hosts, `None` that of the file alone.
#[pyfunction]
#[pyo3(signature = (targets, *, threads, memory, duplicates, reciprocity, most, hosts, added, kept_duplicates))]
#[allow(clippy::too_many_arguments)] // keywords all
pub fn verify_files(
    py: Python<'_>,
    targets: Vec<(PathBuf, String, Option<String>, bool)>,
    threads: Option<usize>,
    memory: usize,
    duplicates: bool,
    reciprocity: bool,
    most: u64,
    hosts: Option<Vec<String>>,
    added: Vec<String>,
    kept_duplicates: bool,
) -> PyResult<String> {
    let targets: Vec<_> = targets
        .into_iter()
        .map(|(path, name, url, listed)| Target { path, name, url, listed })
        .collect();
    let hosts = match hosts {
        None => Hosts::Same,
        Some(list) if list.is_empty() => Hosts::Any,
        Some(list) => Hosts::List(list),
    };
    let mut options = Options { memory, duplicates, reciprocity, most, ..Options::default() };
    options = Options { hosts, added, kept_duplicates, ..options };
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
    codes::ALL.iter().map(|code| (code.name, severity(code), code.help)).collect()
}

/// What a file is (`other`: XML, but no sitemap), and of an index its children: (loc, lastmod, line, offset) each.
#[pyfunction]
pub fn peek(py: Python<'_>, path: PathBuf) -> PyResult<(&'static str, Vec<Listed>)> {
    let start = py.detach(|| urlset_core::parse::peek(&path))?;
    let kind = if start.other { "other" } else { form(start.form) };
    let children = start.children.into_iter().map(|c| (c.loc, c.lastmod, c.at.line, c.at.offset));
    Ok((kind, children.collect()))
}

/// An entry of an index: loc, lastmod, line, offset.
type Listed = (String, Option<String>, u64, u64);

/// Batches made by threads behind it; they can be taken once.
#[pyclass]
pub struct Stream {
    batches: Arc<Mutex<Option<BatchStream>>>,
    schema: SchemaRef,
    taken: AtomicBool,
    counts: Arc<Mutex<Option<Counts>>>,
}

impl Stream {
    fn new(batches: BatchStream, counts: Arc<Mutex<Option<Counts>>>) -> Stream {
        let schema = batches.schema();
        let batches = Arc::new(Mutex::new(Some(batches)));
        Stream { batches, schema, taken: AtomicBool::new(false), counts }
    }

    fn take(&self) -> PyResult<()> {
        match self.taken.swap(true, Ordering::Relaxed) {
            true => Err(PyRuntimeError::new_err("this stream was taken already")),
            false => Ok(()),
        }
    }
}

/// The stream for its taker; when it goes, the threads stop.
struct Taken(Arc<Mutex<Option<BatchStream>>>, SchemaRef);

impl Iterator for Taken {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.lock().ok()?.as_mut()?.next()
    }
}

impl RecordBatchReader for Taken {
    fn schema(&self) -> SchemaRef {
        self.1.clone()
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Ok(mut batches) = self.0.lock() {
            *batches = None;
        }
    }
}

#[pymethods]
impl Stream {
    /// The stream in its capsule (the Arrow PyCapsule interface).
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema; // a wish that a producer need not grant
        self.take()?;
        let taken = Taken(self.batches.clone(), self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(taken));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Waits until the next batch can be taken without waiting; a signal ends it.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        let ready = || match self.batches.lock() {
            Ok(mut batches) => batches.as_mut().is_none_or(|batches| batches.wait(PATIENCE)),
            Err(_) => true, // taking it fails, too
        };
        while !py.detach(ready) {
            py.check_signals()?;
        }
        Ok(())
    }

    /// Writes all rows as Parquet to an object with `write`; returns their number.
    fn write_parquet(&self, py: Python<'_>, file: Py<PyAny>, threads: usize) -> PyResult<u64> {
        self.take()?;
        let batches = self.batches.lock().ok().and_then(|mut batches| batches.take());
        let Some(batches) = batches else {
            return Err(PyRuntimeError::new_err("this stream was taken already"));
        };
        let mut signal = None;
        let out = BufWriter::with_capacity(1 << 20, Output(file));
        let written =
            py.detach(|| parquet::write(batches, out, threads, &mut || interrupted(&mut signal)));
        if let Some(signal) = signal {
            return Err(signal);
        }
        written.map_err(|failure| match failure {
            Failure::Rows(error) => PyRuntimeError::new_err(error.to_string()),
            Failure::Output(error) => error.into(),
            Failure::Cancelled => PyKeyboardInterrupt::new_err(()),
        })
    }

    /// Of a diff, once it is at its end: added, changed, removed, files left out as equal.
    fn counts(&self) -> Option<(u64, u64, u64, u64)> {
        let counts = (*self.counts.lock().ok()?)?;
        Some((counts.added, counts.changed, counts.removed, counts.skipped))
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

/// Reads sitemaps: (path, name) each.
#[pyfunction]
pub fn read_stream(files: Vec<(PathBuf, String)>, threads: usize, lenient: bool) -> Stream {
    Stream::new(read(files, threads, lenient), Arc::default())
}

/// A file: path, name, digest from a manifest.
type File = (PathBuf, String, Option<String>);

/// Compares two sets of sitemaps.
#[pyfunction]
pub fn diff_stream(
    old: Vec<File>,
    new: Vec<File>,
    threads: usize,
    memory: usize,
    lenient: bool,
) -> Stream {
    let shards = |files: Vec<File>| {
        files.into_iter().map(|(path, name, digest)| Shard { path, name, digest }).collect()
    };
    let options = DiffOptions { threads, memory, spill: None, lenient };
    let (batches, counts) = changes::stream(shards(old), shards(new), options);
    Stream::new(batches, counts)
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
    let written = py.detach(|| urlset_core::parse::trim::trim(&old, &new, [&cut_old, &cut_new]));
    Ok(written.map_err(|e| exception(py, &e))?.map(|[old, new]| (old, new)))
}
