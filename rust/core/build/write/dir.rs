//! Shards to a staging folder: named, digested, compressed, written, fsynced.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, IoSlice, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

use blake3::Hasher;
use crossbeam_channel::{Sender, bounded};
use libdeflater::Crc;

use crate::UNCHECKED;
use crate::build::write::Sink;
use crate::build::write::gzip::Encoder;
use crate::error::{Error, Kind, Result};
use crate::flow::outcome::{ShardEntry, newest_text};
use crate::flow::shard::{Piece, Shard};
use crate::sitemap::namespaces;
use crate::thread;
use crate::thread::inject;

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
    /// Hexadecimal digits of the digest in a stable name.
    digits: usize,
    /// Files that are named by their content, by path: two shards may be equal.
    claims: Mutex<HashMap<String, Arc<Claim>>>,
    syncer: Mutex<Option<Syncer>>,
}

/// Digits of a digest in a name: 64 bits.
const DIGITS: usize = 16;

/// A file that is named by its content, and that one thread writes.
struct Claim {
    digest: String,
    /// its size, once it is complete, or why it is not
    written: OnceLock<Result<u64>>,
}

impl Claim {
    /// Waits until the file is complete.
    fn wait(&self) -> Result<u64> {
        match self.written.wait() {
            Ok(size) => Ok(*size),
            Err(e) => Err(Error::new(e.kind, e.code, e.message.clone())),
        }
    }
}

/// Held by the thread that writes a claimed file. Whoever waits for the file goes on when this is
/// dropped, also by a panic.
struct Writing(Arc<Claim>);

impl Writing {
    /// Lets those go on that wait.
    fn end(self, written: &Result<ShardEntry>) {
        let written = match written {
            Ok(entry) => Ok(entry.compressed_bytes),
            Err(e) => Err(Error::new(e.kind, e.code, e.message.clone())),
        };
        // nobody else sets it
        let _ = self.0.written.set(written);
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let _ = self.0.written.set(Err(broken()));
    }
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
                file.sync_all().map_err(|e| Error::unwritable(&path, e))?;
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
        let (claims, syncer) = (Mutex::default(), Mutex::new(None));
        Dir { folder, name, text, encoder, live, digits: DIGITS, claims, syncer }
    }

    /// The name of a shard; `digest` is asked for only if the name holds it.
    fn file_name(&self, shard: &Shard, digest: impl FnOnce() -> String) -> String {
        let kind = if self.text { "txt" } else { "xml" };
        let gz = if self.encoder.is_some() { ".gz" } else { "" };
        let stem = shard.set.as_ref().map_or(&self.name, |set| &set.stem);
        match shard.boundary {
            None => format!("{stem}-{:05}.{kind}{gz}", shard.number),
            // whoever has an old index finds the old bytes: another content has another name
            Some(border) => {
                format!("{stem}-{border:016x}-{}.{kind}{gz}", &digest()[..self.digits])
            }
        }
    }

    /// Claims a file that is named by its content: the claim, and leave to write the file for the
    /// first that asks.
    ///
    /// # Errors
    /// Where the file has another content, whose digest begins alike.
    fn claim(&self, path: &str, digest: &str) -> Result<(Arc<Claim>, Option<Writing>)> {
        let mut claims = self.claims.lock().map_err(|_| broken())?;
        if let Some(claim) = claims.get(path) {
            return if claim.digest == digest {
                Ok((claim.clone(), None))
            } else {
                Err(same_name(path))
            };
        }
        let claim = Arc::new(Claim { digest: digest.to_owned(), written: OnceLock::new() });
        claims.insert(path.to_owned(), claim.clone());
        Ok((claim.clone(), Some(Writing(claim))))
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

/// Two contents would have one name: 64 bits of their digests are equal.
fn same_name(path: &str) -> Error {
    let message = format!(
        "{path}: another shard with another content has this name; choose another --max-urls or \
         --layout packed"
    );
    Error::new(Kind::Output, "output.same_name", message)
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

/// Looks at the bytes of a shard on their way to the encoder.
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

    /// What a gzip file ends with: the CRC and the length modulo 2^32 of what went in (RFC 1952).
    fn trailer(&self) -> [u8; 8] {
        (u64::from(self.crc.sum()) | (self.length << 32)).to_le_bytes()
    }
}

/// Whether a file has the size that was written to it, and ends as it must.
fn check_file(path: &Path, file: &File, size: u64, trailer: Option<[u8; 8]>) -> Result<()> {
    let failed = |e| Error::unwritable(path, e);
    let found = file.metadata().map_err(failed)?.len();
    if found != size {
        let message = format!("{}: {found} bytes, {size} were written", path.display());
        return Err(Error::new(Kind::Output, "output.damaged", message));
    }
    let Some(trailer) = trailer else { return Ok(()) };
    let mut end = [0; 8];
    file.read_exact_at(&mut end, size.saturating_sub(8)).map_err(failed)?;
    if end == trailer || UNCHECKED {
        return Ok(());
    }
    let message = format!("{}: is not what was to be compressed", path.display());
    Err(Error::new(Kind::Output, "internal.gzip", message))
}

impl Sink for Dir<'_> {
    fn write(&self, mut shard: Shard) -> Result<ShardEntry> {
        let mut pieces = std::mem::take(&mut shard.pieces);
        if !self.text {
            pieces.insert(0, Piece::of(namespaces::header(shard.namespaces).into_bytes()));
            pieces.push(Piece::of(namespaces::FOOTER.into()));
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
        if let (Some(live), Some(digest)) = (live, &known) {
            if live.digest == *digest {
                entry.digest.clone_from(digest);
                entry.compressed_bytes = live.compressed_bytes;
                entry.changed = false;
                return Ok(entry);
            }
            if shard.boundary.is_some() {
                return Err(same_name(&entry.path));
            }
        }
        let Some(digest) = known.as_ref().filter(|_| shard.boundary.is_some()) else {
            return self.stage(entry, pieces, known);
        };
        let (claim, writing) = self.claim(&entry.path, digest)?;
        match writing {
            Some(writing) => {
                let written = self.stage(entry, pieces, known);
                writing.end(&written);
                written
            }
            // the same rows twice give the same stable shard twice: one file serves both
            None => {
                drop(pieces);
                entry.compressed_bytes = claim.wait()?;
                entry.digest.clone_from(digest);
                Ok(entry)
            }
        }
    }

    fn finish(&self) -> Result<()> {
        if let Some(syncer) = self.syncer.lock().map_err(|_| broken())?.take() {
            syncer.finish()?;
        }
        File::open(&self.folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|e| Error::unwritable(&self.folder, e))
    }
}

impl Dir<'_> {
    /// Writes the file of a shard, which must not be there yet; `known` is its digest, if it was
    /// asked for.
    fn stage(
        &self,
        mut entry: ShardEntry,
        pieces: Vec<Piece>,
        mut known: Option<String>,
    ) -> Result<ShardEntry> {
        let target = self.folder.join(&entry.path);
        let failed = |e| Error::unwritable(&target, e);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        let mut file =
            options.read(true).write(true).create_new(true).open(&target).map_err(failed)?;
        let length = match self.encoder {
            Some(encoder) => {
                // a piece is looked at right before it is compressed, while it comes to the cache
                // anyhow
                let hasher = known.is_none().then(Hasher::new);
                let mut checked = Checked { hasher, crc: Crc::new(), length: 0 };
                let mut written = 0;
                let mut pieces = pieces.into_iter().inspect(|piece| checked.see(piece.as_bytes()));
                encoder.encode(&mut pieces, &mut |packed| {
                    written += packed.len() as u64;
                    file.write_all(packed).map_err(failed)
                })?;
                drop(pieces);
                check_file(&target, &file, written, Some(checked.trailer()))?;
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
                check_file(&target, &file, length, None)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::write::gzip::Libdeflate;

    fn shard(number: u64, text: &str) -> Shard {
        Shard {
            number,
            pieces: vec![Piece::of(text.as_bytes().to_vec())],
            urls: 1,
            bytes: text.len() as u64 + namespaces::length(0),
            namespaces: 0,
            newest: crate::flow::entry::NO_LASTMOD,
            boundary: Some(7),
            set: None,
            reserved: None,
        }
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("urlset-dir-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn equal_shards_are_written_once() {
        let folder = folder("equal");
        let encoder = Libdeflate::new(1).unwrap();
        let dir = Dir::new(folder.clone(), "s".into(), false, Some(&encoder), HashMap::new());
        let text = "<url>".repeat(200_000);
        let entries: Vec<ShardEntry> = std::thread::scope(|scope| {
            let threads: Vec<_> = (1..=8)
                .map(|number| {
                    let (dir, text) = (&dir, &text);
                    scope.spawn(move || dir.write(shard(number, text)).unwrap())
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        dir.finish().unwrap();
        let size = fs::metadata(folder.join(&entries[0].path)).unwrap().len();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        for entry in &entries {
            assert_eq!((&entry.path, &entry.digest), (&entries[0].path, &entries[0].digest));
            assert_eq!(entry.compressed_bytes, size);
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_failure_reaches_all_that_wait_for_the_file() {
        let folder = folder("failure");
        let dir = Dir::new(folder.join("none/"), "s".into(), false, None, HashMap::new());
        fs::write(folder.join("none"), "").unwrap();
        for number in 1..=3 {
            let error = dir.write(shard(number, "a")).unwrap_err();
            assert_eq!(error.code, "output.unwritable");
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn another_content_is_not_written_over() {
        let folder = folder("another");
        let mut dir = Dir::new(folder.clone(), "s".into(), false, None, HashMap::new());
        dir.digits = 0; // as if the digests began alike
        let first = dir.write(shard(1, "a")).unwrap();
        let error = dir.write(shard(2, "b")).unwrap_err();
        assert_eq!(error.code, "output.same_name");
        assert!(fs::read_to_string(folder.join(&first.path)).unwrap().contains('a'));
        // nor is a live one
        let live = HashMap::from([(
            first.path,
            Live { digest: first.digest, compressed_bytes: first.compressed_bytes },
        )]);
        let mut dir = Dir::new(folder.join("next"), "s".into(), false, None, live);
        dir.digits = 0;
        assert!(!dir.write(shard(1, "a")).unwrap().changed);
        assert_eq!(dir.write(shard(2, "b")).unwrap_err().code, "output.same_name");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_there_already_is_no_place_for_a_shard() {
        let folder = folder("there");
        let mut numbered = shard(3, "a");
        numbered.boundary = None;
        fs::write(folder.join("s-00003.xml"), "foreign").unwrap();
        let dir = Dir::new(folder.clone(), "s".into(), false, None, HashMap::new());
        assert_eq!(dir.write(numbered).unwrap_err().code, "output.unwritable");
        assert_eq!(fs::read_to_string(folder.join("s-00003.xml")).unwrap(), "foreign");
        fs::remove_dir_all(&folder).unwrap();
    }

    /// A device that takes all and keeps nothing.
    #[test]
    fn a_file_that_is_short_is_found() {
        let null = OpenOptions::new().read(true).write(true).open("/dev/null").unwrap();
        let path = Path::new("/dev/null");
        assert_eq!(check_file(path, &null, 5, None).unwrap_err().code, "output.damaged");
        let folder = folder("short");
        let target = folder.join("x");
        fs::write(&target, "0123456789").unwrap();
        let file = File::open(&target).unwrap();
        assert!(check_file(&target, &file, 10, Some(*b"23456789")).is_ok());
        let wrong = check_file(&target, &file, 10, Some(*b"23456780")).unwrap_err();
        assert_eq!(wrong.code, "internal.gzip");
        fs::remove_dir_all(&folder).unwrap();
    }
}
