//! Every limit and default of a run, checked before any I/O.
//!
//! The names are those of the command line and of `urlset.toml`, with underscores.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::{Error, ErrorCode, Result};
use crate::sitemap::extension;
use crate::sitemap::extension::descriptor::{Extension, Mapping as Mapped, OptionSpec};

/// Limit of the URLs in one sitemap file (sitemaps.org).
pub const MAX_URLS: u32 = 50_000;
/// Limit of the bytes of a sitemap file or index before compression (sitemaps.org).
pub const MAX_BYTES: u64 = 52_428_800;

/// The options of one run, as the Python package passes them. Unknown keys are refused.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The site that all URLs belong to, such as `https://www.shop.example`.
    pub site: String,
    /// The URL of the folder of the files, with `/` at its end.
    pub sitemap_url: Option<String>,
    /// The first part of every file name.
    pub name: String,
    /// The columns of the fields.
    pub mapping: Mapping,
    /// Limit of the URLs of a shard.
    pub max_urls: u32,
    /// Limit of the uncompressed bytes of a shard, with header and footer.
    pub max_bytes: u64,
    /// Limit of the characters of a percent-encoded loc.
    pub max_loc: u32,
    /// A set of shards for each value of this column; `@host` for each host of loc.
    pub split_by: Option<String>,
    /// Limit of the number of values of `split_by`.
    pub max_groups: usize,
    /// The first parts of the names of other files of the same job. Files of this run must not have
    /// such a name.
    pub taken: Vec<String>,
    /// How shards end.
    pub layout: Layout,
    /// Write the rows in the order of loc.
    pub sort: bool,
    /// Bytes that are sorted in memory at once; further rows go to the disk. Tests change it: the
    /// output does not depend on it.
    pub sort_bytes: usize,
    /// XML, or one URL on each line.
    pub output: Output,
    /// What to do with a row that has no valid loc.
    pub on_invalid: OnInvalid,
    /// What to do with an invalid field.
    pub on_bad_field: OnBadField,
    /// Limit of the rejected rows.
    pub max_rejects: MaxRejects,
    /// What to do with a repeated loc.
    pub duplicates: Duplicates,
    /// `same`, `any`, or hosts separated by commas.
    pub hosts: String,
    /// A `%` without two hexadecimal digits rejects the row.
    pub strict_urls: bool,
    /// Relative references other than absolute paths are joined to the site.
    pub relative_urls: bool,
    /// The IANA time zone of times without a zone; the default is UTC.
    pub timezone: Option<String>,
    /// The unit of integers (also as text) in lastmod, counted from 1970.
    pub lastmod_epoch: Option<Epoch>,
    /// Rows to keep.
    #[serde(rename = "where")]
    pub filters: Vec<Filter>,
    /// The delimiter of CSV; detected without it.
    pub delimiter: Option<char>,
    /// The encoding of CSV. Without it a byte order mark decides; the default is UTF-8.
    pub encoding: Option<String>,
    /// Limit of the bytes of a CSV cell.
    pub max_cell: usize,
    /// Threads that render and compress; the default is the number of cores.
    pub threads: Option<usize>,
    /// The size of a batch: bytes of CSV, or rows of Arrow times 256. Tests change it: the output does
    /// not depend on it.
    pub batch_bytes: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            site: String::new(),
            sitemap_url: None,
            name: "sitemap".into(),
            mapping: Mapping::default(),
            max_urls: MAX_URLS,
            max_bytes: MAX_BYTES,
            max_loc: 2_047,
            taken: Vec::new(),
            split_by: None,
            max_groups: 10_000,
            layout: Layout::default(),
            sort: false,
            sort_bytes: 64 << 20,
            output: Output::default(),
            on_invalid: OnInvalid::default(),
            on_bad_field: OnBadField::default(),
            max_rejects: MaxRejects::default(),
            duplicates: Duplicates::default(),
            hosts: "same".into(),
            strict_urls: false,
            relative_urls: false,
            timezone: None,
            lastmod_epoch: None,
            filters: Vec::new(),
            delimiter: None,
            encoding: None,
            max_cell: 1 << 20,
            threads: None,
            batch_bytes: 1 << 20,
        }
    }
}

/// Which column gives which field. A value that begins with `=` is a constant.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Mapping {
    /// The column of the address; found by name without it.
    pub loc: Option<String>,
    /// Or a template such as `https://www.shop.example/{slug}-{id}`.
    pub loc_template: Option<String>,
    /// The column of the last change; found by name without it.
    pub lastmod: Option<String>,
    /// The column of the change frequency; found by name without it.
    pub changefreq: Option<String>,
    /// The column of the priority; found by name without it.
    pub priority: Option<String>,
    /// Columns of images.
    pub image: Vec<String>,
    /// What stands between the images of a cell; without it a cell is one image, or a JSON list.
    pub image_separator: Option<String>,
    /// Languages and the columns of their addresses; without a language a column of maps or of
    /// lists of structs.
    pub alternate: Vec<(Option<String>, String)>,
    /// Rows that share a value of this column are the languages of one page.
    pub alternate_group: Option<String>,
    /// The column of a row's language, for `alternate_group`.
    pub lang_column: Option<String>,
    /// The language of loc.
    pub lang: Option<String>,
    /// The language whose pages are for all others too.
    pub x_default: Option<String>,
    /// Each alternate becomes a `<url>` of its own.
    pub alternate_rows: bool,
    /// The options of the extensions that are mapped field by field, by their names.
    #[serde(flatten)]
    pub extensions: BTreeMap<String, ExtensionOption>,
    /// Seconds since 1970 that count as now for the age of blocks.
    pub now: i64,
}

impl Mapping {
    /// The fields of an extension and where each comes from; without a field a column of structs.
    pub fn fields(&self, extension: &Extension) -> &[(Option<String>, String)] {
        match self.extensions.get(extension.name) {
            Some(ExtensionOption::Fields(fields)) => fields,
            _ => &[],
        }
    }

    /// What happens to old blocks of an extension.
    pub fn old_policy(&self, extension: &Extension) -> OldPolicy {
        let given = |option: &OptionSpec| match self.extensions.get(option.name) {
            Some(ExtensionOption::Old(policy)) => Some(*policy),
            _ => None,
        };
        extension.options.iter().find_map(given).unwrap_or_default()
    }
}

/// An option of an extension that is mapped field by field.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum ExtensionOption {
    /// Fields and where each comes from; without a field a column of structs.
    Fields(Vec<(Option<String>, String)>),
    /// What happens to old blocks.
    Old(OldPolicy),
}

/// What happens to blocks that crawlers ignore because of their age.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OldPolicy {
    /// They are written.
    #[default]
    Keep,
    /// The URL is written without them.
    Omit,
    /// The row is left out.
    Drop,
}

/// Keeps the rows whose column has (or does not have) a value.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// The column by name.
    pub column: String,
    /// The value as text.
    pub value: String,
    /// `!=` instead of `=`.
    #[serde(default)]
    pub negate: bool,
}

/// How shards end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Each shard is as full as the limits allow.
    #[default]
    Packed,
    /// The rows choose the boundaries, so that an edit changes one shard.
    Stable,
}

/// The form of a sitemap file (sitemaps.org).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// A `urlset` document.
    #[default]
    Xml,
    /// A text sitemap.
    Text,
}

/// What happens to a row without a valid loc.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnInvalid {
    /// It goes to the reject file.
    #[default]
    Reject,
    /// The run ends.
    Fail,
}

/// What happens to a row with an invalid lastmod, changefreq or priority.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnBadField {
    /// The field is left out and counted: the page still exists.
    #[default]
    Omit,
    /// The row goes to the reject file.
    Reject,
}

/// What happens to a repeated loc.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Duplicates {
    /// It is written again.
    #[default]
    Keep,
    /// The first one wins.
    Drop,
    /// The run ends.
    Fail,
}

/// The unit of integers in lastmod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Epoch {
    /// Seconds since 1970.
    Seconds,
    /// Milliseconds since 1970.
    Milliseconds,
}

/// Limit of the rejected rows.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxRejects {
    /// This number of rows.
    Count(u64),
    /// This share of the rows read, 0.01 for 1 %.
    Share(f64),
}

impl Default for MaxRejects {
    fn default() -> MaxRejects {
        MaxRejects::Share(0.01)
    }
}

/// Limit of the bytes of a batch whose rows become several URLs. The output grows with the square of
/// the number of languages, and a slow batch delays all batches after it. `pipeline/gate.rs` bounds the
/// memory.
const MAX_EXPANDING_BATCH: usize = 64 << 10;

impl Config {
    /// Reads the configuration from JSON and checks every limit.
    pub fn from_json(json: &str) -> Result<Config> {
        let mut config: Config = serde_json::from_str(json)
            .map_err(|e| Error::new(ErrorCode::ConfigInvalid, format!("configuration: {e}")))?;
        config.check()?;
        if config.mapping.alternate_rows {
            config.batch_bytes = config.batch_bytes.min(MAX_EXPANDING_BATCH);
        }
        Ok(config)
    }

    fn check(&self) -> Result<()> {
        let wrong = |what: &str, message: String| {
            Err(Error::new(ErrorCode::ConfigLimit, format!("{what}: {message}")))
        };
        let is_known = |name: &String| {
            let mut mapped = extension::ALL
                .iter()
                .filter(|extension| matches!(extension.mapping, Mapped::Fields(_)));
            mapped.any(|extension| extension.options.iter().any(|option| option.name == name))
        };
        if let Some(name) = self.mapping.extensions.keys().find(|name| !is_known(name)) {
            let message = format!("configuration: there is no option {name:?}");
            return Err(Error::new(ErrorCode::ConfigInvalid, message));
        }
        if !(1..=MAX_URLS).contains(&self.max_urls) {
            return wrong("max_urls", format!("{} is not from 1 to {MAX_URLS}", self.max_urls));
        }
        // the size of the smallest file with one URL of 2,047 characters
        if !(4_096..=MAX_BYTES).contains(&self.max_bytes) {
            return wrong(
                "max_bytes",
                format!("{} is not from 4096 to {MAX_BYTES}", self.max_bytes),
            );
        }
        if !(12..=2_047).contains(&self.max_loc) {
            return wrong("max_loc", format!("{} is not from 12 to 2047", self.max_loc));
        }
        if !(1..=64 << 20).contains(&self.max_cell) {
            return wrong("max_cell", format!("{} is not from 1 byte to 64 MiB", self.max_cell));
        }
        if !(1..=1_000_000).contains(&self.max_groups) {
            return wrong("max_groups", format!("{} is not from 1 to 1000000", self.max_groups));
        }
        if self.threads.is_some_and(|n| !(1..=1_024).contains(&n)) {
            return wrong("threads", "not from 1 to 1024".into());
        }
        if let MaxRejects::Share(share) = self.max_rejects
            && !(0.0..=1.0).contains(&share)
        {
            return wrong("max_rejects", "a share is from 0% to 100%".into());
        }
        if let Some(c) = self.delimiter
            && (!c.is_ascii() || matches!(c, '"' | '\n' | '\r' | '\0'))
        {
            return wrong(
                "delimiter",
                format!("{c:?} is not one ASCII character that can delimit"),
            );
        }
        Ok(())
    }

    /// The number of threads that render and compress.
    pub fn workers(&self) -> usize {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
    }
}
