//! Images: <https://developers.google.com/search/docs/crawling-indexing/sitemaps/image-sitemaps>.

use crate::sitemap::code::codes;
use crate::sitemap::element::{Element, Limit, Role, group, text};
use crate::sitemap::extension::descriptor::{Extension, ExtensionMapping, OptionKind, OptionSpec};
use crate::sitemap::value::{TEXT, URL};

codes! {
    LOC Error "image.loc" "write the absolute, percent-encoded URL of the image"
    TOO_MANY Error "image.too_many" "list at most 1,000 images for one URL"
}

/// Images in a `url`.
pub const LIMIT: Limit = Limit { count: 1_000, note: "image.over_1000", finding: Some(&TOO_MANY) };

static PARTS: &[Element] = &[
    text("loc", URL, Some(&LOC)).required().role(Role::ImageLoc),
    text("caption", TEXT, Some(&LOC)).checked().retired(),
    text("geo_location", TEXT, Some(&LOC)).checked().retired(),
    text("title", TEXT, Some(&LOC)).checked().retired(),
    text("license", URL, Some(&LOC)).checked().retired(),
];

/// `image:image`
pub static EXTENSION: Extension = Extension {
    name: "image",
    prefix: "image",
    uri: "http://www.google.com/schemas/sitemap-image/1.1",
    shared_namespace: false,
    column: "images",
    root: group("image", (0, 0), PARTS).role(Role::Block),
    per_url: Some(LIMIT),
    per_file: None,
    one_of: None,
    report_all: false,
    mapping: ExtensionMapping::Own,
    options: &[
        OptionSpec {
            name: "image",
            kind: OptionKind::Columns,
            metavar: "COL",
            help: "Column of images: a URL, a JSON list, or a list column (repeatable).",
        },
        OptionSpec {
            name: "image_separator",
            kind: OptionKind::Text,
            metavar: "TEXT",
            help: "The separator of the images in a cell [none: a cell is one URL or a JSON list].",
        },
    ],
    warnings: &[
        (
            "image.invalid",
            "image left out, no legal http(s) URL (--on-bad-field reject rejects the row)",
        ),
        ("image.over_1000", "image left out, beyond the 1,000 that a URL may have"),
    ],
    column_words: &["image", "img", "picture", "photo"],
    findings: ALL,
};
