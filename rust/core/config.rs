//! The configuration of a build: its options, their defaults and limits, checked before any I/O.
//!
//! The JSON names are those of the command line and of `urlset.toml`, with underscores.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::Deserialize;

use crate::error::{ErrorCode, Result};
use crate::sitemap::extension;
use crate::sitemap::extension::descriptor::{Extension, ExtensionMapping, OptionSpec};

/// Maximum number of URLs in one sitemap file (docs/protocol.md).
pub const MAX_URLS: u32 = 50_000;
/// Maximum size in bytes of one sitemap file or index before compression (docs/protocol.md).
pub const MAX_BYTES: u64 = 52_428_800;
/// Size of the smallest shard that has room for one URL of [`MAX_LOC`] characters.
const MIN_BYTES: u64 = 4_096;
/// Maximum number of characters in a percent-encoded loc (docs/protocol.md).
const MAX_LOC: u64 = 2_047;

/// The options with a limit: name, smallest and largest value. Python asks for this table.
pub const LIMITS: [(&str, RangeInclusive<u64>); 6] = [
    ("max_urls", 1..=MAX_URLS as u64),
    ("max_bytes", MIN_BYTES..=MAX_BYTES),
    // the shortest URL with a host: http://a.de
    ("max_loc", 12..=MAX_LOC),
    ("max_cell", 1..=64 << 20),
    ("max_groups", 1..=1_000_000),
    ("threads", 1..=1_024),
];

/// The configuration of one set of a build. The Python package creates it; unknown keys are refused.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub struct Config {
    /// The site that all URLs belong to, such as `https://www.shop.example`.
    pub site: String,
    /// The URL of the folder of the files, with `/` at its end.
    pub sitemap_url: Option<String>,
    /// The first part of every file name.
    pub name: String,
    /// The source of each field of a `<url>`.
    #[serde(flatten)]
    pub mapping: Mapping,
    /// Maximum number of URLs in a shard.
    pub max_urls: u32,
    /// Maximum size of a shard in uncompressed bytes, header and footer included.
    pub max_bytes: u64,
    /// Maximum number of characters in a percent-encoded loc.
    pub max_loc: u32,
    /// A set of shards for each value of this column; `@host` for each host of loc.
    pub split_by: Option<String>,
    /// Maximum number of values of `split_by`.
    pub max_groups: usize,
    /// Stems of file names of other sets of the same job; the stem of this set must differ.
    pub taken: Vec<String>,
    /// Where shards end.
    pub layout: Layout,
    /// Names of shards contain a digest of their bytes and of this text, in every layout.
    pub name_salt: Option<String>,
    /// The rows ascend by loc, which is checked: the outcome contains the first loc of each shard and
    /// the last one of all.
    pub ordered: bool,
    /// Sort the rows by loc.
    pub sort: bool,
    /// Bytes that are sorted in memory at once; the rest is spilled to disk. For tests: the output
    /// does not depend on it.
    pub sort_bytes: usize,
    /// XML, or one URL per line.
    pub output: Output,
    /// What to do with a row without a valid loc.
    pub on_invalid: OnInvalid,
    /// What to do with an invalid field.
    pub on_bad_field: OnBadField,
    /// The limit of rejected rows.
    pub max_rejects: MaxRejects,
    /// What to do with a loc that occurred before.
    pub duplicates: Duplicates,
    /// `same`, `any`, or hosts separated by commas.
    pub hosts: String,
    /// A `%` without two hexadecimal digits rejects the row.
    pub strict_urls: bool,
    /// Relative references other than absolute paths are joined to the site.
    pub relative_urls: bool,
    /// The IANA zone of times without one; UTC by default.
    pub timezone: Option<String>,
    /// The unit of integers (and of digits in text) in lastmod.
    pub lastmod_epoch: Option<Epoch>,
    /// Count the ages of lastmods against `now`.
    pub ages: bool,
    /// The columns whose content decides lastmod; `*` for all columns.
    pub lastmod_from: Vec<String>,
    /// Columns that `*` does not include.
    pub lastmod_ignore: Vec<String>,
    /// Seconds for which the lastmod of a URL that is gone is remembered.
    pub forget: i64,
    /// Rows to keep.
    #[serde(rename = "where")]
    pub filters: Vec<Filter>,
    /// Hashes of the locs to leave out, as `build::pipeline::exclude` returns them.
    pub exclude: String,
    /// The delimiter of CSV, or `tab`; detected by default.
    pub delimiter: Option<String>,
    /// The encoding of CSV; by default that of the byte order mark, else UTF-8.
    pub encoding: Option<String>,
    /// Maximum size of a CSV cell in bytes.
    pub max_cell: usize,
    /// Threads that render and compress; by default one for each core.
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
            max_loc: MAX_LOC as u32,
            taken: Vec::new(),
            split_by: None,
            max_groups: 10_000,
            layout: Layout::default(),
            name_salt: None,
            ordered: false,
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
            ages: false,
            lastmod_from: Vec::new(),
            lastmod_ignore: Vec::new(),
            forget: 90 * 86_400,
            filters: Vec::new(),
            exclude: String::new(),
            delimiter: None,
            encoding: None,
            max_cell: 1 << 20,
            threads: None,
            batch_bytes: 1 << 20,
        }
    }
}

/// The source of each field: a column, or a constant after `=`.
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
    /// The separator of the images of a cell; without it a cell is one image, or a JSON list.
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
    /// The language whose pages also serve all other languages.
    pub x_default: Option<String>,
    /// Each alternate also becomes a separate `<url>`.
    pub alternate_rows: bool,
    /// The options of the extensions that are mapped field by field, by their names. Other keys are
    /// here too, and [`Config::from_json`] refuses them: `deny_unknown_fields` does not work with
    /// `flatten`.
    #[serde(flatten)]
    pub extensions: BTreeMap<String, ExtensionOption>,
    /// Seconds since 1970 that count as now: for the age of blocks, and as the lastmod of what changes.
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

    /// A key that is not an option, or has a value of another type.
    fn unknown_option(&self) -> Option<&str> {
        let is_option = |name: &str| {
            let mut mapped = extension::ALL
                .iter()
                .filter(|extension| matches!(extension.mapping, ExtensionMapping::Fields(_)));
            mapped.any(|extension| extension.options.iter().any(|option| option.name == name))
        };
        let unknown = |(name, value): &(&String, &ExtensionOption)| {
            matches!(value, ExtensionOption::Unknown(_)) || !is_option(name)
        };
        self.extensions.iter().find(unknown).map(|(name, _)| name.as_str())
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
    /// A value of another type.
    Unknown(serde::de::IgnoredAny),
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

/// Where shards end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Each shard is as full as the limits allow.
    #[default]
    Packed,
    /// The boundaries depend on the rows, so that an edit changes one shard.
    Stable,
}

/// The form of a sitemap file (docs/protocol.md).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// A `urlset` document.
    #[default]
    Xml,
    /// A text sitemap.
    Text,
}

/// What to do with a row without a valid loc.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnInvalid {
    /// Write it to the reject file.
    #[default]
    Reject,
    /// Fail.
    Fail,
}

/// What to do with an invalid lastmod, changefreq, priority or value of an extension.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnBadField {
    /// Omit and count the field: the page still exists.
    #[default]
    Omit,
    /// Write the row to the reject file.
    Reject,
}

/// What to do with a loc that occurred before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Duplicates {
    /// Write it again.
    #[default]
    Keep,
    /// Keep the first one.
    Drop,
    /// Fail.
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

/// The limit of rejected rows.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxRejects {
    /// A number of rows.
    Count(u64),
    /// A share of the rows read, 0.01 for 1 %.
    Share(f64),
}

/// Tolerance of a share: 29 of 100 rows are 29 %, though 0.29 * 100 is less than 29 in floating point.
const ROUNDING: f64 = 1e-12;

impl MaxRejects {
    /// Whether `rejected` of `rows` rows are more than the limit.
    pub fn is_exceeded(self, rejected: u64, rows: u64) -> bool {
        match self {
            MaxRejects::Count(limit) => rejected > limit,
            MaxRejects::Share(limit) => rejected as f64 > limit * rows as f64 * (1.0 + ROUNDING),
        }
    }
}

impl Default for MaxRejects {
    fn default() -> MaxRejects {
        MaxRejects::Share(0.01)
    }
}

/// Maximum `batch_bytes` when each row becomes several: the rendered size grows with the square of
/// the number of languages, and a worker that renders one batch for long delays the batches behind
/// it. `pipeline/gate.rs` bounds the memory of waiting batches.
const MAX_EXPANDING_BATCH: usize = 64 << 10;

impl Config {
    /// Parses and checks a configuration.
    pub fn from_json(json: &str) -> Result<Config> {
        let invalid =
            |what: String| ErrorCode::ConfigInvalid.error(format!("configuration: {what}"));
        let mut config: Config = serde_json::from_str(json).map_err(|e| invalid(e.to_string()))?;
        if let Some(key) = config.mapping.unknown_option() {
            return Err(invalid(format!("unknown option {key:?}")));
        }
        config.check()?;
        if config.mapping.alternate_rows {
            config.batch_bytes = config.batch_bytes.min(MAX_EXPANDING_BATCH);
        }
        Ok(config)
    }

    fn check(&self) -> Result<()> {
        let values = [
            u64::from(self.max_urls),
            self.max_bytes,
            u64::from(self.max_loc),
            self.max_cell as u64,
            self.max_groups as u64,
            self.threads.unwrap_or(1) as u64,
        ];
        let limit = |message| Err(ErrorCode::ConfigLimit.error(message));
        for ((name, range), value) in LIMITS.iter().zip(values) {
            if !range.contains(&value) {
                return limit(format!(
                    "{name}: {value} is not a whole number from {} to {}",
                    range.start(),
                    range.end()
                ));
            }
        }
        if let MaxRejects::Share(share) = self.max_rejects
            && !(0.0..=1.0).contains(&share)
        {
            return limit("max_rejects: a share is from 0% to 100%".into());
        }
        match self.delimiter.as_deref().filter(|_| self.delimiter_byte().is_none()) {
            None => Ok(()),
            Some(text) if text.chars().count() == 1 => {
                limit(format!("delimiter: {text:?} is not an ASCII character that can delimit"))
            }
            Some(text) => Err(ErrorCode::ConfigDelimiter
                .error(format!("delimiter: {text:?} is not one character"))),
        }
    }

    /// The delimiter of CSV, if one is given and valid.
    pub fn delimiter_byte(&self) -> Option<u8> {
        match self.delimiter.as_deref()?.as_bytes() {
            b"tab" | b"\\t" => Some(b'\t'),
            [byte] if byte.is_ascii() && !b"\"\n\r\0".contains(byte) => Some(*byte),
            _ => None,
        }
    }

    /// The number of threads that render and compress.
    pub fn workers(&self) -> usize {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
    }
}
