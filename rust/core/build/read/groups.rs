//! Row groups of a Parquet file that a filter excludes, by the statistics in its directory.

use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;

use crate::config::Filter;

/// Whether no row of the group can satisfy the condition. Returns false if the statistics are missing,
/// or if they might compare differently from the values themselves.
pub fn left_out(filter: &Filter, file: &ArrowReaderMetadata, group: &RowGroupMetaData) -> bool {
    if filter.negate || filter.value.is_empty() {
        return false;
    }
    let mut named = file.schema().fields().iter().enumerate();
    let Some((root, field)) = named.find(|(_, field)| *field.name() == filter.column) else {
        return false;
    };
    let schema = file.parquet_schema();
    let Some(leaf) =
        (0..schema.num_columns()).find(|&leaf| schema.get_column_root_idx(leaf) == root)
    else {
        return false;
    };
    let Some(statistics) = group.columns().get(leaf).and_then(|column| column.statistics()) else {
        return false;
    };
    let data_type = match field.data_type() {
        DataType::Dictionary(_, values) => values,
        other => other,
    };
    outside(&filter.value, data_type, statistics)
}

fn outside(value: &str, data_type: &DataType, statistics: &Statistics) -> bool {
    use DataType::*;
    // an old writer compared bytes as signed numbers
    if statistics.is_min_max_deprecated() {
        return false;
    }
    match (data_type, statistics) {
        (Utf8 | LargeUtf8 | Utf8View, Statistics::ByteArray(found)) => {
            // a truncated bound is still a bound
            beyond(
                value.as_bytes(),
                found.min_opt().map(|v| v.data()),
                found.max_opt().map(|v| v.data()),
            )
        }
        (Boolean, Statistics::Boolean(found)) => {
            let value = match value.to_ascii_lowercase().as_str() {
                "true" | "1" => true,
                "false" | "0" => false,
                _ => return false,
            };
            beyond(&value, found.min_opt(), found.max_opt())
        }
        (Int8 | Int16 | Int32, Statistics::Int32(found)) => integer(value).is_some_and(|v| {
            beyond(
                &v,
                found.min_opt().map(|&v| v.into()).as_ref(),
                found.max_opt().map(|&v| v.into()).as_ref(),
            )
        }),
        (Int64, Statistics::Int64(found)) => {
            integer(value).is_some_and(|v| beyond(&v, found.min_opt(), found.max_opt()))
        }
        _ => false,
    }
}

/// Parsed as the values are compared, see [`crate::flow::cell::Cell::is`].
fn integer(value: &str) -> Option<i64> {
    value.trim().parse().ok()
}

fn beyond<T: PartialOrd + ?Sized>(value: &T, min: Option<&T>, max: Option<&T>) -> bool {
    min.is_some_and(|min| value < min) || max.is_some_and(|max| value > max)
}
