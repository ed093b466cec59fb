//! The packer of full shards.

use std::sync::Arc;

use urlset_core::build::shard::packer::{Limits, MAX_NEWS, Packer};
use urlset_core::flow::chunk::Chunk;
use urlset_core::flow::entry::Entry;
use urlset_core::flow::shard::Shard;
use urlset_core::sitemap::date::Order;
use urlset_core::sitemap::namespaces;

use crate::common::random::Random;

/// The parts of a shard that are compared.
type Packed = (u64, u32, u64, u8, Order, Vec<u8>);

fn pack(limits: Limits, chunks: &[Vec<Entry>], summed: impl Fn(usize) -> bool) -> Vec<Packed> {
    let mut shards = Vec::new();
    let mut packer = Packer::new(limits);
    let mut emit = |shard: Shard| {
        let bytes = shard.pieces.iter().flat_map(|piece| piece.as_bytes().to_vec()).collect();
        let Shard { number, urls, bytes: length, namespaces, newest, .. } = shard;
        shards.push((number, urls, length, namespaces, newest, bytes));
        Ok::<(), ()>(())
    };
    let mut fill = 0u8;
    for (i, entries) in chunks.iter().enumerate() {
        let mut chunk = Chunk::default();
        chunk.entries.clone_from(entries);
        for entry in entries {
            fill = fill.wrapping_add(1);
            chunk.bytes.resize(chunk.bytes.len() + entry.len as usize, fill);
        }
        if summed(i) {
            chunk.sum_up(None);
        }
        packer.push(&Arc::new(chunk), &mut emit).unwrap();
    }
    if let Some(last) = packer.finish() {
        emit(last).unwrap();
    }
    shards
}

#[test]
fn whole_chunks_are_packed_as_their_elements_are() {
    let mut random = Random::new(1);
    let mut random = |limit: u64| random.below(limit);
    for round in 0..300 {
        let (news, urls, bytes, rows) = match round % 10 {
            0 => (namespaces::NEWS, 5_000, 90_000, 500),
            _ => (0, 400, 8_000, 150),
        };
        let limits =
            Limits { urls: 1 + random(urls) as u32, bytes: 1_500 + random(bytes), text: false };
        let mut chunks = vec![Vec::new(); random(12) as usize];
        for entries in &mut chunks {
            for row in 0..random(rows) {
                entries.push(Entry {
                    len: 1 + random(40) as u32,
                    row: row as u32,
                    newest: random(1_000) as Order,
                    namespaces: if random(50) == 0 { 1 << random(3) } else { news },
                });
            }
        }
        let singly = pack(limits, &chunks, |_| false);
        assert_eq!(pack(limits, &chunks, |_| true), singly);
        assert_eq!(pack(limits, &chunks, |i| i % 2 == 0), singly);
        // the same by a plain model
        let all: Vec<Entry> = chunks.concat();
        let (mut at, mut model) = (0, Vec::new());
        while at < all.len() {
            let fits = |end: usize| {
                let part = &all[at..end];
                let namespaces = part.iter().fold(0, |all, entry| all | entry.namespaces);
                let bytes: u64 = part.iter().map(|entry| u64::from(entry.len)).sum();
                let news = part.iter().filter(|entry| entry.namespaces & namespaces::NEWS != 0);
                part.len() <= limits.urls as usize
                    && bytes + limits.frame(namespaces) <= limits.bytes
                    && news.count() <= MAX_NEWS as usize
            };
            let end = (at + 1..=all.len()).take_while(|&end| fits(end)).last().unwrap();
            model.push(end - at);
            at = end;
        }
        assert_eq!(singly.iter().map(|shard| shard.1 as usize).collect::<Vec<_>>(), model);
    }
}
