//! The same page in other languages, by `xhtml:link`:
//! <https://developers.google.com/search/docs/specialty/international/localized-versions>.

use crate::sitemap::code::codes;
use crate::sitemap::element::{Content, Element, Limit, Role, group};
use crate::sitemap::extension::descriptor::{Extension, ExtensionMapping, OptionKind, OptionSpec};

codes! {
    REL Warning "alternate.rel" "use rel=\"alternate\": other links are ignored"
    HREFLANG Error "alternate.hreflang" "write language, then script, then region, as in de, zh-Hant, pt-BR, or x-default"
    HREF Error "alternate.href" "write the absolute, percent-encoded URL of the version"
    ATTRIBUTE Warning "alternate.attribute" "write only rel, hreflang and href"
    REPEATED Error "alternate.repeated" "write one URL for each language"
    NO_SELF Warning "alternate.no_self" "list the page itself among its alternates"
    ONE_WAY Warning "alternate.one_way" "link back from the other page: one-way pairs are ignored"
}

/// Alternates that a build writes in a `url`: there are fewer pairs of language and country in use.
pub const LIMIT: Limit = Limit { count: 1_000, note: "alternate.over_1000", finding: None };

/// `xhtml:link`
pub static EXTENSION: Extension = Extension {
    name: "alternate",
    prefix: "xhtml",
    uri: "http://www.w3.org/1999/xhtml",
    shared_namespace: true,
    column: "alternates",
    root: Element { content: Content::Empty, ..group("link", (0, 0), &[]).role(Role::Link) },
    per_url: Some(LIMIT),
    per_file: None,
    one_of: None,
    report_all: false,
    mapping: ExtensionMapping::Own,
    options: &[
        OptionSpec {
            name: "alternate",
            kind: OptionKind::Pairs,
            metavar: "LANG=COL",
            help: "Another language of the page: 'de=COL'; without a language a column of maps or \
                   lists of structs (repeatable).",
        },
        OptionSpec {
            name: "lang",
            kind: OptionKind::Text,
            metavar: "CODE",
            help: "Language of loc: puts it into its own list of alternates.",
        },
        OptionSpec {
            name: "x_default",
            kind: OptionKind::Text,
            metavar: "CODE",
            help: "Language whose pages also serve all other languages.",
        },
        OptionSpec {
            name: "alternate_rows",
            kind: OptionKind::Flag,
            metavar: "",
            help: "Also write each alternate as a separate URL.",
        },
        OptionSpec {
            name: "alternate_group",
            kind: OptionKind::Column,
            metavar: "COL",
            help: "Column whose value the languages of one page share; their rows must be \
                   adjacent.",
        },
        OptionSpec {
            name: "lang_column",
            kind: OptionKind::Text,
            metavar: "COL",
            help: "Column of each row's language, for --alternate-group.",
        },
    ],
    warnings: &[
        (
            "alternate.empty",
            "alternate left out, no URL for its language (--on-bad-field reject rejects the row)",
        ),
        (
            "alternate.invalid",
            "alternate left out, no legal http(s) URL (--on-bad-field reject rejects the row)",
        ),
        (
            "alternate.code",
            "alternate left out, its language code is invalid (write de, de-CH or x-default; \
             --on-bad-field reject rejects the row)",
        ),
        ("alternate.duplicate", "alternate left out, a second URL of one language of the page"),
        (
            "alternate.no_self",
            "without the page itself in its list of alternates: Google ignores links that are not \
             returned; name the language of loc (--lang CODE)",
        ),
        (
            "alternate.not_a_row",
            "alternate without a separate entry, no URL that this set may contain (for example \
             of another host); allow its host with --hosts",
        ),
        ("alternate.over_1000", "alternate left out, beyond the 1,000 that a page may have"),
    ],
    column_words: &[],
    findings: ALL,
};
