//! Why a row has no legal URL.

/// What is wrong with a value for loc. The row is rejected with its code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LocFault {
    /// Nothing, or blanks only.
    Empty,
    /// `https:///path`, `https:path`.
    NoHost,
    /// Neither http nor https.
    Scheme,
    /// A host that is not allowed.
    OtherHost,
    /// http in place of https, or the reverse.
    OtherScheme,
    /// A port that is not allowed.
    OtherPort,
    /// Fewer than 12 characters, the least that the schema takes.
    TooShort,
    /// More characters than allowed.
    TooLong,
    /// A C0 control character or DEL inside.
    Control,
    /// A `%` without two hex digits, under strict rules.
    Percent,
    /// A host or port that cannot be.
    Host,
    /// `user@` or `user:password@` before the host.
    Userinfo,
    /// Bytes that are not UTF-8.
    NotUtf8,
}

impl LocFault {
    /// All of them.
    pub const ALL: [LocFault; 13] = [
        LocFault::Empty,
        LocFault::NoHost,
        LocFault::Scheme,
        LocFault::OtherHost,
        LocFault::OtherScheme,
        LocFault::OtherPort,
        LocFault::TooShort,
        LocFault::TooLong,
        LocFault::Control,
        LocFault::Percent,
        LocFault::Host,
        LocFault::Userinfo,
        LocFault::NotUtf8,
    ];

    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            LocFault::Empty => "loc.empty",
            LocFault::NoHost => "loc.no_host",
            LocFault::Scheme => "loc.scheme",
            LocFault::OtherHost => "loc.other_host",
            LocFault::OtherScheme => "loc.other_scheme",
            LocFault::OtherPort => "loc.other_port",
            LocFault::TooShort => "loc.too_short",
            LocFault::TooLong => "loc.too_long",
            LocFault::Control => "loc.control",
            LocFault::Percent => "loc.percent",
            LocFault::Host => "loc.host",
            LocFault::Userinfo => "loc.userinfo",
            LocFault::NotUtf8 => "loc.not_utf8",
        }
    }

    /// What is wrong and what to do, in one line.
    pub fn message(self) -> &'static str {
        match self {
            LocFault::Empty => {
                "the row has no URL; fill it in, or leave such rows out with --where"
            }
            LocFault::NoHost => "the URL names no host; write https://host/path",
            LocFault::Scheme => "the URL is neither http nor https; write https://host/path",
            LocFault::OtherHost => {
                "the URL is of another host than --site; correct it, or allow the host with --hosts"
            }
            LocFault::OtherScheme => {
                "the URL mixes http and https with --site; correct it, or allow the host with --hosts"
            }
            LocFault::OtherPort => {
                "the URL is of another port than --site; correct it, or allow host:port with --hosts"
            }
            LocFault::TooShort => {
                "the URL has fewer than 12 characters, too few for the sitemap schema"
            }
            LocFault::TooLong => {
                "the URL has too many characters, percent-encoded; crawlers take at most 2,047, Yandex 1,024: shorten it"
            }
            LocFault::Control => "the URL has a control character inside; remove it",
            LocFault::Percent => "a % without two hex digits; write %25 for a percent sign",
            LocFault::Host => "the host or port is not a legal one; correct it",
            LocFault::Userinfo => {
                "the URL holds a user name or password before the host; remove it"
            }
            LocFault::NotUtf8 => "the URL is not UTF-8; write it as UTF-8",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_messages_one_line() {
        let codes: std::collections::HashSet<_> = LocFault::ALL.iter().map(|f| f.code()).collect();
        assert_eq!(codes.len(), LocFault::ALL.len());
        for fault in LocFault::ALL {
            assert!(fault.code().starts_with("loc."));
            assert!(!fault.message().is_empty() && !fault.message().contains('\n'));
        }
    }
}
