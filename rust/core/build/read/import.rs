//! Arrays of the C data interface to rows; [`super::stream`] lists the checks.

#![allow(unsafe_code)] // the import of the C data interface, and its preconditions

use arrow_array::ffi::{FFI_ArrowArray, from_ffi_and_data_type};
use arrow_array::make_array;
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_data::{ArrayData, layout};
use arrow_schema::{ArrowError, DataType, Fields};

use crate::build::read::arrow::ArrowRows;

/// Limit of the rows of an array and of its offset. No real array exceeds it, and no size overflows.
const MAX_ROWS: usize = 1 << 40;

/// Imports the batches of one stream.
pub(crate) struct Importer {
    fields: Fields,
    /// columns, by slot
    slots: Vec<usize>,
    /// The last validated dictionary of each slot. It is kept alive, so that equal addresses are the
    /// same memory.
    dictionaries: Vec<Option<ArrayData>>,
}

impl Importer {
    pub(crate) fn new(fields: Fields) -> Importer {
        Importer { fields, slots: Vec::new(), dictionaries: Vec::new() }
    }

    pub(crate) fn select(&mut self, slots: &[usize]) {
        self.slots = slots.to_vec();
        self.dictionaries = vec![None; slots.len()];
    }

    /// The rows of a batch, with the columns of the slots.
    pub(crate) fn import(&mut self, array: FFI_ArrowArray) -> Result<ArrowRows, String> {
        let data_type = DataType::Struct(self.fields.clone());
        check(&array, &data_type)?;
        // SAFETY: the producer guarantees what `check` cannot see, see the head of `stream`.
        let batch = unsafe { from_ffi_and_data_type(array, data_type) }.map_err(words)?;
        if batch.nulls().is_some_and(|nulls| nulls.null_count() > 0) {
            return Err("rows of it are null as a whole".into());
        }
        let (start, rows) = (batch.offset(), batch.len());
        let mut columns = Vec::with_capacity(self.slots.len());
        for (&slot, dictionary) in self.slots.iter().zip(&mut self.dictionaries) {
            let column = batch.child_data().get(slot).ok_or("a column is missing")?;
            let within = |e| format!("column {:?}: {}", self.fields[slot].name(), words(e));
            let column = settled(column.slice(start, rows));
            match (column.data_type(), column.child_data()) {
                (DataType::Dictionary(..), [values]) => {
                    column.validate_data().map_err(within)?;
                    if !dictionary.as_ref().is_some_and(|known| known.ptr_eq(values)) {
                        values.validate_full().map_err(within)?;
                        *dictionary = Some(values.clone());
                    }
                }
                _ => column.validate_full().map_err(within)?,
            }
            columns.push(make_array(column));
        }
        Ok(ArrowRows::new(&columns, rows))
    }
}

/// The same data without values that may be arbitrary and are never used: the one offset of an empty
/// array of text, the views of nulls.
fn settled(data: ArrayData) -> ArrayData {
    if data.is_empty() {
        return ArrayData::new_empty(data.data_type());
    }
    if let (DataType::Utf8View | DataType::BinaryView, Some(nulls), [views, buffers @ ..]) =
        (data.data_type(), data.nulls(), data.buffers())
    {
        let views = ScalarBuffer::<u128>::new(views.clone(), data.offset(), data.len());
        let views = views.iter().zip(nulls).map(|(&view, valid)| if valid { view } else { 0 });
        let data = ArrayData::builder(data.data_type().clone())
            .len(data.len())
            .nulls(Some(nulls.clone()))
            .add_buffer(Buffer::from_vec(views.collect::<Vec<_>>()))
            .add_buffers(buffers.to_vec());
        // SAFETY: the caller validates the result before anything reads it.
        return unsafe { data.build_unchecked() };
    }
    if data.child_data().is_empty() {
        return data;
    }
    let children = data.child_data().iter().cloned().map(settled).collect();
    // SAFETY: the caller validates the result before anything reads it.
    unsafe { data.into_builder().child_data(children).build_unchecked() }
}

/// Checks the preconditions of the import of an array as a type.
fn check(array: &FFI_ArrowArray, data_type: &DataType) -> Result<(), String> {
    // as usize a negative number is very large
    let (length, offset) = (array.len(), array.offset());
    if length > MAX_ROWS || offset > MAX_ROWS {
        return Err(format!("an array has {} rows from {}", length as i64, offset as i64));
    }
    let rows = length + offset;
    // -1 means that nulls were not counted
    let nulls = array.null_count() as i64;
    if nulls < -1 || nulls > length as i64 {
        return Err(format!("{nulls} of {length} values are null"));
    }
    let layout = layout(data_type);
    let own = layout.buffers.len() + usize::from(layout.can_contain_null_mask);
    let buffers = array.num_buffers();
    // views have buffers of data in any number, and one with their sizes
    let fits = if layout.variadic { (own + 1..1 << 31).contains(&buffers) } else { buffers == own };
    if !fits {
        return Err(format!("{} buffers for {data_type}", buffers as i64));
    }
    if layout.can_contain_null_mask && nulls > 0 && array.buffer(0).is_null() {
        return Err(format!("{nulls} of {length} values are null, without a validity bitmap"));
    }
    match data_type {
        DataType::Utf8 | DataType::Binary => check_offsets::<i32>(array, rows)?,
        DataType::LargeUtf8 | DataType::LargeBinary => check_offsets::<i64>(array, rows)?,
        DataType::Utf8View | DataType::BinaryView if buffers > own + 1 => {
            check_sizes(array, buffers - own - 1)?;
        }
        _ => {}
    }
    match (data_type, array.dictionary()) {
        (DataType::Dictionary(_, values), Some(dictionary)) => check(dictionary, values)?,
        (DataType::Dictionary(..), None) => return Err("a dictionary is missing".into()),
        (_, Some(_)) => return Err("an unexpected dictionary".into()),
        (_, None) => {}
    }
    let children = children(data_type);
    if array.num_children() != children.len() {
        let (found, wanted) = (array.num_children() as i64, children.len());
        return Err(match data_type {
            DataType::Struct(_) => format!("{found} columns where the schema has {wanted}"),
            _ => format!("{found} child arrays for {data_type}"),
        });
    }
    children.iter().enumerate().try_for_each(|(at, child)| check(array.child(at), child))
}

/// The types of the children of a type, except the values of a dictionary.
pub(crate) fn children(data_type: &DataType) -> Vec<&DataType> {
    match data_type {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => vec![field.data_type()],
        DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        DataType::Union(fields, _) => fields.iter().map(|(_, field)| field.data_type()).collect(),
        DataType::RunEndEncoded(ends, values) => vec![ends.data_type(), values.data_type()],
        _ => Vec::new(),
    }
}

/// Checks the first and the last offset of text: the import uses the last one as the size of the data.
fn check_offsets<T: Copy + Into<i64>>(array: &FFI_ArrowArray, rows: usize) -> Result<(), String> {
    if rows == 0 {
        return Ok(()); // an empty array needs no offsets
    }
    let offsets = array.buffer(1).cast::<T>();
    if offsets.is_null() || !offsets.is_aligned() {
        return Err("the offsets of text are not where they should be".into());
    }
    // SAFETY: not null and aligned; an array has one offset more than rows.
    let [first, last] = [0, rows].map(|at| unsafe { *offsets.add(at) }.into());
    if last < 0 || first < 0 {
        return Err(format!("text from {first} to {last}"));
    }
    Ok(())
}

/// Checks the sizes of the `count` buffers of views.
fn check_sizes(array: &FFI_ArrowArray, count: usize) -> Result<(), String> {
    let sizes = array.buffer(array.num_buffers() - 1).cast::<i64>();
    if sizes.is_null() || !sizes.is_aligned() {
        return Err("the sizes of the buffers of views are not where they should be".into());
    }
    for at in 0..count {
        // SAFETY: not null and aligned; each of the buffers has a size.
        let size = unsafe { *sizes.add(at) };
        if size < 0 {
            return Err(format!("a buffer of views has {size} bytes"));
        }
    }
    Ok(())
}

/// The text of an arrow error without its kind.
fn words(error: ArrowError) -> String {
    match error {
        ArrowError::CDataInterface(text)
        | ArrowError::InvalidArgumentError(text)
        | ArrowError::SchemaError(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::MapBuilder;
    use arrow_array::builder::StringBuilder;
    use arrow_array::types::Int8Type;
    use arrow_array::*;
    use arrow_schema::{Field, Schema};

    use super::*;
    use crate::flow::cell::Cell;
    use crate::flow::row::Row;

    /// A batch with many kinds of columns, `rows` long.
    fn batch(rows: usize) -> RecordBatch {
        let texts = || (0..rows).map(|n| (n % 3 > 0).then(|| format!("text number {n}")));
        let numbers = Int32Array::from_iter_values(0..rows as i32);
        let keys: DictionaryArray<Int8Type> = (0..rows).map(|_| Some("one of few")).collect();
        let list = ListArray::from_iter_primitive::<types::Int32Type, _, _>(
            (0..rows).map(|n| Some(vec![Some(n as i32); n % 3])),
        );
        let mut map = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
        for n in 0..rows {
            map.keys().append_value("de");
            map.values().append_value(format!("/{n}"));
            map.append(true).unwrap();
        }
        // their items are a slice without any, whose one offset is not 0
        let items = texts().collect::<StringArray>().slice(rows, 0);
        let item = Arc::new(Field::new("item", DataType::Utf8, true));
        let ends = arrow_buffer::OffsetBuffer::new(vec![0; rows + 1].into());
        let lists = ListArray::new(item, ends, Arc::new(items), None);
        let one = StructArray::from(vec![(
            Arc::new(Field::new("a", DataType::Int32, true)),
            Arc::new(numbers.clone()) as ArrayRef,
        )]);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(texts().collect::<StringArray>()),
            Arc::new(texts().collect::<LargeStringArray>()),
            Arc::new(texts().collect::<StringViewArray>()),
            Arc::new(keys),
            Arc::new(list),
            Arc::new(map.finish()),
            Arc::new(one),
            Arc::new(lists),
            Arc::new(NullArray::new(rows)),
            Arc::new((0..rows).map(|n| Some(n % 2 == 0)).collect::<BooleanArray>()),
            Arc::new(
                FixedSizeBinaryArray::try_from_iter((0..rows.max(1)).map(|_| b"ab"))
                    .unwrap()
                    .slice(0, rows),
            ),
        ];
        let fields: Vec<Field> = columns
            .iter()
            .enumerate()
            .map(|(n, column)| Field::new(format!("c{n}"), column.data_type().clone(), true))
            .collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
    }

    fn imported(batch: RecordBatch) -> Result<ArrowRows, String> {
        let mut importer = Importer::new(batch.schema().fields().clone());
        importer.select(&(0..batch.num_columns()).collect::<Vec<_>>());
        importer.import(FFI_ArrowArray::new(&StructArray::from(batch).into()))
    }

    #[test]
    fn valid_batches_are_imported_whole_and_in_slices() {
        for (start, length) in [(0, 50), (0, 0), (7, 20), (49, 1), (3, 0)] {
            let rows = imported(batch(50).slice(start, length)).unwrap();
            assert_eq!((rows.start, rows.end), (0, length));
            for at in 0..length {
                let (text, row) = (format!("text number {}", start + at), rows.row(at));
                for slot in 0..3 {
                    let mut scratch = Vec::new();
                    let cell = row.cell(slot, &mut scratch);
                    let wanted =
                        if (start + at) % 3 > 0 { Cell::Text(text.as_bytes()) } else { Cell::Null };
                    assert_eq!(cell, wanted);
                }
                assert_eq!(row.cell(3, &mut Vec::new()), Cell::Text(b"one of few"));
            }
        }
    }

    #[test]
    fn a_batch_with_null_rows_is_refused() {
        let batch = batch(3);
        let array = StructArray::from(batch.clone());
        let (fields, columns, _) = array.into_parts();
        let array = StructArray::new(fields, columns, Some(vec![true, false, true].into()));
        let mut importer = Importer::new(batch.schema().fields().clone());
        assert!(importer.import(FFI_ArrowArray::new(&array.into())).is_err());
    }
}
