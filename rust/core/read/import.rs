//! Arrays of the C data interface to rows; see [`super::stream`] for what is checked.

#![allow(unsafe_code)] // the import of the C data interface, and what it takes for granted

use arrow_array::ffi::{FFI_ArrowArray, from_ffi_and_data_type};
use arrow_array::make_array;
use arrow_data::{ArrayData, layout};
use arrow_schema::{DataType, Fields};

use super::arrow::Rows;
use super::stream::words;

/// Rows of an array and slots before it: nothing that exists has more, and no size overflows.
const MOST: usize = 1 << 40;

/// Imports the batches of one stream.
pub(super) struct Importer {
    fields: Fields,
    /// columns, by slot
    slots: Vec<usize>,
    /// The dictionary of each slot that was validated last. It is kept alive, so that the same
    /// addresses are the same memory.
    dictionaries: Vec<Option<ArrayData>>,
}

impl Importer {
    pub(super) fn new(fields: Fields) -> Importer {
        Importer { fields, slots: Vec::new(), dictionaries: Vec::new() }
    }

    pub(super) fn select(&mut self, slots: &[usize]) {
        self.slots = slots.to_vec();
        self.dictionaries = vec![None; slots.len()];
    }

    /// The rows of a batch, with the columns of the slots.
    pub(super) fn import(&mut self, array: FFI_ArrowArray) -> Result<Rows, String> {
        let data_type = DataType::Struct(self.fields.clone());
        check(&array, &data_type)?;
        // SAFETY: the producer vouches for what `check` cannot see, see the head of `stream`.
        let batch = unsafe { from_ffi_and_data_type(array, data_type) }.map_err(words)?;
        if batch.nulls().is_some_and(|nulls| nulls.null_count() > 0) {
            return Err("rows of it are null as a whole".into());
        }
        let (start, rows) = (batch.offset(), batch.len());
        let mut columns = Vec::with_capacity(self.slots.len());
        for (&slot, dictionary) in self.slots.iter().zip(&mut self.dictionaries) {
            let column = batch.child_data().get(slot).ok_or("a column is missing")?;
            let within = |e| format!("column {:?}: {}", self.fields[slot].name(), words(e));
            let column = column.slice(start, rows);
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
        Ok(Rows::new(&columns, rows))
    }
}

/// Whether an array can be imported as of a type: what the import itself takes for granted.
fn check(array: &FFI_ArrowArray, data_type: &DataType) -> Result<(), String> {
    // negative numbers are great ones here
    let (length, offset) = (array.len(), array.offset());
    if length > MOST || offset > MOST {
        return Err(format!("an array has {} rows from {}", length as i64, offset as i64));
    }
    let rows = length + offset;
    // -1 is: not counted
    let nulls = array.null_count() as i64;
    if nulls < -1 || nulls > length as i64 {
        return Err(format!("{nulls} of {length} values are null"));
    }
    let keys = match data_type {
        DataType::Dictionary(keys, _) => keys,
        other => other,
    };
    let layout = layout(keys);
    let own = layout.buffers.len() + usize::from(layout.can_contain_null_mask);
    let buffers = array.num_buffers();
    // views have buffers of data in any number, and one with their sizes
    let fits = if layout.variadic { (own + 1..1 << 31).contains(&buffers) } else { buffers == own };
    if !fits {
        return Err(format!("{} buffers for {data_type}", buffers as i64));
    }
    if layout.can_contain_null_mask && nulls > 0 && array.buffer(0).is_null() {
        return Err(format!("{nulls} of {length} values are null, but not told which"));
    }
    match keys {
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
        (_, Some(_)) => return Err("a dictionary where there is none".into()),
        (_, None) => {}
    }
    let children: Vec<&DataType> = match data_type {
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
    };
    if array.num_children() != children.len() {
        let (found, wanted) = (array.num_children() as i64, children.len());
        return Err(match data_type {
            DataType::Struct(_) => format!("{found} columns where the schema has {wanted}"),
            _ => format!("{found} child arrays for {data_type}"),
        });
    }
    children.iter().enumerate().try_for_each(|(at, child)| check(array.child(at), child))
}

/// The first and the last offset of text: the import takes the last one for the size of the data.
fn check_offsets<T: Copy + Into<i64>>(array: &FFI_ArrowArray, rows: usize) -> Result<(), String> {
    if rows == 0 {
        return Ok(()); // none need be there
    }
    let offsets = array.buffer(1).cast::<T>();
    if offsets.is_null() || !offsets.is_aligned() {
        return Err("the offsets of text are not where they should be".into());
    }
    // SAFETY: not null and aligned; so many rows have one offset more.
    let [first, last] = [0, rows].map(|at| unsafe { *offsets.add(at) }.into());
    if last < 0 || first < 0 {
        return Err(format!("text from {first} to {last}"));
    }
    Ok(())
}

/// The sizes of the `count` buffers of views.
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
