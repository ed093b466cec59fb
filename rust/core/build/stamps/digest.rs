//! Checks the file of the stamps while rows are read.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::file::read_at;
use crate::flow::stamps::table::{Table, damaged, unreadable};

/// Bytes that are read at once.
const BLOCK: usize = 256 << 10;

/// Checks the digest of the file until `stop` is set; lookups fail if it is wrong.
pub(crate) fn check_digest(table: &Table, stop: &AtomicBool) {
    let (mut block, mut offset) = (vec![0; BLOCK], 0);
    let mut hasher = blake3::Hasher::new();
    while !stop.load(Ordering::Relaxed) {
        match read_at(&table.file, &mut block, offset) {
            Ok(0) => {
                if hasher.finalize().to_hex()[..32] != *table.digest {
                    let why = "has another content than the last build wrote";
                    let _ = table.failed.set(damaged(&table.name, why));
                }
                return;
            }
            Ok(read) => {
                hasher.update(&block[..read]);
                offset += read as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                let _ = table.failed.set(unreadable(&table.name, &error));
                return;
            }
        }
    }
}
