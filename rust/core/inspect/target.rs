//! A file to verify, the rules of its set, and its report.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::inspect::document::Summary;
use crate::inspect::finding::Finding;
use crate::inspect::index::Child;
use crate::sitemap::age::Ages;
use crate::sitemap::hosts::AllowedHosts;

/// A file to verify.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its path.
    pub path: PathBuf,
    /// Its name in findings; the suffix is checked.
    pub name: String,
    /// Its address, if known, for the checks of host and directory.
    pub url: Option<String>,
    /// Whether an index lists it: then it must not be an index.
    pub listed: bool,
    /// The index in [`Options::rules`] of the rules of its set; without them, nothing unusual is
    /// allowed.
    pub rules: usize,
}

/// Unusual content that the files of a set may have.
#[derive(Debug, Clone, Default)]
pub struct SetRules {
    /// Hosts that URLs may have besides the host of their file.
    pub hosts: AllowedHosts,
    /// Addresses that an index may list on any host.
    pub added: Vec<String>,
    /// Duplicates were kept on purpose: report them as notes.
    pub kept_duplicates: bool,
}

/// The findings and totals of one file.
#[derive(Debug)]
pub struct FileReport {
    /// Its kind and size.
    pub summary: Summary,
    /// Whether it is compressed.
    pub gzip: bool,
    /// Bytes on disk.
    pub size: u64,
    /// The entries of an index, at most 50,000.
    pub children: Vec<Child>,
    /// The findings that are listed.
    pub findings: Vec<Finding>,
    /// The number of all findings by code.
    pub counts: BTreeMap<&'static str, u64>,
    /// The ages of the lastmods of its entries.
    pub ages: Ages,
}
