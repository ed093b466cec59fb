//! The reasons to reject the URL of a row.

macro_rules! loc_faults {
    ($($(#[$about:meta])* $fault:ident $code:literal $message:literal)*) => {
        /// What is wrong with a value for loc. The row is rejected with this code.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum LocFault {
            $($(#[$about])* $fault,)*
        }

        impl LocFault {
            /// All of them.
            pub const ALL: &[LocFault] = &[$(LocFault::$fault),*];

            /// The stable code.
            pub fn code(self) -> &'static str {
                match self {
                    $(LocFault::$fault => $code,)*
                }
            }

            /// What is wrong and what to do, in one line.
            pub fn message(self) -> &'static str {
                match self {
                    $(LocFault::$fault => $message,)*
                }
            }
        }
    };
}

loc_faults! {
    /// Empty, or blanks only.
    Empty "loc.empty" "the row has no URL; fill it in, or leave such rows out with --where"
    /// A placeholder for a missing value, such as `N/A`.
    Placeholder "loc.relative" "is a placeholder, not a value; correct it, or leave such rows out with --where"
    /// `www.shop.example/a`.
    NoScheme "loc.relative" "the URL has no scheme; add https:// (a path of the site begins with one /)"
    /// `https//www.shop.example`.
    Misspelt "loc.relative" "the scheme is misspelt; write https://host/path"
    /// `//www.shop.example/a`.
    TwoSlashes "loc.relative" "the URL begins with two slashes; add https: (a path of the site begins with one /)"
    /// Neither a URL nor an absolute path.
    Relative "loc.relative" "neither a URL nor a path that begins with /; write https://host/path or /path, or allow it with --relative-urls"
    /// `https:///path`, `https:path`.
    NoHost "loc.no_host" "the URL has no host; write https://host/path"
    /// Neither http nor https.
    Scheme "loc.scheme" "the URL is neither http nor https; write https://host/path"
    /// `http://https://www.shop.example`.
    TwoSchemes "loc.scheme" "the URL has two schemes; remove one of them"
    /// A host that is not allowed.
    OtherHost "loc.other_host" "the host of the URL is not that of --site; correct it, or allow the host with --hosts"
    /// http instead of https, or the reverse.
    OtherScheme "loc.other_scheme" "the URL mixes http and https with --site; correct it, or allow the host with --hosts"
    /// A port that is not allowed.
    OtherPort "loc.other_port" "the port of the URL is not that of --site; correct it, or allow host:port with --hosts"
    /// Fewer than 12 characters, the minimum of the schema.
    TooShort "loc.too_short" "the URL has fewer than 12 characters, too few for the sitemap schema"
    /// More characters than allowed.
    TooLong "loc.too_long" "the URL has too many characters, percent-encoded; crawlers accept at most 2,047, Yandex 1,024: shorten it"
    /// A C0 control character or DEL inside.
    Control "loc.control" "the URL has a control character inside; remove it"
    /// A `%` without two hex digits, under strict rules.
    Percent "loc.percent" "a % without two hex digits; write %25 for a percent sign"
    /// A host or port that cannot exist.
    Host "loc.host" "the host or port is not a legal one; correct it"
    /// `user@` or `user:password@` before the host.
    Userinfo "loc.userinfo" "the URL has a user name or password before the host; remove it"
    /// Bytes that are not UTF-8.
    NotUtf8 "loc.not_utf8" "the URL is not UTF-8; write it as UTF-8"
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
