//! The hosts that the URLs of a file have although they are not allowed.

use std::collections::BTreeMap;

use crate::inspect::codes::Code;
use crate::inspect::finding::{Location, Log, MAX_URL_SHOWN, text};

/// The number of hosts that have their own finding; URLs on further hosts share one finding.
const MAX_HOSTS: usize = 1_000;

/// The finding of one host.
struct Other {
    code: &'static Code,
    at: Location,
    /// As shown: a URL may have 1 MiB.
    url: String,
    count: u64,
    wanted: String,
}

/// The hosts of a file that are not allowed: one finding each, with the number of URLs.
#[derive(Default)]
pub struct OtherHosts {
    hosts: BTreeMap<Vec<u8>, Other>,
    /// The key of the host that was counted last, and `https://host/` of its URL as written.
    last: Option<(Vec<u8>, Vec<u8>)>,
}

impl OtherHosts {
    /// Counts a URL if it has the same start as the last one; false if it has not.
    pub fn repeat(&mut self, url: &[u8]) -> bool {
        let last = self.last.as_ref().filter(|(_, start)| url.starts_with(start));
        let Some(other) = last.and_then(|(origin, _)| self.hosts.get_mut(origin)) else {
            return false;
        };
        other.count += 1;
        true
    }

    /// Counts a URL. `start` is its `https://host/`, unless its URLs must be checked one by one;
    /// `wanted` returns the expected host, for the message.
    pub fn add(
        &mut self,
        code: &'static Code,
        mut origin: Vec<u8>,
        url: &[u8],
        start: Option<&[u8]>,
        at: Location,
        wanted: impl FnOnce() -> String,
    ) {
        if self.hosts.len() >= MAX_HOSTS && !self.hosts.contains_key(&origin) {
            origin.clear();
        }
        self.last = start.map(|start| (origin.clone(), start.to_vec()));
        let other = self.hosts.entry(origin).or_insert_with(|| Other {
            code,
            at,
            url: text(url, MAX_URL_SHOWN),
            count: 0,
            wanted: wanted(),
        });
        other.count += 1;
    }

    /// Adds the findings to the log.
    pub fn report(&mut self, log: &mut Log) {
        let hosts = std::mem::take(&mut self.hosts);
        let mut hosts: Vec<_> = hosts.into_iter().collect();
        hosts.sort_by_key(|(_, other)| other.at.offset);
        for (origin, Other { code, at, url, count, wanted }) in hosts {
            log.add(code, at, Some(url.as_bytes()), || {
                let what = if count == 1 { "URL" } else { "URLs" };
                let origin = match origin.is_empty() {
                    true => "further hosts".to_owned(),
                    false => text(&origin, 300),
                };
                format!("{count} {what} on {origin}; {wanted}")
            });
        }
    }
}
