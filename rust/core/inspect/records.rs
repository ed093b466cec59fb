//! Columns of extensions, by the records that are derived from their descriptors.

use std::iter::Peekable;
use std::slice;
use std::sync::Arc;

use arrow_array::builder::{ArrayBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{Array, ArrayRef, ListArray, StructArray, new_null_array};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field as Column, Fields};

use crate::inspect::document::entry::{Entry, Part, PartField};
use crate::sitemap::extension;
use crate::sitemap::extension::record::{Field, FieldOrigin, MAX_FIELDS, Record, Shape, record};
use crate::sitemap::value::ValueKind;

type EntryParts<'a> = Peekable<slice::Iter<'a, Part>>;

/// A nullable column of text.
pub(crate) fn utf8(name: &str) -> Column {
    Column::new(name, DataType::Utf8, true)
}

/// A nullable column of lists.
pub(crate) fn list(name: &str, item: DataType) -> Column {
    Column::new(name, DataType::List(Arc::new(Column::new("item", item, true))), true)
}

/// The columns of a record.
pub(crate) fn fields(record: &Record) -> Fields {
    let column = |(_, field): (usize, &Field)| {
        let name = field.column.unwrap_or(field.name);
        match &field.shape {
            Shape::Value(ValueKind::Integer(..)) => Column::new(name, DataType::Int64, true),
            Shape::Value(ValueKind::Decimal(_)) => Column::new(name, DataType::Float64, true),
            Shape::Value(_) => utf8(name),
            Shape::List(_) => list(name, DataType::Utf8),
            Shape::Records(record) => list(name, DataType::Struct(fields(record))),
        }
    };
    record.columns().map(column).collect()
}

/// A column of lists under construction: where the items of each row end, and which rows have some.
#[derive(Default)]
pub(crate) struct Lists {
    ends: Vec<i32>,
    valid: Vec<bool>,
}

impl Lists {
    /// Ends a row; `items` are the items of all rows so far.
    pub fn row(&mut self, items: usize) {
        let before = self.ends.last().copied().unwrap_or(0);
        self.valid.push(items as i32 > before);
        self.ends.push(items as i32);
    }

    /// The column with these items.
    pub fn finish(self, items: ArrayRef) -> Result<ArrayRef, ArrowError> {
        let rows = self.ends.len();
        let item = Arc::new(Column::new("item", items.data_type().clone(), true));
        if items.is_empty() {
            return Ok(new_null_array(&DataType::List(item), rows));
        }
        let offsets = std::iter::once(0).chain(self.ends).collect::<Vec<i32>>();
        let mut nulls = NullBufferBuilder::new(rows);
        self.valid.iter().for_each(|&valid| nulls.append(valid));
        let offsets = OffsetBuffer::new(offsets.into());
        Ok(Arc::new(ListArray::try_new(item, offsets, items, nulls.finish())?))
    }
}

/// The column of an extension under construction: structs where a URL has one block, else lists.
pub(crate) struct BlockColumn {
    table: RecordBuilder,
    /// `None` if a URL has at most one block.
    lists: Option<Lists>,
    /// The rows that have the one block.
    valid: Vec<bool>,
    row_has_block: bool,
}

impl BlockColumn {
    /// For an extension by its place.
    pub fn new(place: usize) -> BlockColumn {
        let one = extension::ALL[place].root.occurs.1 == 1;
        BlockColumn {
            table: RecordBuilder::new(record(place)),
            lists: (!one).then(Lists::default),
            valid: Vec::new(),
            row_has_block: false,
        }
    }

    /// Adds a block, whose parts follow. The first one counts where a URL has one.
    pub fn push<'a>(&mut self, entry: &Entry<'a>, parts: &mut EntryParts<'a>) {
        if self.lists.is_none() && self.row_has_block {
            return;
        }
        self.row_has_block = true;
        self.table.push(entry, parts);
    }

    /// Ends a row.
    pub fn end_row(&mut self) {
        match &mut self.lists {
            Some(lists) => lists.row(self.table.rows),
            None => {
                self.valid.push(self.row_has_block);
                if !self.row_has_block {
                    self.table.append(&[None; MAX_FIELDS]);
                }
            }
        }
        self.row_has_block = false;
    }

    /// The column.
    pub fn finish(self) -> Result<ArrayRef, ArrowError> {
        match self.lists {
            Some(lists) => lists.finish(Arc::new(self.table.finish(None)?)),
            None if self.valid.contains(&true) => {
                Ok(Arc::new(self.table.finish(Some(self.valid))?))
            }
            None => {
                let fields = DataType::Struct(fields(self.table.record));
                Ok(new_null_array(&fields, self.valid.len()))
            }
        }
    }
}

/// Records under construction.
struct RecordBuilder {
    record: &'static Record,
    /// the places of the fields, and their values
    columns: Vec<(usize, FieldBuilder)>,
    rows: usize,
}

/// The values of a field.
enum FieldBuilder {
    Text(StringBuilder),
    Integer(Int64Builder),
    Decimal(Float64Builder),
    Texts(Lists, StringBuilder),
    Records(Lists, RecordBuilder),
}

impl RecordBuilder {
    fn new(record: &'static Record) -> RecordBuilder {
        let values = |(place, field): (usize, &'static Field)| {
            let values = match &field.shape {
                Shape::Value(ValueKind::Integer(..)) => FieldBuilder::Integer(Int64Builder::new()),
                Shape::Value(ValueKind::Decimal(_)) => FieldBuilder::Decimal(Float64Builder::new()),
                Shape::Value(_) => FieldBuilder::Text(StringBuilder::new()),
                Shape::List(_) => FieldBuilder::Texts(Lists::default(), StringBuilder::new()),
                Shape::Records(record) => {
                    FieldBuilder::Records(Lists::default(), RecordBuilder::new(record))
                }
            };
            (place, values)
        };
        RecordBuilder { record, columns: record.columns().map(values).collect(), rows: 0 }
    }

    /// Adds a record: the parts that follow and belong to it.
    fn push<'a>(&mut self, entry: &Entry<'a>, parts: &mut EntryParts<'a>) {
        let mut values: [Option<&[u8]>; MAX_FIELDS] = [None; MAX_FIELDS];
        while let Some(part) = parts.peek()
            && let Some(place) = place(self.record, part.field)
        {
            let written = entry.text(part);
            parts.next();
            let column = self.columns.iter_mut().find(|(other, _)| *other == place);
            match column.map(|(_, values)| values) {
                Some(FieldBuilder::Texts(_, texts)) => text(texts, Some(written)),
                Some(FieldBuilder::Records(_, table)) => table.push(entry, parts),
                _ => {
                    if let Some(slot) = values.get_mut(place) {
                        *slot = Some(written);
                    }
                }
            }
        }
        self.append(&values);
    }

    /// Ends a record with these values, by the places of their fields.
    fn append(&mut self, values: &[Option<&[u8]>; MAX_FIELDS]) {
        self.rows += 1;
        for (place, column) in &mut self.columns {
            let written = values.get(*place).copied().flatten();
            match column {
                FieldBuilder::Text(builder) => text(builder, written),
                FieldBuilder::Integer(builder) => builder.append_option(written.and_then(parsed)),
                FieldBuilder::Decimal(builder) => {
                    let number = written.and_then(parsed).filter(|n: &f64| n.is_finite());
                    builder.append_option(number);
                }
                FieldBuilder::Texts(lists, texts) => lists.row(texts.len()),
                FieldBuilder::Records(lists, table) => lists.row(table.rows),
            }
        }
    }

    fn finish(self, valid: Option<Vec<bool>>) -> Result<StructArray, ArrowError> {
        let fields = fields(self.record);
        let columns = self.columns.into_iter().map(|(_, values)| {
            Ok(match values {
                FieldBuilder::Text(mut builder) => Arc::new(builder.finish()) as ArrayRef,
                FieldBuilder::Integer(mut builder) => Arc::new(builder.finish()),
                FieldBuilder::Decimal(mut builder) => Arc::new(builder.finish()),
                FieldBuilder::Texts(lists, mut texts) => lists.finish(Arc::new(texts.finish()))?,
                FieldBuilder::Records(lists, table) => {
                    lists.finish(Arc::new(table.finish(None)?))?
                }
            })
        });
        let columns = columns.collect::<Result<Vec<ArrayRef>, ArrowError>>()?;
        StructArray::try_new(fields, columns, valid.map(Into::into))
    }
}

/// The field of a record that a part belongs to.
fn place(record: &Record, part: PartField) -> Option<usize> {
    record.fields.iter().position(|field| match (part, field.source, &field.shape) {
        (PartField::Record(a), FieldOrigin::Element(b), Shape::Records(_)) => std::ptr::eq(a, b),
        (PartField::Text(a), FieldOrigin::Element(b), Shape::Value(_) | Shape::List(_)) => {
            std::ptr::eq(a, b)
        }
        (PartField::Attribute(a), FieldOrigin::Attribute(b), _) => std::ptr::eq(a, b),
        _ => false,
    })
}

/// Appends text; invalid UTF-8 becomes U+FFFD.
pub(crate) fn text(builder: &mut StringBuilder, bytes: Option<&[u8]>) {
    match bytes.map(simdutf8::basic::from_utf8) {
        None => builder.append_null(),
        Some(Ok(text)) => builder.append_value(text),
        Some(Err(_)) => builder.append_value(String::from_utf8_lossy(bytes.unwrap_or_default())),
    }
}

fn parsed<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
