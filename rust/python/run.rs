//! The functions behind `urlset build` and `urlset init`.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyCapsule, PyTuple};
use urlset_core::Error;
use urlset_core::build::pipeline;
use urlset_core::build::pipeline::{AnySource, Run, StampFiles};
use urlset_core::build::read::csv::{Csv, CsvOptions};
use urlset_core::build::read::decode::OpenFile;
use urlset_core::build::read::detect::{self, FileFormat, detect};
use urlset_core::build::read::ipc::Ipc;
use urlset_core::build::read::parquet::{Parquet, ParquetOptions};
use urlset_core::build::read::stream::{ArrowStream, Gap};
use urlset_core::build::render::loc::absolute;
use urlset_core::build::render::plan;
use urlset_core::build::stamps::open::OldFile;
use urlset_core::build::write::folder::FolderSink;
use urlset_core::build::write::gzip::{Encoder, Libdeflate};
use urlset_core::build::write::live::{self, LiveShards};
use urlset_core::build::write::sink::Sink;
use urlset_core::build::write::writer::Destination;
use urlset_core::config::{Config, LIMITS};
use urlset_core::flow::cell::{ColumnKind, Columns};
use urlset_core::thread::start;

use crate::buffer::Isal;
use crate::error::{exception, run_exception};
use crate::object::{ObjectAccess, ObjectReader};
use crate::sink::ObjectSink;

/// The progress of a build.
#[pyclass(frozen, module = "urlset._core")]
#[derive(Default)]
pub struct Progress(Arc<pipeline::Progress>);

#[pymethods]
impl Progress {
    #[new]
    fn new() -> Progress {
        Progress::default()
    }

    /// Rows read.
    #[getter]
    fn rows(&self) -> u64 {
        self.0.rows.load(Ordering::Relaxed)
    }

    /// URLs packed into shards.
    #[getter]
    fn urls(&self) -> u64 {
        self.0.urls.load(Ordering::Relaxed)
    }

    /// Shards written.
    #[getter]
    fn shards(&self) -> u64 {
        self.0.shards.load(Ordering::Relaxed)
    }

    /// Bytes of files consumed; for Parquet in proportion to its rows.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }
}

/// The URLs of the sets of one build so far, for `--duplicates`.
#[pyclass(frozen, module = "urlset._core")]
#[derive(Default)]
pub struct Seen(Arc<urlset_core::build::duplicates::seen::Seen>);

#[pymethods]
impl Seen {
    #[new]
    fn new() -> Seen {
        Seen::default()
    }
}

/// Where the shards go.
enum Target {
    Folder(std::path::PathBuf),
    Object(Py<PyAny>),
}

fn config(py: Python<'_>, json: &str) -> PyResult<Config> {
    Config::from_json(json).map_err(|e| exception(py, &e))
}

fn csv(config: &Config, path: &str, lines: bool) -> Csv {
    let options = CsvOptions {
        delimiter: config.delimiter_byte(),
        encoding: config.encoding.clone(),
        max_cell: config.max_cell,
        block: config.batch_bytes,
        lines,
    };
    Csv::new(path, options)
}

/// The C stream that an object exports by `__arrow_c_stream__`.
fn stream(object: &Bound<'_, PyAny>, name: &str, rows: usize) -> PyResult<ArrowStream> {
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: a capsule with this name contains an ArrowArrayStream (Arrow PyCapsule interface). A
    // consumer takes ownership of it, which marks it as released.
    let stream =
        unsafe { arrow_array::ffi_stream::FFI_ArrowArrayStream::from_raw(pointer.as_ptr().cast()) };
    ArrowStream::new(name, stream, rows).map_err(|e| exception(object.py(), &e))
}

/// A file that Python has opened, by its descriptor (on Windows its handle).
fn duplicate(descriptor: isize) -> std::io::Result<File> {
    #[cfg(unix)]
    use std::os::fd::{BorrowedFd as Borrowed, RawFd as Raw};
    #[cfg(windows)]
    use std::os::windows::io::{BorrowedHandle as Borrowed, RawHandle as Raw};

    // SAFETY: the caller keeps the descriptor open during the call. It is duplicated at once, and
    // only this function owns the duplicate.
    Ok(unsafe { Borrowed::borrow_raw(descriptor as Raw) }.try_clone_to_owned()?.into())
}

/// A file that Python has opened, and the bytes that Python has read.
fn open_file(object: &Bound<'_, PyAny>) -> PyResult<OpenFile> {
    let (descriptor, head) = object.extract()?;
    Ok(OpenFile { file: duplicate(descriptor)?, head })
}

/// An input: a tuple in Python.
#[derive(FromPyObject)]
pub struct Input<'py>(
    /// The name in errors and in the reject file.
    String,
    /// `csv`, `lines`, `parquet`, `ipc`, `arrow`.
    String,
    /// The object that exports a stream, or the file that is open.
    Option<Bound<'py, PyAny>>,
    /// The rows that the filters leave out of a stream: before which row, and how many.
    Vec<(u64, u64)>,
);

/// The number of rows of an Arrow batch, derived from the bytes of a batch of CSV.
fn batch_rows(config: &Config) -> usize {
    config.batch_bytes.div_ceil(256)
}

/// A file, or the stream of an object. Batches of Arrow have up to `rows` rows.
fn source(config: &Config, input: Input<'_>, rows: usize) -> PyResult<Box<dyn AnySource>> {
    let Input(name, format, object, gaps) = input;
    Ok(match (&format[..], object) {
        ("csv" | "lines", object) => {
            let csv = csv(config, &name, format == "lines");
            match object {
                None => Box::new(csv),
                Some(object) if object.is_instance_of::<PyTuple>() => {
                    Box::new(csv.with_reader(open_file(&object)?.into()))
                }
                Some(object) => Box::new(csv.with_reader(Box::new(ObjectReader::new(object)))),
            }
        }
        ("parquet", object) => {
            let filters = config.filters.clone();
            // rendering a row takes about five times as long as decoding it
            let threads = (config.workers() / 5).max(1);
            let parquet = Parquet::new(name, ParquetOptions { rows, threads, filters });
            match object {
                None => Box::new(parquet),
                Some(object) if object.is_instance_of::<PyTuple>() => {
                    Box::new(parquet.with_file(Arc::new(open_file(&object)?.file)))
                }
                Some(object) => Box::new(parquet.with_file(Arc::new(ObjectAccess::new(object)))),
            }
        }
        ("ipc", None) => Box::new(Ipc::new(name, rows)),
        ("ipc", Some(object)) => Box::new(Ipc::new(name, rows).with_file(open_file(&object)?)),
        ("arrow", Some(object)) => {
            let gaps = gaps.into_iter().map(|(before, rows)| Gap { before, rows });
            Box::new(stream(&object, &name, rows)?.with_gaps(gaps))
        }
        _ => {
            let message = "format is csv, lines, parquet, ipc, or arrow with an object";
            return Err(PyValueError::new_err(message));
        }
    })
}

/// Runs code in a thread, so that a signal can end the wait for a source. The thread ends when the
/// source returns.
fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> urlset_core::error::Result<T> + Send + 'static,
) -> PyResult<T> {
    let (done_tx, done_rx) = bounded(1);
    let failure = done_tx.clone();
    // after a signal the receiver has ended
    let work = move || drop(done_tx.send(work()));
    start("look", work, move |error| drop(failure.send(Err(error))))
        .map_err(|e| exception(py, &e))?;
    loop {
        match py.detach(|| done_rx.recv_timeout(Duration::from_millis(50))) {
            Ok(result) => return result.map_err(|e| exception(py, &e)),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => return Err(exception(py, &Error::thread())),
        }
    }
}

/// The stamps of the last build: descriptor (on Windows the handle), name and digest of their file.
type OldStamps = (isize, String, String);

/// The stamps of the last build, by the descriptor of their file, and the path for new ones.
fn stamp_files(old: Option<OldStamps>, new: std::path::PathBuf) -> PyResult<StampFiles> {
    let old = old.map(|(descriptor, name, digest)| {
        Ok::<_, PyErr>(OldFile { file: duplicate(descriptor)?, name, digest })
    });
    Ok(StampFiles { old: old.transpose()?, new })
}

/// Runs the pipeline over the sources and writes the shards to `sink`: the path of a folder, or an
/// object with `put(name, data, digest)` and `finish()`, whose first exception ends the run.
///
/// - `sources`: `(name, format, None, [])` for a file with the format "csv", "lines", "parquet" or
///   "ipc"; `(descriptor, head)` in place of None for an open file whose first bytes `head` were read,
///   or for an object in a store one with `read` (CSV) or with `size`, `read_at` and `plan` (Parquet);
///   `(name, "arrow", object, gaps)` for an object with `__arrow_c_stream__`. A gap `(row, rows)` is
///   the number of rows that the filters left out of the stream before a row.
/// - `encoder`: a callable that begins a gzip file and returns an object with zlib's `compress` and
///   `flush`, or a level of libdeflate. Without it files are not compressed.
/// - `seen`: passed from set to set of a build.
/// - `live`: the live shards, as [`pack_live`] returns them.
/// - `tick`: called about ten times a second.
/// - `lastmod`: with `lastmod_from`, the stamps of the last build, `(descriptor, name, digest)` or
///   None, and the path for those of this one.
///
/// Returns the outcome as JSON.
#[pyfunction]
#[pyo3(signature = (config_json, sources, sink, rejects, progress, seen, *, encoder=None, live=None, tick=None, lastmod=None))]
#[allow(clippy::too_many_arguments)] // named in Python
pub fn build(
    py: Python<'_>,
    config_json: &str,
    sources: Vec<Input<'_>>,
    sink: Bound<'_, PyAny>,
    rejects: std::path::PathBuf,
    progress: &Progress,
    seen: &Seen,
    encoder: Option<Bound<'_, PyAny>>,
    live: Option<Vec<u8>>,
    tick: Option<Bound<'_, PyAny>>,
    lastmod: Option<(Option<OldStamps>, std::path::PathBuf)>,
) -> PyResult<String> {
    let config = config(py, config_json)?;
    let stamps = lastmod.map(|(old, new)| stamp_files(old, new)).transpose()?;
    let sources = sources
        .into_iter()
        .map(|input| source(&config, input, batch_rows(&config)))
        .collect::<PyResult<Vec<_>>>()?;
    let encoder: Option<Box<dyn Encoder>> = match encoder {
        None => None,
        Some(object) => Some(if let Ok(level) = object.extract::<i32>() {
            Box::new(Libdeflate::new(level).map_err(|e| exception(py, &e))?)
        } else if object.is_callable() {
            Box::new(Isal::new(object.unbind()))
        } else {
            return Err(PyTypeError::new_err("encoder is neither a level nor a callable"));
        }),
    };
    let live = LiveShards::from_bytes(live.unwrap_or_default());
    let target = match sink.extract::<std::path::PathBuf>() {
        Ok(folder) => Target::Folder(folder),
        Err(_) => Target::Object(sink.unbind()),
    };
    let progress = progress.0.clone();
    let seen = seen.0.clone();
    let (done_tx, done_rx) = bounded(1);
    let failure = done_tx.clone();
    let stopped = progress.clone();
    let work = move || {
        let run = |sink: &dyn Sink| {
            let destination = Destination { sink, encoder: encoder.as_deref(), live };
            pipeline::run(
                &config,
                Run { sources, destination, rejects, progress, seen: &seen, stamps },
            )
        };
        let done = match target {
            Target::Folder(folder) => (run(&FolderSink::new(folder)), None),
            Target::Object(object) => {
                let sink = ObjectSink::new(object);
                (run(&sink), sink.into_failure())
            }
        };
        // the receiver waits for this message
        let _ = done_tx.send(done);
    };
    let failed = move |error: Error| drop(failure.send((Err(error.into()), None))); // likewise
    urlset_core::thread::start("build", work, failed).map_err(|e| exception(py, &e))?;
    let mut interrupted = None;
    let (result, failure) = loop {
        match py.detach(|| done_rx.recv_timeout(Duration::from_millis(50))) {
            Ok(done) => break done,
            Err(RecvTimeoutError::Disconnected) => break (Err(Error::thread().into()), None),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if interrupted.is_some() {
            continue;
        }
        let interrupt = py.check_signals().and_then(|()| match &tick {
            Some(tick) => tick.call0().map(drop),
            None => Ok(()),
        });
        if let Err(error) = interrupt {
            stopped.stop.store(true, Ordering::Relaxed);
            interrupted = Some(error);
        }
    };
    if let Some(error) = interrupted {
        return Err(error);
    }
    let outcome = result.map_err(|e| failure.unwrap_or_else(|| run_exception(py, &e)))?;
    serde_json::to_string(&outcome).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// The columns that a configuration needs of an input with these columns, and the source of each field
/// as JSON.
///
/// `kinds` has one letter for each column: `t` text, `s` scalar, `n` nested, any other unreadable.
#[pyfunction]
pub fn choose(
    py: Python<'_>,
    config_json: &str,
    names: Vec<String>,
    kinds: &str,
) -> PyResult<(Vec<String>, String)> {
    let config = config(py, config_json)?;
    let columns = columns(names, kinds);
    let (needed, chosen) = pipeline::choose(&config, &columns).map_err(|e| exception(py, &e))?;
    let chosen =
        serde_json::to_string(&chosen).map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok((needed, chosen))
}

fn columns(names: Vec<String>, kinds: &str) -> Columns {
    let kinds = kinds.chars().map(|kind| match kind {
        't' => ColumnKind::Text,
        's' => ColumnKind::Scalar,
        'n' => ColumnKind::Nested,
        _ => ColumnKind::Other,
    });
    Columns { names, kinds: kinds.collect() }
}

/// The columns that loc and the filters need; `kinds` as in `choose`.
#[pyfunction]
pub fn loc_columns(
    py: Python<'_>,
    config_json: &str,
    names: Vec<String>,
    kinds: &str,
) -> PyResult<Vec<String>> {
    let config = config(py, config_json)?;
    pipeline::loc_columns(&config, &columns(names, kinds)).map_err(|e| exception(py, &e))
}

/// Rows of Arrow that are rendered at once to find their locs.
const LOC_ROWS: usize = 1 << 16;

/// The loc of each row of an object with `__arrow_c_stream__`: the validity, the offsets and the text
/// of a column of large strings, and the number of `bounds`, as 32-bit integers, that are not greater
/// than the loc. A row that is rejected or filtered has no loc, and `without` as this number.
#[pyfunction]
pub fn locs<'py>(
    py: Python<'py>,
    config_json: &str,
    name: String,
    object: Bound<'py, PyAny>,
    bounds: Vec<String>,
    without: i32,
) -> PyResult<[Bound<'py, PyBytes>; 4]> {
    let config = config(py, config_json)?;
    let source = Box::new(stream(&object, &name, LOC_ROWS)?);
    let found = interruptible(py, move || pipeline::locs(&config, source, &bounds, without))?;
    let offsets: Vec<u8> = found.offsets.iter().flat_map(|n| n.to_ne_bytes()).collect();
    let ranges: Vec<u8> = found.ranges.iter().flat_map(|n| n.to_ne_bytes()).collect();
    let buffers = [&found.valid, &offsets, &found.text, &ranges];
    Ok(buffers.map(|buffer| PyBytes::new(py, buffer)))
}

/// Rows of Arrow in a preview.
const PREVIEW_ROWS: usize = 1_000;

/// Renders the first rows of an input. Returns JSON: columns, mapping, urls, rejects.
#[pyfunction]
pub fn preview(
    py: Python<'_>,
    config_json: &str,
    name: String,
    format: String,
    object: Option<Bound<'_, PyAny>>,
    limit: usize,
) -> PyResult<String> {
    let config = config(py, config_json)?;
    let input = Input(name, format, object, Vec::new());
    let source = source(&config, input, PREVIEW_ROWS)?;
    let preview = interruptible(py, move || pipeline::preview(&config, source, limit))?;
    serde_json::to_string(&preview).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// The hashes of the locs of an input, for the configuration `exclude` of a build.
#[pyfunction]
pub fn exclude(
    py: Python<'_>,
    config_json: &str,
    name: String,
    format: String,
    object: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let config = config(py, config_json)?;
    let input = Input(name, format, object, Vec::new());
    let source = source(&config, input, batch_rows(&config))?;
    interruptible(py, move || pipeline::exclude(&config, source))
}

/// An absolute URL in canonical form: percent-encoded, its host in punycode.
#[pyfunction]
pub fn address(py: Python<'_>, url: &str) -> PyResult<String> {
    absolute(url).map_err(|fault| {
        let message = format!("{url:?}: {}", fault.message());
        exception(py, &urlset_core::error::ErrorCode::ConfigUrl.error(message))
    })
}

/// Packs the live shards, each a path, a digest and the bytes of the file.
#[pyfunction]
pub fn pack_live<'py>(
    py: Python<'py>,
    shards: Vec<(PyBackedStr, PyBackedStr, u64)>,
) -> Bound<'py, PyBytes> {
    let shards = shards.iter().map(|(path, digest, bytes)| (&**path, &**digest, *bytes));
    PyBytes::new(py, LiveShards::new(shards).as_bytes())
}

/// The digest and the bytes of a packed live shard.
#[pyfunction]
pub fn find_live(live: PyBackedBytes, path: &str) -> Option<(String, u64)> {
    let found = live::find(&live, path)?;
    Some((found.digest, found.compressed_bytes))
}

/// 128 bits of BLAKE3 in hexadecimal. (Importing hashlib loads OpenSSL and takes 6 ms.)
#[pyfunction]
pub fn digest(data: Bytes) -> String {
    urlset_core::flow::outcome::digest(match &data {
        Bytes::Text(text) => text.as_bytes(),
        Bytes::Bytes(bytes) => bytes,
    })
}

/// Text or bytes.
#[derive(FromPyObject)]
pub enum Bytes {
    /// Digested as UTF-8.
    Text(PyBackedStr),
    /// Digested as they are.
    Bytes(PyBackedBytes),
}

/// The columns of a file.
#[pyfunction]
#[pyo3(signature = (config_json, path, format, begun=None))]
pub fn look(
    py: Python<'_>,
    config_json: &str,
    path: String,
    format: String,
    begun: Option<Bound<'_, PyAny>>,
) -> PyResult<Vec<String>> {
    let config = config(py, config_json)?;
    let input = Input(path, format, begun, Vec::new());
    let mut source = source(&config, input, batch_rows(&config))?;
    Ok(interruptible(py, move || source.open())?.names)
}

/// The format of a file with these first bytes: csv, lines, parquet, arrow or jsonl.
#[pyfunction]
pub fn recognise(
    py: Python<'_>,
    head: &[u8],
    whole: bool,
    encoding: Option<&str>,
) -> PyResult<&'static str> {
    let format = detect(head, whole, encoding).map_err(|e| exception(py, &e))?;
    Ok(match format {
        FileFormat::Csv => "csv",
        FileFormat::Lines => "lines",
        FileFormat::Parquet => "parquet",
        FileFormat::Arrow => "arrow",
        FileFormat::Jsonl => "jsonl",
    })
}

/// Whether a file with these first bytes contains text that is neither a list of URLs nor a table.
#[pyfunction]
pub fn is_prose(head: &[u8], whole: bool, encoding: Option<&str>) -> bool {
    detect::is_prose(head, whole, encoding)
}

/// The smallest and the largest value of each option with a limit.
#[pyfunction]
pub fn limits() -> BTreeMap<&'static str, (u64, u64)> {
    LIMITS.into_iter().map(|(name, range)| (name, (*range.start(), *range.end()))).collect()
}

/// The default column names of `loc` and `lastmod`, best first.
#[pyfunction]
pub fn column_names() -> BTreeMap<&'static str, Vec<&'static str>> {
    BTreeMap::from([("loc", plan::LOC.to_vec()), ("lastmod", plan::LASTMOD.to_vec())])
}

/// Whether `rejected` of `rows` rows are more than the `max_rejects` of a configuration.
#[pyfunction]
pub fn exceeds_rejects(
    py: Python<'_>,
    config_json: &str,
    rejected: u64,
    rows: u64,
) -> PyResult<bool> {
    Ok(config(py, config_json)?.max_rejects.is_exceeded(rejected, rows))
}

/// By code, the number of complete rows of a reject file, and the offsets of the first of them.
#[pyfunction]
pub fn count_rejects(
    py: Python<'_>,
    path: std::path::PathBuf,
) -> PyResult<BTreeMap<String, (u64, Vec<u64>)>> {
    let counts = py.detach(|| urlset_core::build::write::rejects::count(&path));
    let counts = counts.map_err(|e| exception(py, &e))?;
    Ok(counts.into_iter().map(|(code, of)| (code, (of.rows, of.places))).collect())
}
