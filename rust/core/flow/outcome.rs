//! The result of a run: the shards, and the outcome of each row.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::error::Error;
use crate::flow::entry::NO_LASTMOD;
use crate::flow::shard::Set;
use crate::sitemap::age::STEPS;
use crate::sitemap::date::{Order, order_text};

/// One shard, as the manifest and the report list it.
#[derive(Debug, Clone, Serialize)]
pub struct ShardEntry {
    /// Counts from 1 in the order of the rows.
    #[serde(skip)]
    pub number: u64,
    /// The file, relative to the output folder.
    pub path: String,
    /// The set that it belongs to, if the build is split.
    #[serde(skip)]
    pub set: Option<Arc<Set>>,
    /// URLs in it.
    pub urls: u32,
    /// Bytes before compression.
    pub bytes: u64,
    /// Bytes of the file.
    pub compressed_bytes: u64,
    /// 128 bits of BLAKE3 of the bytes before compression, in hexadecimal.
    pub digest: String,
    /// The newest lastmod as text, if an entry has one.
    pub lastmod: Option<String>,
    /// The file was written; otherwise the live file has these bytes already.
    pub changed: bool,
    /// Its first loc, if the rows are ordered.
    #[serde(skip)]
    pub first: Option<String>,
}

/// One of the sets of a build that is split.
#[derive(Debug, Serialize)]
pub struct SetEntry {
    /// The first part of the names of its files.
    pub stem: String,
    /// The host of its URLs, if it is split by hosts.
    pub host: Option<String>,
    /// The number of its shards, which are adjacent in [`Outcome::shards`].
    pub shards: usize,
}

/// A digest as [`ShardEntry::digest`] has it.
pub fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..32].to_owned()
}

/// The text of the newest lastmod of a shard.
pub fn newest_text(newest: Order) -> Option<String> {
    (newest != NO_LASTMOD).then(|| order_text(newest))
}

/// The source of a field, for the summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Chosen {
    /// The field.
    pub field: &'static str,
    /// The column, the template, or `=` and the constant.
    pub from: String,
    /// No option named it: it was found by its name.
    pub found: bool,
}

/// The result of a run.
#[derive(Debug, Default, Serialize)]
pub struct Outcome {
    /// Rows read.
    pub rows: u64,
    /// URLs written.
    pub urls: u64,
    /// Rows rejected.
    pub rejected: u64,
    /// Rows that a filter left out.
    pub filtered: u64,
    /// Duplicates dropped.
    pub duplicates: u64,
    /// URLs beyond the first of rows that become several.
    pub expanded: u64,
    /// Rejected rows by code.
    pub rejects_by_code: BTreeMap<&'static str, u64>,
    /// Warnings about written URLs, by code.
    pub notes: BTreeMap<&'static str, u64>,
    /// The shards, in the order of the rows.
    pub shards: Vec<ShardEntry>,
    /// The first loc of each shard, if the rows are ordered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub firsts: Vec<String>,
    /// The last loc of all, if the rows are ordered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// The sets that the build was split into, in the order of their first rows.
    pub sets: Vec<SetEntry>,
    /// The source of each field, for the first input.
    pub mapping: Vec<Chosen>,
    /// The ages of the lastmods of the URLs, as [`crate::sitemap::age::Ages`]; zeros if they are not
    /// counted.
    pub ages: [u64; STEPS.len() + 2],
    /// What `--lastmod-from` found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lastmod: Option<LastmodChanges>,
}

/// What `--lastmod-from` found, and the file with its stamps.
#[derive(Debug, Clone, Default, Serialize)]
pub struct LastmodChanges {
    /// There were no stamps: nothing could be compared.
    pub first: bool,
    /// URLs whose content is the same.
    pub kept: u64,
    /// URLs whose content changed.
    pub changed: u64,
    /// URLs of which there was no stamp.
    pub added: u64,
    /// URLs whose content was not compared, since the list of columns is another one.
    pub adopted: u64,
    /// Those of `changed` whose lastmod was later than now, and stayed.
    pub clock_behind: u64,
    /// URLs without lastmod.
    pub without: u64,
    /// Stamps of URLs that are gone.
    pub gone: u64,
    /// URLs that were gone for long enough to be forgotten.
    pub forgotten: u64,
    /// Lists of columns that the inputs had.
    #[serde(skip)]
    pub lists: u32,
    /// Bytes of the file.
    pub bytes: u64,
    /// Its digest.
    pub digest: String,
}

/// Why a run failed.
#[derive(Debug)]
pub struct RunError {
    /// The error.
    pub error: Error,
    /// The accounts of the rows, if the run failed because too many were rejected.
    pub outcome: Option<Box<Outcome>>,
}

impl From<Error> for RunError {
    fn from(error: Error) -> RunError {
        RunError { error, outcome: None }
    }
}
