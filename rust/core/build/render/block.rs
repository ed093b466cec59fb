//! What the extensions of a `<url>` share (PROTOCOL section 2): the policy for bad entries.

use crate::build::render::plan::{From, Mapped, Plan};
use crate::build::render::row::Rules;
use crate::build::render::text::{escape_text, is_empty, plain};
use crate::flow::cell::Cell;
use crate::flow::chunk::{Chunk, MAX_REJECT_VALUE, Reject};
use crate::flow::json::Json;
use crate::flow::row::Row;
use crate::flow::value::{Value, is_json};
use crate::sitemap::date::Lastmod;

/// The end of a row that is rejected.
pub(crate) type Rejected = Box<Reject>;

/// What is wrong with an entry.
pub(crate) struct Bad<'a> {
    /// Such as `image.invalid`.
    pub code: &'static str,
    /// What is wrong and what to do.
    pub message: &'a str,
    /// The column, by slot.
    pub slot: Option<usize>,
    /// The entry.
    pub value: &'a [u8],
}

/// Leaves the entry out and counts it, or rejects the row, as the policy says.
#[cold]
pub(crate) fn bad(
    rules: &Rules,
    plan: &Plan,
    bad: &Bad<'_>,
    chunk: &mut Chunk,
) -> Result<(), Rejected> {
    if rules.omit {
        chunk.note(bad.code);
        return Ok(());
    }
    Err(Box::new(Reject {
        row: 0,
        column: bad.slot.map(|slot| plan.names[slot].clone()),
        code: bad.code,
        message: bad.message.to_owned(),
        value: bad.value[..bad.value.len().min(MAX_REJECT_VALUE)].to_vec(),
    }))
}

/// A value as a reject shows it.
pub(crate) fn shown(value: Value<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    match value.cell() {
        Some(Cell::Null) => text.extend_from_slice(b"null"),
        Some(cell) => cell.write(&mut text),
        None => text.extend_from_slice(b"(a value with parts)"),
    }
    text
}

/// What a cell holds, where that is JSON.
pub(crate) fn json_of(value: Value<'_>) -> Option<Json<'_>> {
    match value.cell() {
        Some(Cell::Text(text)) if is_json(text) => Json::parse(text),
        _ => None,
    }
}

/// What writes the blocks of an extension that is mapped tag by tag.
pub(crate) struct Blocks {
    /// `video` or `news`.
    pub name: &'static str,
    /// The tags as codes: `video.title`.
    pub tags: &'static [&'static str],
    /// a buffer a tag, for cells that had to be unescaped
    cells: Vec<Vec<u8>>,
    pub scratch: Vec<u8>,
    pub encoded: Vec<u8>,
}

/// Where the values of a block come from, and where it goes.
pub(crate) struct At<'a> {
    pub rules: &'a Rules,
    pub plan: &'a Plan,
    /// For each tag its value.
    pub values: &'a [Value<'a>],
    /// For each tag its column, by slot.
    pub slots: &'a [Option<usize>],
    /// The loc of the row, escaped.
    pub loc: &'a [u8],
}

impl Blocks {
    pub fn new(name: &'static str, tags: &'static [&'static str]) -> Blocks {
        let cells = tags.iter().map(|_| Vec::new()).collect();
        Blocks { name, tags, cells, scratch: Vec::new(), encoded: Vec::new() }
    }

    /// Calls `each` with the values of each block of a row: none, where all columns are empty.
    #[allow(clippy::too_many_arguments)] // the parts of `At`, before it can be made
    pub fn of_row(
        &mut self,
        rules: &Rules,
        plan: &Plan,
        from: &Mapped,
        row: &impl Row,
        loc: &[u8],
        chunk: &mut Chunk,
        mut each: impl FnMut(&mut Blocks, &At<'_>, &mut Chunk) -> Result<(), Rejected>,
    ) -> Result<(), Rejected> {
        let mut cells = std::mem::take(&mut self.cells);
        let result = match from {
            Mapped::Tags(tags) => {
                let mut said = false;
                let slots: Vec<Option<usize>> = (tags.iter())
                    .map(|from| if let Some(From::Slot(slot)) = from { Some(*slot) } else { None })
                    .collect();
                let values: Vec<Value<'_>> = (tags.iter().zip(&mut cells))
                    .map(|(from, cell)| match from {
                        None => Value::Cell(Cell::Null),
                        Some(From::Constant(text)) => Value::Cell(Cell::Text(text)),
                        Some(From::Slot(slot)) => {
                            let value = row.value(*slot, cell);
                            said |= !is_empty(value);
                            value
                        }
                    })
                    .collect();
                let at = At { rules, plan, values: &values, slots: &slots, loc };
                if said || slots.iter().all(Option::is_none) {
                    each(self, &at, chunk)
                } else {
                    Ok(())
                }
            }
            Mapped::Whole(slot) => {
                let value = match cells.first_mut() {
                    Some(cell) => row.value(*slot, cell),
                    None => Value::Cell(Cell::Null),
                };
                self.of_column(rules, plan, *slot, value, loc, chunk, &mut each)
            }
        };
        self.cells = cells;
        result
    }

    #[allow(clippy::too_many_arguments)] // the parts of `At`, before it can be made
    fn of_column(
        &mut self,
        rules: &Rules,
        plan: &Plan,
        slot: usize,
        value: Value<'_>,
        loc: &[u8],
        chunk: &mut Chunk,
        each: &mut impl FnMut(&mut Blocks, &At<'_>, &mut Chunk) -> Result<(), Rejected>,
    ) -> Result<(), Rejected> {
        if is_empty(value) {
            return Ok(());
        }
        let json = json_of(value);
        let value = json.as_ref().map_or(value, Value::Json);
        let slots = vec![Some(slot); self.tags.len()];
        let mut result = Ok(());
        let mut one = |item: Value<'_>| {
            if result.is_err() {
                return true;
            }
            let mut values = vec![Value::Cell(Cell::Null); self.tags.len()];
            let is_struct = item.fields(|name, value| {
                let Cell::Text(name) = name else { return };
                let named = |code: &&str| &code.as_bytes()[self.name.len() + 1..] == name;
                if let Some(place) = self.tags.iter().position(named) {
                    values[place] = value;
                }
            });
            if is_struct {
                let at = At { rules, plan, values: &values, slots: &slots, loc };
                result = each(self, &at, chunk);
            }
            is_struct
        };
        let mut wrong = None;
        let is_struct = one(value);
        let is_list = value.items(|item| {
            // a struct of nothing is what a list with gaps has
            if !is_empty(item) && !one(item) {
                wrong.get_or_insert_with(|| shown(item));
            }
        });
        result?;
        if !is_struct && !is_list {
            wrong = Some(shown(value));
        }
        let Some(value) = wrong else { return Ok(()) };
        let code = if self.name == "video" { "video.invalid" } else { "news.invalid" };
        let message = "is neither a struct nor a list of structs with these tags";
        bad(rules, plan, &Bad { code, message, slot: Some(slot), value: &value }, chunk)
    }

    /// Appends a tag with its value, by a function that appends the value or says what is wrong
    /// with it; then nothing is appended and the policy decides. False if nothing was written.
    pub fn tag(
        &mut self,
        at: &At<'_>,
        tag: usize,
        attribute: &[u8],
        chunk: &mut Chunk,
        write: impl FnOnce(&mut Blocks, Value<'_>, &mut Chunk) -> Result<(), &'static str>,
    ) -> Result<bool, Rejected> {
        let value = at.values[tag];
        if is_empty(value) {
            return Ok(false);
        }
        let start = chunk.bytes.len();
        let name = &self.tags[tag][self.name.len() + 1..];
        for part in [b"<", self.name.as_bytes(), b":", name.as_bytes(), attribute, b">"] {
            chunk.bytes.extend_from_slice(part);
        }
        match write(self, value, chunk) {
            Ok(()) => {
                for part in [b"</", self.name.as_bytes(), b":", name.as_bytes(), b">"] {
                    chunk.bytes.extend_from_slice(part);
                }
                Ok(true)
            }
            Err(message) => {
                chunk.bytes.truncate(start);
                self.wrong(at, tag, message, chunk)?;
                Ok(false)
            }
        }
    }

    /// What is wrong with the value of a tag, by the policy.
    pub fn wrong(
        &self,
        at: &At<'_>,
        tag: usize,
        message: &str,
        chunk: &mut Chunk,
    ) -> Result<(), Rejected> {
        let value = shown(at.values[tag]);
        let what = Bad { code: self.tags[tag], message, slot: at.slots[tag], value: &value };
        bad(at.rules, at.plan, &what, chunk)
    }

    /// Appends the value as text of at most so many characters.
    pub fn text(
        &mut self,
        at: &At<'_>,
        value: Value<'_>,
        most: usize,
        chunk: &mut Chunk,
    ) -> Result<(), &'static str> {
        let (chars, dropped) = plain(value, &mut self.scratch).ok_or("is no text")?;
        if dropped && !at.rules.omit {
            return Err("has characters that XML does not allow; remove them");
        }
        if dropped {
            chunk.note("text.illegal");
        }
        if chars == 0 {
            return Err("has only characters that XML does not allow");
        }
        if chars > most {
            return Err("has too many characters; shorten it");
        }
        escape_text(&self.scratch, &mut chunk.bytes);
        Ok(())
    }

    /// Appends a date or an instant.
    pub fn date(at: &At<'_>, value: Value<'_>, chunk: &mut Chunk) -> Result<Lastmod, &'static str> {
        const WRONG: &str = "is no date (2026-11-20, or with a time)";
        let cell = value.cell().ok_or(WRONG)?;
        let date = at.rules.lastmod(&cell).ok_or(WRONG)?;
        date.write(&mut chunk.bytes);
        Ok(date)
    }
}
