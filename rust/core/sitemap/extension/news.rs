//! News: <https://developers.google.com/search/docs/crawling-indexing/sitemaps/news-sitemap>.

use crate::sitemap::code::codes;
use crate::sitemap::element::{Element, Limit, MaxAge, Role, group, text};
use crate::sitemap::extension::descriptor::{Extension, ExtensionMapping, OptionKind, OptionSpec};
use crate::sitemap::value::{TEXT, ValueKind};

codes! {
    LANGUAGE Error "news.language" "write an ISO 639 code of two or three letters, or zh-cn, zh-tw"
    VALUE Error "news.value" "correct the value, or remove the retired element"
    REPEATED Error "news.repeated" "write one news:news per entry"
    TOO_MANY Error "news.too_many" "list at most 1,000 articles in one sitemap"
    OLD Note "news.old" "remove the news block two days after publication"
}

const DAY: i64 = 86_400;

/// Articles in a sitemap.
pub const MAX_PER_FILE: u32 = 1_000;

static PARTS: &[Element] = &[
    group("publication", (1, 1), PUBLICATION),
    text("access", ValueKind::Word(&["Subscription", "Registration"]), Some(&VALUE)).retired(),
    text(
        "genres",
        ValueKind::CommaWords(&[
            "PressRelease",
            "Satire",
            "Blog",
            "OpEd",
            "Opinion",
            "UserGenerated",
        ]),
        Some(&VALUE),
    )
    .retired(),
    text("publication_date", ValueKind::Date, None).required().dates(MaxAge {
        build_seconds: 2 * DAY,
        verify_seconds: 3 * DAY,
        finding: &OLD,
        omitted: "news.old",
        dropped: "news.dropped",
    }),
    text("title", TEXT, Some(&VALUE)).required(),
    text("keywords", TEXT, Some(&VALUE)).retired(),
    text("stock_tickers", ValueKind::Tickers, Some(&VALUE)).retired(),
];

static PUBLICATION: &[Element] = &[
    text("name", TEXT, Some(&VALUE)).required(),
    text("language", ValueKind::Language, Some(&LANGUAGE)).required(),
];

/// `news:news`
pub static EXTENSION: Extension = Extension {
    name: "news",
    prefix: "news",
    uri: "http://www.google.com/schemas/sitemap-news/0.9",
    shared_namespace: false,
    column: "news",
    root: group("news", (0, 1), PARTS).role(Role::Block),
    per_url: Some(Limit { count: 1, note: "news.invalid", finding: Some(&REPEATED) }),
    per_file: Some(Limit { count: MAX_PER_FILE, note: "", finding: Some(&TOO_MANY) }),
    one_of: None,
    report_all: true,
    mapping: ExtensionMapping::Fields("news.invalid"),
    options: &[
        OptionSpec {
            name: "news",
            kind: OptionKind::Pairs,
            metavar: "TAG=COL",
            help: "News: name, language, publication_date, title, each as TAG=COL, or a column of structs (repeatable).",
        },
        OptionSpec {
            name: "news_old",
            kind: OptionKind::Age,
            metavar: "",
            help: "What to do with articles older than two days: keep them, omit the news, or \
                   drop the row.",
        },
    ],
    warnings: &[
        ("news.invalid", "value left out, no news, or the second of a page"),
        ("news.old", "older than two days: the URL was written without news"),
        ("news.dropped", "older than two days: the row was left out"),
    ],
    column_words: &[],
    findings: ALL,
};
