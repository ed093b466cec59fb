//! One entry of a sitemap, as the parser hands it over.

use crate::inspect::finding::{At, Log};

/// Where a text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Nowhere: it is only checked.
    None,
    /// A whole `url` or `sitemap`.
    Entry,
    /// `loc`
    Loc,
    /// `lastmod`
    Lastmod,
    /// `changefreq`
    Changefreq,
    /// `priority`
    Priority,
    /// An `image:image` begins.
    Image,
    /// `image:loc`
    ImageLoc,
    /// An `xhtml:link`.
    Alternate,
    /// Its `hreflang`.
    AlternateLang,
    /// Its `href`.
    AlternateHref,
    /// A `video:video` begins.
    Video,
    /// A part of a video.
    VideoPart(VideoField),
    /// A `news:news` begins.
    News,
    /// A part of it.
    NewsPart(NewsField),
}

macro_rules! fields {
    ($(#[$doc:meta])* $type:ident: $($name:ident $text:literal)*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum $type {
            $(#[doc = concat!("`", $text, "`")] $name),*
        }
        impl $type {
            /// All of them with the names of their columns, in the order of their numbers.
            pub const ALL: &'static [($type, &'static str)] = &[$(($type::$name, $text)),*];
        }
    };
}

fields! {
    /// The parts of a video that are read back, in the order of the schema.
    VideoField:
    ThumbnailLoc "thumbnail_loc" Title "title" Description "description" ContentLoc "content_loc"
    PlayerLoc "player_loc" Duration "duration" ExpirationDate "expiration_date" Rating "rating"
    ViewCount "view_count" PublicationDate "publication_date" Tag "tags"
    FamilyFriendly "family_friendly" Restriction "restriction"
    RestrictionRelationship "restriction_relationship"
    RequiresSubscription "requires_subscription" Uploader "uploader" UploaderInfo "uploader_info"
    Platform "platform" PlatformRelationship "platform_relationship" Live "live"
}

fields! {
    /// The parts of a news block that are read back.
    NewsField:
    Name "name" Language "language" PublicationDate "publication_date" Title "title"
    Access "access" Genres "genres" Keywords "keywords" StockTickers "stock_tickers"
}

/// A part of an extension: what it is, where its text lies in the entry's arena.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// What it is.
    pub field: Field,
    /// Its text: start and end in the arena.
    pub text: (u32, u32),
    /// Where its element starts in the file.
    pub at: At,
}

/// Where the elements of an entry stand, found out only where a finding needs it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Places<'a> {
    /// Known: loc, lastmod, changefreq, priority.
    Known([At; 4]),
    /// In the bytes of the entry, at these offsets.
    Within(&'a [u8], [u32; 4]),
}

/// One `url` of a urlset or `sitemap` of an index, or a line of a text sitemap. Texts are
/// unescaped and without the white space around them.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The address; empty where it is missing.
    pub loc: &'a [u8],
    /// As written.
    pub lastmod: Option<&'a [u8]>,
    /// As written, white space included.
    pub changefreq: Option<&'a [u8]>,
    /// As written.
    pub priority: Option<&'a [u8]>,
    /// The parts of its extensions, in the order of the file.
    pub parts: &'a [Part],
    pub(crate) arena: &'a [u8],
    /// Where it starts.
    pub at: At,
    pub(crate) places: Places<'a>,
    /// White space stood around a value: bits 0 to 3 for loc, lastmod, changefreq, priority.
    pub(crate) padded: u8,
    /// The apostrophe of `loc` was written as itself.
    pub(crate) bare_apostrophe: bool,
}

impl<'a> Entry<'a> {
    /// The text of a part.
    pub fn text(&self, part: &Part) -> &'a [u8] {
        self.arena.get(part.text.0 as usize..part.text.1 as usize).unwrap_or_default()
    }

    /// Where loc (0), lastmod (1), changefreq (2) or priority (3) starts.
    pub fn place(&self, which: usize) -> At {
        match self.places {
            Places::Known(places) => places.get(which).copied().unwrap_or(self.at),
            Places::Within(raw, offsets) => {
                let offset = offsets.get(which).copied().unwrap_or(0);
                let before = raw.get(..offset as usize).unwrap_or_default();
                let lines = memchr::memchr_iter(b'\n', before).count() as u64;
                At { offset: self.at.offset + u64::from(offset), line: self.at.line + lines }
            }
        }
    }
}

/// What a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A `urlset`.
    Urlset,
    /// A `sitemapindex`.
    Index,
    /// One URL a line.
    Text,
    /// RSS or Atom; not read.
    Feed,
    /// Anything else.
    Unknown,
}

/// Who gets the entries. The parser drives; it stops at the end of the file, at damage that it
/// cannot pass, or when `entry` says [`std::ops::ControlFlow::Break`].
pub trait Visitor {
    /// Whether values of extensions are to be checked, too.
    const CHECKS: bool;

    /// The root of a document was met.
    fn root(&mut self, form: Form) -> std::ops::ControlFlow<()> {
        let _ = form;
        std::ops::ControlFlow::Continue(())
    }

    /// Whether nobody waits for the rest any more; asked every few thousand tokens.
    fn stopped(&self) -> bool {
        false
    }

    /// The next entry of a document of that form.
    fn entry(&mut self, form: Form, entry: &Entry<'_>, log: &mut Log) -> std::ops::ControlFlow<()>;
}
