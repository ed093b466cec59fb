//! The kind of a file, and the entries of an index.

use std::path::PathBuf;

use pyo3::prelude::*;
use urlset_core::inspect::document::entry::Form;
use urlset_core::inspect::finding;
use urlset_core::inspect::index;

/// The name of a kind of document.
pub fn form_name(form: Form) -> &'static str {
    match form {
        Form::Urlset => "urlset",
        Form::Index => "index",
        Form::Text => "text",
        Form::Feed => "feed",
        Form::Unknown => "unknown",
    }
}

/// An entry of an index.
#[pyclass(frozen, get_all, module = "urlset._core")]
#[derive(Clone)]
pub struct Child {
    /// The address.
    loc: String,
    /// The lastmod as written, if it is a W3C Datetime.
    lastmod: Option<String>,
    /// From 1.
    line: u64,
    /// Byte offset before compression.
    offset: u64,
}

impl From<index::Child> for Child {
    fn from(child: index::Child) -> Child {
        let index::Child { loc, lastmod, at } = child;
        Child { loc, lastmod, line: at.line, offset: at.offset }
    }
}

/// One finding; the attributes are those of `urlset.inspect.verify.Problem`.
#[pyclass(frozen, get_all, module = "urlset._core")]
#[derive(Clone)]
pub struct Finding {
    code: &'static str,
    severity: &'static str,
    line: u64,
    offset: u64,
    url: Option<String>,
    message: String,
    help: &'static str,
}

impl From<finding::Finding> for Finding {
    fn from(found: finding::Finding) -> Finding {
        let finding::Finding { code, at, url, message } = found;
        Finding {
            code: code.name,
            severity: code.severity.name(),
            line: at.line,
            offset: at.offset,
            url,
            message,
            help: code.help,
        }
    }
}

/// The kind of a file and, for an index, its entries.
#[pyclass(frozen, get_all, module = "urlset._core")]
pub struct Listing {
    /// `urlset`, `index`, `text`, `feed`, `unknown`, or `other`: XML, but not a sitemap.
    kind: &'static str,
    /// The number of entries that were read, invalid ones included.
    entries: u64,
    /// The entries of an index, at most 50,000.
    children: Vec<Child>,
    /// The first finding of each code, in the order of the file.
    findings: Vec<Finding>,
    /// The first finding that makes the file unreliable.
    first_break: Option<Finding>,
}

impl From<index::Listing> for Listing {
    fn from(listing: index::Listing) -> Listing {
        Listing {
            kind: if listing.other { "other" } else { form_name(listing.form) },
            entries: listing.entries,
            children: listing.children.into_iter().map(Child::from).collect(),
            findings: listing.findings.into_iter().map(Finding::from).collect(),
            first_break: listing.first_break.map(Finding::from),
        }
    }
}

/// The kind of a file and the entries of an index; of any other file only the start is read.
/// Raises OSError.
#[pyfunction]
pub fn peek(py: Python<'_>, path: PathBuf) -> PyResult<Listing> {
    Ok(py.detach(|| index::peek(&path))?.into())
}

/// A whole file: the entries of an index, the number of entries of any other sitemap. Raises OSError.
#[pyfunction]
pub fn read_index(py: Python<'_>, path: PathBuf) -> PyResult<Listing> {
    Ok(py.detach(|| index::read_index(&path))?.into())
}
