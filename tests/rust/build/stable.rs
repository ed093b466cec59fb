//! The packer of stable shards.

use std::sync::Arc;

use urlset_core::build::shard::packer::Limits;
use urlset_core::build::shard::stable::StablePacker;
use urlset_core::flow::chunk::Chunk;
use urlset_core::flow::entry::{Entry, NO_LASTMOD};
use urlset_core::flow::shard::Shard;

use crate::common::random::Random;

/// Every shard but the last fills at least this share of the limits.
const MIN_FILL_PERCENT: u64 = 30;

/// A plain model of the rule: rows are (hash, length, namespaces).
fn model(limits: Limits, rows: &[(u64, u32, u8)]) -> Vec<(usize, u64)> {
    let mut made = Vec::new();
    let mut start = 0;
    while start < rows.len() {
        let fits = |rows: &[(u64, u32, u8)]| {
            let bytes: u64 = rows.iter().map(|row| u64::from(row.1)).sum();
            let namespaces = rows.iter().fold(0, |all, row| all | row.2);
            rows.len() <= limits.urls as usize && bytes + limits.frame(namespaces) <= limits.bytes
        };
        let mut end = start + 1;
        while end < rows.len() && fits(&rows[start..=end]) {
            end += 1;
        }
        if end < rows.len() {
            let enough = |last: &usize| {
                let body: u64 = rows[start..=*last].iter().map(|row| u64::from(row.1)).sum();
                (last - start + 1) as u64 * 100 >= u64::from(limits.urls) * MIN_FILL_PERCENT
                    || body * 100 >= limits.bytes * MIN_FILL_PERCENT
            };
            let boundary = (start..end).filter(enough).min_by_key(|&last| rows[last].0);
            end = boundary.map_or(end, |last| last + 1);
        }
        made.push((end - start, rows[end - 1].0));
        start = end;
    }
    made
}

#[test]
fn boundaries_follow_the_rule() {
    let mut random = Random::new(11);
    let mut random = |limit: u64| random.below(limit);
    for round in 0..400 {
        let limits = Limits { urls: 1 + random(40) as u32, bytes: 900, text: false };
        let range = [3, 50, 1 << 30][round % 3]; // few hashes: many are equal
        let count = random(300) as usize;
        let rows: Vec<(u64, u32, u8)> = (0..count)
            .map(|_| (random(range), 1 + random(90) as u32, (1 << random(9)) as u8 & 15))
            .collect();
        let mut packer = StablePacker::new(limits);
        let mut shards = Vec::new();
        let mut emit = |shard: Shard| {
            shards.push(shard);
            Ok::<(), ()>(())
        };
        let mut left = &rows[..];
        let mut text = Vec::new();
        while !left.is_empty() {
            let (now, later) = left.split_at(left.len().min(1 + random(60) as usize));
            left = later;
            let mut chunk = Chunk::default();
            for (hash, len, namespaces) in now {
                let letter = b'a' + random(26) as u8;
                chunk.bytes.extend(std::iter::repeat_n(letter, *len as usize));
                text.extend(std::iter::repeat_n(letter, *len as usize));
                let newest = NO_LASTMOD;
                let entry = Entry { len: *len, row: 0, newest, namespaces: *namespaces };
                chunk.entries.push(entry);
                chunk.boundaries.push(*hash);
            }
            packer.push(&Arc::new(chunk), &mut emit).unwrap();
        }
        shards.extend(packer.finish());
        let got: Vec<(usize, u64)> =
            shards.iter().map(|shard| (shard.urls as usize, shard.boundary.unwrap())).collect();
        assert_eq!(got, model(limits, &rows));
        let mut read = Vec::new();
        for (n, shard) in shards.iter().enumerate() {
            assert_eq!(shard.number, n as u64 + 1);
            let before = read.len();
            shard.pieces.iter().for_each(|piece| read.extend_from_slice(piece.as_bytes()));
            let frame = limits.frame(shard.namespaces);
            assert_eq!(shard.bytes, (read.len() - before) as u64 + frame);
            assert!(shard.bytes <= limits.bytes);
        }
        assert_eq!(read, text);
    }
}
