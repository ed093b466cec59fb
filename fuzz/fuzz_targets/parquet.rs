//! Any bytes as a Parquet file: rows or an error (also if the library panics), no endless loop,
//! and the same rows on several threads as on one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use urlset_core::build::read::arrow::ArrowBatch;
use urlset_core::build::read::parquet::{Parquet, ParquetOptions};
use urlset_core::flow::source::Source;
use urlset_core::config::Filter;

fuzz_target!(|data: &[u8]| {
    let path = std::env::temp_dir().join(format!("urlset-fuzz-{}.parquet", std::process::id()));
    std::fs::write(&path, data).expect("a file to read");
    let [one, several] = [1, 3].map(|threads| rows(&path.to_string_lossy(), threads));
    assert_eq!(one, several);
});

/// The number of rows; `None` if they end with an error.
fn rows(path: &str, threads: usize) -> Option<u64> {
    let filters = vec![Filter { column: "n".into(), value: "7".into(), negate: false }];
    let mut source = Parquet::new(path, ParquetOptions { rows: 100, threads, filters });
    let columns = source.open().ok()?;
    let slots: Vec<usize> = (0..columns.names.len()).collect();
    source.select(&slots);
    let mut rows = 0_u64;
    while let Some(batch) = source.next(Vec::new()).ok()? {
        rows = rows.saturating_add(match batch {
            ArrowBatch::Rows(batch) => (batch.end - batch.start) as u64,
            ArrowBatch::Filtered(rows) => rows,
        });
        if rows > 1 << 20 {
            return Some(1 << 20); // a few bytes may encode a billion nulls
        }
    }
    Some(rows)
}
