//! The description of an extension.

use crate::sitemap::code::Code;
use crate::sitemap::element::{Element, Limit};

/// An extension.
#[derive(Debug)]
pub struct Extension {
    /// The field in options and reports, and the first part of the codes of a build.
    pub name: &'static str,
    /// The usual prefix of its namespace, which a build writes.
    pub prefix: &'static str,
    /// Its namespace.
    pub uri: &'static str,
    /// Other elements of the namespace are ignored: sitemaps use a part of a larger vocabulary.
    pub shared_namespace: bool,
    /// The column of `read`.
    pub column: &'static str,
    /// Its element in a `url`.
    pub root: Element,
    /// How many a `url` may have. A second value where one is allowed is invalid.
    pub per_url: Option<Limit>,
    /// How many a file may have.
    pub per_file: Option<Limit>,
    /// A block needs one of these children.
    pub one_of: Option<OneOf>,
    /// A build reports all invalid required values of a block, not only the first.
    pub report_all: bool,
    /// Where its values come from.
    pub mapping: ExtensionMapping,
    /// The options of `build`, in the order of `--help`.
    pub options: &'static [OptionSpec],
    /// What a build counts besides missing and invalid tags: the code, and the text of the warning.
    pub warnings: &'static [(&'static str, &'static str)],
    /// Parts of the names of columns that may be its values, for `urlset init`.
    pub column_words: &'static [&'static str],
    /// What `verify` can report of it.
    pub findings: &'static [&'static Code],
}

/// Children of which one is required.
#[derive(Debug)]
pub struct OneOf {
    /// Their names; they are next to each other in the schema.
    pub names: &'static [&'static str],
    /// The finding where all are missing.
    pub finding: &'static Code,
}

/// Where the values of an extension come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtensionMapping {
    /// Hand-written in `build/render`.
    Own,
    /// A column or a constant for each field, or a column of structs. The code of a value that is
    /// neither a struct nor a list of structs.
    Fields(&'static str),
}

/// An option of `build`.
#[derive(Debug)]
pub struct OptionSpec {
    /// The name, with underscores.
    pub name: &'static str,
    /// The type and the default.
    pub kind: OptionKind,
    /// The placeholder of the value in `--help`; empty for a flag.
    pub metavar: &'static str,
    /// What `--help` shows.
    pub help: &'static str,
}

/// The type of an option, and its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    /// Columns; none by default. A text sitemap cannot have it.
    Columns,
    /// `KEY=COLUMN`, or columns; none by default. A text sitemap cannot have it.
    Pairs,
    /// A column; none by default. A text sitemap cannot have it.
    Column,
    /// A text; none by default.
    Text,
    /// A flag; off by default.
    Flag,
    /// What to do with old blocks: `keep` (the default), `omit` or `drop`.
    Age,
}
