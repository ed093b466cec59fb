//! One entry of a sitemap, as the parser passes it to the visitor.

use crate::inspect::finding::{Location, Log};
use crate::sitemap::element::{Attribute, Element};

/// The kind of a part of an extension.
#[derive(Debug, Clone, Copy)]
pub enum PartField {
    /// The start of a block: its extension, as an index into [`crate::sitemap::extension::ALL`].
    Block(usize),
    /// `image:loc`
    ImageLoc,
    /// The `hreflang` of an `xhtml:link`.
    AlternateLang,
    /// The `href` of an `xhtml:link`.
    AlternateHref,
    /// The start of a record in a block.
    Record(&'static Element),
    /// The text of an element.
    Text(&'static Element),
    /// An attribute.
    Attribute(&'static Attribute),
}

impl PartialEq for PartField {
    fn eq(&self, other: &PartField) -> bool {
        match (*self, *other) {
            (PartField::Block(a), PartField::Block(b)) => a == b,
            (PartField::Record(a), PartField::Record(b))
            | (PartField::Text(a), PartField::Text(b)) => std::ptr::eq(a, b),
            (PartField::Attribute(a), PartField::Attribute(b)) => std::ptr::eq(a, b),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl PartField {
    /// A number and a name that identify a field within an entry.
    pub fn key(self) -> (u8, &'static str) {
        match self {
            PartField::Block(index) => (index as u8, ""),
            PartField::ImageLoc => (u8::MAX, "image"),
            PartField::AlternateLang => (u8::MAX, "lang"),
            PartField::AlternateHref => (u8::MAX, "href"),
            PartField::Record(element) => (u8::MAX - 1, element.name),
            PartField::Text(element) => (u8::MAX - 2, element.name),
            PartField::Attribute(attribute) => (u8::MAX - 3, attribute.field.unwrap_or_default()),
        }
    }
}

/// A part of an extension, and the range of its text in the arena of the entry.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Its kind.
    pub field: PartField,
    /// Its text: start and end in the arena.
    pub text: (u32, u32),
    /// The start of its element.
    pub at: Location,
}

/// The locations of the elements of an entry; computed only if a finding needs them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Locations<'a> {
    /// Known: loc, lastmod, changefreq, priority.
    Known([Location; 4]),
    /// The bytes of the entry, and the offsets of the elements in them.
    Within(&'a [u8], [u32; 4]),
}

/// One `url` of a urlset, one `sitemap` of an index or one line of a text sitemap. Texts are unescaped
/// and trimmed.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The URL; empty if it is missing.
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
    /// Its start.
    pub at: Location,
    pub(crate) locations: Locations<'a>,
    /// White space surrounds a value: bits 0 to 3 for loc, lastmod, changefreq, priority.
    pub(crate) padded: u8,
    /// `loc` contains an apostrophe that is not escaped.
    pub(crate) bare_apostrophe: bool,
}

impl<'a> Entry<'a> {
    /// The text of a part.
    pub fn text(&self, part: &Part) -> &'a [u8] {
        self.arena.get(part.text.0 as usize..part.text.1 as usize).unwrap_or_default()
    }

    /// The location of loc (0), lastmod (1), changefreq (2) or priority (3).
    pub fn location(&self, which: usize) -> Location {
        match self.locations {
            Locations::Known(locations) => locations.get(which).copied().unwrap_or(self.at),
            Locations::Within(raw, offsets) => {
                let offset = offsets.get(which).copied().unwrap_or(0);
                let before = raw.get(..offset as usize).unwrap_or_default();
                let lines = memchr::memchr_iter(b'\n', before).count() as u64;
                Location { offset: self.at.offset + u64::from(offset), line: self.at.line + lines }
            }
        }
    }
}

/// The form of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A `urlset`.
    Urlset,
    /// A `sitemapindex`.
    Index,
    /// One URL per line.
    Text,
    /// RSS or Atom; not read.
    Feed,
    /// Anything else.
    Unknown,
}

/// Receives the entries. The parser stops at the end of the file, at damage that it cannot skip, or if
/// `entry` returns [`std::ops::ControlFlow::Break`].
pub trait Visitor {
    /// Whether the parser checks the values of extensions.
    fn checks(&self) -> bool {
        false
    }

    /// Called at the start of the root element.
    fn root(&mut self, form: Form) -> std::ops::ControlFlow<()> {
        let _ = form;
        std::ops::ControlFlow::Continue(())
    }

    /// Whether the parser has to stop; called every few thousand tokens.
    fn stopped(&self) -> bool {
        false
    }

    /// Called for each entry, with the form of its document.
    fn entry(&mut self, form: Form, entry: &Entry<'_>, log: &mut Log) -> std::ops::ControlFlow<()>;
}
