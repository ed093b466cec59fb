//! The reasons to reject the URL of a row.

/// What is wrong with a value for loc. The row is rejected with this code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LocFault {
    /// Empty, or blanks only.
    Empty,
    /// A placeholder for a missing value, such as `N/A`.
    Placeholder,
    /// `www.shop.example/a`.
    NoScheme,
    /// `https//www.shop.example`.
    Misspelt,
    /// `//www.shop.example/a`.
    TwoSlashes,
    /// Neither a URL nor an absolute path.
    Relative,
    /// `https:///path`, `https:path`.
    NoHost,
    /// Neither http nor https.
    Scheme,
    /// `http://https://www.shop.example`.
    TwoSchemes,
    /// A host that is not allowed.
    OtherHost,
    /// http instead of https, or the reverse.
    OtherScheme,
    /// A port that is not allowed.
    OtherPort,
    /// Fewer than 12 characters, the minimum of the schema.
    TooShort,
    /// More characters than allowed.
    TooLong,
    /// A C0 control character or DEL inside.
    Control,
    /// A `%` without two hex digits, under strict rules.
    Percent,
    /// A host or port that cannot exist.
    Host,
    /// `user@` or `user:password@` before the host.
    Userinfo,
    /// Bytes that are not UTF-8.
    NotUtf8,
}

impl LocFault {
    /// All of them.
    pub const ALL: [LocFault; 19] = [
        LocFault::Empty,
        LocFault::Placeholder,
        LocFault::NoScheme,
        LocFault::Misspelt,
        LocFault::TwoSlashes,
        LocFault::Relative,
        LocFault::NoHost,
        LocFault::Scheme,
        LocFault::TwoSchemes,
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
            LocFault::Placeholder
            | LocFault::NoScheme
            | LocFault::Misspelt
            | LocFault::TwoSlashes
            | LocFault::Relative => "loc.relative",
            LocFault::NoHost => "loc.no_host",
            LocFault::Scheme | LocFault::TwoSchemes => "loc.scheme",
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
            LocFault::Placeholder => {
                "is a placeholder, not a value; correct it, or leave such rows out with --where"
            }
            LocFault::NoScheme => {
                "the URL has no scheme; add https:// (a path of the site begins with one /)"
            }
            LocFault::Misspelt => "the scheme is misspelt; write https://host/path",
            LocFault::TwoSlashes => {
                "the URL begins with two slashes; add https: (a path of the site begins with one /)"
            }
            LocFault::Relative => {
                "neither a URL nor a path that begins with /; write https://host/path or /path, or allow it with --relative-urls"
            }
            LocFault::NoHost => "the URL has no host; write https://host/path",
            LocFault::Scheme => "the URL is neither http nor https; write https://host/path",
            LocFault::TwoSchemes => "the URL has two schemes; remove one of them",
            LocFault::OtherHost => {
                "the host of the URL is not that of --site; correct it, or allow the host with --hosts"
            }
            LocFault::OtherScheme => {
                "the URL mixes http and https with --site; correct it, or allow the host with --hosts"
            }
            LocFault::OtherPort => {
                "the port of the URL is not that of --site; correct it, or allow host:port with --hosts"
            }
            LocFault::TooShort => {
                "the URL has fewer than 12 characters, too few for the sitemap schema"
            }
            LocFault::TooLong => {
                "the URL has too many characters, percent-encoded; crawlers accept at most 2,047, Yandex 1,024: shorten it"
            }
            LocFault::Control => "the URL has a control character inside; remove it",
            LocFault::Percent => "a % without two hex digits; write %25 for a percent sign",
            LocFault::Host => "the host or port is not a legal one; correct it",
            LocFault::Userinfo => "the URL has a user name or password before the host; remove it",
            LocFault::NotUtf8 => "the URL is not UTF-8; write it as UTF-8",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_distinct_and_one_line() {
        let messages: std::collections::HashSet<_> =
            LocFault::ALL.iter().map(|f| f.message()).collect();
        assert_eq!(messages.len(), LocFault::ALL.len());
        for fault in LocFault::ALL {
            assert!(fault.code().starts_with("loc."));
            assert!(!fault.message().is_empty() && !fault.message().contains('\n'));
        }
    }
}
