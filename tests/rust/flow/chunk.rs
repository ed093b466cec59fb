//! Chunks of elements.

use urlset_core::flow::chunk::Chunk;
use urlset_core::flow::entry::{Entry, NO_LASTMOD};
use urlset_core::flow::member::Member;

use crate::common::random::Random;

#[test]
fn removed_elements_are_gone_from_every_list_in_use() {
    let mut random = Random::new(5);
    let mut random = |limit: u32| random.below(limit.into()) as u32;
    for round in 0..500 {
        let mut chunk = Chunk::default();
        let mut kept = Vec::new();
        let mut gone = Vec::new();
        let often = [1, 2, 30, 1_000][round % 4];
        let all = round % 8 < 4;
        for i in 0..random(60) {
            let text = format!("<{i}{}>", "x".repeat(random(9) as usize)).into_bytes();
            let value = random(3).to_string().into_bytes();
            chunk.bytes.extend_from_slice(&text);
            let len = text.len() as u32;
            chunk.entries.push(Entry { len, row: i, newest: NO_LASTMOD, namespaces: 0 });
            if all {
                chunk.keys.push(i.into());
                chunk.boundaries.push(i.into());
                chunk.members.push(Member::new(i.into(), 0, b"en").unwrap());
                chunk.push_split(&value);
            }
            if random(often) == 0 {
                gone.push(i);
            } else {
                kept.push((i, text, value));
            }
        }
        chunk.sum_up(None);
        chunk.remove(&gone);
        assert_eq!(chunk.totals.is_some(), gone.is_empty(), "totals of removed entries");
        assert_eq!(chunk.bytes, kept.iter().flat_map(|k| k.1.clone()).collect::<Vec<_>>());
        assert_eq!(chunk.entries.len(), kept.len());
        let used = if all { kept.len() } else { 0 };
        assert_eq!(chunk.keys.len(), used);
        assert_eq!((chunk.boundaries.len(), chunk.members.len()), (used, used));
        for (n, (i, text, value)) in kept.iter().enumerate() {
            let entry = chunk.entries[n];
            assert_eq!((entry.row, entry.len as usize), (*i, text.len()));
            if all {
                assert_eq!(chunk.keys[n], u128::from(*i));
                assert_eq!(
                    (chunk.boundaries[n], chunk.members[n].key),
                    (u64::from(*i), u128::from(*i))
                );
                assert_eq!(chunk.split_of(n), value);
            }
        }
    }
}
