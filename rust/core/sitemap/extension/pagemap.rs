//! PageMaps, structured data for Google's Programmable Search Engine:
//! <https://developers.google.com/custom-search/docs/structured_data#pagemaps>.
//!
//! Compiled for tests only: it shows that a descriptor is all that an extension needs.

use crate::sitemap::code::codes;
use crate::sitemap::element::{Attribute, Element, Limit, Role, group, text};
use crate::sitemap::extension::descriptor::{Extension, ExtensionMapping, OptionKind, OptionSpec};
use crate::sitemap::value::TEXT;

codes! {
    VALUE Error "pagemap.value" "correct the value"
    REPEATED Error "pagemap.repeated" "write one PageMap per entry"
}

static OBJECTS: &[Element] =
    &[group("DataObject", (1, 0), ATTRIBUTES).repeated("objects", "objects").with(&[
        Attribute::new("type", TEXT).required().field("type"),
        Attribute::new("id", TEXT).field("id"),
    ])];

static ATTRIBUTES: &[Element] = &[text("Attribute", TEXT, Some(&VALUE))
    .repeated("attributes", "attributes")
    .with(&[Attribute::new("name", TEXT).required().field("name")])];

/// `pagemap:PageMap`
pub static EXTENSION: Extension = Extension {
    name: "pagemap",
    prefix: "pagemap",
    uri: "http://www.google.com/schemas/sitemap-pagemap/1.0",
    shared_namespace: false,
    column: "pagemap",
    root: group("PageMap", (0, 1), OBJECTS).role(Role::Block),
    per_url: Some(Limit { count: 1, note: "pagemap.invalid", finding: Some(&REPEATED) }),
    per_file: None,
    one_of: None,
    report_all: false,
    mapping: ExtensionMapping::Fields("pagemap.invalid"),
    options: &[OptionSpec {
        name: "pagemap",
        kind: OptionKind::Pairs,
        metavar: "objects=COL",
        help: "PageMap: 'objects=COL', a list of structs with type, id and attributes (a list of \
               structs with name and value), or a column of structs with objects.",
    }],
    warnings: &[("pagemap.invalid", "value left out, not a PageMap, or the second of a page")],
    column_words: &[],
    findings: ALL,
};
