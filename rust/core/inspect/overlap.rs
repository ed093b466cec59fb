//! Removes the entries that two generations of a shard share at both ends, before a comparison.
//!
//! An edit usually keeps the boundary of its stable shard, so the old and the new shard with that
//! boundary begin and end with the same entries. Equal entries at both ends cancel, because in a
//! build with a change feed no URL occurs twice (it requires `--duplicates drop` or `fail`). Only the
//! entries between them are compared, since the comparison is far slower per byte.
//!
//! # For maintainers
//!
//! **What must stay true.** Each cut is at the start of a `<url>`, so that no entry is split. The common
//! suffix is limited to the bytes after the common prefix, so that repeated entries are not removed from
//! both ends. A file that cannot be read as a shard of a build is not cut: the function returns `None`.
//!
//! **Which tests fail.** The test below compares both ends with a loop over bytes.
//! `test_common_ends_are_cut` in `tests/python/test_nightly.py` compares the entries that remain.

use std::cell::RefCell;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use memchr::memmem::{find, rfind};

use crate::error::{Error, Result};
use crate::inspect::document::regular;

const URL: &[u8] = b"<url>";
const END: &[u8] = b"</urlset>\n";
/// No shard of a build is larger, compressed or not; a larger file is compared as a whole.
const MAX_BYTES: u64 = 64 << 20;

thread_local! {
    // allocating memory for each document would take as long as inflating it
    static DOCUMENTS: RefCell<[Vec<u8>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

/// Writes the differing parts of `old` and `new` as documents to `to`. Files are plain or gzip by
/// their names. Returns which documents have entries and were written, or `None` if a file cannot be
/// read or has no entries: the comparison of the whole files then reports the reason.
///
/// # Errors
/// A file cannot be written.
pub fn write_differences(old: &Path, new: &Path, to: [&Path; 2]) -> Result<Option<[bool; 2]>> {
    DOCUMENTS.with_borrow_mut(|[one, other]| {
        if read(old, one).is_none() || read(new, other).is_none() {
            return Ok(None);
        }
        let Some(cuts) = cut(one, other) else { return Ok(None) };
        let mut written = [false; 2];
        for (side, (cut, path)) in cuts.iter().zip(to).enumerate() {
            if let Some(parts) = cut {
                let failed = |e| Error::unwritable(path, e);
                let mut file = File::create(path).map_err(failed)?;
                parts.iter().try_for_each(|part| file.write_all(part)).map_err(failed)?;
                written[side] = true;
            }
        }
        Ok(Some(written))
    })
}

/// Reads the document of a file into `to`, whose former content is overwritten.
fn read(path: &Path, to: &mut Vec<u8>) -> Option<()> {
    let (mut file, about) = regular::open(path).ok()?;
    to.clear();
    if path.extension().is_none_or(|extension| extension != "gz") {
        file.take(MAX_BYTES + 1).read_to_end(to).ok()?;
        return (to.len() as u64 <= MAX_BYTES).then_some(());
    }
    if about.len() > MAX_BYTES {
        return None;
    }
    let mut packed = Vec::with_capacity(about.len() as usize);
    file.read_to_end(&mut packed).ok()?;
    // a gzip file ends with the length of its content (RFC 1952)
    let length = u32::from_le_bytes(*packed.last_chunk()?);
    if u64::from(length) > MAX_BYTES {
        return None;
    }
    to.resize(length as usize, 0);
    let found = libdeflater::Decompressor::new().gzip_decompress(&packed, to).ok()?;
    (found == to.len()).then_some(())
}

/// The rest of a document, in parts; `None` if no entries are left.
type Remainder<'t> = Option<[&'t [u8]; 3]>;

/// Both documents without the entries that they share at their beginning and at their end.
fn cut<'t>(old: &'t [u8], new: &'t [u8]) -> Option<[Remainder<'t>; 2]> {
    let first = [find(old, URL)?, find(new, URL)?];
    let start = rfind(&old[..common_prefix(old, new)], URL);
    let starts = start.map_or(first, |start| [start, start]);
    let room = (old.len() - starts[0]).min(new.len() - starts[1]);
    let same = common_suffix(old, new, room);
    let kept = find(&old[old.len() - same..], URL).map_or(END.len(), |tail| same - tail);
    let left = |text: &'t [u8], side: usize| {
        let middle = text.get(starts[side]..text.len().saturating_sub(kept)).unwrap_or_default();
        find(middle, URL).map(|_| [&text[..first[side]], middle, END])
    };
    Some([left(old, 0), left(new, 1)])
}

/// Bytes that are compared at once.
const BLOCK: usize = 4096;

/// The number of equal bytes at the start of two texts.
fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    let blocks = one.chunks_exact(BLOCK).zip(other.chunks_exact(BLOCK));
    let whole = blocks.take_while(|(a, b)| a == b).count() * BLOCK;
    let rest = one[whole..].iter().zip(&other[whole..]);
    whole + rest.take_while(|(a, b)| a == b).count()
}

/// The number of equal bytes at the end of two texts, at most `limit`.
fn common_suffix(one: &[u8], other: &[u8], limit: usize) -> usize {
    let [one, other] = [one, other].map(|text| &text[text.len().saturating_sub(limit)..]);
    let blocks = one.rchunks_exact(BLOCK).zip(other.rchunks_exact(BLOCK));
    let whole = blocks.take_while(|(a, b)| a == b).count() * BLOCK;
    let [one, other] = [one, other].map(|text| &text[..text.len() - whole]);
    let rest = one.iter().rev().zip(other.iter().rev());
    whole + rest.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_ends_as_byte_by_byte() {
        let mut seed = 3_u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        for round in 0..400 {
            let size = [10, 300, BLOCK * 3][round % 3];
            let alike: [Vec<u8>; 2] =
                [(); 2].map(|()| (0..random(size)).map(|_| random(256) as u8).collect());
            let [one, other] = [(); 2].map(|()| {
                let middle: Vec<u8> = (0..random(3)).map(|_| random(256) as u8).collect();
                [&alike[0][..], &middle[..], &alike[1][..]].concat()
            });
            let pairs = one.iter().zip(&other);
            assert_eq!(common_prefix(&one, &other), pairs.take_while(|(a, b)| a == b).count());
            let limit = random(one.len().min(other.len()) + 1);
            let pairs = one.iter().rev().zip(other.iter().rev());
            let same = pairs.take_while(|(a, b)| a == b).count().min(limit);
            assert_eq!(common_suffix(&one, &other, limit), same);
        }
    }
}
