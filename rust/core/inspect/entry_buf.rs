//! The entry under construction. Its texts are in an arena that is reused for the next entry.

use crate::inspect::check::value::trim;
use crate::inspect::document::entry::{Entry, Locations, Part, PartField};
use crate::inspect::document::model::Ns;
use crate::inspect::finding::Location;
use crate::sitemap::element::{Attribute, Element, Role};
use crate::sitemap::extension;

/// Limit of the text of an entry.
const MAX_TEXT: usize = 8 << 20;
/// Limit of its parts: 1,000 images, and other extensions.
const MAX_PARTS: usize = 200_000;

/// The attributes of an `xhtml:link`.
#[derive(Default)]
pub(crate) struct Alternate {
    pub rel: Option<Vec<u8>>,
    pub hreflang: Option<Vec<u8>>,
    pub href: Option<Vec<u8>>,
    pub media: bool,
}

/// An entry that is being read.
#[derive(Default)]
pub(crate) struct EntryBuf {
    arena: Vec<u8>,
    parts: Vec<Part>,
    texts: [Option<(u32, u32)>; 4],
    locations: [Location; 4],
    padded: u8,
    at: Location,
    /// The apostrophe of `loc` was written as itself.
    pub bare_apostrophe: bool,
    /// White space precedes the root.
    pub leading_space: bool,
    /// The link whose attributes are being read.
    pub alternate: Alternate,
}

impl EntryBuf {
    /// Prepares for the next entry.
    pub fn clear(&mut self) {
        let (arena, parts) = (std::mem::take(&mut self.arena), std::mem::take(&mut self.parts));
        *self = EntryBuf { arena, parts, leading_space: self.leading_space, ..EntryBuf::default() };
        self.arena.clear();
        self.parts.clear();
    }

    /// Whether the entry exceeds a limit.
    pub fn is_full(&self) -> bool {
        self.arena.len() > MAX_TEXT || self.parts.len() > MAX_PARTS
    }

    /// An element starts.
    pub fn open(&mut self, element: &'static Element, at: Location) {
        match element.role {
            Role::Entry => {
                self.clear();
                self.at = at;
                self.locations = [at; 4];
            }
            Role::Block => {
                if let Some(place) = extension::of_root(element) {
                    self.part(PartField::Block(place), b"", at);
                }
            }
            Role::Link => self.alternate = Alternate::default(),
            Role::Field if element.is_record() => self.part(PartField::Record(element), b"", at),
            _ => {}
        }
    }

    /// A text element ends.
    pub fn value(&mut self, element: &'static Element, text: &[u8], at: Location) {
        let which = match element.role {
            Role::Loc => 0,
            Role::Lastmod => 1,
            Role::Changefreq => 2,
            Role::Priority => 3,
            Role::ImageLoc => return self.part(PartField::ImageLoc, trim(text), at),
            // white space around words is a fault that is checked elsewhere, so it stays
            Role::Field => return self.part(PartField::Text(element), trim(text), at),
            Role::Checked | Role::Entry | Role::Link | Role::Block => return,
        };
        let trimmed = trim(text);
        let kept = if element.role == Role::Changefreq { text } else { trimmed };
        if trimmed.len() < text.len() {
            self.padded |= 1 << which;
        }
        let start = self.arena.len() as u32;
        self.arena.extend_from_slice(kept);
        self.texts[which] = Some((start, self.arena.len() as u32));
        self.locations[which] = at;
    }

    /// An attribute that is read back.
    pub fn attribute(&mut self, attribute: &'static Attribute, value: &[u8], at: Location) {
        self.part(PartField::Attribute(attribute), trim(value), at);
    }

    /// An attribute of an `xhtml:link`.
    pub fn alternate_attribute(&mut self, ns: Ns, name: &str, value: &[u8]) {
        if ns != Ns::None {
            return;
        }
        let value = Some(trim(value).to_vec());
        match name {
            "rel" => self.alternate.rel = value,
            "hreflang" => self.alternate.hreflang = value,
            "href" => self.alternate.href = value,
            "media" => self.alternate.media = true,
            _ => {}
        }
    }

    /// Ends an `xhtml:link` after its attributes, and keeps it if it is an alternate of a language.
    pub fn close_alternate(&mut self, at: Location) {
        let link = std::mem::take(&mut self.alternate);
        if let (Some(lang), Some(href)) = (link.hreflang, link.href)
            && link.rel.is_some_and(|rel| rel.eq_ignore_ascii_case(b"alternate"))
        {
            self.part(PartField::AlternateLang, &lang, at);
            self.part(PartField::AlternateHref, &href, at);
        }
    }

    fn part(&mut self, field: PartField, text: &[u8], at: Location) {
        let start = self.arena.len() as u32;
        self.arena.extend_from_slice(text);
        self.parts.push(Part { field, text: (start, self.arena.len() as u32), at });
    }

    /// The loc that was read so far.
    pub fn loc(&self) -> &[u8] {
        self.get(0).unwrap_or_default()
    }

    fn get(&self, which: usize) -> Option<&[u8]> {
        let (start, end) = self.texts[which]?;
        self.arena.get(start as usize..end as usize)
    }

    /// The parts of the block that began last.
    pub fn last_block(&self) -> impl Iterator<Item = (PartField, &[u8])> {
        let is_block = |part: &Part| matches!(part.field, PartField::Block(_));
        let start = self.parts.iter().rposition(is_block).unwrap_or(0);
        let parts = self.parts.get(start..).unwrap_or_default();
        parts.iter().map(|part| (part.field, self.entry().text(part)))
    }

    /// The entry.
    pub fn entry(&self) -> Entry<'_> {
        Entry {
            loc: self.loc(),
            lastmod: self.get(1),
            changefreq: self.get(2),
            priority: self.get(3),
            parts: &self.parts,
            arena: &self.arena,
            at: self.at,
            locations: Locations::Known(self.locations),
            padded: self.padded,
            bare_apostrophe: self.bare_apostrophe,
        }
    }
}
