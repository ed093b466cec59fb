//! The hosts that the URLs of a file may have, and those that they have all the same.

use std::collections::BTreeMap;

use crate::inspect::codes::Code;
use crate::inspect::finding::{At, Log, text};

/// Which hosts URLs may have beside that of their file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Hosts {
    /// None.
    #[default]
    Same,
    /// All.
    Any,
    /// These, in lower case and punycode: each on the default port of its scheme, or `host:port`.
    List(Vec<String>),
}

impl Hosts {
    /// Whether an origin, as [`super::url::origin`] writes it, is one of them.
    pub fn allow(&self, origin: &[u8]) -> bool {
        match self {
            Hosts::Same => false,
            Hosts::Any => true,
            Hosts::List(list) => {
                let (https, host) = match origin.strip_prefix(b"https://") {
                    Some(host) => (true, host),
                    None => (false, origin.strip_prefix(b"http://").unwrap_or(origin)),
                };
                list.iter().any(|allowed| {
                    let default = if https { ":443" } else { ":80" };
                    let allowed = allowed.strip_suffix(default).unwrap_or(allowed);
                    allowed.as_bytes() == host
                })
            }
        }
    }
}

/// Hosts of a file that are told one by one; the URLs of further ones are told together.
const MOST: usize = 1_000;

/// What is told of the URLs of one other host.
struct Other {
    code: &'static Code,
    at: At,
    url: Vec<u8>,
    count: u64,
    wanted: String,
}

/// The hosts that URLs of a file should not have: each is told once, with its count.
#[derive(Default)]
pub struct Others {
    hosts: BTreeMap<Vec<u8>, Other>,
}

impl Others {
    /// Takes note of a URL. `wanted` tells what its host should be.
    pub fn add(
        &mut self,
        code: &'static Code,
        mut origin: Vec<u8>,
        url: &[u8],
        at: At,
        wanted: impl FnOnce() -> String,
    ) {
        if self.hosts.len() >= MOST && !self.hosts.contains_key(&origin) {
            origin.clear();
        }
        let other = self.hosts.entry(origin).or_insert_with(|| Other {
            code,
            at,
            url: url.to_vec(),
            count: 0,
            wanted: wanted(),
        });
        other.count += 1;
    }

    /// Tells of all.
    pub fn tell(&mut self, log: &mut Log) {
        let hosts = std::mem::take(&mut self.hosts);
        let mut hosts: Vec<_> = hosts.into_iter().collect();
        hosts.sort_by_key(|(_, other)| other.at.offset);
        for (origin, Other { code, at, url, count, wanted }) in hosts {
            log.add(code, at, Some(&url), || {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::check::url;

    #[test]
    fn a_list_means_the_default_ports() {
        let list = ["a.example", "b.example:8080", "c.example:443"].map(str::to_owned).to_vec();
        let hosts = Hosts::List(list);
        let allows = |url: &str| hosts.allow(&url::origin(url.as_bytes()).unwrap());
        for url in [
            "https://a.example/x",
            "http://A.example:80/x",
            "https://b.example:8080/",
            "https://c.example",
        ] {
            assert!(allows(url), "{url}");
        }
        for url in [
            "https://a.example:8443/",
            "https://b.example/",
            "http://c.example/",
            "https://x.a.example/",
        ] {
            assert!(!allows(url), "{url}");
        }
    }
}
