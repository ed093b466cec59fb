//! Reads every cell of a source.

use std::hint::black_box;

use urlset_core::build::read::arrow::ArrowBatch;
use urlset_core::flow::cell::Cell;
use urlset_core::flow::row::Row;
use urlset_core::flow::source::Source;
use urlset_core::flow::value::Value;

/// Limit of the rows that are read: a few bytes may encode a billion nulls.
const ENOUGH: usize = 1 << 16;

pub fn drain(mut source: impl Source<Batch = ArrowBatch>) {
    let Ok(columns) = source.open() else { return };
    let slots: Vec<usize> = (0..columns.names.len()).collect();
    source.select(&slots);
    let mut scratch = Vec::new();
    let (mut rows, mut batches) = (0, 0);
    while let Ok(Some(batch)) = source.next(Vec::new()) {
        batches += 1;
        if let ArrowBatch::Rows(batch) = batch {
            for at in batch.start..batch.end {
                for &slot in &slots {
                    cell(batch.row(at).cell(slot, &mut scratch));
                    value(batch.row(at).value(slot, &mut scratch), 0);
                }
            }
            rows += batch.end - batch.start;
        }
        if rows > ENOUGH || batches > ENOUGH {
            return;
        }
    }
}

fn cell(cell: Cell<'_>) {
    if let Cell::Text(text) = cell {
        assert!(std::str::from_utf8(text).is_ok(), "text is UTF-8");
    }
    black_box(cell);
}

fn value(found: Value<'_>, depth: usize) {
    match found {
        Value::Cell(found) => cell(found),
        Value::Nested(..) if depth < 5 => {
            found.items(|item| value(item, depth + 1));
            found.fields(|key, item| {
                cell(key);
                value(item, depth + 1);
            });
        }
        _ => {}
    }
}
