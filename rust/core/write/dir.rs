//! Shards to a staging folder: named, digested, compressed, written, fsynced.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{ErrorKind, IoSlice, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread::JoinHandle;

use crossbeam_channel::{Sender, bounded};

use super::Sink;
use super::manifest::{ShardEntry, newest_text};
use crate::error::{Error, Kind, Result};
use crate::shard::frame;
use crate::shard::gzip::Encoder;
use crate::shard::packer::Shard;

/// A shard that is live, and that a new one may equal.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct Live {
    /// Its digest, as [`ShardEntry::digest`] has it.
    pub digest: String,
    /// Bytes of the file.
    pub compressed_bytes: u64,
}

/// Writes shards to a folder.
pub struct Dir<'a> {
    /// The staging folder; it exists.
    folder: PathBuf,
    /// The first part of the names.
    name: String,
    /// One URL a line in place of XML.
    text: bool,
    /// How to compress; plain files without it.
    encoder: Option<&'a dyn Encoder>,
    /// What is live, by path: a shard with the same bytes is not written again.
    live: HashMap<String, Live>,
    syncer: Mutex<Option<Syncer>>,
}

/// A thread that waits for the disk, so that those that compress need not.
struct Syncer {
    files: Sender<(PathBuf, File)>,
    thread: JoinHandle<Result<()>>,
}

/// Files that wait for their fsync at most; meanwhile the kernel writes them.
const UNSYNCED: usize = 64;

impl Syncer {
    fn start() -> Syncer {
        let (files, written) = bounded::<(PathBuf, File)>(UNSYNCED);
        let thread = std::thread::spawn(move || {
            for (path, file) in written {
                file.sync_all().map_err(|e| write_error(&path, e))?;
            }
            Ok(())
        });
        Syncer { files, thread }
    }

    /// Waits until all files are on the disk.
    fn finish(self) -> Result<()> {
        drop(self.files);
        self.thread.join().map_err(|_| broken())?
    }
}

impl<'a> Dir<'a> {
    /// A sink for `folder`, which exists.
    pub fn new(
        folder: PathBuf,
        name: String,
        text: bool,
        encoder: Option<&'a dyn Encoder>,
        live: HashMap<String, Live>,
    ) -> Dir<'a> {
        Dir { folder, name, text, encoder, live, syncer: Mutex::new(None) }
    }

    fn file_name(&self, shard: &Shard, digest: &str) -> String {
        let kind = if self.text { "txt" } else { "xml" };
        let gz = if self.encoder.is_some() { ".gz" } else { "" };
        let stem = shard.set.as_ref().map_or(&self.name, |set| &set.stem);
        match shard.border {
            None => format!("{stem}-{:05}.{kind}{gz}", shard.number),
            // whoever has an old index finds the old bytes: another content has another name
            Some(border) => format!("{stem}-{border:016x}-{}.{kind}{gz}", &digest[..16]),
        }
    }

    /// Hands a file over to be fsynced.
    fn sync_later(&self, path: PathBuf, file: File) -> Result<()> {
        let files = {
            let mut syncer = self.syncer.lock().map_err(|_| broken())?;
            syncer.get_or_insert_with(Syncer::start).files.clone()
        };
        if files.send((path, file)).is_ok() {
            return Ok(());
        }
        // the thread has ended, which it does early only with an error
        match self.syncer.lock().map_err(|_| broken())?.take() {
            Some(syncer) => syncer.finish(),
            None => Err(broken()),
        }
    }
}

fn broken() -> Error {
    Error::new(Kind::Output, "internal.thread", "another thread failed")
}

/// What an error while writing a file of the output means.
pub fn write_error(path: &Path, error: std::io::Error) -> Error {
    if error.kind() == ErrorKind::StorageFull {
        let mut full = Error::output("output.disk_full", path, error);
        full.message.push_str("; what was live still is: free some room and run again");
        return full;
    }
    Error::output("output.unwritable", path, error)
}

/// A digest of the uncompressed bytes.
fn digest(header: &str, shard: &Shard, footer: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(header.as_bytes());
    for piece in &shard.pieces {
        hasher.update(piece.as_bytes());
    }
    hasher.update(footer.as_bytes());
    hasher.finalize().to_hex()[..32].to_owned()
}

impl Sink for Dir<'_> {
    fn write(&self, shard: Shard, buffer: &mut Vec<u8>) -> Result<ShardEntry> {
        let (header, footer) = if self.text {
            (String::new(), "")
        } else {
            (frame::header(shard.namespaces), frame::FOOTER)
        };
        let digest = digest(&header, &shard, footer);
        let mut entry = ShardEntry {
            number: shard.number,
            path: self.file_name(&shard, &digest),
            set: shard.set.clone(),
            urls: shard.urls,
            bytes: shard.bytes,
            compressed_bytes: shard.bytes,
            digest,
            lastmod: newest_text(shard.newest),
            changed: true,
        };
        if let Some(live) = self.live.get(&entry.path)
            && live.digest == entry.digest
        {
            entry.compressed_bytes = live.compressed_bytes;
            entry.changed = false;
            return Ok(entry);
        }
        let target = self.folder.join(&entry.path);
        let failed = |e| write_error(&target, e);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        let mut file = match File::create_new(&target) {
            // the same rows twice give the same stable shard twice: one file serves both
            Err(e) if e.kind() == ErrorKind::AlreadyExists && shard.border.is_some() => {
                File::create(&target)
            }
            created => created,
        }
        .map_err(failed)?;
        let length = match self.encoder {
            Some(encoder) => {
                buffer.clear();
                buffer.reserve(usize::try_from(shard.bytes).unwrap_or_default());
                buffer.extend_from_slice(header.as_bytes());
                for piece in &shard.pieces {
                    buffer.extend_from_slice(piece.as_bytes());
                }
                buffer.extend_from_slice(footer.as_bytes());
                drop(shard); // its chunks go back to the renderers
                let length = buffer.len() as u64;
                let compressed = encoder.encode(buffer)?;
                let compressed = (*compressed).as_ref();
                check_trailer(compressed, length)?;
                entry.compressed_bytes = compressed.len() as u64;
                file.write_all(compressed).map_err(failed)?;
                length
            }
            None => {
                let mut parts = Vec::with_capacity(shard.pieces.len() + 2);
                parts.push(IoSlice::new(header.as_bytes()));
                parts.extend(shard.pieces.iter().map(|piece| IoSlice::new(piece.as_bytes())));
                parts.push(IoSlice::new(footer.as_bytes()));
                let length = parts.iter().map(|part| part.len() as u64).sum();
                write_all_vectored(&mut file, &mut parts).map_err(failed)?;
                length
            }
        };
        // the packer counted before a byte was written; what was written must agree
        if length != entry.bytes {
            let message = format!("{}: {length} bytes, {} were counted", entry.path, entry.bytes);
            return Err(Error::new(Kind::Output, "internal.bytes", message));
        }
        self.sync_later(target, file)?;
        Ok(entry)
    }

    fn finish(&self) -> Result<()> {
        if let Some(syncer) = self.syncer.lock().map_err(|_| broken())?.take() {
            syncer.finish()?;
        }
        File::open(&self.folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|e| write_error(&self.folder, e))
    }
}

/// The last four bytes of a gzip file are its length modulo 2^32 (RFC 1952).
fn check_trailer(compressed: &[u8], length: u64) -> Result<()> {
    let told = compressed.last_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    if told == Some(length as u32) {
        return Ok(());
    }
    Err(Error::new(Kind::Output, "internal.gzip", "the encoder did not compress all of a shard"))
}

fn write_all_vectored(file: &mut File, mut parts: &mut [IoSlice<'_>]) -> std::io::Result<()> {
    IoSlice::advance_slices(&mut parts, 0);
    while !parts.is_empty() {
        match file.write_vectored(parts) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => IoSlice::advance_slices(&mut parts, n),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
