//! The sort by loc, in memory and on the disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use urlset_core::build::shard::sort::Sorter;
use urlset_core::config::Config;
use urlset_core::error::{Kind, Result};
use urlset_core::flow::chunk::Chunk;
use urlset_core::flow::entry::{Entry, LOC_OFFSET};
use urlset_core::flow::pool::Pool;

use crate::common::random::Random;

/// An element as the packer receives it: its bytes, its lastmod, its boundary hash, its value.
type Element = (Vec<u8>, i64, u64, Vec<u8>);

fn loc(element: &Element) -> Vec<u8> {
    let text = &element.0[LOC_OFFSET..];
    text[..text.iter().position(|&b| b == b'<').unwrap()].to_vec()
}

/// Chunks with elements whose locs often share long prefixes, or are equal.
fn catalog(seed: u64, chunks: usize) -> (Vec<Arc<Chunk>>, Vec<Element>) {
    let mut random = Random::new(seed);
    let mut random = |limit: u64| random.below(limit);
    let (mut all, mut elements) = (Vec::new(), Vec::new());
    for number in 0..chunks {
        let mut chunk = Chunk::default();
        for i in 0..random(120) as u32 {
            let stem = ["a", "/", "!", "a&amp;b", "a&apos;b", "long-long-long-long-long-long-"]
                [random(6) as usize];
            let tail = "xyz/".repeat(random(9) as usize);
            let rest = "<".repeat(random(2) as usize);
            let text = format!("<url><loc>{stem}{tail}{}</loc>{rest}</url>", random(30));
            chunk.bytes.extend_from_slice(text.as_bytes());
            let newest = (number * 1_000) as i64 + i64::from(i);
            let len = text.len() as u32;
            chunk.entries.push(Entry { len, row: i, newest, namespaces: 1 });
            let (boundary, value) = (random(u64::MAX), random(3).to_string().into_bytes());
            chunk.boundaries.push(boundary);
            chunk.push_split(&value);
            elements.push((text.into_bytes(), newest, boundary, value));
        }
        all.push(Arc::new(chunk));
    }
    (all, elements)
}

fn sorted(
    chunks: &[Arc<Chunk>],
    budget: usize,
    stop: &AtomicBool,
    seen: &mut impl FnMut(),
) -> Result<Vec<Element>> {
    let json = r#"{"site": "https://a.example", "layout": "stable", "split_by": "c"}"#;
    let mut config = Config::from_json(json)?;
    config.sort_bytes = budget;
    let name = format!("urlset-sort-{}-{:p}", std::process::id(), chunks);
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let mut got = Vec::new();
    let ended = std::thread::scope(|scope| {
        let failed = |error| panic!("{error}");
        let pool = Pool::default();
        let mut sorter = Sorter::new(&config, scope, folder.clone(), pool, stop, failed)?;
        for chunk in chunks {
            sorter.push(chunk.clone())?;
        }
        sorter.finish(&mut |chunk| {
            seen();
            let mut at = 0;
            for (i, entry) in chunk.entries.iter().enumerate() {
                let end = at + entry.len as usize;
                let split = chunk.split_of(i).to_vec();
                assert_eq!(entry.namespaces, 1);
                got.push((chunk.bytes[at..end].to_vec(), entry.newest, chunk.boundaries[i], split));
                at = end;
            }
            Ok(())
        })
    });
    // no temporary file has a name
    std::fs::remove_dir(&folder).unwrap();
    ended.map(|()| got)
}

#[test]
fn as_a_stable_sort_does_it_with_any_number_of_runs() {
    for seed in 0..12 {
        let chunks = [0, 1, 2, 3, 40][seed as usize % 5];
        let (chunks, mut wanted) = catalog(seed, chunks);
        wanted.sort_by_key(loc);
        // one run per chunk, a few runs, all in memory
        for budget in [0, 30_000, 100_000, usize::MAX] {
            let got = sorted(&chunks, budget, &AtomicBool::new(false), &mut || ()).unwrap();
            assert!(got == wanted, "seed {seed}, budget {budget}");
        }
    }
}

#[test]
fn it_stops_at_any_moment() {
    let (chunks, _) = catalog(4, 40);
    let big: Vec<_> = chunks.iter().cycle().take(2_000).cloned().collect();
    for budget in [1 << 20, usize::MAX] {
        // before the first row, and during the merge
        for before in [true, false] {
            let stop = AtomicBool::new(before);
            let mut chunks = 0;
            let stopped = sorted(&big, budget, &stop, &mut || {
                chunks += 1;
                stop.store(true, Ordering::Relaxed);
            });
            assert_eq!(stopped.unwrap_err().kind, Kind::Cancelled);
            assert_eq!(chunks, usize::from(!before));
        }
    }
}
