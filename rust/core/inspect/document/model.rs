//! The content models of sitemaps and their extensions, after the official schemas: which element
//! stands where, how often, in which order, with which attributes and what kind of value.

use crate::inspect::codes;
use crate::inspect::codes::Code;
use crate::inspect::document::entry::{Field, NewsField as N, VideoField as V};

/// The namespaces that are known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ns {
    /// `http://www.sitemaps.org/schemas/sitemap/0.9`
    Sitemap,
    /// Google's images.
    Image,
    /// Google's videos.
    Video,
    /// Google's news.
    News,
    /// XHTML, for `xhtml:link`.
    Xhtml,
    /// `xml:`
    Xml,
    /// `xsi:`
    Xsi,
    /// No namespace.
    None,
    /// Any other.
    Foreign,
}

/// The namespace of sitemaps.
pub const SITEMAP: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";
/// The namespace of XHTML.
pub const XHTML: &str = "http://www.w3.org/1999/xhtml";
/// The namespace of images.
pub const IMAGE: &str = "http://www.google.com/schemas/sitemap-image/1.1";

/// Which namespace a URI names.
pub fn namespace(uri: &str) -> Ns {
    match uri {
        "" => Ns::None,
        SITEMAP => Ns::Sitemap,
        IMAGE => Ns::Image,
        "http://www.google.com/schemas/sitemap-video/1.1" => Ns::Video,
        "http://www.google.com/schemas/sitemap-news/0.9" => Ns::News,
        XHTML => Ns::Xhtml,
        "http://www.w3.org/XML/1998/namespace" => Ns::Xml,
        "http://www.w3.org/2001/XMLSchema-instance" => Ns::Xsi,
        _ => Ns::Foreign,
    }
}

/// The kind of a text value and so its check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// Checked with the whole entry: loc, lastmod, changefreq, priority.
    Entry,
    /// Any text of at most so many characters.
    Text(usize),
    /// An absolute URL.
    Url,
    /// A date or date and time.
    Date,
    /// A decimal number from 0 to this.
    Decimal(u32),
    /// A whole number in a range.
    Integer(u64, u64),
    /// One of these words.
    Word(&'static [&'static str]),
    /// Words of the list, each followed by single spaces or (countries) more.
    Words(&'static [&'static str]),
    /// ISO 3166 codes by spaces.
    Countries,
    /// `news:language`.
    Language,
    /// Words by commas.
    Genres,
    /// Up to five `EXCHANGE:TICKER` by commas.
    Tickers,
    /// May be empty, may be anything: `video:price`.
    Price,
}

/// What stands in an element.
#[derive(Debug, Clone, Copy)]
pub enum Content {
    /// These elements in this order; `rest`: then elements of other namespaces.
    Elements {
        /// In the order of the schema.
        children: &'static [Model],
        /// Whether elements of other namespaces may follow.
        rest: bool,
    },
    /// Text.
    Text(Value),
    /// Nothing.
    Empty,
}

/// One element.
#[derive(Debug)]
pub struct Model {
    /// Local name.
    pub name: &'static str,
    /// Least and most occurrences; 0 for no upper bound.
    pub occurs: (u16, u16),
    /// What stands in it.
    pub content: Content,
    /// Its attributes and their kinds.
    pub attributes: &'static [(&'static str, Value, bool)],
    /// Where its value goes.
    pub field: Field,
    /// The code of a bad value.
    pub code: &'static Code,
    /// Google retired it in 2022.
    pub retired: bool,
}

/// Most children a model has, for the counters of a frame.
pub const MOST_CHILDREN: usize = 24;

const YES_NO: Value = Value::Word(&["yes", "Yes", "YES", "no", "No", "NO"]);
const RELATION: (&str, Value, bool) = ("relationship", Value::Word(&["allow", "deny"]), true);

const fn text(name: &'static str, value: Value, field: Field, code: &'static Code) -> Model {
    Model {
        name,
        occurs: (0, 1),
        content: Content::Text(value),
        attributes: &[],
        field,
        code,
        retired: false,
    }
}

impl Model {
    const fn times(mut self, least: u16, most: u16) -> Model {
        self.occurs = (least, most);
        self
    }
    const fn with(mut self, attributes: &'static [(&'static str, Value, bool)]) -> Model {
        self.attributes = attributes;
        self
    }
    const fn old(mut self) -> Model {
        self.retired = true;
        self
    }
}

const fn group(
    name: &'static str,
    occurs: (u16, u16),
    children: &'static [Model],
    rest: bool,
    field: Field,
) -> Model {
    let content = Content::Elements { children, rest };
    Model {
        name,
        occurs,
        content,
        attributes: &[],
        field,
        code: &codes::ELEMENT_UNKNOWN,
        retired: false,
    }
}

/// `urlset`
pub static URLSET: Model = group("urlset", (1, 1), URLS, true, Field::None);
/// `sitemapindex`
pub static SITEMAPINDEX: Model = group("sitemapindex", (1, 1), SITEMAPS, true, Field::None);

static URLS: &[Model] = &[group("url", (1, 0), URL, true, Field::Entry)];
static SITEMAPS: &[Model] = &[group("sitemap", (1, 0), ENTRY_OF_INDEX, true, Field::Entry)];

static URL: &[Model] = &[
    text("loc", Value::Entry, Field::Loc, &codes::LOC_MISSING).times(1, 1),
    text("lastmod", Value::Entry, Field::Lastmod, &codes::LASTMOD_INVALID),
    text("changefreq", Value::Entry, Field::Changefreq, &codes::CHANGEFREQ_INVALID),
    text("priority", Value::Entry, Field::Priority, &codes::PRIORITY_INVALID),
];

static ENTRY_OF_INDEX: &[Model] = &[
    text("loc", Value::Entry, Field::Loc, &codes::LOC_MISSING).times(1, 1),
    text("lastmod", Value::Entry, Field::Lastmod, &codes::LASTMOD_INVALID),
];

/// `image:image`
pub static IMAGES: Model = group("image", (0, 0), IMAGE_PARTS, false, Field::Image);
static IMAGE_PARTS: &[Model] = &[
    text("loc", Value::Url, Field::ImageLoc, &codes::IMAGE_LOC).times(1, 1),
    text("caption", Value::Text(usize::MAX), Field::None, &codes::IMAGE_LOC).old(),
    text("geo_location", Value::Text(usize::MAX), Field::None, &codes::IMAGE_LOC).old(),
    text("title", Value::Text(usize::MAX), Field::None, &codes::IMAGE_LOC).old(),
    text("license", Value::Url, Field::None, &codes::IMAGE_LOC).old(),
];

/// `xhtml:link`
pub static LINK: Model = Model {
    name: "link",
    occurs: (0, 0),
    content: Content::Empty,
    attributes: &[],
    field: Field::Alternate,
    code: &codes::ALTERNATE_HREF,
    retired: false,
};

/// `news:news`
pub static NEWS: Model = group("news", (0, 1), NEWS_PARTS, false, Field::News);
static NEWS_PARTS: &[Model] = &[
    group("publication", (1, 1), PUBLICATION, false, Field::None),
    text(
        "access",
        Value::Word(&["Subscription", "Registration"]),
        Field::NewsPart(N::Access),
        &codes::NEWS_VALUE,
    )
    .old(),
    text("genres", Value::Genres, Field::NewsPart(N::Genres), &codes::NEWS_VALUE).old(),
    text(
        "publication_date",
        Value::Date,
        Field::NewsPart(N::PublicationDate),
        &codes::DATE_INVALID,
    )
    .times(1, 1),
    text("title", Value::Text(usize::MAX), Field::NewsPart(N::Title), &codes::NEWS_VALUE)
        .times(1, 1),
    text("keywords", Value::Text(usize::MAX), Field::NewsPart(N::Keywords), &codes::NEWS_VALUE)
        .old(),
    text("stock_tickers", Value::Tickers, Field::NewsPart(N::StockTickers), &codes::NEWS_VALUE)
        .old(),
];
static PUBLICATION: &[Model] = &[
    text("name", Value::Text(usize::MAX), Field::NewsPart(N::Name), &codes::NEWS_VALUE).times(1, 1),
    text("language", Value::Language, Field::NewsPart(N::Language), &codes::NEWS_LANGUAGE)
        .times(1, 1),
];

/// `video:video`
pub static VIDEO: Model = group("video", (0, 0), VIDEO_PARTS, false, Field::Video);
static VIDEO_PARTS: &[Model] = &[
    text("thumbnail_loc", Value::Url, Field::VideoPart(V::ThumbnailLoc), &codes::VIDEO_URL)
        .times(1, 1),
    text("title", Value::Text(100), Field::VideoPart(V::Title), &codes::VIDEO_TITLE).times(1, 1),
    text(
        "description",
        Value::Text(2048),
        Field::VideoPart(V::Description),
        &codes::VIDEO_DESCRIPTION,
    )
    .times(1, 1),
    text("content_loc", Value::Url, Field::VideoPart(V::ContentLoc), &codes::VIDEO_URL),
    text("player_loc", Value::Url, Field::VideoPart(V::PlayerLoc), &codes::VIDEO_URL)
        .with(&[("allow_embed", YES_NO, false), ("autoplay", Value::Text(usize::MAX), false)]),
    text(
        "duration",
        Value::Integer(1, 28_800),
        Field::VideoPart(V::Duration),
        &codes::VIDEO_DURATION,
    ),
    text("expiration_date", Value::Date, Field::VideoPart(V::ExpirationDate), &codes::DATE_INVALID),
    text("rating", Value::Decimal(5), Field::VideoPart(V::Rating), &codes::VIDEO_RATING),
    text("content_segment_loc", Value::Url, Field::None, &codes::VIDEO_URL)
        .times(0, 0)
        .with(&[("duration", Value::Integer(0, 28_800), false)])
        .old(),
    text(
        "view_count",
        Value::Integer(0, u64::MAX),
        Field::VideoPart(V::ViewCount),
        &codes::VIDEO_VIEW_COUNT,
    ),
    text(
        "publication_date",
        Value::Date,
        Field::VideoPart(V::PublicationDate),
        &codes::DATE_INVALID,
    ),
    text("tag", Value::Text(usize::MAX), Field::VideoPart(V::Tag), &codes::VIDEO_TAGS).times(0, 32),
    text("category", Value::Text(256), Field::None, &codes::VIDEO_VALUE).old(),
    text("family_friendly", YES_NO, Field::VideoPart(V::FamilyFriendly), &codes::VIDEO_YES_NO),
    text(
        "restriction",
        Value::Countries,
        Field::VideoPart(V::Restriction),
        &codes::VIDEO_RESTRICTION,
    )
    .with(&[RELATION]),
    text("gallery_loc", Value::Url, Field::None, &codes::VIDEO_URL)
        .with(&[("title", Value::Text(usize::MAX), false)])
        .old(),
    text("price", Value::Price, Field::None, &codes::VIDEO_VALUE)
        .times(0, 0)
        .with(&[
            ("currency", Value::Text(3), false),
            ("type", Value::Word(&["purchase", "PURCHASE", "rent", "RENT"]), false),
            ("resolution", Value::Word(&["sd", "SD", "hd", "HD"]), false),
        ])
        .old(),
    text(
        "requires_subscription",
        YES_NO,
        Field::VideoPart(V::RequiresSubscription),
        &codes::VIDEO_YES_NO,
    ),
    text("uploader", Value::Text(255), Field::VideoPart(V::Uploader), &codes::VIDEO_UPLOADER)
        .with(&[("info", Value::Url, false)]),
    group("tvshow", (0, 1), TVSHOW, false, Field::None).old(),
    text(
        "platform",
        Value::Words(&["web", "mobile", "tv"]),
        Field::VideoPart(V::Platform),
        &codes::VIDEO_PLATFORM,
    )
    .with(&[RELATION]),
    text("live", YES_NO, Field::VideoPart(V::Live), &codes::VIDEO_YES_NO),
    text("id", Value::Text(usize::MAX), Field::None, &codes::VIDEO_VALUE)
        .times(0, 0)
        .with(&[(
            "type",
            Value::Word(&[
                "tms:series",
                "tms:program",
                "rovi:series",
                "rovi:program",
                "freebase",
                "url",
            ]),
            true,
        )])
        .old(),
];
static TVSHOW: &[Model] = &[
    text("show_title", Value::Text(usize::MAX), Field::None, &codes::VIDEO_VALUE).times(1, 1),
    text(
        "video_type",
        Value::Word(&["full", "preview", "clip", "interview", "news", "other"]),
        Field::None,
        &codes::VIDEO_VALUE,
    )
    .times(1, 1),
    text("episode_title", Value::Text(usize::MAX), Field::None, &codes::VIDEO_VALUE),
    text("season_number", Value::Integer(1, u64::MAX), Field::None, &codes::VIDEO_VALUE),
    text("episode_number", Value::Integer(1, u64::MAX), Field::None, &codes::VIDEO_VALUE),
    text("premier_date", Value::Date, Field::None, &codes::DATE_INVALID),
];

/// The element of an extension that may stand in a `url`, or before the entries.
pub fn extension(ns: Ns, name: &str) -> Option<&'static Model> {
    match (ns, name) {
        (Ns::Image, "image") => Some(&IMAGES),
        (Ns::Video, "video") => Some(&VIDEO),
        (Ns::News, "news") => Some(&NEWS),
        (Ns::Xhtml, "link") => Some(&LINK),
        _ => None,
    }
}
