//! Any bytes as a Parquet file: rows or an error, no panic and no endless loop.
#![no_main]

use libfuzzer_sys::fuzz_target;
use urlset_core::config::Filter;
use urlset_core::read::parquet::{Parquet, ParquetOptions};
use urlset_core::read::{Batch, Source};

fuzz_target!(|data: &[u8]| {
    let path = std::env::temp_dir().join(format!("urlset-fuzz-{}.parquet", std::process::id()));
    std::fs::write(&path, data).expect("a file to read");
    for threads in [1, 3] {
        let filters = vec![Filter { column: "n".into(), value: "7".into(), negate: false }];
        let options = ParquetOptions { rows: 100, threads, filters };
        let mut source = Parquet::new(path.to_string_lossy(), options);
        let Ok(columns) = source.open() else { break };
        let slots: Vec<usize> = (0..columns.names.len()).collect();
        source.select(&slots);
        let mut rows = 0_u64;
        while let Ok(Some(batch)) = source.next(Vec::new()) {
            rows = rows.saturating_add(match batch {
                Batch::Arrow(batch) => (batch.end - batch.start) as u64,
                Batch::Skipped(rows) => rows,
                Batch::Csv(_) => panic!("no CSV is in Parquet"),
            });
            if rows > 1 << 20 {
                break; // a few bytes may say a billion nulls
            }
        }
    }
});
