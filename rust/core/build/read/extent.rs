//! The size of the rows of an Arrow array.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_schema::DataType;

/// Bytes that the rows of an array refer to. Its buffers may be larger, since a producer may send
/// slices of them.
pub(crate) fn array_bytes(array: &ArrayRef) -> usize {
    use DataType::*;
    let rows = array.len();
    match array.data_type() {
        Utf8 => text::<i32>(array),
        LargeUtf8 => text::<i64>(array),
        // the low half of a view is the length
        Utf8View => {
            let views = array.as_string_view().views();
            16 * rows + views.iter().map(|&view| view as u32 as usize).sum::<usize>()
        }
        List(_) => list::<i32>(array),
        LargeList(_) => list::<i64>(array),
        Map(..) => {
            let map = array.as_map();
            let covered = covered(map.value_offsets());
            4 * rows + part(map.keys(), &covered) + part(map.values(), &covered)
        }
        Struct(_) => array.as_struct().columns().iter().map(array_bytes).sum(),
        // numbers; for rare types the size of the buffers, which is an upper bound
        _ => match array.data_type().primitive_width() {
            Some(width) => width * rows,
            None => array.get_array_memory_size(),
        },
    }
}

fn text<O: OffsetSizeTrait>(array: &ArrayRef) -> usize {
    covered(array.as_string::<O>().value_offsets()).len() + size_of::<O>() * array.len()
}

fn list<O: OffsetSizeTrait>(array: &ArrayRef) -> usize {
    let list = array.as_list::<O>();
    size_of::<O>() * array.len() + part(list.values(), &covered(list.value_offsets()))
}

/// What the rows with these offsets refer to.
fn covered<O: OffsetSizeTrait>(offsets: &[O]) -> Range<usize> {
    match offsets {
        [first, .., last] => first.as_usize()..last.as_usize(),
        _ => 0..0,
    }
}

fn part(values: &ArrayRef, covered: &Range<usize>) -> usize {
    let (start, end) = (covered.start.min(values.len()), covered.end.min(values.len()));
    array_bytes(&values.slice(start, end.saturating_sub(start)))
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
