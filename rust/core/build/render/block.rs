//! Extensions whose values are mapped field by field: their blocks, written by their descriptors.

use std::borrow::Cow;

use crate::build::render::invalid::{Invalid, Rejected, handle, json_of, shown};
use crate::build::render::plan::{Mapped, Plan, ValueSource};
use crate::build::render::rules::Rules;
use crate::build::render::text::{escape_attribute, escape_text, is_empty, plain};
use crate::config::OldPolicy;
use crate::flow::cell::Cell;
use crate::flow::chunk::Chunk;
use crate::flow::row::Row;
use crate::flow::value::Value;
use crate::sitemap::characters::trim;
use crate::sitemap::date::Lastmod;
use crate::sitemap::element::{Limit, MaxAge};
use crate::sitemap::extension;
use crate::sitemap::extension::descriptor::{Extension, ExtensionMapping};
use crate::sitemap::extension::record::{
    FieldAttribute, MAX_FIELDS, Node, NodeContent, Record, record,
};
use crate::sitemap::url;
use crate::sitemap::value::{UrlRule, ValueKind};

/// Seconds from the first to the last second of a day.
const REST_OF_DAY: i64 = 86_399;
const NULL: Value<'static> = Value::Cell(Cell::Null);

/// The outcome of the blocks of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlocksOutcome {
    /// There is none.
    Nothing,
    /// At least one was written.
    Block,
    /// The row is left out, since its block is too old. It is counted under this code.
    TooOld(&'static str),
}

/// The context of a value.
pub(crate) struct ValueContext<'a> {
    pub rules: &'a Rules,
    pub plan: &'a Plan,
    /// The loc of the row, escaped.
    pub loc: &'a [u8],
}

/// The values of a record, by the places of its fields, and the columns that they come from.
struct Values<'a> {
    record: &'static Record,
    values: &'a [Value<'a>; MAX_FIELDS],
    columns: ValueColumns<'a>,
}

/// The columns of values, by slot.
#[derive(Clone, Copy)]
enum ValueColumns<'a> {
    /// One for each field.
    Each(&'a [Option<ValueSource>]),
    /// The same for all.
    One(Option<usize>),
}

impl ValueColumns<'_> {
    fn slot(&self, field: usize) -> Option<usize> {
        match self {
            ValueColumns::One(slot) => *slot,
            ValueColumns::Each(sources) => sources.get(field)?.as_ref()?.slot(),
        }
    }
}

/// The completeness of a record.
#[derive(Default)]
struct Completeness {
    incomplete: bool,
    /// The first required field without a value.
    missing: Option<usize>,
    /// One of [`Record::one_of`] was written.
    has_one: bool,
    /// Its date is too old.
    old: Option<MaxAge>,
}

/// Writes the blocks of an extension. The buffers are reused for all rows.
pub(crate) struct BlockWriter {
    place: usize,
    extension: &'static Extension,
    record: &'static Record,
    /// a buffer for each field, for cells that have to be unescaped
    cells: Vec<Vec<u8>>,
    text: Vec<u8>,
    encoded: Vec<u8>,
}

type FaultText = Cow<'static, str>;

impl BlockWriter {
    /// For an extension, by its place in [`extension::ALL`].
    pub fn new(place: usize) -> BlockWriter {
        let record = record(place);
        BlockWriter {
            place,
            extension: extension::ALL[place],
            record,
            cells: record.fields.iter().map(|_| Vec::new()).collect(),
            text: Vec::new(),
            encoded: Vec::new(),
        }
    }

    /// Appends the blocks of a row: none if all its columns are empty.
    pub fn write(
        &mut self,
        context: &ValueContext<'_>,
        mapped: &Mapped,
        row: &impl Row,
        chunk: &mut Chunk,
    ) -> Result<BlocksOutcome, Rejected> {
        let mut cells = std::mem::take(&mut self.cells);
        let (record, extension) = (self.record, self.extension);
        let written = BlocksOutcome::Nothing;
        let mut row_blocks = BlocksOfRow { blocks: self, context, chunk, seen: false, written };
        let result = match mapped {
            Mapped::Fields(sources) => {
                let mut values = [NULL; MAX_FIELDS];
                let (mut has_column, mut has_value) = (false, false);
                for ((source, cell), value) in sources.iter().zip(&mut cells).zip(&mut values) {
                    match source {
                        None => {}
                        Some(ValueSource::Constant(text)) => *value = Value::Cell(Cell::Text(text)),
                        Some(ValueSource::Slot(slot)) => {
                            *value = row.value(*slot, cell);
                            has_column = true;
                            has_value |= !is_empty(*value);
                        }
                    }
                }
                let columns = ValueColumns::Each(sources);
                let values = Values { record, values: &values, columns };
                if has_value || !has_column { row_blocks.block(&values) } else { Ok(()) }
            }
            Mapped::Whole(slot) => {
                let value = match cells.first_mut() {
                    Some(cell) => row.value(*slot, cell),
                    None => NULL,
                };
                let code = match extension.mapping {
                    ExtensionMapping::Fields(code) => code,
                    ExtensionMapping::Own => extension.name,
                };
                let structs = Structs { record, slot: Some(*slot), code };
                row_blocks.structs(&structs, value, BlocksOfRow::block)
            }
        };
        let written = row_blocks.written;
        self.cells = cells;
        result.map(|()| written)
    }
}

/// The blocks of one row so far, and what is needed to write more.
struct BlocksOfRow<'w> {
    blocks: &'w mut BlockWriter,
    context: &'w ValueContext<'w>,
    chunk: &'w mut Chunk,
    seen: bool,
    written: BlocksOutcome,
}

impl BlocksOfRow<'_> {
    /// Appends a block of the row.
    fn block(&mut self, values: &Values<'_>) -> Result<(), Rejected> {
        let start = self.chunk.bytes.len();
        if std::mem::replace(&mut self.seen, true)
            && let Some(Limit { count: 1, note, .. }) = self.blocks.extension.per_url
        {
            let message = "a page has only one; this is another";
            let slot = values.columns.slot(0);
            let what = Invalid { code: note, message, slot, value: b"" };
            return self.handle(&what);
        }
        let mut progress = Completeness::default();
        if !self.record(values, &mut progress)? {
            return Ok(());
        }
        self.written = match (progress.old, self.context.rules.old_policy[self.blocks.place]) {
            (Some(max_age), OldPolicy::Omit) => {
                self.chunk.bytes.truncate(start);
                self.chunk.note(max_age.omitted);
                return Ok(());
            }
            (Some(max_age), OldPolicy::Drop) => BlocksOutcome::TooOld(max_age.dropped),
            _ => BlocksOutcome::Block,
        };
        Ok(())
    }

    /// Calls `each` with the values of a struct, or of each struct in a list.
    fn structs(
        &mut self,
        Structs { record, slot, code }: &Structs,
        value: Value<'_>,
        each: fn(&mut Self, &Values<'_>) -> Result<(), Rejected>,
    ) -> Result<(), Rejected> {
        if is_empty(value) {
            return Ok(());
        }
        let json = json_of(value);
        let value = json.as_ref().map_or(value, Value::Json);
        let mut result = Ok(());
        let mut one = |item: Value<'_>| {
            if result.is_err() {
                return true;
            }
            let mut values = [NULL; MAX_FIELDS];
            let is_struct = item.fields(|name, value| {
                let Cell::Text(name) = name else { return };
                let mut fields = record.mapped();
                if let Some(place) = fields.position(|field| field.name.as_bytes() == name) {
                    values[place] = value;
                }
            });
            if is_struct {
                let columns = ValueColumns::One(*slot);
                result = each(self, &Values { record, values: &values, columns });
            }
            is_struct
        };
        let mut wrong = None;
        let is_struct = one(value);
        let is_list = value.items(|item| {
            // lists with gaps contain structs without values
            if !is_empty(item) && !one(item) {
                wrong.get_or_insert_with(|| shown(item));
            }
        });
        result?;
        if !is_struct && !is_list {
            wrong = Some(shown(value));
        }
        let Some(value) = wrong else { return Ok(()) };
        let message = "is neither a struct nor a list of structs with these fields";
        self.handle(&Invalid { code, message, slot: *slot, value: &value })
    }

    /// Appends a record. Returns false, and appends nothing, if a required value is missing or
    /// invalid.
    fn record(
        &mut self,
        values: &Values<'_>,
        progress: &mut Completeness,
    ) -> Result<bool, Rejected> {
        let record = values.record;
        let start = self.chunk.bytes.len();
        self.chunk.bytes.extend_from_slice(record.open.as_bytes());
        self.own_parts(values, progress)?;
        if !progress.incomplete {
            self.nodes(values, &record.nodes, progress)?;
        }
        if !progress.incomplete {
            self.chunk.bytes.extend_from_slice(record.close.as_bytes());
            return Ok(true);
        }
        self.chunk.bytes.truncate(start);
        if let Some(missing) = progress.missing {
            self.invalid(values, missing, "is missing, but required")?;
        }
        Ok(false)
    }

    /// The attributes and the text of the element of a record.
    fn own_parts(
        &mut self,
        values: &Values<'_>,
        progress: &mut Completeness,
    ) -> Result<(), Rejected> {
        let record = values.record;
        for attribute in &record.attributes {
            let value = values.values[attribute.field];
            if is_empty(value) {
                if attribute.attribute.required {
                    progress.incomplete = true;
                    progress.missing.get_or_insert(attribute.field);
                }
            } else if let Err(wrong) = self.attribute(attribute, value) {
                self.invalid(values, attribute.field, &wrong)?;
                progress.incomplete |= attribute.attribute.required;
            }
        }
        self.chunk.bytes.push(b'>');
        let Some(field) = record.text else { return Ok(()) };
        let Some(kind) = record.fields[field].shape.kind() else { return Ok(()) };
        let value = values.values[field];
        if is_empty(value) {
            progress.incomplete = true;
            progress.missing.get_or_insert(field);
        } else if let Err(wrong) = self.text(kind, value) {
            self.invalid(values, field, &wrong)?;
            progress.incomplete = true;
        }
        Ok(())
    }

    /// The elements in a record. Ends at the first required value that is missing or invalid, unless
    /// the extension reports all.
    fn nodes(
        &mut self,
        values: &Values<'_>,
        nodes: &'static [Node],
        progress: &mut Completeness,
    ) -> Result<(), Rejected> {
        for node in nodes {
            let (field, written) = match &node.content {
                NodeContent::Group(nodes) => {
                    let start = self.chunk.bytes.len();
                    self.chunk.bytes.extend_from_slice(node.open.as_bytes());
                    self.chunk.bytes.push(b'>');
                    let inside = self.chunk.bytes.len();
                    self.nodes(values, nodes, progress)?;
                    if self.chunk.bytes.len() == inside {
                        self.chunk.bytes.truncate(start);
                    } else {
                        self.chunk.bytes.extend_from_slice(node.close.as_bytes());
                    }
                    if progress.incomplete && !self.blocks.extension.report_all {
                        return Ok(());
                    }
                    continue;
                }
                NodeContent::Records(field) => (*field, self.records(values, *field)?),
                NodeContent::Text { field, .. } => {
                    let one_of = &values.record.one_of;
                    if one_of.first() == Some(field)
                        && one_of.iter().all(|&field| is_empty(values.values[field]))
                    {
                        let names = one_of.iter().map(|&field| values.record.fields[field].name);
                        let names: Vec<_> = names.collect();
                        let wrong = format!("is missing; one of {} is required", names.join(", "));
                        progress.incomplete = true;
                        return self.invalid(values, *field, &wrong);
                    }
                    (*field, self.element(values, node, progress)?)
                }
            };
            let one_of = &values.record.one_of;
            progress.has_one |= written && one_of.contains(&field);
            let lacks_one = one_of.last() == Some(&field) && !progress.has_one;
            if lacks_one || (!written && node.element.occurs.0 > 0) {
                progress.incomplete = true;
                if !lacks_one && is_empty(values.values[field]) {
                    progress.missing.get_or_insert(field);
                }
                if !self.blocks.extension.report_all {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Appends the records of a field; false if there is none.
    fn records(&mut self, values: &Values<'_>, field: usize) -> Result<bool, Rejected> {
        let start = self.chunk.bytes.len();
        let (value, field) = (values.values[field], &values.record.fields[field]);
        let Some(record) = field.shape.record() else { return Ok(false) };
        let slot = values.columns.slot(0);
        let structs = Structs { record, slot, code: &field.code };
        self.structs(&structs, value, |row, values| {
            row.record(values, &mut Completeness::default()).map(drop)
        })?;
        Ok(self.chunk.bytes.len() > start)
    }

    /// Appends an element with text for each value; false if there is none.
    fn element(
        &mut self,
        values: &Values<'_>,
        node: &'static Node,
        progress: &mut Completeness,
    ) -> Result<bool, Rejected> {
        let NodeContent::Text { field, kind, .. } = &node.content else { return Ok(false) };
        let value = values.values[*field];
        if is_empty(value) {
            return Ok(false);
        }
        if node.element.occurs.1 != 1 {
            return self.list(values, node);
        }
        let written = self.one(values, node, value)?;
        if let Some(max_age) = node.element.max_age
            && written
            && *kind == ValueKind::Date
            && let Some(date) = value.cell().and_then(|cell| self.context.rules.lastmod(&cell))
        {
            // a date without a time may be that of the last second of its day
            let rest = if matches!(date, Lastmod::Date(_)) { REST_OF_DAY } else { 0 };
            let old = date.instant() + rest < self.context.rules.now - max_age.build_seconds;
            progress.old = old.then_some(max_age);
        }
        Ok(written)
    }

    /// Appends an element for each value of a list, up to the limit.
    fn list(&mut self, values: &Values<'_>, node: &'static Node) -> Result<bool, Rejected> {
        let NodeContent::Text { field, .. } = &node.content else { return Ok(false) };
        let value = values.values[*field];
        let json = json_of(value);
        let value = json.as_ref().map_or(value, Value::Json);
        let mut written = 0;
        let mut result = Ok(());
        let mut one = |item: Value<'_>| {
            if result.is_err() || is_empty(item) {
                return;
            }
            if let Some(limit) = node.element.limit
                && written == limit.count
            {
                self.chunk.note(limit.note);
                return;
            }
            let done = self.one(values, node, item);
            result = done.map(|done| written += u32::from(done));
        };
        if !value.items(&mut one) {
            one(value);
        }
        result.map(|()| written > 0)
    }

    /// Appends an element with a value. Returns false, and appends nothing, if the value is invalid.
    fn one(
        &mut self,
        values: &Values<'_>,
        node: &'static Node,
        value: Value<'_>,
    ) -> Result<bool, Rejected> {
        let NodeContent::Text { field, kind, attributes } = &node.content else { return Ok(false) };
        let start = self.chunk.bytes.len();
        self.chunk.bytes.extend_from_slice(node.open.as_bytes());
        let mut fault = None;
        for attribute in attributes {
            let value = values.values[attribute.field];
            let FieldAttribute { attribute: about, field } = attribute;
            if about.required {
                if self.attribute(attribute, value).is_err() {
                    fault = Some(Cow::from(format!("needs a valid {}", about.name)));
                }
            } else if !is_empty(value)
                && let Err(wrong) = self.attribute(attribute, value)
            {
                self.invalid(values, *field, &wrong)?;
            }
        }
        if fault.is_none() {
            self.chunk.bytes.push(b'>');
            fault = self.text(*kind, value).err();
        }
        let Some(wrong) = fault else {
            self.chunk.bytes.extend_from_slice(node.close.as_bytes());
            return Ok(true);
        };
        self.chunk.bytes.truncate(start);
        let code = &values.record.fields[*field].code;
        let (slot, value) = (values.columns.slot(*field), shown(value));
        let what = Invalid { code, message: &wrong, slot, value: &value };
        self.handle(&what)?;
        Ok(false)
    }

    /// Appends an attribute; nothing if its value is invalid.
    fn attribute(
        &mut self,
        FieldAttribute { attribute, .. }: &FieldAttribute,
        value: Value<'_>,
    ) -> Result<(), FaultText> {
        match attribute.kind {
            ValueKind::Url(_) => {
                let Some(Cell::Text(text)) = value.cell() else {
                    return Err("is not a URL".into());
                };
                let encoded = self.context.rules.any.encode(trim(text), &mut self.blocks.encoded);
                encoded.map_err(|fault| fault.message())?;
                if let ValueKind::Url(UrlRule::SiteOfThePage(_)) = attribute.kind
                    && !url::same_domain(&self.blocks.encoded, self.context.loc)
                {
                    return Err("is not a URL on the domain of the page".into());
                }
            }
            kind => self.canonical(kind, value)?,
        }
        for part in [b" ", attribute.name.as_bytes(), b"=\""] {
            self.chunk.bytes.extend_from_slice(part);
        }
        escape_attribute(&self.blocks.encoded, &mut self.chunk.bytes);
        self.chunk.bytes.push(b'"');
        Ok(())
    }

    /// Appends the text of an element.
    fn text(&mut self, kind: ValueKind, value: Value<'_>) -> Result<(), FaultText> {
        let ValueKind::Url(rule) = kind else {
            self.canonical(kind, value)?;
            escape_text(&self.blocks.encoded, &mut self.chunk.bytes);
            return Ok(());
        };
        let Some(Cell::Text(text)) = value.cell() else { return Err("is not a URL".into()) };
        let start = self.chunk.bytes.len();
        let info =
            (self.context.rules.any.write(text, &mut self.blocks.encoded, &mut self.chunk.bytes))
                .map_err(|fault| fault.message())?;
        info.of_other().notes().for_each(|code| self.chunk.note(code));
        if matches!(rule, UrlRule::NotThePage(_)) && self.chunk.bytes[start..] == *self.context.loc
        {
            return Err("is the page itself; write the address of what the page shows".into());
        }
        Ok(())
    }

    /// Leaves the canonical form of a value in `self.blocks.encoded`.
    fn canonical(&mut self, kind: ValueKind, value: Value<'_>) -> Result<(), FaultText> {
        self.blocks.encoded.clear();
        match kind {
            ValueKind::Date => {
                const WRONG: &str = "is not a date (2026-11-20, or with a time)";
                let date =
                    value.cell().and_then(|cell| self.context.rules.lastmod(&cell)).ok_or(WRONG)?;
                date.write(&mut self.blocks.encoded);
                return Ok(());
            }
            ValueKind::Text(_) => {
                let dropped = plain(value, &mut self.blocks.text).ok_or("is not text")?;
                if dropped && !self.context.rules.omit {
                    return Err("has characters that XML does not allow; remove them".into());
                }
                if dropped {
                    self.chunk.note("text.illegal");
                }
                if self.blocks.text.is_empty() {
                    return Err("has only characters that XML does not allow".into());
                }
            }
            _ if kind.joins_lists() => self.join(value).ok_or("is not text")?,
            _ => drop(plain(value, &mut self.blocks.text).ok_or("is not text")?),
        }
        Ok(kind.write(&self.blocks.text, &mut self.blocks.encoded)?)
    }

    /// Leaves a text, or the texts of a list with spaces between them, in `self.blocks.text`.
    fn join(&mut self, value: Value<'_>) -> Option<()> {
        let text = &mut self.blocks.text;
        text.clear();
        let mut all_text = true;
        let is_list = value.items(|item| {
            all_text &= matches!(item.cell(), Some(Cell::Text(_)));
            if let Some(cell) = item.cell() {
                cell.write(text);
                text.push(b' ');
            }
        });
        if !is_list {
            value.cell()?.write(text);
        }
        all_text.then_some(())
    }

    /// Reports an invalid value of a field.
    fn invalid(
        &mut self,
        values: &Values<'_>,
        field: usize,
        message: &str,
    ) -> Result<(), Rejected> {
        let code = &values.record.fields[field].code;
        let (slot, value) = (values.columns.slot(field), shown(values.values[field]));
        let what = Invalid { code, message, slot, value: &value };
        self.handle(&what)
    }

    fn handle(&mut self, invalid: &Invalid<'_>) -> Result<(), Rejected> {
        handle(self.context.rules, self.context.plan, invalid, self.chunk)
    }
}

/// A column of structs.
struct Structs {
    record: &'static Record,
    slot: Option<usize>,
    /// The code of a value that is neither a struct nor a list of structs.
    code: &'static str,
}
