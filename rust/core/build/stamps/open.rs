//! Opens the stamps of the last build. Their file may be damaged, or an attack: every length is
//! checked before memory is used for it.

use std::fs::File;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use crate::build::stamps::index;
use crate::build::stamps::{MAGIC, TRAILER};
use crate::error::{ErrorCode, Result};
use crate::file::read_exact_at;
use crate::flow::hash::{FastHash, HashKey};
use crate::flow::stamps::Stamps;
use crate::flow::stamps::stamp::{GONE_BYTES, STAMP_BYTES};
use crate::flow::stamps::table::{Table, damaged, unreadable};
use crate::sitemap::date::Lastmod;

/// Limit of the lists of columns: one for each input with other columns.
const MAX_LISTS: u32 = 1 << 20;

/// The stamps of the last build as the caller knows them.
pub struct OldFile {
    /// The file.
    pub file: File,
    /// Its name in messages.
    pub name: String,
    /// The digest of its bytes, as [`crate::flow::outcome::digest`] has it.
    pub digest: String,
}

/// The rules of a build for its stamps.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// The start of the build in seconds since 1970.
    pub now: i64,
    /// Seconds after which URLs that are gone are forgotten.
    pub forget: i64,
}

/// Opens the stamps of the last build, with a temporary index in `folder`; none in a first build.
///
/// # Errors
/// `lastmod.damaged`, `output.spill`.
pub fn open(old: Option<OldFile>, clock: Clock, folder: &Path, threads: usize) -> Result<Stamps> {
    let now = Lastmod::from_seconds(clock.now)
        .ok_or_else(|| ErrorCode::ConfigInvalid.error("now: is not in the years 0001 to 9999"))?;
    let now = now.text(&mut [0; 20]).1;
    let (key, table) = match old {
        None => (HashKey::random(), None),
        Some(old) => {
            let (key, mut table) = read_trailer(old)?;
            index::build(&mut table, folder, threads)?;
            (key, Some(table))
        }
    };
    Ok(Stamps {
        key,
        hash: FastHash::new(key),
        now,
        seconds: clock.now,
        forget: clock.forget,
        table,
    })
}

fn read_trailer(OldFile { file, name, digest }: OldFile) -> Result<(HashKey, Table)> {
    let unreadable = |error| unreadable(&name, &error);
    let wrong = |why| Err(damaged(&name, why));
    let length = file.metadata().map_err(unreadable)?.len();
    let Some(end) = length.checked_sub(TRAILER as u64) else { return wrong("is too short") };
    let mut trailer = [0; TRAILER];
    read_exact_at(&file, &mut trailer, end).map_err(unreadable)?;
    if trailer[..8] != MAGIC {
        return wrong("is of another version of urlset, or something else");
    }
    let half = |at: usize| u64::from_le_bytes(trailer[at..at + 8].try_into().unwrap_or_default());
    let count = |at: usize| u32::from_le_bytes(trailer[at..at + 4].try_into().unwrap_or_default());
    let (live, gone, lists) = (count(8), count(12), count(16));
    let key = HashKey::fixed(half(20), half(28));
    let stamps = u64::from(live) * STAMP_BYTES as u64 + u64::from(gone) * GONE_BYTES as u64;
    if lists > MAX_LISTS || live.checked_add(gone).is_none() {
        return wrong("has impossible counts");
    }
    if stamps + u64::from(lists) * 8 != end {
        return wrong("has another length than its counts");
    }
    let mut bytes = vec![0; lists as usize * 8];
    read_exact_at(&file, &mut bytes, stamps).map_err(unreadable)?;
    let (chunks, _) = bytes.as_chunks::<8>();
    let columns = chunks.iter().map(|list| u64::from_le_bytes(*list)).collect();
    let table = Table {
        file,
        name,
        digest,
        live,
        gone,
        columns,
        index: None,
        starts: Vec::new(),
        several: Default::default(),
        memory: OnceLock::new(),
        lookups: AtomicU64::new(0),
        failed: OnceLock::new(),
    };
    Ok((key, table))
}
