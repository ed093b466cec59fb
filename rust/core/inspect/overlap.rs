//! What two generations of a shard have in common at their ends, left out before they are compared.
//!
//! An edit leaves the border of its stable shard mostly where it is, so the old and the new shard of
//! that border begin and end alike. Equal entries at both ends cancel, because in a build with a
//! change feed no URL stands in two places (it needs `--duplicates drop` or `fail`). Only what lies
//! between goes to the comparison, which costs far more a byte.

use std::cell::RefCell;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use memchr::memmem::{find, rfind};

use crate::error::{Error, Result};
use crate::inspect::document::regular;

const URL: &[u8] = b"<url>";
const END: &[u8] = b"</urlset>\n";
/// No shard of ours is larger, packed or not; what is goes to the comparison as it is.
const MOST: u64 = 64 << 20;

thread_local! {
    // fresh memory for each document would take as long as to inflate it
    static DOCUMENTS: RefCell<[Vec<u8>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

/// Writes what differs in `old` and `new`, plain or gzip by their names, as documents to `to`; tells
/// which of the two have entries left, and so were written. `None` where one cannot be read or has
/// no entries: the comparison says why.
///
/// # Errors
/// When a file cannot be written.
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

/// The document of a file in `to`, whose former content does not matter.
fn read(path: &Path, to: &mut Vec<u8>) -> Option<()> {
    let (mut file, about) = regular::open(path).ok()?;
    to.clear();
    if path.extension().is_none_or(|extension| extension != "gz") {
        file.take(MOST + 1).read_to_end(to).ok()?;
        return (to.len() as u64 <= MOST).then_some(());
    }
    if about.len() > MOST {
        return None;
    }
    let mut packed = Vec::with_capacity(about.len() as usize);
    file.read_to_end(&mut packed).ok()?;
    // a gzip file ends with the length of what it holds (RFC 1952)
    let length = u32::from_le_bytes(*packed.last_chunk()?);
    if u64::from(length) > MOST {
        return None;
    }
    to.resize(length as usize, 0);
    let found = libdeflater::Decompressor::new().gzip_decompress(&packed, to).ok()?;
    (found == to.len()).then_some(())
}

/// What is left of a document, in parts; nothing where it has no entries of its own.
type Left<'t> = Option<[&'t [u8]; 3]>;

/// Both documents without the entries that they share at their beginning and at their end.
fn cut<'t>(old: &'t [u8], new: &'t [u8]) -> Option<[Left<'t>; 2]> {
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

/// Compared at once.
const BLOCK: usize = 4096;

/// How many bytes two texts begin with alike.
fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    let blocks = one.chunks_exact(BLOCK).zip(other.chunks_exact(BLOCK));
    let whole = blocks.take_while(|(a, b)| a == b).count() * BLOCK;
    let rest = one[whole..].iter().zip(&other[whole..]);
    whole + rest.take_while(|(a, b)| a == b).count()
}

/// How many bytes, of at most `most`, two texts end with alike.
fn common_suffix(one: &[u8], other: &[u8], most: usize) -> usize {
    let [one, other] = [one, other].map(|text| &text[text.len().saturating_sub(most)..]);
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
            let most = random(one.len().min(other.len()) + 1);
            let pairs = one.iter().rev().zip(other.iter().rev());
            let same = pairs.take_while(|(a, b)| a == b).count().min(most);
            assert_eq!(common_suffix(&one, &other, most), same);
        }
    }
}
