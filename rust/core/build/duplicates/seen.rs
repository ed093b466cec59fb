//! The URLs of a build so far, for `--duplicates`.

use std::sync::Mutex;

use crate::flow::hash::HashKey;
use crate::flow::key_set::KeySet;

/// The hashes of all URLs so far.
pub struct SeenUrls {
    /// The key of the hashes.
    pub key: HashKey,
    /// The hashes.
    pub hashes: KeySet,
}

/// Passes the URLs of one run to the next run of the same build: a URL of one set is a duplicate in
/// another.
#[derive(Default)]
pub struct Seen(Mutex<Option<SeenUrls>>);

impl Seen {
    /// The URLs of the previous run, or none.
    pub fn take(&self) -> SeenUrls {
        let previous = self.0.lock().ok().and_then(|mut seen| seen.take());
        previous.unwrap_or_else(|| SeenUrls { key: HashKey::random(), hashes: KeySet::default() })
    }

    /// Keeps the URLs for the next run.
    pub fn give(&self, seen: SeenUrls) {
        if let Ok(mut kept) = self.0.lock() {
            *kept = Some(seen);
        }
    }
}
