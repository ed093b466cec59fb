//! The hosts that URLs may have besides their own: one rule for building and verifying.

use crate::error::{ErrorCode, Result};
use crate::sitemap::url::{self, Authority};

/// The choice of hosts (`--hosts`). The host of the site or file is always allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Hosts {
    /// No other host.
    #[default]
    Same,
    /// Any host.
    Any,
    /// These hosts: each a host on the default port of http or https, or `host:port`. Case does not
    /// matter.
    List(Vec<String>),
}

/// Whether a host is in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// Host and port are listed.
    Yes,
    /// The host is listed, but not with this port.
    OtherPort,
    /// The host is not listed.
    No,
}

/// Checked entries of a list of hosts: in lower case and punycode, with their ports.
#[derive(Debug, Clone, Default)]
pub struct HostList {
    entries: Vec<(String, Option<u16>)>,
}

impl HostList {
    /// Parses the entries.
    ///
    /// # Errors
    /// `config.hosts` for an entry that is not a host.
    pub fn parse(list: &[String]) -> Result<HostList> {
        let entries = list.iter().map(|text| entry(text)).collect::<Result<_>>()?;
        Ok(HostList { entries })
    }

    /// Parses the entries of a manifest; an invalid entry matches no host.
    pub fn lenient(list: &[String]) -> HostList {
        HostList { entries: list.iter().filter_map(|text| entry(text).ok()).collect() }
    }

    /// Looks up a host. An entry without a port means the default port of the scheme.
    pub fn find(&self, https: bool, host: &str, port: u16) -> Listed {
        let mut listed = Listed::No;
        for (_, allowed) in self.entries.iter().filter(|(name, _)| host.eq_ignore_ascii_case(name))
        {
            if allowed.unwrap_or(url::default_port(https)) == port {
                return Listed::Yes;
            }
            listed = Listed::OtherPort;
        }
        listed
    }
}

/// The hosts of a set of files besides the host of each file.
#[derive(Debug, Clone, Default)]
pub enum AllowedHosts {
    /// None.
    #[default]
    Same,
    /// All.
    Any,
    /// Those of the list.
    List(HostList),
}

impl AllowedHosts {
    /// Checks the entries.
    ///
    /// # Errors
    /// `config.hosts` for an entry that is not a host.
    pub fn parse(hosts: Hosts) -> Result<AllowedHosts> {
        Ok(match hosts {
            Hosts::Same => AllowedHosts::Same,
            Hosts::Any => AllowedHosts::Any,
            Hosts::List(list) => AllowedHosts::List(HostList::parse(&list)?),
        })
    }
}

fn entry(text: &str) -> Result<(String, Option<u16>)> {
    match url::authority(text.trim_ascii().as_bytes()) {
        Ok(Authority { host, port, .. }) => Ok((host.to_ascii_lowercase(), port)),
        Err(_) => Err(ErrorCode::ConfigHosts.error(format!(
            "hosts: {text:?} is not a host; write for example m.shop.example or shop.example:8080"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_without_a_port_means_the_default_ports() {
        let list = ["a.example", "B.example:8080", "c.example:443"].map(str::to_owned);
        let hosts = HostList::parse(&list).unwrap();
        for (https, host, port, listed) in [
            (true, "a.example", 443, Listed::Yes),
            (false, "A.example", 80, Listed::Yes),
            (true, "b.example", 8080, Listed::Yes),
            (true, "c.example", 443, Listed::Yes),
            (false, "c.example", 443, Listed::Yes),
            (true, "a.example", 8443, Listed::OtherPort),
            (true, "b.example", 443, Listed::OtherPort),
            (false, "c.example", 80, Listed::OtherPort),
            (true, "x.a.example", 443, Listed::No),
        ] {
            assert_eq!(hosts.find(https, host, port), listed, "{https} {host} {port}");
        }
        assert!(HostList::parse(&["a b".to_owned()]).is_err());
    }
}
