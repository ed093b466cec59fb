//! The live shards of a set, in a form that is small enough to go to each of thousands of tasks.

use crate::flow::outcome::digest;

/// A live shard. A new shard with the same bytes is not written again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    /// Its digest, as [`ShardEntry::digest`](crate::flow::outcome::ShardEntry::digest) has it.
    pub digest: String,
    /// Bytes of the file.
    pub compressed_bytes: u64,
}

/// The live shards, found by path.
///
/// An entry has the first bytes of the digest of its path, the digest of its content, and the size
/// of the file, little-endian. The entries are sorted.
#[derive(Debug, Clone, Default)]
pub struct LiveShards(Vec<u8>);

/// Hexadecimal digits of the digest of a path: two of 200,000 paths agree once in 10^18 sets.
const KEY_DIGITS: usize = 24;
const DIGEST_DIGITS: usize = 32;
const KEY: usize = KEY_DIGITS / 2;
const CONTENT: usize = KEY + DIGEST_DIGITS / 2;
const ENTRY: usize = CONTENT + size_of::<u32>();

impl LiveShards {
    /// The shards with these paths. Without a legal digest, or with 4 GiB, which no sitemap has, a
    /// shard is not found: it is written again.
    pub fn new<'s>(shards: impl IntoIterator<Item = (&'s str, &'s str, u64)>) -> LiveShards {
        let mut entries: Vec<[u8; ENTRY]> = shards
            .into_iter()
            .filter_map(|(path, content, compressed_bytes)| {
                let mut entry = [0; ENTRY];
                entry[..KEY].copy_from_slice(&key(path)?);
                read_hex(content, &mut entry[KEY..CONTENT])?;
                let size = u32::try_from(compressed_bytes).ok()?;
                entry[CONTENT..].copy_from_slice(&size.to_le_bytes());
                Some(entry)
            })
            .collect();
        entries.sort_unstable();
        LiveShards(entries.concat())
    }

    /// The shards in the bytes that [`LiveShards::as_bytes`] returned.
    pub fn from_bytes(bytes: Vec<u8>) -> LiveShards {
        LiveShards(bytes)
    }

    /// All entries.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The shard with this path.
    pub fn get(&self, path: &str) -> Option<Live> {
        find(&self.0, path)
    }
}

/// The shard with this path in the bytes that [`LiveShards::as_bytes`] returned.
pub fn find(live: &[u8], path: &str) -> Option<Live> {
    let (entries, _) = live.as_chunks::<ENTRY>();
    if entries.is_empty() {
        return None;
    }
    let key = key(path)?;
    let found = entries.binary_search_by(|entry| entry[..KEY].cmp(&key)).ok()?;
    let (content, size) = entries[found][KEY..].split_at(CONTENT - KEY);
    Some(Live {
        digest: content.iter().map(|byte| format!("{byte:02x}")).collect(),
        compressed_bytes: u64::from(u32::from_le_bytes(size.try_into().ok()?)),
    })
}

fn key(path: &str) -> Option<[u8; KEY]> {
    let mut key = [0; KEY];
    read_hex(&digest(path.as_bytes())[..KEY_DIGITS], &mut key)?;
    Some(key)
}

fn read_hex(text: &str, bytes: &mut [u8]) -> Option<()> {
    if text.len() != 2 * bytes.len() || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (number, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * number..2 * number + 2], 16).ok()?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_found_by_path() {
        let known: Vec<(String, String, u64)> = (0..1_000_u64)
            .map(|n| (format!("s-{n:05}.xml.gz"), digest(&n.to_le_bytes()), n * 4_000_000))
            .collect();
        let live =
            LiveShards::new(known.iter().map(|(path, content, n)| (&**path, &**content, *n)));
        let live = LiveShards::from_bytes(live.as_bytes().to_vec());
        assert_eq!(live.as_bytes().len(), 1_000 * ENTRY);
        for (path, content, n) in known {
            assert_eq!(live.get(&path), Some(Live { digest: content, compressed_bytes: n }));
        }
        assert_eq!(live.get("s-01000.xml.gz"), None);
        assert_eq!(LiveShards::default().get("s"), None);
    }

    #[test]
    fn what_cannot_be_a_shard_is_not_found() {
        let good = digest(b"a");
        let live = LiveShards::new([
            ("short", &good[1..], 1),
            ("sign", "+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1+1", 1),
            ("large", &good, 1 << 32),
            ("good", &good, (1 << 32) - 1),
        ]);
        assert_eq!(live.as_bytes().len(), ENTRY);
        assert_eq!(live.get("good").unwrap().compressed_bytes, (1 << 32) - 1);
    }
}
