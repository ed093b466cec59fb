//! The URLs that a build leaves out (`--exclude`), as hashes of their locs.
//!
//! The file with these URLs is rendered by the same rules as the rows of the build, so that two
//! spellings of a URL have the same hash.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use crate::error::{ErrorCode, Result};
use crate::flow::chunk::Chunk;
use crate::flow::entry::LOC_OFFSET;
use crate::flow::hash::HashKey;

/// The hashes are in the configuration of all parts of a job: the key is the same in every process.
const KEY: HashKey = HashKey::fixed(0, 1);
/// Hexadecimal digits of a hash.
const DIGITS: usize = 32;

/// A hasher for values that are hashes.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u128(&mut self, value: u128) {
        self.0 = value as u64;
    }
}

/// The URLs to leave out.
pub struct Exclusion {
    hashes: HashSet<u128, BuildHasherDefault<Identity>>,
    text: bool,
}

impl Exclusion {
    /// From the hashes in hexadecimal, as [`hashes`] writes them. `text`: chunks are text sitemaps.
    ///
    /// # Errors
    /// `config.invalid` for other text.
    pub fn parse(digits: &str, text: bool) -> Result<Exclusion> {
        let parse = |chunk: &[u8]| {
            let digits = std::str::from_utf8(chunk).ok().filter(|_| chunk.len() == DIGITS)?;
            u128::from_str_radix(digits, 16).ok()
        };
        let hashes: Option<HashSet<_, _>> = digits.as_bytes().chunks(DIGITS).map(parse).collect();
        let hashes = hashes.ok_or_else(|| {
            ErrorCode::ConfigInvalid.error("configuration: exclude contains no hashes")
        })?;
        Ok(Exclusion { hashes, text })
    }

    /// Removes the elements of excluded URLs; returns their number.
    pub fn remove(&self, chunk: &mut Chunk) -> u64 {
        let is_excluded = |(_, hash): &(u32, u128)| self.hashes.contains(hash);
        let removed: Vec<u32> =
            (0..).zip(hashes_of(chunk, self.text)).filter(is_excluded).map(|(n, _)| n).collect();
        chunk.remove(&removed);
        removed.len() as u64
    }
}

/// The hashes of the locs of a chunk in hexadecimal.
pub fn hashes(chunk: &Chunk, text: bool) -> String {
    hashes_of(chunk, text).map(|hash| format!("{hash:032x}")).collect()
}

fn hashes_of(chunk: &Chunk, text: bool) -> impl Iterator<Item = u128> {
    let mut end = 0;
    chunk.entries.iter().map(move |entry| {
        let element = &chunk.bytes[end..end + entry.len as usize];
        end += element.len();
        let (start, last) = if text { (0, b'\n') } else { (LOC_OFFSET, b'<') };
        let loc = &element[start..];
        KEY.hash128(&loc[..memchr::memchr(last, loc).unwrap_or(loc.len())])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::entry::{Entry, NO_LASTMOD};

    fn chunk(elements: &[&str]) -> Chunk {
        let mut chunk = Chunk::default();
        for element in elements {
            chunk.bytes.extend_from_slice(element.as_bytes());
            let len = element.len() as u32;
            chunk.entries.push(Entry { len, row: 0, newest: NO_LASTMOD, namespaces: 0 });
        }
        chunk
    }

    #[test]
    fn removes_the_elements_of_equal_locs() {
        let url =
            |path: &str, rest: &str| format!("<url><loc>https://a.de/{path}</loc>{rest}</url>");
        let digits = hashes(&chunk(&[&url("2", ""), &url("4", "<priority>")]), false);
        let exclusion = Exclusion::parse(&digits, false).unwrap();
        let all: Vec<String> = ["1", "2", "22", "4"].map(|path| url(path, "<lastmod>")).into();
        let mut given = chunk(&all.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(exclusion.remove(&mut given), 2);
        assert_eq!(given.bytes, format!("{}{}", all[0], all[2]).into_bytes());
        assert_eq!(given.entries.len(), 2);
    }

    #[test]
    fn text_sitemaps() {
        let digits = hashes(&chunk(&["https://a.de/1\n"]), true);
        let exclusion = Exclusion::parse(&digits, true).unwrap();
        let mut given = chunk(&["https://a.de/\n", "https://a.de/1\n"]);
        assert_eq!(exclusion.remove(&mut given), 1);
        assert_eq!(given.bytes, b"https://a.de/\n");
    }

    #[test]
    fn refuses_other_text() {
        for digits in ["0", "zz", &"g".repeat(DIGITS), &"0".repeat(DIGITS + 1)] {
            assert!(Exclusion::parse(digits, false).is_err(), "{digits}");
        }
        assert!(Exclusion::parse("", false).is_ok());
    }
}
