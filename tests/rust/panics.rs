//! A panic in any thread soon ends its run with an error, and nothing hangs.
//!
//! The feature `inject` makes a thread panic at the point that the test selects.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use urlset_core::build::duplicates::seen::Seen;
use urlset_core::build::pipeline::{AnySource, Progress, Run, StampFiles, run};
use urlset_core::build::read::csv::{Csv, CsvOptions};
use urlset_core::build::read::parquet::{Parquet, ParquetOptions};
use urlset_core::build::stamps::open::OldFile;
use urlset_core::build::write::folder::FolderSink;
use urlset_core::build::write::gzip::Libdeflate;
use urlset_core::build::write::live::LiveShards;
use urlset_core::build::write::writer::Destination;
use urlset_core::config::Config;
use urlset_core::error::{Error, Kind};
use urlset_core::flow::outcome::Outcome;
use urlset_core::inspect::diff::{Options as DiffOptions, SetFile};
use urlset_core::inspect::parquet::{Failure, write};
use urlset_core::inspect::read::{BatchStream, read};
use urlset_core::inspect::verify::{Options as VerifyOptions, Target, verify};
use urlset_core::inspect::{changes, read as parse_read};
use urlset_core::thread::armed;

/// The run, and the point at which it panics.
type Points = (fn(&Path) -> Told, &'static [&'static str]);

/// The run, and the points that it passes. `@3`: when a thread passes it for the third time.
const POINTS: [Points; 9] = [
    (
        build,
        &[
            "run",
            "reader",
            "reader.batch",
            "reader.batch@4",
            "reader.end",
            "worker",
            "worker@3",
            "worker.render",
            "worker.render@4",
            "worker.write",
            "worker.write@3",
            "collector",
            "collector.event",
            "collector.event@4",
            "collector.finish",
            "syncer",
            "syncer.file",
            "syncer.file@3",
        ],
    ),
    (build_large, &["worker.part", "worker.part@4", "worker.write", "collector.event@9"]),
    (build_sorted, &["sorter", "sorter.run", "sorter.run@2", "worker.write"]),
    (
        build_stamps,
        &["stamps", "stamps.index", "stamps.index@2", "stamps.sync", "stamps.sync.file"],
    ),
    (build_parquet, &["decoder", "decoder.group", "decoder.group@2", "reader.batch@5"]),
    (check, &["inspect", "inspect@2"]),
    (read_all, &["read", "read.file", "read.file@2", "read.flush", "read.flush@3"]),
    (to_parquet, &["encode", "encode.group", "encode.group@2", "group", "group.batch@2"]),
    (compare, &["changes", "changes.row", "changes.row@5", "inspect"]),
];
/// Points of the binding, which tests/python/test_panics.py tests.
const BINDING: [&str; 2] = ["build", "look"];

/// The code and the message of the error, or the result.
type Told = Result<u64, (String, String)>;

/// The timeout of a run.
const TIMEOUT: Duration = Duration::from_secs(60);
/// One point is armed at a time.
static ONE: Mutex<()> = Mutex::new(());

#[test]
fn a_panic_in_any_thread_is_an_error() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = folder("panics");
    inputs(&folder);
    for (work, points) in POINTS {
        armed::arm("nowhere");
        let whole = within(work, &folder).unwrap();
        assert!(whole > 0);
        for point in points {
            armed::arm(point);
            let told = within(work, &folder);
            assert!(armed::disarm(), "{point} was not passed");
            let (code, message) = told.expect_err(point);
            assert_eq!(code, "internal.panic", "{point}: {message}");
            let name = point.split('@').next().unwrap_or_default();
            assert!(message.contains(&format!("injected at {name}")), "{point}: {message}");
            assert!(!message.contains('\n'), "{message:?}");
            assert_eq!(within(work, &folder), Ok(whole), "after {point}");
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}

/// Every thread is started by the module `thread`, and the test above passes its point.
#[test]
fn no_thread_is_left_out() {
    let named = |point: &str| point.split('@').next().unwrap_or_default().to_owned();
    let mut tested: BTreeSet<String> =
        POINTS.iter().flat_map(|(_, points)| points.iter().map(|point| named(point))).collect();
    tested.extend(BINDING.map(str::to_owned));
    let mut there = BTreeSet::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("rust");
    for path in sources(&root) {
        if path.ends_with("core/thread.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let shown = path.display();
        for wrong in ["spawn(", "spawn_scoped(", "thread::Builder", "rayon"] {
            assert!(!text.contains(wrong), "{shown} starts a thread by itself: {wrong}");
        }
        for call in ["start(", "start_scoped(", "guard(", "inject("] {
            for (at, _) in text.match_indices(call) {
                let before = text[..at].chars().next_back();
                if before.is_some_and(|c| c.is_alphanumeric() || "_.".contains(c))
                    || text[..at].ends_with("fn ")
                {
                    continue; // another function
                }
                let arguments = &text[at + call.len()..];
                let name = arguments.split('"').nth(1).unwrap_or_default();
                let first = arguments.trim_start().trim_start_matches("scope,").trim_start();
                assert!(first.starts_with('"'), "{shown}: {call} without a name: {first:.30}");
                there.insert(name.to_owned());
            }
        }
    }
    assert!(there.len() > 15, "{there:?}");
    assert_eq!(there, tested);
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

fn within(work: fn(&Path) -> Told, folder: &Path) -> Told {
    let (sender, receiver) = channel();
    let folder = folder.to_owned();
    thread::spawn(move || sender.send(work(&folder)));
    receiver.recv_timeout(TIMEOUT).expect("it hangs, or it panicked")
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("urlset-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A catalog, one with few rows that become many, and sitemaps of it, in two generations.
fn inputs(folder: &Path) {
    let mut rows = "url,updated\n".to_owned();
    for number in 0..20_000 {
        rows.push_str(&format!("https://shop.example/p/{}-{number},2026-11-20\n", number % 7));
    }
    fs::write(folder.join("rows.csv"), &rows).unwrap();
    let mut large = "url,alternates\n".to_owned();
    for number in 0..120 {
        let languages = (0..60).map(|n| {
            let code = format!("{}{}", (b'a' + n / 26) as char, (b'a' + n % 26) as char);
            format!("\"\"en-{code}\"\": \"\"https://shop.example/{code}/{number}\"\"")
        });
        let languages: Vec<String> = languages.collect();
        let map = languages.join(", ");
        large.push_str(&format!("https://shop.example/en/{number},\"{{{map}}}\"\n"));
    }
    fs::write(folder.join("large.csv"), &large).unwrap();
    armed::arm("nowhere");
    for (side, rows) in [("old", 20_000), ("new", 19_000)] {
        fs::create_dir_all(folder.join(side)).unwrap();
        for file in 0..4 {
            let mut text =
                "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n".to_owned();
            for number in (file..rows).step_by(4) {
                text.push_str(&format!("<url><loc>https://shop.example/p/{number}</loc></url>\n"));
            }
            text.push_str("</urlset>\n");
            fs::write(folder.join(side).join(format!("{file}.xml")), text).unwrap();
        }
    }
    write_parquet(&folder.join("rows.parquet"), read(files(folder), 2, false)).unwrap();
}

fn files(folder: &Path) -> Vec<(PathBuf, String)> {
    let side = folder.join("old");
    // more files than threads, and more rows than a row group of Parquet
    (0..28).map(|n| (side.join(format!("{}.xml", n % 4)), format!("{n}.xml"))).collect()
}

fn build_with(folder: &Path, options: &str, source: Box<dyn AnySource>, config: Config) -> Told {
    build_after(folder, options, source, config, None).map(|outcome| outcome.urls)
}

/// The same, with the records of an earlier build.
fn build_after(
    folder: &Path,
    options: &str,
    source: Box<dyn AnySource>,
    config: Config,
    stamps: Option<StampFiles>,
) -> Result<Outcome, (String, String)> {
    let out = folder.join("out");
    let _ = fs::remove_dir_all(&out);
    fs::create_dir_all(&out).unwrap();
    let encoder = Libdeflate::new(1).unwrap();
    let sink = FolderSink::new(out);
    let destination =
        Destination { sink: &sink, encoder: Some(&encoder), live: LiveShards::default() };
    let run_options = Run {
        stamps,
        sources: vec![source],
        destination,
        rejects: folder.join("rejects.csv"),
        progress: Arc::new(Progress::default()),
        seen: &Seen::default(),
    };
    let result = run(&config, run_options);
    match result {
        Ok(outcome) => Ok(outcome),
        Err(failed) => {
            let error = failed.error;
            assert_eq!(error.kind, Kind::Output, "{options}: {error}");
            Err((error.code.name().to_owned(), error.to_string()))
        }
    }
}

fn config(more: &str) -> Config {
    let json =
        format!(r#"{{"site": "https://shop.example", "threads": 3, "max_urls": 1500, {more}}}"#);
    Config::from_json(&json).unwrap()
}

fn csv(folder: &Path, name: &str, more: &str) -> Told {
    let (source, config) = rows(folder, name, more);
    build_with(folder, more, source, config)
}

/// A build that compares with the records of another.
fn build_stamps(folder: &Path) -> Told {
    let more = r#""lastmod_from": ["updated"], "now": 1795000000"#;
    let [old, new] = ["old.records", "new.records"].map(|name| folder.join(name));
    let run = |old: Option<OldFile>, new: &Path| {
        let _ = fs::remove_file(new);
        let (source, config) = rows(folder, "rows.csv", more);
        let files = StampFiles { old, new: new.to_owned() };
        build_after(folder, more, source, config, Some(files))
    };
    let digest = run(None, &old)?.lastmod.unwrap().digest;
    let file = fs::File::open(&old).unwrap();
    let changes = run(Some(OldFile { file, name: "old".into(), digest }), &new)?.lastmod.unwrap();
    Ok(changes.kept)
}

fn rows(folder: &Path, name: &str, more: &str) -> (Box<dyn AnySource>, Config) {
    let mut config = config(more);
    config.batch_bytes = 64 << 10;
    config.sort_bytes = 200 << 10;
    let options = CsvOptions {
        delimiter: None,
        encoding: None,
        max_cell: 1 << 20,
        block: 64 << 10,
        lines: false,
    };
    let path = folder.join(name);
    (Box::new(Csv::new(path.to_str().unwrap(), options)), config)
}

fn build(folder: &Path) -> Told {
    csv(folder, "rows.csv", r#""layout": "packed""#)
}

fn build_sorted(folder: &Path) -> Told {
    csv(folder, "rows.csv", r#""sort": true"#)
}

fn build_large(folder: &Path) -> Told {
    csv(folder, "large.csv", r#""alternate": [[null, "alternates"]], "alternate_rows": true"#)
}

fn build_parquet(folder: &Path) -> Told {
    let path = folder.join("rows.parquet").to_str().unwrap().to_owned();
    let options = ParquetOptions { rows: 4_000, threads: 2, filters: Vec::new() };
    build_with(folder, "parquet", Box::new(Parquet::new(path, options)), config(r#""sort": false"#))
}

fn check(folder: &Path) -> Told {
    let targets: Vec<Target> = files(folder)
        .into_iter()
        .map(|(path, name)| Target { path, name, url: None, listed: false, rules: 0 })
        .collect();
    let options = VerifyOptions { threads: 3, ..VerifyOptions::default() };
    match verify(&targets, &options, &mut || false) {
        Ok(reports) => Ok(reports.iter().map(|report| report.summary.entries).sum()),
        Err(error) => Err(said(error)),
    }
}

fn drain(stream: BatchStream) -> Told {
    let mut rows = 0;
    for batch in stream {
        rows += batch.map_err(said)?.num_rows() as u64;
    }
    Ok(rows)
}

fn said(error: Error) -> (String, String) {
    (error.code.name().to_owned(), error.to_string())
}

fn read_all(folder: &Path) -> Told {
    drain(parse_read::read(files(folder), 2, false))
}

fn write_parquet(path: &Path, stream: BatchStream) -> Told {
    let file = fs::File::create(path).unwrap();
    write(stream, file, 2, &mut || false).map_err(|failure| match failure {
        Failure::Rows(error) => said(error),
        other => panic!("{other:?}"),
    })
}

fn to_parquet(folder: &Path) -> Told {
    write_parquet(&folder.join("written.parquet"), read(files(folder), 2, false))
}

fn compare(folder: &Path) -> Told {
    let side = |side: &str| -> Vec<SetFile> {
        (0..4)
            .map(|n| SetFile {
                path: folder.join(side).join(format!("{n}.xml")),
                name: format!("{n}.xml"),
                digest: None,
            })
            .collect()
    };
    let options = DiffOptions { threads: 2, memory: 64 << 20, spill_folder: None, lenient: false };
    let stream = changes::stream(side("old"), side("new"), options, Arc::default());
    drain(stream)
}
