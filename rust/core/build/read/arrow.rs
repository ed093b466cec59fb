//! Rows of Arrow record batches from any source. Their arrays are valid: the sources check them.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, BinaryViewArray, Float64Array, StringArray};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, Schema, TimeUnit};

use crate::build::read::extent::array_bytes;
use crate::flow::cell::{Cell, ColumnKind, Columns};
use crate::flow::row::Row;
use crate::flow::source::{Batch, BatchEnd, RowConsumer};
use crate::flow::value::{Nested, Value};

/// The columns of a schema.
pub(crate) fn columns(schema: &Schema) -> Columns {
    let fields = schema.fields();
    Columns {
        names: fields.iter().map(|field| field.name().clone()).collect(),
        kinds: fields.iter().map(|field| kind(field.data_type())).collect(),
    }
}

/// The kind of the values of a type.
pub(crate) fn kind(data_type: &DataType) -> ColumnKind {
    use DataType::*;
    match data_type {
        Utf8 | LargeUtf8 | Utf8View => ColumnKind::Text,
        Dictionary(_, values) => kind(values),
        Null | Boolean | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64
        | Float16 | Float32 | Float64 | Timestamp(..) | Date32 | Date64 | Decimal32(..)
        | Decimal64(..) | Decimal128(..) | Decimal256(..) => ColumnKind::Scalar,
        List(_) | LargeList(_) | ListView(_) | LargeListView(_) | FixedSizeList(..) | Struct(_)
        | Map(..) => ColumnKind::Nested,
        _ => ColumnKind::Other,
    }
}

/// A batch of a source of record batches.
pub enum ArrowBatch {
    /// Some rows.
    Rows(ArrowRows),
    /// The number of rows that the filters leave out and that were not read.
    Filtered(u64),
}

impl Batch for ArrowBatch {
    #[inline]
    fn rows(&mut self, _scratch: &mut Vec<u64>, consumer: &mut impl RowConsumer) -> BatchEnd {
        // the arrays are freed here, not when the batch comes back in order
        match std::mem::replace(self, ArrowBatch::Filtered(0)) {
            ArrowBatch::Filtered(rows) => consumer.filtered(rows),
            ArrowBatch::Rows(rows) => {
                for (number, row) in (rows.start..rows.end).enumerate() {
                    if !consumer.row(&rows.row(row), number as u32) {
                        break;
                    }
                }
            }
        }
        BatchEnd::Complete
    }
}

/// Some rows of a record batch.
pub struct ArrowRows {
    columns: Arc<Vec<ColumnReader>>,
    /// bytes that a row has, on average
    row_bytes: usize,
    /// First row.
    pub start: usize,
    /// After the last row.
    pub end: usize,
}

impl ArrowRows {
    /// All rows of a batch whose columns are in the order of the slots.
    pub(crate) fn new<'a>(
        columns: impl IntoIterator<Item = &'a ArrayRef>,
        rows: usize,
    ) -> ArrowRows {
        let mut bytes = 0;
        let measured = columns.into_iter().inspect(|column| bytes += array_bytes(column));
        let columns = Arc::new(measured.map(ColumnReader::new).collect());
        ArrowRows { columns, row_bytes: bytes.checked_div(rows).unwrap_or(0), start: 0, end: rows }
    }

    /// Bytes of the rows, approximately.
    pub(crate) fn bytes(&self) -> usize {
        (self.end - self.start) * self.row_bytes
    }

    /// Whether no rows are left.
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Takes up to `count` rows from the front.
    pub(crate) fn take(&mut self, count: usize) -> ArrowRows {
        let (start, end) = (self.start, self.end.min(self.start.saturating_add(count)));
        self.start = end;
        ArrowRows { columns: self.columns.clone(), row_bytes: self.row_bytes, start, end }
    }

    /// One of the rows, `start <= row < end`.
    pub fn row(&self, row: usize) -> ArrowRow<'_> {
        ArrowRow { columns: &self.columns, row }
    }
}

/// A row of a record batch.
pub struct ArrowRow<'b> {
    columns: &'b [ColumnReader],
    row: usize,
}

impl Row for ArrowRow<'_> {
    #[inline]
    fn cell<'a>(&'a self, slot: usize, _scratch: &'a mut Vec<u8>) -> Cell<'a> {
        self.columns[slot].cell(self.row)
    }

    #[inline]
    fn value<'a>(&'a self, slot: usize, _scratch: &'a mut Vec<u8>) -> Value<'a> {
        self.columns[slot].value(self.row)
    }
}

impl Nested for NestedColumn {
    fn items<'a>(&'a self, row: usize, each: &mut dyn FnMut(Value<'a>)) -> bool {
        let NestedColumn { array, parts, .. } = self;
        let range = match array.data_type() {
            DataType::List(_) => offsets(array.as_list::<i32>().value_offsets(), row),
            DataType::LargeList(_) => offsets(array.as_list::<i64>().value_offsets(), row),
            DataType::ListView(_) => {
                let array = array.as_list_view::<i32>();
                let start = array.value_offsets()[row] as usize;
                start..start + array.value_sizes()[row] as usize
            }
            DataType::LargeListView(_) => {
                let array = array.as_list_view::<i64>();
                let start = array.value_offsets()[row] as usize;
                start..start + array.value_sizes()[row] as usize
            }
            DataType::FixedSizeList(_, size) => {
                let start = array.as_fixed_size_list().value_offset_at(row);
                start..start + usize::try_from(*size).unwrap_or(0)
            }
            _ => return false,
        };
        if let [items] = &parts[..] {
            range.for_each(|item| each(items.value(item)));
        }
        true
    }

    fn fields<'a>(&'a self, row: usize, each: &mut dyn FnMut(Cell<'a>, Value<'a>)) -> bool {
        let NestedColumn { array, names, parts } = self;
        match array.data_type() {
            DataType::Struct(_) => {
                for (name, part) in names.iter().zip(parts) {
                    each(Cell::Text(name.as_bytes()), part.value(row));
                }
                true
            }
            DataType::Map(..) => {
                if let [keys, values] = &parts[..] {
                    for at in offsets(array.as_map().value_offsets(), row) {
                        each(keys.cell(at), values.value(at));
                    }
                }
                true
            }
            _ => false,
        }
    }
}

fn offsets<T: TryInto<usize> + Copy>(offsets: &[T], row: usize) -> Range<usize> {
    let at = |i: usize| offsets[i].try_into().unwrap_or(0);
    at(row)..at(row + 1)
}

/// A column of lists, structs or maps.
struct NestedColumn {
    array: ArrayRef,
    /// the fields of a struct
    names: Vec<String>,
    /// the items of a list, the fields of a struct, the keys and the values of a map
    parts: Vec<ColumnReader>,
}

impl NestedColumn {
    fn new(array: &ArrayRef) -> Option<NestedColumn> {
        use DataType::*;
        let mut names = Vec::new();
        let parts = match array.data_type() {
            List(_) => vec![ColumnReader::new(array.as_list::<i32>().values())],
            LargeList(_) => vec![ColumnReader::new(array.as_list::<i64>().values())],
            ListView(_) => vec![ColumnReader::new(array.as_list_view::<i32>().values())],
            LargeListView(_) => vec![ColumnReader::new(array.as_list_view::<i64>().values())],
            FixedSizeList(..) => vec![ColumnReader::new(array.as_fixed_size_list().values())],
            Struct(fields) => {
                names = fields.iter().map(|field| field.name().clone()).collect();
                array.as_struct().columns().iter().map(ColumnReader::new).collect()
            }
            Map(..) => {
                let map = array.as_map();
                vec![ColumnReader::new(map.keys()), ColumnReader::new(map.values())]
            }
            _ => return None,
        };
        Some(NestedColumn { array: array.clone(), names, parts })
    }
}

/// Reads the values of one column.
enum ColumnReader {
    Null,
    /// The most common types: checked once, not at each cell.
    Text(StringArray),
    Float(Float64Array),
    Time(Times),
    /// text as bytes, not yet known to be UTF-8
    View(BinaryViewArray),
    Plain(ArrayRef),
    Nested(Box<NestedColumn>),
    Dictionary {
        keys: Vec<usize>,
        array: ArrayRef,
        values: Box<ColumnReader>,
    },
}

impl ColumnReader {
    fn new(array: &ArrayRef) -> ColumnReader {
        match array.data_type() {
            DataType::Null => ColumnReader::Null,
            DataType::Utf8 => ColumnReader::Text(array.as_string().clone()),
            DataType::Float64 => ColumnReader::Float(array.as_primitive().clone()),
            DataType::Timestamp(unit, zone) => {
                ColumnReader::Time(Times::new(array, *unit, zone.is_some()))
            }
            DataType::Utf8View => {
                ColumnReader::View(array.as_string_view().clone().to_binary_view())
            }
            DataType::Dictionary(..) => match array.as_any_dictionary_opt() {
                Some(dictionary) if !dictionary.values().is_empty() => ColumnReader::Dictionary {
                    keys: dictionary.normalized_keys(),
                    values: Box::new(ColumnReader::new(dictionary.values())),
                    array: array.clone(),
                },
                _ => ColumnReader::Null,
            },
            _ => match NestedColumn::new(array) {
                Some(nested) => ColumnReader::Nested(Box::new(nested)),
                None => ColumnReader::Plain(array.clone()),
            },
        }
    }

    #[inline]
    fn value(&self, row: usize) -> Value<'_> {
        match self {
            ColumnReader::Nested(nested) if nested.array.is_valid(row) => {
                Value::Nested(&**nested, row)
            }
            ColumnReader::Dictionary { keys, array, values } if array.is_valid(row) => {
                values.value(keys[row])
            }
            _ => Value::Cell(self.cell(row)),
        }
    }

    fn cell(&self, row: usize) -> Cell<'_> {
        match self {
            ColumnReader::Null | ColumnReader::Nested(_) => Cell::Null,
            ColumnReader::Text(array) if array.is_null(row) => Cell::Null,
            ColumnReader::Text(array) => {
                let offsets = array.value_offsets();
                text(&array.value_data()[offsets[row] as usize..offsets[row + 1] as usize])
            }
            ColumnReader::Float(array) if array.is_null(row) => Cell::Null,
            ColumnReader::Float(array) => Cell::Float(array.value(row)),
            ColumnReader::Time(times) => times.cell(row),
            ColumnReader::View(array) => {
                if array.is_null(row) {
                    return Cell::Null;
                }
                text(array.value(row))
            }
            ColumnReader::Dictionary { keys, array, values } => {
                if array.is_null(row) {
                    Cell::Null
                } else {
                    values.cell(keys[row])
                }
            }
            ColumnReader::Plain(array) if array.is_null(row) => Cell::Null,
            ColumnReader::Plain(array) => plain(array, row),
        }
    }
}

/// Timestamps of any unit.
struct Times {
    values: ScalarBuffer<i64>,
    nulls: Option<NullBuffer>,
    unit: TimeUnit,
    zone: bool,
}

impl Times {
    fn new(array: &ArrayRef, unit: TimeUnit, zone: bool) -> Times {
        let values = match unit {
            TimeUnit::Second => array.as_primitive::<TimestampSecondType>().values(),
            TimeUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().values(),
            TimeUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().values(),
            TimeUnit::Nanosecond => array.as_primitive::<TimestampNanosecondType>().values(),
        };
        Times { values: values.clone(), nulls: array.nulls().cloned(), unit, zone }
    }

    #[inline]
    fn cell(&self, row: usize) -> Cell<'_> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return Cell::Null;
        }
        let value = self.values[row];
        let seconds = match self.unit {
            TimeUnit::Second => value,
            TimeUnit::Millisecond => value.div_euclid(1_000),
            TimeUnit::Microsecond => value.div_euclid(1_000_000),
            TimeUnit::Nanosecond => value.div_euclid(1_000_000_000),
        };
        if self.zone { Cell::Instant(seconds) } else { Cell::Local(seconds) }
    }
}

#[inline]
fn text(value: &[u8]) -> Cell<'_> {
    if value.is_empty() { Cell::Null } else { Cell::Text(value) }
}

#[inline]
fn plain(array: &ArrayRef, row: usize) -> Cell<'_> {
    use DataType::*;
    match array.data_type() {
        LargeUtf8 => {
            let array = array.as_string::<i64>();
            let offsets = array.value_offsets();
            text(&array.value_data()[offsets[row] as usize..offsets[row + 1] as usize])
        }
        Boolean => Cell::Bool(array.as_boolean().value(row)),
        Int8 => Cell::Int(array.as_primitive::<Int8Type>().value(row).into()),
        Int16 => Cell::Int(array.as_primitive::<Int16Type>().value(row).into()),
        Int32 => Cell::Int(array.as_primitive::<Int32Type>().value(row).into()),
        Int64 => Cell::Int(array.as_primitive::<Int64Type>().value(row)),
        UInt8 => Cell::UInt(array.as_primitive::<UInt8Type>().value(row).into()),
        UInt16 => Cell::UInt(array.as_primitive::<UInt16Type>().value(row).into()),
        UInt32 => Cell::UInt(array.as_primitive::<UInt32Type>().value(row).into()),
        UInt64 => Cell::UInt(array.as_primitive::<UInt64Type>().value(row)),
        Float16 => Cell::Float32(array.as_primitive::<Float16Type>().value(row).to_f32()),
        Float32 => Cell::Float32(array.as_primitive::<Float32Type>().value(row)),
        Decimal32(_, scale) => {
            Cell::Decimal(array.as_primitive::<Decimal32Type>().value(row).into(), *scale)
        }
        Decimal64(_, scale) => {
            Cell::Decimal(array.as_primitive::<Decimal64Type>().value(row).into(), *scale)
        }
        Decimal128(_, scale) => {
            Cell::Decimal(array.as_primitive::<Decimal128Type>().value(row), *scale)
        }
        Decimal256(_, scale) => match array.as_primitive::<Decimal256Type>().value(row).to_i128() {
            Some(value) => Cell::Decimal(value, *scale),
            None => Cell::Float(f64::INFINITY), // beyond what any field of a sitemap takes
        },
        Date32 => Cell::Date(array.as_primitive::<Date32Type>().value(row)),
        Date64 => {
            let days = array.as_primitive::<Date64Type>().value(row).div_euclid(86_400_000);
            Cell::Date(i32::try_from(days).unwrap_or(i32::MAX))
        }
        _ => Cell::Null,
    }
}
