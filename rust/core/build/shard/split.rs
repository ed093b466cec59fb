//! A set of shards for each value of a column. Each set is packed by itself. Elements of incomplete
//! shards go to the disk when they take too much memory.

use std::collections::HashMap;
use std::mem::take;
use std::path::PathBuf;
use std::sync::Arc;

use crate::build::shard::Packing;
use crate::build::shard::name::Names;
use crate::build::shard::packer::Limits;
use crate::config::{Config, Layout};
use crate::error::{ErrorCode, Result};
use crate::flow::chunk::Chunk;
use crate::flow::outcome::SetEntry;
use crate::flow::shard::{Piece, Set, Shard};
use crate::flow::spill::SpillFile;

/// Limit of the bytes of elements in memory; the capacity of the vectors is up to twice as large.
const MAX_MEMORY: usize = 64 << 20;
/// Bytes that go to a packer at once.
const RUN_BYTES: usize = 64 << 10;

/// Packs the elements of each value separately.
pub struct Splitter {
    limits: Limits,
    layout: Layout,
    column: String,
    name: String,
    max_groups: usize,
    by_value: HashMap<Vec<u8>, usize>,
    groups: Vec<OpenSet>,
    names: Names,
    /// the folder of the spill file, and the file once it exists
    folder: PathBuf,
    spill: Option<SpillFile>,
    max_memory: usize,
    /// bytes of elements in memory
    memory: usize,
}

struct OpenSet {
    set: Arc<Set>,
    packing: Packing,
    /// the elements that have not gone to the packer yet
    run: Chunk,
    shards: usize,
}

impl Splitter {
    /// A splitter for a configuration with `split_by`. The spill file goes to `folder`.
    pub fn new(config: &Config, limits: Limits, column: &str, folder: PathBuf) -> Splitter {
        Splitter {
            limits,
            layout: config.layout,
            column: column.to_owned(),
            name: config.name.clone(),
            max_groups: config.max_groups,
            by_value: HashMap::new(),
            groups: Vec::new(),
            names: Names::new(&config.taken),
            folder,
            spill: None,
            max_memory: MAX_MEMORY,
            memory: 0,
        }
    }

    /// Takes the elements of a chunk.
    pub fn push(
        &mut self,
        chunk: &Chunk,
        emit: &mut impl FnMut(Shard) -> Result<()>,
    ) -> Result<()> {
        let mut at = 0;
        for (i, entry) in chunk.entries.iter().enumerate() {
            let bytes = &chunk.bytes[at..at + entry.len as usize];
            at += bytes.len();
            let number = match self.by_value.get(chunk.split_of(i)) {
                Some(&number) => number,
                None => self.open(chunk.split_of(i))?,
            };
            let group = &mut self.groups[number];
            group.run.bytes.extend_from_slice(bytes);
            group.run.entries.push(*entry);
            group.run.boundaries.extend(chunk.boundaries.get(i));
            self.memory += bytes.len();
            if group.run.bytes.len() >= RUN_BYTES {
                self.memory -= group.flush(emit)?;
            }
        }
        if self.memory > self.max_memory { self.evict(emit) } else { Ok(()) }
    }

    fn open(&mut self, value: &[u8]) -> Result<usize> {
        let number = self.groups.len();
        if number == self.max_groups {
            let message = format!(
                "split by {:?}: there are more than {} values (--max-groups); is it the right column?",
                self.column, self.max_groups
            );
            return Err(ErrorCode::SplitTooMany.error(message));
        }
        let by_host = self.column == "@host";
        let name = &self.name;
        let stem = self.names.of(value, by_host, |safe| {
            if by_host { format!("{safe}/{name}") } else { format!("{name}-{safe}") }
        });
        let host = by_host.then(|| String::from_utf8_lossy(value).into_owned());
        self.groups.push(OpenSet {
            set: Arc::new(Set { number, stem, host }),
            packing: Packing::new(self.layout, self.limits),
            run: Chunk::default(),
            shards: 0,
        });
        self.by_value.insert(value.to_vec(), number);
        Ok(number)
    }

    /// Writes all elements in memory to the spill file.
    fn evict(&mut self, emit: &mut impl FnMut(Shard) -> Result<()>) -> Result<()> {
        let spill = match &mut self.spill {
            Some(spill) => spill,
            None => self.spill.insert(SpillFile::new(&self.folder.join("split.new"))?),
        };
        for group in &mut self.groups {
            group.flush(emit)?;
            group.run = Chunk::default();
            let pieces = group.packing.pieces();
            // pieces that were spilled before come first
            let spilled =
                pieces.iter().take_while(|piece| matches!(piece, Piece::Spilled(_))).count();
            let in_memory = pieces.split_off(spilled);
            if !in_memory.is_empty() {
                pieces.push(Piece::Spilled(spill.write(in_memory.iter().map(Piece::as_bytes))?));
            }
        }
        self.memory = 0;
        Ok(())
    }

    /// The last shards, and the sets.
    pub fn finish(mut self, emit: &mut impl FnMut(Shard) -> Result<()>) -> Result<Vec<SetEntry>> {
        let mut sets = Vec::with_capacity(self.groups.len());
        for mut group in take(&mut self.groups) {
            group.flush(emit)?;
            if let Some(mut shard) = group.packing.finish() {
                group.shards += 1;
                shard.set = Some(group.set.clone());
                emit(shard)?;
            }
            let Set { stem, host, .. } = &*group.set;
            sets.push(SetEntry { stem: stem.clone(), host: host.clone(), shards: group.shards });
        }
        Ok(sets)
    }
}

impl OpenSet {
    /// Passes the run to the packer, and returns the bytes that left memory with complete shards.
    fn flush(&mut self, emit: &mut impl FnMut(Shard) -> Result<()>) -> Result<usize> {
        if self.run.entries.is_empty() {
            return Ok(0);
        }
        let run = Arc::new(take(&mut self.run));
        let mut freed = 0;
        self.packing.push(&run, &mut |mut shard: Shard| {
            self.shards += 1;
            freed += shard.pieces.iter().map(|piece| piece.as_bytes().len()).sum::<usize>();
            shard.set = Some(self.set.clone());
            emit(shard)
        })?;
        Ok(freed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::entry::Entry;
    use crate::random::Random;

    /// Random rows with many values compared with one packer for each value, with limits that force
    /// spills.
    #[test]
    fn each_value_is_packed_as_if_it_were_alone() {
        let limits = Limits { urls: 40, bytes: 4_096, text: false };
        let packed = r#"{"site": "https://a.example", "max_groups": 300}"#;
        let stable = r#"{"site": "https://a.example", "max_groups": 300, "layout": "stable"}"#;
        let runs = [packed, stable].map(|json| [500, 20_000, usize::MAX].map(|n| (json, n)));
        for (json, budget) in runs.into_iter().flatten() {
            let config = Config::from_json(json).unwrap();
            let folder = std::env::temp_dir().join(format!("urlset-split-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            let mut splitter = Splitter::new(&config, limits, "c", folder.clone());
            splitter.max_memory = budget;
            let mut wanted: Vec<Vec<u8>> = vec![Vec::new(); 300];
            let mut got = wanted.clone();
            let mut shards = 0;
            let mut random = Random::new(7);
            let mut emit = |mut shard: Shard| {
                shard.load()?;
                let number = shard.set.as_ref().unwrap().number;
                let bytes: usize = shard.pieces.iter().map(|piece| piece.as_bytes().len()).sum();
                assert_eq!(shard.bytes, bytes as u64 + limits.frame(0));
                assert!(shard.bytes <= limits.bytes && shard.urls <= limits.urls);
                shard.pieces.iter().for_each(|p| got[number].extend_from_slice(p.as_bytes()));
                shards += 1;
                Ok(())
            };
            let mut order: Vec<usize> = Vec::new();
            for _ in 0..60 {
                let mut chunk = Chunk::default();
                for i in 0..500_u32 {
                    let value = random.below(300) as usize;
                    let element = format!("<{value}:{}>", "x".repeat(random.below(60) as usize));
                    chunk.bytes.extend_from_slice(element.as_bytes());
                    let entry =
                        Entry { len: element.len() as u32, row: i, newest: 0, namespaces: 0 };
                    chunk.entries.push(entry);
                    chunk.boundaries.push(random.below(u64::MAX));
                    chunk.push_split(value.to_string().as_bytes());
                    let place = order.iter().position(|&v| v == value).unwrap_or_else(|| {
                        order.push(value);
                        order.len() - 1
                    });
                    wanted[place].extend_from_slice(element.as_bytes());
                }
                splitter.push(&chunk, &mut emit).unwrap();
            }
            let sets = splitter.finish(&mut emit).unwrap();
            assert_eq!(sets.iter().map(|set| set.shards).sum::<usize>(), shards);
            assert_eq!(got, wanted);
            for (set, value) in sets.iter().zip(&order) {
                assert_eq!(set.stem, format!("sitemap-{value}"));
            }
            std::fs::remove_dir(&folder).unwrap();
        }
    }
}
