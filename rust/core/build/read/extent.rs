//! The size of the rows of an Arrow array.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

/// Bytes that the rows of an array refer to. Its buffers may be larger, since a producer may send
/// slices of them.
pub(crate) fn array_bytes(array: &ArrayRef) -> usize {
    use DataType::*;
    let rows = array.len();
    let ends = |first: usize, last: usize| last.saturating_sub(first);
    let part = |values: &ArrayRef, first: usize, last: usize| {
        let first = first.min(values.len());
        array_bytes(&values.slice(first, ends(first, last.min(values.len()))))
    };
    let small = |offsets: &[i32]| match offsets {
        [first, .., last] => (*first as usize, *last as usize),
        _ => (0, 0),
    };
    let large = |offsets: &[i64]| match offsets {
        [first, .., last] => (*first as usize, *last as usize),
        _ => (0, 0),
    };
    match array.data_type() {
        Utf8 => {
            let (first, last) = small(array.as_string::<i32>().value_offsets());
            ends(first, last) + 4 * rows
        }
        LargeUtf8 => {
            let (first, last) = large(array.as_string::<i64>().value_offsets());
            ends(first, last) + 8 * rows
        }
        // the low half of a view is the length
        Utf8View => {
            let views = array.as_string_view().views();
            16 * rows + views.iter().map(|&view| view as u32 as usize).sum::<usize>()
        }
        List(_) => {
            let list = array.as_list::<i32>();
            let (first, last) = small(list.value_offsets());
            4 * rows + part(list.values(), first, last)
        }
        LargeList(_) => {
            let list = array.as_list::<i64>();
            let (first, last) = large(list.value_offsets());
            8 * rows + part(list.values(), first, last)
        }
        Map(..) => {
            let map = array.as_map();
            let (first, last) = small(map.value_offsets());
            let columns = [map.keys(), map.values()];
            4 * rows + columns.map(|values| part(values, first, last)).iter().sum::<usize>()
        }
        Struct(_) => array.as_struct().columns().iter().map(array_bytes).sum(),
        // numbers; for rare types the size of the buffers, which is an upper bound
        _ => match array.data_type().primitive_width() {
            Some(width) => width * rows,
            None => array.get_array_memory_size(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::builder::{ListBuilder, MapBuilder, StringBuilder, StringViewBuilder};
    use arrow_array::{Int64Array, StringArray};
    use std::sync::Arc;

    #[test]
    fn a_slice_counts_for_its_rows() {
        let text = StringArray::from_iter_values((0..100).map(|_| "x".repeat(50)));
        let mut views = StringViewBuilder::new();
        let mut lists = ListBuilder::new(StringBuilder::new());
        let mut maps = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
        for _ in 0..100 {
            views.append_value("y".repeat(50));
            for key in ["a", "b"] {
                lists.values().append_value("z".repeat(50));
                maps.keys().append_value(key);
                maps.values().append_value("v".repeat(50));
            }
            lists.append(true);
            maps.append(true).unwrap();
        }
        let numbers = Int64Array::from_iter_values(0..100);
        let columns: [(ArrayRef, usize); 5] = [
            (Arc::new(text), 54),
            (Arc::new(views.finish()), 66),
            (Arc::new(lists.finish()), 4 + 2 * 54),
            (Arc::new(maps.finish()), 4 + 2 * (54 + 5)),
            (Arc::new(numbers), 8),
        ];
        for (column, of_a_row) in columns {
            assert_eq!(array_bytes(&column), 100 * of_a_row);
            assert_eq!(array_bytes(&column.slice(90, 7)), 7 * of_a_row);
            assert_eq!(array_bytes(&column.slice(90, 0)), 0);
        }
    }
}
