//! Shards to a staging folder: named, digested, compressed, written, fsynced.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{ErrorKind, IoSlice, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

use blake3::Hasher;
use crossbeam_channel::{Sender, bounded};
use libdeflater::Crc;

use super::Sink;
use super::manifest::{ShardEntry, newest_text};
use crate::UNCHECKED;
use crate::error::{Error, Kind, Result};
use crate::shard::frame;
use crate::shard::gzip::Encoder;
use crate::shard::packer::{Piece, Shard};
use crate::thread::{self, inject};

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
    thread: JoinHandle<Option<Result<()>>>,
    fallen: Arc<OnceLock<Error>>,
}

/// Files that wait for their fsync at most; meanwhile the kernel writes them. Each is an open file,
/// of which a process may have 256 or 1,024 at a time, and in a strict setting few.
const UNSYNCED: usize = 32;

impl Syncer {
    fn new() -> Result<Syncer> {
        let (files, written) = bounded::<(PathBuf, File)>(UNSYNCED);
        let fallen = Arc::new(OnceLock::new());
        let work = move || {
            for (path, file) in written {
                inject("syncer.file");
                file.sync_all().map_err(|e| write_error(&path, e))?;
            }
            Ok(())
        };
        let told = fallen.clone();
        let thread = thread::start("syncer", work, move |error| drop(told.set(error)))?;
        Ok(Syncer { files, thread, fallen })
    }

    /// Waits until all files are on the disk.
    fn finish(self) -> Result<()> {
        drop(self.files);
        let ended = self.thread.join().ok().flatten();
        let fallen = Arc::into_inner(self.fallen).and_then(OnceLock::into_inner);
        fallen.map_or_else(|| ended.unwrap_or_else(|| Err(broken())), Err)
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

    /// The name of a shard; `digest` is asked for only if the name holds it.
    fn file_name(&self, shard: &Shard, digest: impl FnOnce() -> String) -> String {
        let kind = if self.text { "txt" } else { "xml" };
        let gz = if self.encoder.is_some() { ".gz" } else { "" };
        let stem = shard.set.as_ref().map_or(&self.name, |set| &set.stem);
        match shard.border {
            None => format!("{stem}-{:05}.{kind}{gz}", shard.number),
            // whoever has an old index finds the old bytes: another content has another name
            Some(border) => format!("{stem}-{border:016x}-{}.{kind}{gz}", &digest()[..16]),
        }
    }

    /// Hands a file over to be fsynced.
    fn sync_later(&self, path: PathBuf, file: File) -> Result<()> {
        let files = {
            let mut syncer = self.syncer.lock().map_err(|_| broken())?;
            match &*syncer {
                Some(started) => started.files.clone(),
                None => syncer.insert(Syncer::new()?).files.clone(),
            }
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
fn digest(pieces: &[Piece]) -> String {
    let mut hasher = Hasher::new();
    for piece in pieces {
        hasher.update(piece.as_bytes());
    }
    hex(&hasher)
}

fn hex(hasher: &Hasher) -> String {
    hasher.finalize().to_hex()[..32].to_owned()
}

/// Looks at the bytes of a shard on their way to the encoder, and at what comes out.
struct Checked {
    /// The digest, where it is not known yet.
    hasher: Option<Hasher>,
    crc: Crc,
    length: u64,
}

impl Checked {
    fn see(&mut self, bytes: &[u8]) {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
        if !UNCHECKED {
            self.crc.update(bytes);
        }
        self.length += bytes.len() as u64;
    }

    /// A gzip file ends with the CRC and the length modulo 2^32 of what went in (RFC 1952).
    fn check_trailer(&self, trailer: [u8; 8]) -> Result<()> {
        let told = u64::from_le_bytes(trailer);
        let expected = u64::from(self.crc.sum()) | (self.length << 32);
        if told == expected || UNCHECKED {
            return Ok(());
        }
        let message = "the encoder did not compress what it was given";
        Err(Error::new(Kind::Output, "internal.gzip", message))
    }
}

impl Sink for Dir<'_> {
    fn write(&self, mut shard: Shard) -> Result<ShardEntry> {
        let mut pieces = std::mem::take(&mut shard.pieces);
        if !self.text {
            pieces.insert(0, Piece::of(frame::header(shard.namespaces).into_bytes()));
            pieces.push(Piece::of(frame::FOOTER.into()));
        }
        let mut known = None;
        let path = self.file_name(&shard, || known.insert(digest(&pieces)).clone());
        let live = self.live.get(&path);
        if live.is_some() {
            known.get_or_insert_with(|| digest(&pieces));
        }
        let mut entry = ShardEntry {
            number: shard.number,
            path,
            set: shard.set.clone(),
            urls: shard.urls,
            bytes: shard.bytes,
            compressed_bytes: shard.bytes,
            digest: String::new(),
            lastmod: newest_text(shard.newest),
            changed: true,
        };
        if let (Some(live), Some(digest)) = (live, &known)
            && live.digest == *digest
        {
            entry.digest.clone_from(digest);
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
                // a piece is looked at right before it is compressed, while it comes to the cache
                // anyhow
                let hasher = known.is_none().then(Hasher::new);
                let mut checked = Checked { hasher, crc: Crc::new(), length: 0 };
                let mut written = 0;
                let mut trailer = [0; 8];
                let mut pieces = pieces.into_iter().inspect(|piece| checked.see(piece.as_bytes()));
                encoder.encode(&mut pieces, &mut |packed| {
                    written += packed.len() as u64;
                    let kept = packed.len().min(8);
                    trailer.rotate_left(kept);
                    trailer[8 - kept..].copy_from_slice(&packed[packed.len() - kept..]);
                    file.write_all(packed).map_err(failed)
                })?;
                drop(pieces);
                checked.check_trailer(trailer)?;
                entry.compressed_bytes = written;
                known = known.or(checked.hasher.as_ref().map(hex));
                checked.length
            }
            None => {
                known.get_or_insert_with(|| digest(&pieces));
                let mut parts: Vec<_> =
                    pieces.iter().map(|piece| IoSlice::new(piece.as_bytes())).collect();
                let length = parts.iter().map(|part| part.len() as u64).sum();
                write_all_vectored(&mut file, &mut parts).map_err(failed)?;
                length
            }
        };
        entry.digest = known.unwrap_or_default();
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
