//! The writer of shards and its sinks.

use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;

use urlset_core::Result;
use urlset_core::build::write::folder::FolderSink;
use urlset_core::build::write::gzip::Libdeflate;
use urlset_core::build::write::live::LiveShards;
use urlset_core::build::write::memory::MemorySink;
use urlset_core::build::write::sink::{Sink, SinkFile};
use urlset_core::build::write::writer::{Destination, ShardWriter};
use urlset_core::config::Config;
use urlset_core::flow::entry::NO_LASTMOD;
use urlset_core::flow::outcome::ShardEntry;
use urlset_core::flow::shard::{Piece, Shard};
use urlset_core::sitemap::namespaces;

fn config() -> Config {
    Config::from_json(r#"{"site": "https://a.example", "name": "s"}"#).unwrap()
}

fn shard(number: u64, text: &str, boundary: Option<u64>) -> Shard {
    Shard {
        number,
        pieces: vec![Piece::of(text.as_bytes().to_vec())],
        urls: 1,
        bytes: text.len() as u64 + namespaces::length(0),
        namespaces: 0,
        newest: NO_LASTMOD,
        boundary,
        set: None,
        reserved: None,
    }
}

fn document(text: &str) -> Vec<u8> {
    [namespaces::header(0).as_bytes(), text.as_bytes(), namespaces::FOOTER.as_bytes()].concat()
}

fn plain(sink: &dyn Sink) -> Destination<'_> {
    Destination { sink, encoder: None, live: LiveShards::default() }
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("urlset-write-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn equal_shards_are_written_once() {
    let folder = folder("equal");
    let encoder = Libdeflate::new(1).unwrap();
    let sink = FolderSink::new(folder.clone());
    let destination =
        Destination { sink: &sink, encoder: Some(&encoder), live: LiveShards::default() };
    let writer = ShardWriter::new(&config(), destination);
    let text = "<url>".repeat(200_000);
    let entries: Vec<ShardEntry> = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=8)
            .map(|number| {
                let (writer, text) = (&writer, &text);
                scope.spawn(move || writer.write(shard(number, text, Some(7))).unwrap())
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    writer.finish().unwrap();
    let path = folder.join(&entries[0].path);
    let size = fs::metadata(&path).unwrap().len();
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    for entry in &entries {
        assert_eq!((&entry.path, &entry.digest), (&entries[0].path, &entries[0].digest));
        assert_eq!(entry.compressed_bytes, size);
    }
    let mut inflated = Vec::new();
    let file = fs::File::open(&path).unwrap();
    flate2::read::MultiGzDecoder::new(file).read_to_end(&mut inflated).unwrap();
    assert!(inflated == document(&text));
    assert_eq!(entries[0].digest, blake3::hash(&inflated).to_hex()[..32]);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_failure_reaches_all_that_wait_for_the_file() {
    let folder = folder("failure");
    let sink = FolderSink::new(folder.join("none/"));
    let writer = ShardWriter::new(&config(), plain(&sink));
    fs::write(folder.join("none"), "").unwrap();
    for number in 1..=3 {
        let error = writer.write(shard(number, "a", Some(7))).unwrap_err();
        assert_eq!(error.code, "output.unwritable");
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_existing_file_is_not_overwritten() {
    let folder = folder("there");
    fs::write(folder.join("s-00003.xml"), "foreign").unwrap();
    let sink = FolderSink::new(folder.clone());
    let writer = ShardWriter::new(&config(), plain(&sink));
    assert_eq!(writer.write(shard(3, "a", None)).unwrap_err().code, "output.unwritable");
    assert_eq!(fs::read_to_string(folder.join("s-00003.xml")).unwrap(), "foreign");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_folder_and_the_memory_get_the_same_files() {
    let folder = folder("same");
    let (disk, memory) = (FolderSink::new(folder.clone()), MemorySink::default());
    let text = "<url><loc>https://a.example/1</loc></url>\n";
    for sink in [&disk as &dyn Sink, &memory] {
        let writer = ShardWriter::new(&config(), plain(sink));
        for (number, boundary) in [(1, None), (2, Some(0xabc))] {
            let entry = writer.write(shard(number, text, boundary)).unwrap();
            assert_eq!((entry.bytes, entry.changed), (entry.compressed_bytes, true));
        }
        writer.finish().unwrap();
    }
    let files = memory.take();
    assert_eq!(files.len(), 2);
    for (name, bytes) in &files {
        assert_eq!(*bytes, document(text));
        assert_eq!(fs::read(folder.join(name)).unwrap(), *bytes);
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_live_shard_with_the_same_bytes_is_not_written() {
    let memory = MemorySink::default();
    let entry = ShardWriter::new(&config(), plain(&memory)).write(shard(1, "a", None)).unwrap();
    memory.take();
    let live = LiveShards::new([(&*entry.path, &*entry.digest, 5)]);
    let writer = ShardWriter::new(&config(), Destination { live, ..plain(&memory) });
    let same = writer.write(shard(1, "a", None)).unwrap();
    assert_eq!((same.changed, same.compressed_bytes, same.digest), (false, 5, entry.digest));
    assert!(memory.take().is_empty());
    assert!(writer.write(shard(1, "b", None)).unwrap().changed);
    assert_eq!(memory.take().len(), 1);
}

/// Checks the order of the calls, and damages the bytes if the test requests it.
struct Strict {
    fail: fn(usize) -> bool,
    closed: std::sync::Mutex<Vec<(ShardEntry, usize)>>,
}

struct StrictFile<'s> {
    sink: &'s Strict,
    parts: usize,
    bytes: usize,
}

impl Sink for Strict {
    fn create(&self, name: &str) -> Result<Box<dyn SinkFile + '_>> {
        assert!(name.starts_with("s-"));
        Ok(Box::new(StrictFile { sink: self, parts: 0, bytes: 0 }))
    }
    fn finish(&self) -> Result<()> {
        Ok(())
    }
}

impl SinkFile for StrictFile<'_> {
    fn write(&mut self, part: &[u8]) -> Result<()> {
        self.parts += 1;
        self.bytes += part.len();
        if (self.sink.fail)(self.parts) {
            let broken = io::Error::from(io::ErrorKind::StorageFull);
            return Err(urlset_core::Error::unwritable("object".as_ref(), broken));
        }
        Ok(())
    }
    fn close(self: Box<Self>, entry: &ShardEntry) -> Result<()> {
        self.sink.closed.lock().unwrap().push((entry.clone(), self.bytes));
        Ok(())
    }
}

#[test]
fn a_file_is_closed_with_its_entry_and_not_after_a_failure() {
    for (fail, closed) in [((|_| false) as fn(usize) -> bool, 1), (|part| part == 2, 0)] {
        let sink = Strict { fail, closed: std::sync::Mutex::default() };
        let written = ShardWriter::new(&config(), plain(&sink)).write(shard(1, "text", Some(1)));
        assert_eq!(sink.closed.lock().unwrap().len(), closed);
        match written {
            Ok(entry) => {
                let (told, bytes) = &sink.closed.lock().unwrap()[0];
                assert_eq!((&told.path, &told.digest), (&entry.path, &entry.digest));
                assert_eq!(*bytes as u64, told.compressed_bytes);
                assert_eq!(entry.digest, blake3::hash(&document("text")).to_hex()[..32]);
            }
            Err(error) => assert_eq!((error.code.name(), closed), ("output.disk_full", 0)),
        }
    }
}

/// An encoder that loses a byte at the end of the content, or in the file.
#[test]
fn a_file_that_is_not_the_shard_is_found() {
    use urlset_core::build::write::gzip::{Encoder, OutputFn};
    struct Loses(Libdeflate);
    impl Encoder for Loses {
        fn encode(
            &self,
            pieces: &mut dyn Iterator<Item = Piece>,
            output: &mut OutputFn<'_>,
        ) -> Result<()> {
            let mut all: Vec<u8> = pieces.flat_map(|piece| piece.as_bytes().to_vec()).collect();
            all.pop();
            self.0.encode(&mut std::iter::once(Piece::of(all)), output)
        }
    }
    let memory = MemorySink::default();
    let encoder = Loses(Libdeflate::new(1).unwrap());
    let destination =
        Destination { sink: &memory, encoder: Some(&encoder), live: LiveShards::default() };
    let error = ShardWriter::new(&config(), destination).write(shard(1, "a", None)).unwrap_err();
    assert_eq!(error.code, "internal.gzip");
    // the packer counted other bytes
    let mut wrong = shard(1, "a", None);
    wrong.bytes += 1;
    let error = ShardWriter::new(&config(), plain(&memory)).write(wrong).unwrap_err();
    assert_eq!(error.code, "internal.bytes");
    assert!(memory.take().is_empty());
}
