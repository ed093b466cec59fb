//! Renders a row as a `<url>`.

use std::mem::take;
use std::ops::Range;

use crate::UNCHECKED;
use crate::build::render::alternate::Links;
use crate::build::render::block::BlockWriter;
use crate::build::render::field::{bad_field, cell, lastmod};
use crate::build::render::field_writer::FieldWriter;
use crate::build::render::image::Images;
use crate::build::render::loc::LocFault;
use crate::build::render::plan::{LocSource, Plan};
use crate::build::render::rules::{CHANGEFREQ_WRONG, PRIORITY_WRONG, Rules};
use crate::build::render::stamper::Stamper;
use crate::flow::cell::Cell;
use crate::flow::chunk::{Chunk, MAX_REJECT_VALUE, Reject};
use crate::flow::entry::{ELEMENT_START, Entry, NO_LASTMOD};
use crate::flow::hash::boundary_hash;
use crate::flow::row::Row;
use crate::sitemap::changefreq;
use crate::sitemap::characters::trim;
use crate::sitemap::date::Order;
use crate::sitemap::namespaces;
use crate::sitemap::placeholder;
use crate::sitemap::priority;

/// The end of an element.
const CLOSE: &[u8; 7] = b"</url>\n";

/// Takes a full chunk before its batch ends; returns false to stop the rendering.
pub type Outlet<'o> = dyn FnMut(Chunk) -> bool + 'o;

/// Renders the rows of one input.
pub struct Renderer<'r> {
    pub(crate) rules: &'r Rules,
    pub(crate) plan: &'r Plan,
    outlet: Option<&'r mut Outlet<'r>>,
    pub(crate) value: Vec<u8>,
    pub(crate) encoded: Vec<u8>,
    /// the values of the columns of a template
    values: Vec<Vec<u8>>,
    pub(crate) images: Images,
    pub(crate) links: Links,
    /// one for each of [`Plan::blocks`]
    pub(crate) blocks: Vec<BlockWriter>,
    /// if content decides lastmod
    pub(crate) stamper: Option<Stamper<'r>>,
}

/// The outcome of a row that is not rejected.
pub(crate) struct RowElement {
    /// As in [`Entry::newest`].
    pub newest: Order,
    pub namespaces: u8,
    /// The loc, in the bytes of the chunk.
    pub loc: Range<usize>,
    /// The row is left out, and counted under this code.
    pub dropped: Option<&'static str>,
}

impl<'r> Renderer<'r> {
    /// A renderer, for one thread.
    pub fn new(rules: &'r Rules, plan: &'r Plan) -> Renderer<'r> {
        Renderer {
            rules,
            plan,
            outlet: None,
            value: Vec::new(),
            encoded: Vec::new(),
            values: Vec::new(),
            images: Images::default(),
            links: Links::default(),
            blocks: plan.blocks.iter().map(|(place, _)| BlockWriter::new(*place)).collect(),
            stamper: rules.stamps.as_deref().map(|stamps| Stamper::new(stamps, plan)),
        }
    }

    /// The same, with an outlet for full chunks. Without an outlet a batch becomes one chunk of any
    /// size.
    pub fn with_outlet(self, outlet: &'r mut Outlet<'r>) -> Renderer<'r> {
        Renderer { outlet: Some(outlet), ..self }
    }

    /// Passes the chunk to the outlet if it is full; returns false to stop the rendering. To be
    /// called after each row.
    #[inline]
    pub fn hand_on(&mut self, chunk: &mut Chunk) -> bool {
        !chunk.is_full() || self.hand_on_full(chunk)
    }

    #[cold]
    fn hand_on_full(&mut self, chunk: &mut Chunk) -> bool {
        match &mut self.outlet {
            Some(outlet) => outlet(chunk.take_full(self.rules.ages.as_ref())),
            None => true,
        }
    }

    /// Appends the outcome of a row: an entry, a reject, or a count.
    #[inline(always)] // as `Rendering::row`
    pub fn render(&mut self, row: &impl Row, number: u32, chunk: &mut Chunk) {
        chunk.rows += 1;
        for filter in &self.plan.filters {
            if row.cell(filter.slot, &mut self.value).is(&filter.value) == filter.negate {
                chunk.filtered += 1;
                return;
            }
        }
        let start = chunk.bytes.len();
        match self.url(row, chunk) {
            Ok(RowElement { dropped: Some(code), .. }) => {
                chunk.end_row(false);
                chunk.note(code);
                chunk.end_row(true);
                chunk.bytes.truncate(start);
                self.forget(chunk);
                chunk.filtered += 1;
            }
            Ok(element) => {
                let len = chunk.bytes.len() - start;
                let frame =
                    if self.rules.text { 0 } else { namespaces::length(element.namespaces) };
                if frame + len as u64 > self.rules.max_bytes {
                    chunk.end_row(false);
                    chunk.bytes.truncate(start);
                    self.forget(chunk);
                    chunk.rejects.push(Reject {
                        row: number,
                        column: None,
                        code: "url.too_large",
                        message: "the row alone exceeds the size limit of a sitemap file".into(),
                        value: Vec::new(),
                    });
                    return;
                }
                chunk.end_row(true);
                let loc = &chunk.bytes[element.loc.clone()];
                let (rules, scratch) = (self.rules, &mut self.encoded);
                if let Some(sample) = rules.rate.sample(rules.group_key, loc, scratch) {
                    chunk.samples.push(sample);
                }
                let RowElement { newest, namespaces, .. } = element;
                // built inline: a local that is borrowed later is spilled to the stack (measured:
                // 6 ns per row)
                chunk.entries.push(Entry { len: len as u32, row: number, newest, namespaces });
                if let Some(split) = self.plan.split {
                    self.split(split, row, &element, chunk);
                }
                if self.plan.alternates.as_ref().is_some_and(|from| from.rows) {
                    self.expand(start, &element, chunk);
                }
            }
            Err(mut reject) => {
                chunk.end_row(false);
                chunk.bytes.truncate(start);
                self.forget(chunk);
                reject.row = number;
                chunk.rejects.push(*reject);
            }
        }
    }

    /// Removes what belongs to an element that is not written.
    fn forget(&self, chunk: &mut Chunk) {
        chunk.keys.truncate(chunk.entries.len());
        chunk.boundaries.truncate(chunk.entries.len());
        chunk.members.truncate(chunk.entries.len());
        chunk.stamps.truncate(chunk.entries.len());
    }

    /// Appends the element.
    #[inline(always)] // as `Rendering::row`
    fn url(
        &mut self,
        row: &impl Row,
        chunk: &mut Chunk,
    ) -> std::result::Result<RowElement, Box<Reject>> {
        let start = chunk.bytes.len();
        let mut element =
            RowElement { newest: NO_LASTMOD, namespaces: 0, loc: 0..0, dropped: None };
        if self.rules.text {
            self.loc(row, chunk)?;
            element.loc = start..chunk.bytes.len();
            chunk.bytes.push(b'\n');
            return Ok(element);
        }
        chunk.bytes.extend_from_slice(ELEMENT_START);
        self.loc(row, chunk)?;
        element.loc = start + ELEMENT_START.len()..chunk.bytes.len();
        let mut out = FieldWriter::new(take(&mut chunk.bytes));
        let newest = self.fields(row, chunk, &mut out);
        chunk.bytes = out.into_bytes();
        element.newest = newest?;
        if self.plan.extended {
            self.extend(row, start, &mut element, chunk)?;
            chunk.bytes.extend_from_slice(CLOSE);
        }
        Ok(element)
    }

    #[inline]
    fn loc(&mut self, row: &impl Row, chunk: &mut Chunk) -> std::result::Result<(), Box<Reject>> {
        let start = chunk.bytes.len();
        let Renderer { rules, plan, value, encoded, values, .. } = self;
        let (raw, column): (&[u8], _) = match &plan.loc {
            LocSource::Slot(slot) => {
                let cell = row.cell(*slot, value);
                match cell {
                    Cell::Text(text) => (text, Some(*slot)),
                    Cell::Null => (b"", Some(*slot)),
                    other => {
                        let mut text = Vec::new();
                        other.write(&mut text);
                        return Err(bad_loc(LocFault::Relative, &text, Some(&plan.names[*slot])));
                    }
                }
            }
            LocSource::Template(template, slots) => {
                values.resize_with(slots.len(), Vec::new);
                for (text, &slot) in values.iter_mut().zip(slots) {
                    text.clear();
                    row.cell(slot, encoded).write(text);
                    if placeholder::is_missing_value(trim(text)) {
                        return Err(bad_loc(LocFault::Placeholder, text, Some(&plan.names[slot])));
                    }
                }
                value.clear();
                if !template.write(|i| values.get(i).map(Vec::as_slice), value) {
                    let empty = values.iter().position(|text| trim(text).is_empty());
                    let name = empty.map(|i| plan.names[slots[i]].as_str());
                    return Err(bad_loc(LocFault::Empty, b"", name));
                }
                (value, None)
            }
        };
        let written = if rules.text {
            let info = rules.loc.encode(raw, encoded);
            if info.is_ok() {
                chunk.bytes.extend_from_slice(encoded);
            }
            info
        } else {
            rules.loc.write(raw, encoded, &mut chunk.bytes)
        };
        let info = written
            .map_err(|fault| bad_loc(fault, raw, column.map(|slot| plan.names[slot].as_str())))?;
        if info.any() {
            info.notes().for_each(|code| chunk.note(code));
        }
        if let Some(key) = rules.key {
            chunk.keys.push(key.hash128(&chunk.bytes[start..]));
        }
        if let Some(stamper) = &mut self.stamper {
            stamper.begin(start..chunk.bytes.len());
        }
        if rules.boundaries {
            let boundary = boundary_hash(&chunk.bytes[start..]);
            chunk.boundaries.push(boundary);
        }
        Ok(())
    }

    /// Appends the fields after the loc; returns the lastmod.
    #[inline(always)] // as `Rendering::row`
    fn fields(
        &mut self,
        row: &impl Row,
        chunk: &mut Chunk,
        out: &mut FieldWriter,
    ) -> std::result::Result<Order, Box<Reject>> {
        out.push(b"</loc>");
        let Renderer { rules, plan, value, stamper, .. } = self;
        let newest = match stamper {
            None => lastmod(rules, plan, value, row, chunk, out)?,
            Some(stamper) => stamper.lastmod((rules, plan, value), row, chunk, out)?,
        };
        self.changefreq(row, chunk, out)?;
        self.priority(row, chunk, out)?;
        if !self.plan.extended {
            out.push(CLOSE);
        }
        Ok(newest)
    }

    #[inline]
    fn changefreq(
        &mut self,
        row: &impl Row,
        chunk: &mut Chunk,
        out: &mut FieldWriter,
    ) -> std::result::Result<(), Box<Reject>> {
        let Some(from) = &self.plan.changefreq else { return Ok(()) };
        let cell = cell(from, row, &mut self.value);
        let known = match cell {
            Cell::Null => return Ok(()),
            Cell::Text(text) => changefreq::parse(text),
            _ => None,
        };
        match known {
            Some(value) => {
                out.push(b"<changefreq>");
                out.push_text(value.as_bytes());
                out.push(b"</changefreq>");
                Ok(())
            }
            None => {
                let what = ("changefreq.invalid", CHANGEFREQ_WRONG);
                bad_field(self.rules, self.plan, what, from, &cell, chunk)
            }
        }
    }

    #[inline]
    fn priority(
        &mut self,
        row: &impl Row,
        chunk: &mut Chunk,
        out: &mut FieldWriter,
    ) -> std::result::Result<(), Box<Reject>> {
        let Some(from) = &self.plan.priority else { return Ok(()) };
        let cell = cell(from, row, &mut self.value);
        let written = match cell {
            Cell::Null => return Ok(()),
            Cell::Text(&[whole, point, tenths]) if UNCHECKED => Some([whole, point, tenths]),
            Cell::Text(&[b'0', b'.', tenths @ b'0'..=b'9']) => Some([b'0', b'.', tenths]),
            Cell::Text(text) => priority::from_text(text),
            Cell::Int(n) => priority::from_int(n),
            Cell::UInt(n) => i64::try_from(n).ok().and_then(priority::from_int),
            Cell::Float32(n) => priority::from_f32(n),
            Cell::Float(n) => priority::from_f64(n),
            Cell::Decimal(n, scale) => priority::from_decimal(n, scale),
            _ => None,
        };
        if let Some(text) = written {
            out.push(b"<priority>");
            out.push(&text);
            out.push(b"</priority>");
            return Ok(());
        }
        let what = ("priority.invalid", PRIORITY_WRONG);
        bad_field(self.rules, self.plan, what, from, &cell, chunk)
    }
}

#[cold]
fn bad_loc(fault: LocFault, value: &[u8], column: Option<&str>) -> Box<Reject> {
    Box::new(Reject {
        row: 0,
        column: column.map(str::to_owned),
        code: fault.code(),
        message: fault.message().into(),
        value: value[..value.len().min(MAX_REJECT_VALUE)].to_vec(),
    })
}
