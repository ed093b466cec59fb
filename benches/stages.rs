//! What each stage costs on one core: `cargo bench --bench stages`.
//!
//! The rows have the shape of `benches/catalog.py`: six columns, 186 bytes of CSV, 2 % quoted.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use urlset_core::build::duplicates::seen::Seen;
use urlset_core::build::pipeline::{AnySource, Progress, Run, run};
use urlset_core::build::read::csv::{Csv, CsvOptions};
use urlset_core::build::read::csv_batch::CsvRow;
use urlset_core::build::read::scan::{CsvFormat, NO_SLOT, Scanner, Span};
use urlset_core::build::render::plan::Plan;
use urlset_core::build::render::row::Renderer;
use urlset_core::build::render::rules::Rules;
use urlset_core::build::shard::packer::{Limits, Packer};
use urlset_core::build::write::gzip::{Encoder, Libdeflate};
use urlset_core::build::write::live::LiveShards;
use urlset_core::build::write::memory::MemorySink;
use urlset_core::build::write::writer::Destination;
use urlset_core::config::Config;
use urlset_core::flow::cell::{ColumnKind, Columns};
use urlset_core::flow::chunk::Chunk;
use urlset_core::flow::pool::Pool;
use urlset_core::flow::shard::Piece;
use urlset_core::simd::csv_masks;

const ROWS: usize = 50_000;
const HEADER: &str = "id,title,url,price,updated_at,priority\n";
const CONFIG: &str = r#"{"site": "https://www.shop.example", "threads": 1}"#;

/// Rows without the header.
fn rows() -> String {
    let words =
        ["steel", "garden", "lamp", "cotton", "oak", "travel", "mug", "wireless", "desk", "vase"];
    let mut seed = 1u64;
    let mut next = |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    let mut text = String::new();
    for id in 0..ROWS {
        let slug: Vec<&str> = (0..6).map(|_| words[next(10) as usize]).collect();
        let quote = if next(50) == 0 { "\"" } else { "" };
        let query =
            if next(5) == 0 { format!("?variant={}&ref=cat", next(9_999)) } else { String::new() };
        text += &format!(
            "{id},{quote}{}{quote},https://www.shop.example/home/decor/{}-{id}{query},{}.{:02},2026-{:02}-{:02}T{:02}:{:02}:{:02}Z,0.{}\n",
            slug.join(" "),
            slug.join("-"),
            next(500),
            next(100),
            next(11) + 1,
            next(28) + 1,
            next(24),
            next(60),
            next(60),
            next(10),
        );
    }
    text
}

fn stages(c: &mut Criterion) {
    let text = rows();
    let text = text.as_bytes();
    let config = Config::from_json(CONFIG).unwrap();
    let names: Vec<String> = HEADER.trim().split(',').map(str::to_owned).collect();
    let columns = Columns { kinds: vec![ColumnKind::Text; names.len()], names };
    let (plan, _) = Plan::new(&config, &columns).unwrap();
    let mut slots = vec![NO_SLOT; columns.names.len()];
    for (slot, &column) in plan.columns.iter().enumerate() {
        slots[column] = slot as u32;
    }
    let format = CsvFormat { delimiter: b',', max_cell: 1 << 20, slots, ..CsvFormat::default() };
    let rules = Rules::new(&config, None).unwrap();
    let mut masks = Vec::new();
    csv_masks(text, b',', &mut masks);
    let mut spans = vec![Span::default(); plan.columns.len()];
    let mut scanner = Scanner::new(text, &masks, &format);
    let mut cells = Vec::new();
    while let Some(Ok(_)) = scanner.next_row(&mut spans) {
        cells.push(spans.clone());
    }

    let mut group = c.benchmark_group("stages");
    group.throughput(Throughput::Elements(ROWS as u64)).sample_size(30);
    group.bench_function("check a block for UTF-8 and NUL", |b| {
        b.iter(|| (simdutf8::basic::from_utf8(black_box(text)).is_ok(), memchr::memchr(0, text)));
    });
    group.bench_function("count quotes, as the reader does", |b| {
        b.iter(|| memchr::memchr_iter(b'"', black_box(text)).count());
    });
    group.bench_function("scan CSV: masks", |b| {
        b.iter(|| csv_masks(black_box(text), b',', &mut masks));
    });
    group.bench_function("scan CSV: rows", |b| {
        b.iter(|| {
            let mut scanner = Scanner::new(black_box(text), &masks, &format);
            while let Some(row) = scanner.next_row(&mut spans) {
                black_box(row.is_ok());
            }
        });
    });
    let pool = Pool::default();
    group.bench_function("render rows", |b| {
        b.iter(|| {
            let mut chunk = Chunk::new(&pool);
            let mut renderer = Renderer::new(&rules, &plan);
            for (number, spans) in cells.iter().enumerate() {
                renderer.render(&CsvRow { text, spans }, number as u32, &mut chunk);
            }
            chunk.sum_up(None);
            black_box(chunk.entries.len());
        });
    });
    let mut chunk = Chunk::new(&pool);
    let mut renderer = Renderer::new(&rules, &plan);
    for (number, spans) in cells.iter().enumerate() {
        renderer.render(&CsvRow { text, spans }, number as u32, &mut chunk);
    }
    chunk.sum_up(None);
    let xml = chunk.bytes.clone();
    let chunk = Arc::new(chunk);
    group.bench_function("pack", |b| {
        b.iter(|| {
            let limits = Limits { urls: 50_000, bytes: 52_428_800, text: false };
            let mut packer = Packer::new(limits);
            packer.push(&chunk, &mut |_| Ok::<(), ()>(())).unwrap();
            black_box(packer.finish().is_some())
        });
    });
    group.bench_function("digest", |b| b.iter(|| blake3::hash(black_box(&xml))));
    group.bench_function("gzip, libdeflate 1", |b| {
        let encoder = Libdeflate::new(1).unwrap();
        b.iter(|| {
            let mut pieces = std::iter::once(Piece::Chunk(chunk.clone(), 0..chunk.bytes.len()));
            let mut length = 0;
            let output = &mut |packed: &[u8]| {
                length += packed.len();
                Ok(())
            };
            encoder.encode(&mut pieces, output).unwrap();
            length
        });
    });
    let path = std::env::temp_dir().join(format!("urlset-stages-{}.csv", std::process::id()));
    std::fs::write(&path, [HEADER.as_bytes(), text].concat()).unwrap();
    group.bench_function("all but gzip and files", |b| {
        b.iter(|| {
            let options = CsvOptions {
                delimiter: None,
                encoding: None,
                max_cell: 1 << 20,
                block: 1 << 20,
                lines: false,
            };
            let source = Csv::new(path.to_str().unwrap(), options);
            let rejects = std::env::temp_dir().join("urlset-stages-rejects.csv");
            let sink = MemorySink::default();
            let destination =
                Destination { sink: &sink, encoder: None, live: LiveShards::default() };
            let (progress, seen) = (Arc::new(Progress::default()), &Seen::default());
            let sources: Vec<Box<dyn AnySource>> = vec![Box::new(source)];
            run(&config, Run { sources, destination, rejects, progress, seen, stamps: None })
                .unwrap()
                .urls
        });
    });
    group.finish();
    std::fs::remove_file(path).unwrap();
}

criterion_group!(benches, stages);
criterion_main!(benches);
