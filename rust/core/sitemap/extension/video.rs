//! Videos: <https://developers.google.com/search/docs/crawling-indexing/sitemaps/video-sitemaps>.

use crate::sitemap::code::codes;
use crate::sitemap::element::{Attribute, Element, Limit, Role, group, text};
use crate::sitemap::extension::descriptor::{
    Extension, ExtensionMapping, OneOf, OptionKind, OptionSpec,
};
use crate::sitemap::value::{TEXT, URL, UrlRule, ValueKind};

codes! {
    URL_INVALID Error "video.url" "write an absolute, percent-encoded URL"
    CONTENT Error "video.content" "add content_loc or player_loc"
    SAME_AS_LOC Error "video.same_as_loc" "point to the video itself, not to its page"
    TITLE Warning "video.title" "shorten the title: the schema allows 100 characters"
    DESCRIPTION Error "video.description" "shorten the description to 2,048 characters"
    DURATION Error "video.duration" "write seconds from 1 to 28800"
    RATING Error "video.rating" "write a number from 0.0 to 5.0"
    VIEW_COUNT Error "video.view_count" "write a whole number, 0 or more"
    TAGS Error "video.tags" "write at most 32 tags"
    YES_NO Error "video.yes_no" "write yes or no"
    RESTRICTION Error "video.restriction" "list two-letter country codes in capitals, separated by single spaces"
    PLATFORM Error "video.platform" "list web, mobile or tv, separated by single spaces"
    UPLOADER Error "video.uploader" "shorten the name to 255 characters; info is a URL on the page's host"
    VALUE Error "video.value" "correct the value, or remove the retired element"
}

const SOURCE: ValueKind = ValueKind::Url(UrlRule::NotThePage(&SAME_AS_LOC));
const RELATIONSHIP: Attribute =
    Attribute::new("relationship", ValueKind::Word(&["allow", "deny"])).required();

static PARTS: &[Element] = &[
    text("thumbnail_loc", URL, Some(&URL_INVALID)).required(),
    text("title", ValueKind::Text(100), Some(&TITLE)).required(),
    text("description", ValueKind::Text(2_048), Some(&DESCRIPTION)).required(),
    text("content_loc", SOURCE, Some(&URL_INVALID)),
    text("player_loc", SOURCE, Some(&URL_INVALID))
        .with(&[Attribute::new("allow_embed", ValueKind::YesNo), Attribute::new("autoplay", TEXT)]),
    text("duration", ValueKind::Integer(1, 28_800), Some(&DURATION)),
    text("expiration_date", ValueKind::Date, None),
    text("rating", ValueKind::Decimal(5), Some(&RATING)),
    text("content_segment_loc", URL, Some(&URL_INVALID))
        .any_number()
        .with(&[Attribute::new("duration", ValueKind::Integer(0, 28_800))])
        .retired(),
    text("view_count", ValueKind::Integer(0, u64::MAX), Some(&VIEW_COUNT)),
    text("publication_date", ValueKind::Date, None),
    text("tag", TEXT, Some(&TAGS)).repeated("tag", "tags").limited(Limit {
        count: 32,
        note: "video.over_32_tags",
        finding: Some(&TAGS),
    }),
    text("category", ValueKind::Text(256), Some(&VALUE)).checked().retired(),
    text("family_friendly", ValueKind::YesNo, Some(&YES_NO)),
    text("restriction", ValueKind::Countries, Some(&RESTRICTION))
        .with(&[RELATIONSHIP.field("restriction_relationship")]),
    text("gallery_loc", URL, Some(&URL_INVALID))
        .checked()
        .with(&[Attribute::new("title", TEXT)])
        .retired(),
    text("price", ValueKind::Any, Some(&VALUE))
        .any_number()
        .with(&[
            Attribute::new("currency", ValueKind::Currency),
            Attribute::new("type", ValueKind::Word(&["purchase", "PURCHASE", "rent", "RENT"])),
            Attribute::new("resolution", ValueKind::Word(&["sd", "SD", "hd", "HD"])),
        ])
        .retired(),
    text("requires_subscription", ValueKind::YesNo, Some(&YES_NO)),
    text("uploader", ValueKind::Text(255), Some(&UPLOADER)).with(&[Attribute::new(
        "info",
        ValueKind::Url(UrlRule::SiteOfThePage(&UPLOADER)),
    )
    .field("uploader_info")]),
    group("tvshow", (0, 1), TVSHOW).retired(),
    text("platform", ValueKind::Words(&["web", "mobile", "tv"]), Some(&PLATFORM))
        .with(&[RELATIONSHIP.field("platform_relationship")]),
    text("live", ValueKind::YesNo, Some(&YES_NO)),
    text("id", TEXT, Some(&VALUE))
        .any_number()
        .with(&[Attribute::new(
            "type",
            ValueKind::Word(&[
                "tms:series",
                "tms:program",
                "rovi:series",
                "rovi:program",
                "freebase",
                "url",
            ]),
        )
        .required()])
        .retired(),
];

static TVSHOW: &[Element] = &[
    text("show_title", TEXT, Some(&VALUE)).required().checked(),
    text(
        "video_type",
        ValueKind::Word(&["full", "preview", "clip", "interview", "news", "other"]),
        Some(&VALUE),
    )
    .required()
    .checked(),
    text("episode_title", TEXT, Some(&VALUE)).checked(),
    text("season_number", ValueKind::Integer(1, u64::MAX), Some(&VALUE)).checked(),
    text("episode_number", ValueKind::Integer(1, u64::MAX), Some(&VALUE)).checked(),
    text("premier_date", ValueKind::Date, None).checked(),
];

/// `video:video`
pub static EXTENSION: Extension = Extension {
    name: "video",
    prefix: "video",
    uri: "http://www.google.com/schemas/sitemap-video/1.1",
    shared_namespace: false,
    column: "video",
    root: group("video", (0, 0), PARTS).role(Role::Block),
    per_url: None,
    per_file: None,
    one_of: Some(OneOf { names: &["content_loc", "player_loc"], finding: &CONTENT }),
    report_all: false,
    mapping: ExtensionMapping::Fields("video.invalid"),
    options: &[OptionSpec {
        name: "video",
        kind: OptionKind::Pairs,
        metavar: "TAG=COL",
        help: "Video: 'TAG=COL' or 'TAG==constant' for each tag, or a column of structs \
               (repeatable).",
    }],
    warnings: &[
        ("video.over_32_tags", "tag left out, beyond the 32 that a video may have"),
        ("video.invalid", "value left out, neither a video nor a list of videos"),
    ],
    column_words: &[],
    findings: ALL,
};
