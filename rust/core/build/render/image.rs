//! Images of a `<url>` (docs/protocol.md, *Image*).

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::mem::take;
use std::ops::Range;

use crate::build::render::invalid::{Invalid, Rejected, handle, shown};
use crate::build::render::plan::Plan;
use crate::build::render::rules::Rules;
use crate::flow::cell::Cell;
use crate::flow::chunk::Chunk;
use crate::flow::json::{Json, plain_strings};
use crate::flow::row::Row;
use crate::flow::value::{Value, is_json};
use crate::sitemap::characters::trim;
use crate::sitemap::extension::image::LIMIT;

/// Up to this number of images, comparing each is cheaper than a hash.
const MAX_COMPARED: usize = 24;

const OPEN: &[u8] = b"<image:image><image:loc>";
const CLOSE: &[u8] = b"</image:loc></image:image>";

/// Writes the images of a row. The buffers are reused for all rows of a renderer.
#[derive(Default)]
pub(crate) struct Images {
    /// the URLs of this row, as ranges of the chunk
    written: Vec<Range<usize>>,
    /// their hashes, above [`MAX_COMPARED`]
    known: HashSet<u64>,
    hasher: RandomState,
    items: Vec<Range<usize>>,
    cell: Vec<u8>,
    encoded: Vec<u8>,
}

impl Images {
    /// Appends `<image:image>` elements; returns false if there are none.
    pub fn write(
        &mut self,
        rules: &Rules,
        plan: &Plan,
        row: &impl Row,
        chunk: &mut Chunk,
    ) -> Result<bool, Rejected> {
        self.written.clear();
        self.known.clear();
        for &slot in &plan.images {
            let mut cell = take(&mut self.cell);
            let mut items = take(&mut self.items);
            let value = row.value(slot, &mut cell);
            let result = self.column(&ImageContext { rules, plan, slot }, value, &mut items, chunk);
            (self.cell, self.items) = (cell, items);
            result?;
        }
        Ok(!self.written.is_empty())
    }

    fn column(
        &mut self,
        at: &ImageContext<'_>,
        value: Value<'_>,
        items: &mut Vec<Range<usize>>,
        chunk: &mut Chunk,
    ) -> Result<(), Rejected> {
        let text = match value.cell() {
            Some(Cell::Null) => return Ok(()),
            Some(Cell::Text(text)) => text,
            _ => return self.list(at, value, chunk),
        };
        if is_json(text) {
            items.clear();
            if plain_strings(text, |item| items.push(item)).is_some() {
                return items.iter().try_for_each(|item| {
                    self.one(at, Value::Cell(Cell::Text(&text[item.clone()])), chunk)
                });
            }
            return match Json::parse(text) {
                Some(json) => self.list(at, Value::Json(&json), chunk),
                None => {
                    at.bad("begins like a JSON list but is not valid JSON; correct it", text, chunk)
                }
            };
        }
        match &at.plan.image_separator {
            None if trim(text).is_empty() => Ok(()),
            None => self.one(at, Value::Cell(Cell::Text(text)), chunk),
            Some(separator) => {
                let mut rest = text;
                loop {
                    let end = memchr::memmem::find(rest, separator);
                    let item = trim(&rest[..end.unwrap_or(rest.len())]);
                    if !item.is_empty() {
                        self.one(at, Value::Cell(Cell::Text(item)), chunk)?;
                    }
                    match end {
                        Some(end) => rest = &rest[end + separator.len()..],
                        None => return Ok(()),
                    }
                }
            }
        }
    }

    fn list(
        &mut self,
        at: &ImageContext<'_>,
        value: Value<'_>,
        chunk: &mut Chunk,
    ) -> Result<(), Rejected> {
        let mut result = Ok(());
        let each = |item: Value<'_>| {
            if result.is_ok() {
                result = self.one(at, item, chunk);
            }
        };
        if value.items(each) {
            return result;
        }
        at.bad("is neither a URL nor a list of URLs", &shown(value), chunk)
    }

    /// One image.
    #[inline]
    fn one(
        &mut self,
        at: &ImageContext<'_>,
        item: Value<'_>,
        chunk: &mut Chunk,
    ) -> Result<(), Rejected> {
        let Some(Cell::Text(text)) = item.cell() else {
            return at.bad("is not a URL of an image", &shown(item), chunk);
        };
        if self.written.len() == LIMIT.count as usize {
            chunk.note(LIMIT.note);
            return Ok(());
        }
        let start = chunk.bytes.len();
        chunk.bytes.extend_from_slice(OPEN);
        let from = chunk.bytes.len();
        match at.rules.any.write(text, &mut self.encoded, &mut chunk.bytes) {
            Ok(info) => info.of_other().notes().for_each(|code| chunk.note(code)),
            Err(fault) => {
                chunk.bytes.truncate(start);
                return at.bad(fault.message(), text, chunk);
            }
        }
        let address = from..chunk.bytes.len();
        if self.is_known(&chunk.bytes, &address) {
            chunk.bytes.truncate(start);
            return Ok(());
        }
        self.written.push(address);
        chunk.bytes.extend_from_slice(CLOSE);
        Ok(())
    }

    /// Whether the row already has this URL.
    #[inline]
    fn is_known(&mut self, bytes: &[u8], address: &Range<usize>) -> bool {
        let new = &bytes[address.clone()];
        if self.written.len() < MAX_COMPARED {
            return self.written.iter().any(|old| bytes[old.clone()] == *new);
        }
        if self.known.is_empty() {
            for old in &self.written {
                self.known.insert(self.hasher.hash_one(&bytes[old.clone()]));
            }
        }
        // keyed: an attacker cannot find two URLs with the same hash
        !self.known.insert(self.hasher.hash_one(new))
    }
}

/// The column of an image.
struct ImageContext<'a> {
    rules: &'a Rules,
    plan: &'a Plan,
    slot: usize,
}

impl ImageContext<'_> {
    #[cold]
    fn bad(&self, message: &str, value: &[u8], chunk: &mut Chunk) -> Result<(), Rejected> {
        let what = Invalid { code: "image.invalid", message, slot: Some(self.slot), value };
        handle(self.rules, self.plan, &what, chunk)
    }
}
