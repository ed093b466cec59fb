//! The descriptors of the extensions for Python.

use pyo3::prelude::*;
use urlset_core::sitemap::extension::descriptor::{self, OptionKind, OptionSpec};
use urlset_core::sitemap::extension::{ALL, record};

/// An extension of the sitemap format.
#[pyclass(frozen, get_all)]
#[derive(Clone)]
pub struct Extension {
    name: &'static str,
    prefix: &'static str,
    options: Vec<ExtensionOption>,
    warnings: Vec<(String, String)>,
    column_words: Vec<&'static str>,
}

/// An option of `build` that belongs to an extension.
#[pyclass(frozen, get_all)]
#[derive(Clone)]
pub struct ExtensionOption {
    name: &'static str,
    kind: &'static str,
    metavar: Option<&'static str>,
    help: &'static str,
}

impl ExtensionOption {
    fn new(option: &OptionSpec) -> ExtensionOption {
        ExtensionOption {
            name: option.name,
            kind: match option.kind {
                OptionKind::Columns => "columns",
                OptionKind::Pairs => "pairs",
                OptionKind::Column => "column",
                OptionKind::Text => "text",
                OptionKind::Flag => "flag",
                OptionKind::Age => "age",
            },
            metavar: Some(option.metavar).filter(|metavar| !metavar.is_empty()),
            help: option.help,
        }
    }
}

/// The extensions of the format, in the order of their elements.
#[pyfunction]
pub fn extensions() -> Vec<Extension> {
    let extension = |(place, extension): (usize, &&'static descriptor::Extension)| Extension {
        name: extension.name,
        prefix: extension.prefix,
        options: extension.options.iter().map(ExtensionOption::new).collect(),
        warnings: record::warnings(place),
        column_words: extension.column_words.to_vec(),
    };
    ALL.iter().enumerate().map(extension).collect()
}
