//! verify: files to reports of findings.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::prelude::*;
use urlset_core::inspect::codes;
use urlset_core::inspect::verify;
use urlset_core::sitemap::hosts::{AllowedHosts, HostList};

use crate::error::exception;
use crate::index::{Child, Finding, form_name};

/// A file to verify: the attributes of `urlset.inspect.targets.Item`.
#[derive(FromPyObject)]
pub struct Target {
    path: PathBuf,
    name: String,
    url: Option<String>,
    listed: bool,
    rules: usize,
}

/// What a set of files may contain although it is unusual: the attributes of
/// `urlset.inspect.targets.Rules`. `hosts` is None for the host of each file, empty for any host.
#[derive(FromPyObject)]
pub struct SetRules {
    hosts: Option<Vec<String>>,
    added: Vec<String>,
    keeps_duplicates: bool,
}

/// The findings and totals of one file.
#[pyclass(frozen, get_all, module = "urlset._core")]
pub struct FileReport {
    /// `urlset`, `index`, `text`, `feed` or `unknown`.
    kind: &'static str,
    /// Entries, invalid ones included.
    urls: u64,
    /// Bytes before compression.
    bytes: u64,
    /// Bytes on disk.
    size: u64,
    /// Whether the file is compressed.
    gzip: bool,
    /// The entries of an index.
    children: Vec<Child>,
    /// The listed findings.
    findings: Vec<Finding>,
    /// The number of all findings by code.
    counts: BTreeMap<&'static str, u64>,
    /// The ages of the lastmods of its entries, as `age_steps` separates them.
    ages: Vec<u32>,
}

impl From<verify::FileReport> for FileReport {
    fn from(report: verify::FileReport) -> FileReport {
        FileReport {
            kind: form_name(report.summary.form),
            urls: report.summary.entries,
            bytes: report.summary.bytes,
            size: report.size,
            gzip: report.gzip,
            children: report.children.into_iter().map(Child::from).collect(),
            findings: report.findings.into_iter().map(Finding::from).collect(),
            counts: report.counts,
            ages: report.ages.to_vec(),
        }
    }
}

/// Whether a signal is pending; the exception of its handler goes to `error`.
pub fn interrupted(error: &mut Option<PyErr>) -> bool {
    *error = Python::attach(|py| py.check_signals().err());
    error.is_some()
}

/// Verifies files; the reports are in the order of `targets`, whose `rules` are indexes of `rules`.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // named in Python
pub fn verify_files(
    py: Python<'_>,
    targets: Vec<Target>,
    rules: Vec<SetRules>,
    threads: Option<usize>,
    memory: usize,
    duplicates: bool,
    reciprocity: bool,
    most: u64,
) -> PyResult<Vec<FileReport>> {
    let targets: Vec<_> = targets
        .into_iter()
        .map(|target| {
            let Target { path, name, url, listed, rules } = target;
            verify::Target { path, name, url, listed, rules }
        })
        .collect();
    let rules = rules.into_iter().map(|SetRules { hosts, added, keeps_duplicates }| {
        let hosts = match hosts {
            None => AllowedHosts::Same,
            Some(list) if list.is_empty() => AllowedHosts::Any,
            Some(list) => AllowedHosts::List(HostList::lenient(&list)),
        };
        verify::SetRules { hosts, added, kept_duplicates: keeps_duplicates }
    });
    let default = verify::Options::default();
    let options = verify::Options {
        threads: threads.unwrap_or(default.threads),
        memory,
        duplicates,
        reciprocity,
        limit: most,
        rules: rules.collect(),
        ..default
    };
    let mut signal = None;
    let result = py.detach(|| verify::verify(&targets, &options, &mut || interrupted(&mut signal)));
    match signal {
        Some(signal) => Err(signal),
        None => {
            let reports = result.map_err(|error| exception(py, &error))?;
            Ok(reports.into_iter().map(FileReport::from).collect())
        }
    }
}

/// The days before now that separate the ages of lastmods.
#[pyfunction]
pub fn age_steps() -> Vec<i64> {
    urlset_core::sitemap::age::STEPS.to_vec()
}

/// All codes of findings: (code, severity, what to do).
#[pyfunction]
pub fn finding_codes() -> Vec<(&'static str, &'static str, &'static str)> {
    codes::all().iter().map(|code| (code.name, code.severity.name(), code.help)).collect()
}
