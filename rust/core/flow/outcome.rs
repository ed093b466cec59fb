//! What a run made: the shards, and what became of each row.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::build::render::plan::Chosen;
use crate::build::shard::packer::Set;
use crate::flow::chunk::NO_LASTMOD;
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
    /// The newest lastmod as it is written, if an entry has one.
    pub lastmod: Option<String>,
    /// The file was staged; otherwise the one that is live has these bytes already.
    pub changed: bool,
}

/// One of the sets that a build is split into.
#[derive(Debug, Serialize)]
pub struct SetEntry {
    /// What the names of its files begin with.
    pub stem: String,
    /// The host of its URLs, if it is split by hosts.
    pub host: Option<String>,
    /// How many shards it has: they stand one after the other.
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

/// All that a run made.
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
    /// URLs beyond the first of rows that were asked to become several.
    pub expanded: u64,
    /// Rejected rows by code.
    pub rejects_by_code: BTreeMap<&'static str, u64>,
    /// What was written and is worth a word, by code.
    pub notes: BTreeMap<&'static str, u64>,
    /// The shards, in the order of the rows.
    pub shards: Vec<ShardEntry>,
    /// The sets that the build was split into, in the order of their first rows.
    pub sets: Vec<SetEntry>,
    /// What each field was taken from, of the first input.
    pub mapping: Vec<Chosen>,
}
