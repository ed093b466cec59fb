//! Faults of URLs as findings; the rules are in [`crate::sitemap::url`].

use crate::inspect::codes;
use crate::inspect::codes::Code;
use crate::inspect::finding::quoted;
use crate::sitemap::url::WrittenFault;

/// The code of a fault for a `loc`; other elements have their own codes.
pub fn loc_code(fault: WrittenFault<'_>) -> &'static Code {
    match fault {
        WrittenFault::Relative => &codes::LOC_RELATIVE,
        WrittenFault::Scheme(_) => &codes::LOC_SCHEME,
        WrittenFault::Host(_) | WrittenFault::Port(_) => &codes::LOC_HOST,
        WrittenFault::Character(_) | WrittenFault::SecondFragment => &codes::LOC_CHARACTERS,
        WrittenFault::Percent(_) => &codes::LOC_PERCENT,
    }
}

/// The message for a fault of `url`.
pub fn message(fault: WrittenFault<'_>, url: &[u8]) -> String {
    match fault {
        WrittenFault::Relative => format!("{} is not an absolute URL", quoted(url)),
        WrittenFault::Scheme(scheme) => format!("the scheme is {}", quoted(scheme)),
        WrittenFault::Host(host) => format!("{} is not a host name", quoted(host)),
        WrittenFault::Port(host) => format!("{} has an invalid port", quoted(host)),
        WrittenFault::SecondFragment => "a second \"#\"".to_owned(),
        WrittenFault::Percent(rest) => {
            format!("{} is not a percent-encoding", quoted(&rest[..rest.len().min(3)]))
        }
        WrittenFault::Character(rest) => {
            let rest = String::from_utf8_lossy(&rest[..rest.len().min(4)]);
            let c = rest.chars().next().unwrap_or('\u{fffd}');
            let shown = quoted(c.to_string().as_bytes());
            format!("{shown} (U+{:04X}) must be percent-encoded", c as u32)
        }
    }
}
