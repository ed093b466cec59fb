//! lastmod from content: the time at which the content of a URL last changed.
//!
//! A URL whose content is that of the last build keeps its lastmod, also if that is none. If its
//! content changed, its lastmod is the start of the build. A URL that the last build did not have
//! gets the lastmod of its row; without one the start of the build, except in a first build, in
//! which nothing is known.

use std::ops::Range;

use crate::build::render::content::Content;
use crate::build::render::field::lastmod;
use crate::build::render::field_writer::FieldWriter;
use crate::build::render::plan::Plan;
use crate::build::render::rules::Rules;
use crate::flow::chunk::{Chunk, Reject};
use crate::flow::entry::NO_LASTMOD;
use crate::flow::row::Row;
use crate::flow::stamps::Stamps;
use crate::flow::stamps::cursor::{Cursor, Found};
use crate::flow::stamps::stamp::{Change, HASH_BITS, NO_CONTENT, NO_STAMP, Stamp, Stamped};
use crate::flow::stamps::table::Table;
use crate::sitemap::date::{Order, write_order};

/// The end of a loc, and a lastmod behind it.
const END: &[u8; 6] = b"</loc>";
const OPEN: &[u8; 9] = b"<lastmod>";
const CLOSE: &[u8; 10] = b"</lastmod>";

/// Decides the lastmod of the rows of one batch.
pub(crate) struct Stamper<'r> {
    stamps: &'r Stamps,
    cursor: Cursor<'r>,
    content: Content,
    /// the list of columns is another one than in the last build: contents cannot be compared
    adopts: bool,
    /// rows become several URLs, some of which may be new
    expands: bool,
    loc: Range<usize>,
    /// the hash of the loc of the current row, and that of its content
    key: u64,
    hash: u64,
    /// the lastmod that the current row has by itself
    own: Order,
    /// the stamp of the last URL
    pub stamped: Stamped,
}

impl<'r> Stamper<'r> {
    pub fn new(stamps: &'r Stamps, plan: &Plan) -> Stamper<'r> {
        let known = |table: &Table| table.columns.contains(&plan.content_list);
        Stamper {
            stamps,
            cursor: Cursor::new(stamps),
            content: Content::new(stamps.hash),
            adopts: stamps.table.as_ref().is_some_and(|table| !known(table)),
            expands: plan.alternates.as_ref().is_some_and(|from| from.rows),
            loc: 0..0,
            key: 0,
            hash: 0,
            own: NO_LASTMOD,
            stamped: Stamped {
                stamp: Stamp { key: 0, content: 0, lastmod: NO_LASTMOD },
                change: Change::Added,
                old: NO_STAMP,
            },
        }
    }

    /// Begins a row, given the place of its loc in the chunk. It is hashed later: what was just
    /// written in other widths is read with a delay.
    #[inline]
    pub fn begin(&mut self, loc: Range<usize>) {
        self.loc = loc;
    }

    /// Appends the lastmod of a row, and keeps its stamp.
    #[inline]
    pub fn lastmod(
        &mut self,
        (rules, plan, value): (&Rules, &Plan, &mut Vec<u8>),
        row: &impl Row,
        chunk: &mut Chunk,
        out: &mut FieldWriter,
    ) -> Result<Order, Box<Reject>> {
        self.hash = self.content.of(plan, row) >> (64 - HASH_BITS);
        self.key = self.stamps.hash(out.written(self.loc.clone()));
        let (change, mut newest, old) = self.decide(self.key);
        let before = out.end();
        let is_new = change == Change::Added;
        if is_new || self.expands {
            self.own = lastmod(rules, plan, value, row, chunk, out)?;
        }
        if is_new {
            newest = self.of_new();
        }
        self.set(self.key, change, newest, old);
        chunk.stamps.push(self.stamped);
        if is_new && self.own != NO_LASTMOD {
            return Ok(newest); // it was just written
        }
        out.cut(before);
        if newest != NO_LASTMOD {
            out.push(OPEN);
            match out.fill(|text| write_order(newest, text).map(|length| (length, ()))) {
                Some(()) => out.push(CLOSE),
                None => {
                    out.cut(before);
                    self.invalid();
                    return Ok(NO_LASTMOD);
                }
            }
        }
        Ok(newest)
    }

    /// The text of the lastmod of another URL with the content of the current row: the end of its
    /// loc and its lastmod.
    pub fn of_alternate(&mut self, loc: &[u8]) -> (Vec<u8>, Order) {
        let key = self.stamps.hash(loc);
        let (change, mut lastmod, old) = self.decide(key);
        if change == Change::Added {
            lastmod = self.of_new();
        }
        self.set(key, change, lastmod, old);
        let mut out = END.to_vec();
        if lastmod != NO_LASTMOD {
            let mut text = [0; 20];
            match write_order(lastmod, &mut text) {
                Some(length) => out.extend([&OPEN[..], &text[..length], CLOSE].concat()),
                None => self.invalid(),
            }
        }
        (out, lastmod)
    }

    /// What happened to a URL, its lastmod, and a former stamp of it. The lastmod of a new one is
    /// that of [`Stamper::of_new`].
    #[inline]
    fn decide(&mut self, key: u64) -> (Change, Order, u32) {
        // contents of other columns are equal where all of their values are nothing
        let content = if self.adopts { NO_CONTENT } else { self.hash };
        let Found { change, lastmod, old } = self.cursor.find(key, content);
        let now = self.stamps.now;
        let (change, lastmod) = match change {
            Change::Added => (Change::Added, NO_LASTMOD),
            _ if self.adopts => (Change::Adopted, lastmod),
            Change::Changed if lastmod > now => (Change::ClockBehind, lastmod),
            Change::Changed => (Change::Changed, now),
            change => (change, lastmod),
        };
        (change, lastmod, old)
    }

    /// The lastmod of a URL that is new.
    #[inline]
    fn of_new(&self) -> Order {
        let is_first = self.stamps.table.is_none();
        if self.own == NO_LASTMOD && !is_first { self.stamps.now } else { self.own }
    }

    #[inline]
    fn set(&mut self, key: u64, change: Change, lastmod: Order, old: u32) {
        let stamp = Stamp { key, content: self.hash, lastmod };
        self.stamped = Stamped { stamp, change, old };
    }

    /// A stamp contains a lastmod that is no date.
    #[cold]
    fn invalid(&self) {
        if let Some(table) = &self.stamps.table {
            // the collector ends the run
            let _ = table.failed.set(table.damaged("contains a time that is none"));
        }
    }
}

/// The end of an element behind its loc, without `</loc>` and its lastmod.
pub(crate) fn without_lastmod(tail: &[u8]) -> &[u8] {
    let tail = tail.strip_prefix(END).unwrap_or(tail);
    let Some(text) = tail.strip_prefix(OPEN) else { return tail };
    memchr::memmem::find(text, CLOSE).map_or(tail, |at| &text[at + CLOSE.len()..])
}
