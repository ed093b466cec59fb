//! verify, read and diff: extract, detach, call the core once, convert.
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use serde_json::json;
use urlset_core::parse::changes;
use urlset_core::parse::codes;
use urlset_core::parse::diff::{Counts, Options as DiffOptions, Shard};
use urlset_core::parse::entry::Form;
use urlset_core::parse::read::{BatchStream, read};
use urlset_core::parse::verify::{FileReport, Options, Target, verify};

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

/// Verifies files: (path, name, url or None, whether an index lists it) each; JSON.
#[pyfunction]
#[pyo3(signature = (targets, *, threads, memory, duplicates, reciprocity, most))]
pub fn verify_files(
    py: Python<'_>,
    targets: Vec<(PathBuf, String, Option<String>, bool)>,
    threads: Option<usize>,
    memory: usize,
    duplicates: bool,
    reciprocity: bool,
    most: u64,
) -> PyResult<String> {
    let targets: Vec<_> = targets
        .into_iter()
        .map(|(path, name, url, listed)| Target { path, name, url, listed })
        .collect();
    let mut options = Options { memory, duplicates, reciprocity, most, ..Options::default() };
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

/// Batches made by threads behind it; it can be taken once, as an Arrow C stream.
#[pyclass]
pub struct Stream {
    batches: Mutex<Option<BatchStream>>,
    counts: Arc<Mutex<Option<Counts>>>,
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
        let taken = self.batches.lock().ok().and_then(|mut batches| batches.take());
        let Some(batches) = taken else {
            return Err(PyRuntimeError::new_err("this stream was taken already"));
        };
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Of a diff, once it is at its end: added, changed, removed, files left out as equal.
    fn counts(&self) -> Option<(u64, u64, u64, u64)> {
        let counts = (*self.counts.lock().ok()?)?;
        Some((counts.added, counts.changed, counts.removed, counts.skipped))
    }
}

/// Reads sitemaps: (path, name) each.
#[pyfunction]
pub fn read_stream(files: Vec<(PathBuf, String)>, threads: usize, lenient: bool) -> Stream {
    Stream { batches: Mutex::new(Some(read(files, threads, lenient))), counts: Arc::default() }
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
    Stream { batches: Mutex::new(Some(batches)), counts }
}
