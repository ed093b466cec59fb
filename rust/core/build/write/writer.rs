//! Shards to files of a sink: named, digested, compressed, checked.

use std::mem::take;

use blake3::Hasher;
use libdeflater::Crc;

use crate::UNCHECKED;
use crate::build::write::claims::{Claim, Claims, same_name};
use crate::build::write::gzip::Encoder;
use crate::build::write::live::LiveShards;
use crate::build::write::sink::Sink;
use crate::config::{Config, Output};
use crate::error::{ErrorCode, Result};
use crate::flow::order::loc_of;
use crate::flow::outcome::{self, ShardEntry, newest_text};
use crate::flow::shard::{Piece, Shard};
use crate::sitemap::escape::unescaped;
use crate::sitemap::namespaces;

/// The sink, the compression and the live shards.
pub struct Destination<'d> {
    /// Where the files go.
    pub sink: &'d dyn Sink,
    /// The compression; files stay plain without it.
    pub encoder: Option<&'d dyn Encoder>,
    /// The live shards.
    pub live: LiveShards,
}

/// Writes shards. Workers call it at the same time.
pub struct ShardWriter<'d> {
    destination: Destination<'d>,
    /// the first part of the names
    name: String,
    /// one URL on each line, and no XML
    text: bool,
    /// the first loc of each shard is wanted
    ordered: bool,
    /// every name contains a digest of the bytes and of this text
    salt: Option<String>,
    /// hexadecimal digits of the digest in a stable name
    digits: usize,
    claims: Claims,
}

/// Digits of a digest in a name: 64 bits.
const NAME_DIGITS: usize = 16;
/// The last bytes of a gzip file: the CRC and the length modulo 2^32 of its content (RFC 1952).
const TRAILER: usize = 8;

impl<'d> ShardWriter<'d> {
    /// A writer for a configuration.
    pub fn new(config: &Config, destination: Destination<'d>) -> ShardWriter<'d> {
        ShardWriter {
            destination,
            name: config.name.clone(),
            text: config.output == Output::Text,
            ordered: config.ordered,
            salt: config.name_salt.clone(),
            digits: NAME_DIGITS,
            claims: Claims::default(),
        }
    }

    /// Writes one shard, unless a live one or another one of this run has the same bytes.
    ///
    /// # Errors
    /// Those of the sink and the encoder; `output.same_name`; `internal.gzip` and `internal.bytes`
    /// if the file is not the expected one.
    pub fn write(&self, mut shard: Shard) -> Result<ShardEntry> {
        let mut pieces = take(&mut shard.pieces);
        let first = pieces.first().filter(|_| self.ordered);
        let first = first.map(|piece| unescaped(loc_of(piece.as_bytes(), self.text)));
        if !self.text {
            pieces.insert(0, Piece::of(namespaces::header(shard.namespaces).into_bytes()));
            pieces.push(Piece::of(namespaces::FOOTER.into()));
        }
        let mut known = None;
        let path = self.file_name(&shard, || known.insert(digest(&pieces)).clone());
        let live = self.destination.live.get(&path);
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
            first,
        };
        if let (Some(live), Some(digest)) = (&live, &known) {
            if live.digest == *digest {
                entry.digest.clone_from(digest);
                entry.compressed_bytes = live.compressed_bytes;
                entry.changed = false;
                return Ok(entry);
            }
            if self.is_content_named(&shard) {
                return Err(same_name(&entry.path));
            }
        }
        let Some(digest) = known.as_ref().filter(|_| self.is_content_named(&shard)) else {
            return self.store(entry, pieces, known);
        };
        match self.claims.claim(&entry.path, digest)? {
            Claim::Write(writing) => {
                let written = self.store(entry, pieces, known);
                writing.end(&written);
                written
            }
            // the same rows twice make the same shard twice: one file serves both
            Claim::Wait(file) => {
                drop(pieces);
                entry.compressed_bytes = file.wait()?;
                entry.digest.clone_from(digest);
                Ok(entry)
            }
        }
    }

    /// All files are durable.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn finish(&self) -> Result<()> {
        self.destination.sink.finish()
    }

    /// The name of a shard. `digest` is called only if the name contains it.
    fn file_name(&self, shard: &Shard, digest: impl FnOnce() -> String) -> String {
        let kind = if self.text { "txt" } else { "xml" };
        let gz = if self.destination.encoder.is_some() { ".gz" } else { "" };
        let stem = shard.set.as_ref().map_or(&self.name, |set| &set.stem);
        if !self.is_content_named(shard) {
            return format!("{stem}-{:05}.{kind}{gz}", shard.number);
        }
        let mut digest = digest();
        if let Some(salt) = &self.salt {
            digest.push_str(salt);
            digest = outcome::digest(digest.as_bytes());
        }
        // another content has another name: an old index still refers to the old bytes
        match shard.boundary {
            None => {
                let (start, rest) = digest.split_at(NAME_DIGITS);
                format!("{stem}-{start}-{rest}.{kind}{gz}")
            }
            Some(boundary) => {
                format!("{stem}-{boundary:016x}-{}.{kind}{gz}", &digest[..self.digits])
            }
        }
    }

    /// Whether the name of a shard contains its digest: no other content ever has this name.
    fn is_content_named(&self, shard: &Shard) -> bool {
        shard.boundary.is_some() || self.salt.is_some()
    }

    /// Stores the file of a shard; `known` is its digest, if it was computed for the name.
    fn store(
        &self,
        mut entry: ShardEntry,
        pieces: Vec<Piece>,
        known: Option<String>,
    ) -> Result<ShardEntry> {
        let mut file = self.destination.sink.create(&entry.path)?;
        let mut content = EncoderInput::new(known.is_none(), self.destination.encoder.is_some());
        let mut written = EncoderOutput::default();
        // a piece is inspected right before it is compressed: then it is in the cache for both
        let mut pieces = pieces.into_iter().inspect(|piece| content.add(piece.as_bytes()));
        let output = &mut |part: &[u8]| {
            written.add(part);
            file.write(part)
        };
        match self.destination.encoder {
            Some(encoder) => encoder.encode(&mut pieces, output)?,
            None => pieces.try_for_each(|piece| output(piece.as_bytes()))?,
        }
        drop(pieces);
        entry.compressed_bytes = written.bytes;
        if content.trailer().is_some_and(|trailer| trailer != written.last) && !UNCHECKED {
            let message = format!("{}: is not what was to be compressed", entry.path);
            return Err(ErrorCode::InternalGzip.error(message));
        }
        // the packer counted the bytes before they were written
        if content.bytes != entry.bytes {
            let message =
                format!("{}: {} bytes, {} were counted", entry.path, content.bytes, entry.bytes);
            return Err(ErrorCode::InternalBytes.error(message));
        }
        entry.digest = known.or_else(|| content.digest()).unwrap_or_default();
        file.close(&entry)?;
        Ok(entry)
    }
}

/// The digest of uncompressed bytes.
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

/// Digest and checksum of the bytes that go into the encoder.
struct EncoderInput {
    /// the digest, if it is not known yet
    hasher: Option<Hasher>,
    /// the checksum, if the file is compressed
    crc: Option<Crc>,
    bytes: u64,
}

impl EncoderInput {
    fn new(digest: bool, compressed: bool) -> EncoderInput {
        let crc = (compressed && !UNCHECKED).then(Crc::new);
        EncoderInput { hasher: digest.then(Hasher::new), crc, bytes: 0 }
    }

    fn add(&mut self, bytes: &[u8]) {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(bytes);
        }
        if let Some(crc) = &mut self.crc {
            crc.update(bytes);
        }
        self.bytes += bytes.len() as u64;
    }

    fn digest(&self) -> Option<String> {
        self.hasher.as_ref().map(hex)
    }

    /// The trailer that the gzip file must have.
    fn trailer(&self) -> Option<[u8; TRAILER]> {
        let crc = self.crc.as_ref()?;
        Some((u64::from(crc.sum()) | (self.bytes << 32)).to_le_bytes())
    }
}

/// Size and last bytes of the output of the encoder.
#[derive(Default)]
struct EncoderOutput {
    bytes: u64,
    last: [u8; TRAILER],
}

impl EncoderOutput {
    fn add(&mut self, part: &[u8]) {
        self.bytes += part.len() as u64;
        match part.last_chunk() {
            Some(last) => self.last = *last,
            None => {
                self.last.rotate_left(part.len());
                self.last[TRAILER - part.len()..].copy_from_slice(part);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::write::memory::MemorySink;
    use crate::flow::entry::NO_LASTMOD;

    fn shard(number: u64, text: &str) -> Shard {
        Shard {
            number,
            pieces: vec![Piece::of(text.as_bytes().to_vec())],
            urls: 1,
            bytes: text.len() as u64 + namespaces::length(0),
            namespaces: 0,
            newest: NO_LASTMOD,
            boundary: Some(7),
            set: None,
            reserved: None,
        }
    }

    #[test]
    fn another_content_of_the_same_name_is_an_error() {
        let config = Config::from_json(r#"{"site": "https://a.example"}"#).unwrap();
        let sink = MemorySink::default();
        let writer = |live| {
            let mut writer =
                ShardWriter::new(&config, Destination { sink: &sink, encoder: None, live });
            writer.digits = 0; // as if all digests began with the same digits
            writer
        };
        let new = writer(LiveShards::default());
        let first = new.write(shard(1, "a")).unwrap();
        assert_eq!(new.write(shard(2, "b")).unwrap_err().code, "output.same_name");
        assert!(String::from_utf8_lossy(&sink.take()[&first.path]).contains(">\na<"));
        // nor is a live file overwritten
        let live = [(&*first.path, &*first.digest, first.compressed_bytes)];
        let live = writer(LiveShards::new(live));
        assert!(!live.write(shard(1, "a")).unwrap().changed);
        assert_eq!(live.write(shard(2, "b")).unwrap_err().code, "output.same_name");
        assert!(sink.take().is_empty());
    }
}
