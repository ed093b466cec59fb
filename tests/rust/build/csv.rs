//! The CSV reader against csv-core, and the whole pipeline on tiny blocks against one huge block.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use urlset_core::build::duplicates::seen::Seen;
use urlset_core::build::pipeline::{Progress, Run, run};
use urlset_core::build::read::block::BlockReader;
use urlset_core::build::read::csv_batch::CsvBatch;
use urlset_core::build::read::header::header;
use urlset_core::build::read::scan::{CsvFault, CsvFormat, NO_SLOT, Scanner, Span, undouble_if};
use urlset_core::build::write::live::LiveShards;
use urlset_core::build::write::memory::MemorySink;
use urlset_core::build::write::writer::Destination;
use urlset_core::config::Config;
use urlset_core::error::Result;
use urlset_core::flow::cell::{ColumnKind, Columns};
use urlset_core::flow::source::Source;
use urlset_core::simd::csv_masks;

fn cases(n: u32) -> ProptestConfig {
    ProptestConfig { cases: n, failure_persistence: None, ..ProptestConfig::default() }
}

/// All rows by the scanner of urlset, and the fault that ended it.
fn scan(text: &[u8], delimiter: u8, max_cell: usize) -> (Vec<Vec<Vec<u8>>>, Option<CsvFault>) {
    const WIDTH: usize = 64;
    let format = CsvFormat {
        delimiter,
        max_cell,
        slots: (0..WIDTH as u32).collect(),
        ..CsvFormat::default()
    };
    let mut masks = Vec::new();
    csv_masks(text, delimiter, &mut masks);
    let mut scanner = Scanner::new(text, &masks, &format);
    let mut spans = [Span::default(); WIDTH];
    let mut rows = Vec::new();
    while let Some(row) = scanner.next_row(&mut spans) {
        match row {
            Err(fault) => return (rows, Some(fault)),
            Ok(row) => rows.push(
                (spans.iter().take(row.cells as usize))
                    .map(|span| {
                        let mut cell = Vec::new();
                        let raw = &text[span.start as usize..span.end as usize];
                        undouble_if(raw, span.doubled, &mut cell);
                        cell
                    })
                    .collect(),
            ),
        }
    }
    (rows, None)
}

/// All rows by csv-core.
fn oracle(text: &[u8], delimiter: u8) -> Vec<Vec<Vec<u8>>> {
    let mut reader = csv_core::ReaderBuilder::new().delimiter(delimiter).build();
    let (mut out, mut ends) = (vec![0; text.len() + 16], vec![0; text.len() + 16]);
    let (mut rest, mut filled, mut count) = (text, 0, 0);
    let mut rows = Vec::new();
    loop {
        let (result, read, wrote, ended) =
            reader.read_record(rest, &mut out[filled..], &mut ends[count..]);
        rest = &rest[read..];
        filled += wrote;
        count += ended;
        match result {
            csv_core::ReadRecordResult::InputEmpty => {} // an empty input signals the end
            csv_core::ReadRecordResult::Record => {
                let mut start = 0;
                let row = ends[..count].iter().map(|&end| {
                    let cell = out[start..end].to_vec();
                    start = end;
                    cell
                });
                rows.push(row.collect());
                (filled, count) = (0, 0);
            }
            csv_core::ReadRecordResult::End => return rows,
            full => panic!("{full:?} in spite of the room"),
        }
    }
}

const DELIMITERS: &[u8] = b",;\t|~";

/// Writes a cell, with quotes if `quoted` or if it needs them.
fn write_cell(cell: &str, quoted: bool, delimiter: u8, out: &mut Vec<u8>) {
    let special = |c: u8| c == delimiter || matches!(c, b'\n' | b'\r');
    if quoted || cell.starts_with('"') || cell.bytes().any(special) {
        out.push(b'"');
        out.extend(cell.replace('"', "\"\"").bytes());
        out.push(b'"');
    } else {
        out.extend(cell.bytes());
    }
}

fn cell() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z0-9 ]{0,12}",
        2 => "[a-c,;|\"\r\n\t ~é]{0,8}",
        1 => "[x\",\n]{60,70}", // over a word of the masks
        1 => Just(String::from("Monitor 27\" IPS")),
    ]
}

proptest! {
    #![proptest_config(cases(800))]

    #[test]
    fn valid_text_reads_as_csv_core_reads_it(
        table in prop::collection::vec(prop::collection::vec((cell(), any::<bool>()), 1..6), 0..30),
        delimiter in prop::sample::select(DELIMITERS),
        line_end in prop::sample::select(&["\n", "\r\n", "\r"][..]),
        final_end: bool,
        blank in 0..4_usize,
    ) {
        let mut text = Vec::new();
        for (i, row) in table.iter().enumerate() {
            if i > 0 && i % 5 == blank {
                text.extend(line_end.bytes());
            }
            for (at, (cell, quoted)) in row.iter().enumerate() {
                if at > 0 {
                    text.push(delimiter);
                }
                write_cell(cell, *quoted, delimiter, &mut text);
            }
            if final_end || i + 1 < table.len() {
                text.extend(line_end.bytes());
            }
        }
        let (rows, fault) = scan(&text, delimiter, 1 << 20);
        prop_assert_eq!(fault, None);
        prop_assert_eq!(rows, oracle(&text, delimiter));
    }

    #[test]
    fn any_text_reads_as_csv_core_reads_it_as_far_as_it_can_be_trusted(
        text in "[ab,\"\"\n\r;]{0,200}", delimiter in prop::sample::select(&b",;"[..]),
    ) {
        let (rows, fault) = scan(text.as_bytes(), delimiter, 1 << 20);
        let wanted = oracle(text.as_bytes(), delimiter);
        prop_assert!(rows.len() <= wanted.len());
        prop_assert_eq!(&rows[..], &wanted[..rows.len()]);
        prop_assert!(fault.is_some() || rows.len() == wanted.len());
    }

    #[test]
    fn garbage_never_panics(
        text in prop::collection::vec(any::<u8>(), 0..400), delimiter: u8, max_cell in 1..50_usize,
    ) {
        prop_assume!(!matches!(delimiter, b'"' | b'\n' | b'\r'));
        scan(&text, delimiter, max_cell);
        for whole in [true, false] {
            let _ = header(&text, whole, delimiter, max_cell, None);
        }
    }
}

#[test]
fn the_limit_of_a_cell_is_exact() {
    for quoted in [false, true] {
        for (length, fits) in [(99, true), (100, true), (101, false)] {
            let cell = "x".repeat(length);
            let text = if quoted { format!("a,\"{cell}\"\n") } else { format!("a,{cell}\n") };
            let (rows, fault) = scan(text.as_bytes(), b',', 100);
            assert_eq!(rows.len(), usize::from(fits), "{length} {quoted}");
            assert_eq!(
                fault,
                (!fits).then_some(CsvFault::TooLong { cell: 1 }),
                "{length} {quoted}"
            );
        }
    }
}

// ---- the whole pipeline ----

/// CSV in memory, cut into blocks of any size.
struct Text {
    blocks: Option<BlockReader>,
    names: Vec<String>,
    format: CsvFormat,
}

impl Text {
    fn new(text: &[u8], block: usize, max_cell: usize) -> Option<Text> {
        let found = header(text, true, b',', max_cell, None).ok().flatten()?;
        let rest = Cursor::new(text[found.end..].to_vec());
        let format =
            CsvFormat { delimiter: b',', max_cell, slots: Vec::new(), ..CsvFormat::default() };
        Some(Text {
            blocks: Some(BlockReader::new(Box::new(rest), block)),
            names: found.names,
            format,
        })
    }
}

impl Source for Text {
    type Batch = CsvBatch;

    fn name(&self) -> &str {
        "text"
    }
    fn open(&mut self) -> Result<Columns> {
        let kinds = vec![ColumnKind::Text; self.names.len()];
        Ok(Columns { names: self.names.clone(), kinds })
    }
    fn select(&mut self, slots: &[usize]) {
        self.format.slots = vec![NO_SLOT; self.names.len()];
        for (slot, &column) in slots.iter().enumerate() {
            self.format.slots[column] = slot as u32;
        }
    }
    fn next(&mut self, spare: Vec<u8>) -> Result<Option<CsvBatch>> {
        let Some(blocks) = &mut self.blocks else { return Ok(None) };
        let block = blocks.next(spare, &self.format)?;
        if block.last {
            self.blocks = None;
        }
        Ok(Some(CsvBatch { block, format: self.format.clone().into() }))
    }
    fn consumed(&self) -> u64 {
        0
    }
}

/// The complete result of a run.
#[derive(Debug, PartialEq)]
struct Told {
    files: BTreeMap<String, Vec<u8>>,
    counts: Option<[u64; 5]>,
    rejects: String,
    error: Option<(&'static str, Option<u64>)>,
}

fn rejects_path() -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = format!("urlset-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    std::env::temp_dir().join(name)
}

fn told(text: &[u8], block: usize, options: &str) -> Option<Told> {
    let json = format!(
        r#"{{"site": "https://shop.example", "threads": 2, "max_rejects": {{"share": 1.0}} {options}}}"#
    );
    let config = Config::from_json(&json).unwrap();
    let source = Text::new(text, block, config.max_cell)?;
    let (sink, path) = (MemorySink::default(), rejects_path());
    let result = run(
        &config,
        Run {
            stamps: None,
            sources: vec![Box::new(source)],
            destination: Destination { sink: &sink, encoder: None, live: LiveShards::default() },
            rejects: path.clone(),
            progress: Arc::new(Progress::default()),
            seen: &Seen::default(),
        },
    );
    let rejects = std::fs::read_to_string(&path).unwrap_or_default();
    let _ = std::fs::remove_file(&path);
    let files = sink.take();
    Some(match result {
        Ok(outcome) => {
            let o = &outcome;
            assert_eq!(o.rows + o.expanded, o.urls + o.rejected + o.filtered + o.duplicates);
            let counts = [o.rows, o.urls, o.rejected, o.filtered, o.duplicates];
            Told { files, counts: Some(counts), rejects, error: None }
        }
        // the shards and rejects that were written before the error depend on the blocks
        Err(e) => Told {
            files: BTreeMap::new(),
            counts: None,
            rejects: String::new(),
            error: Some((e.error.code.name(), e.error.position.row)),
        },
    })
}

/// Rows of a shop that make guessing the start of a row difficult.
fn hostile_row() -> impl Strategy<Value = String> {
    let url = "/p/[a-z0-9]{1,9}";
    prop_oneof![
        5 => url.prop_map(|url| format!("{url},plain\n")),
        3 => (url, "[ab \n\r,]{0,40}").prop_map(|(url, x)| format!("{url},\"{x}\"\n")),
        3 => (url, "[ab\n, ]{0,30}").prop_map(|(url, x)| format!("\"{url}\",\"say \"\"{x}\"\"\"\r\n")),
        3 => url.prop_map(|url| format!("{url},Monitor 27\" IPS\n")),
        1 => url.prop_map(|url| format!("{url},a\"b\"c\"\r")),
        1 => url.prop_map(|url| format!("{url},ragged,row\n")),
        1 => url.prop_map(|url| format!("{url},nul\0\n")),
        1 => Just(String::from("\n\r\n")),
        1 => (url, 0..400_usize).prop_map(|(url, n)| format!("{url},\"{}\n{}\"\n", "y\n".repeat(n), "\"\"".repeat(n % 7))),
    ]
}

proptest! {
    #![proptest_config(cases(250))]

    #[test]
    fn blocks_do_not_show_in_the_result(
        rows in prop::collection::vec(hostile_row(), 0..60),
        block in 64..300_usize,
        last in prop::sample::select(&["", "/p/last,x", "/p/x,\"open\n/p/y,z\n", "/p/x,\"a\"b\n/p/y,z\n"][..]),
        options in prop::sample::select(&[
            "", r#", "duplicates": "drop""#, r#", "duplicates": "fail""#, r#", "on_invalid": "fail""#,
            r#", "max_urls": 3"#, r#", "max_cell": 60"#,
            r#", "where": [{"column": "name", "value": "plain", "negate": true}]"#,
        ][..]),
    ) {
        let text = format!("url,name\n{}{last}", rows.concat()).into_bytes();
        prop_assert_eq!(told(&text, block, options), told(&text, 1 << 20, options));
    }

    #[test]
    fn blocks_do_not_show_in_the_result_of_garbage(
        text in "[/pq,\"\"\n\n\r]{0,2000}", block in 64..300_usize,
    ) {
        let text = format!("url,name\n{text}").into_bytes();
        prop_assert_eq!(told(&text, block, ""), told(&text, 1 << 20, ""));
    }
}

#[test]
fn a_block_that_begins_inside_a_cell_and_has_no_end_of_row_is_not_the_last() {
    // The first block ends after a line break with two quotes before it, inside a cell. From
    // there the text has a fault at once, and no end of a row in 16 MiB.
    let mut text = b"url,name\n/p/1,a\"x\n/p/2,\"open\n\"\"quoted\"\"\",".to_vec();
    text.truncate(text.len() - 1);
    text.extend_from_slice(b"\r");
    let rows = 2_200_000;
    for i in 0..rows {
        text.extend_from_slice(format!("/p/{i:06},\r").as_bytes());
    }
    assert!(text.len() > 18 << 20);
    let told = told(&text, 24, "").unwrap();
    assert_eq!(told.error, None);
    assert_eq!(told.counts, Some([rows + 2, rows + 2, 0, 0, 0]));
}

#[test]
fn a_row_too_large_for_a_shard_does_not_shift_the_hashes_of_duplicates() {
    // 1,500 ampersands become 7,500 bytes: more than a shard of 4,096 may have
    let rows: Vec<String> = (0..30)
        .map(|i| format!("/{}?{}\n", i % 10, "&".repeat(if i % 3 == 0 { 1500 } else { 3 })))
        .collect();
    let text = format!("url\n{}", rows.concat()).into_bytes();
    let options = r#", "duplicates": "drop", "max_bytes": 4096"#;
    let told = told(&text, 1 << 20, options).unwrap();
    assert_eq!(told.error, None);
    // 10 too large; in the other 20 rows each of the 10 addresses occurs twice
    assert_eq!(told.counts, Some([30, 10, 10, 0, 10]));
}
