use super::*;

fn rules(site: &str, hosts: Hosts, strict: bool, folder: Option<&str>) -> LocRules {
    let folder = folder.map(|url| Folder::parse(url).unwrap());
    LocRules::new(Site::parse(site).unwrap(), hosts, strict, 2047, folder).unwrap()
}

fn shop() -> LocRules {
    rules("https://Shop.Example/base/dir/page", Hosts::Same, false, None).joining(true)
}

fn write(
    rules: &LocRules,
    raw: impl AsRef<[u8]>,
) -> std::result::Result<(String, LocInfo), LocFault> {
    let (mut scratch, mut out) = (b"junk".to_vec(), b"<loc>".to_vec());
    let result = rules.write(raw.as_ref(), &mut scratch, &mut out);
    assert!(out.starts_with(b"<loc>"));
    assert!(result.is_ok() || out.len() == 5);
    result.map(|info| (String::from_utf8(out[5..].to_vec()).unwrap(), info))
}

fn url(rules: &LocRules, raw: &str) -> std::result::Result<String, LocFault> {
    write(rules, raw).map(|(url, _)| url)
}

#[test]
fn encoded_once_then_escaped() {
    for (raw, form) in [
        (" https://shop.example/a\r\n", "https://shop.example/a"),
        ("https://shop.example", "https://shop.example"),
        ("https://shop.example?q=1", "https://shop.example?q=1"),
        ("HTTPS://SHOP.example:443/a", "HTTPS://SHOP.example:443/a"),
        ("https://shop.example:/a", "https://shop.example/a"),
        ("https://shop.example/ümlat.php&q=name", "https://shop.example/%C3%BCmlat.php&amp;q=name"),
        ("https://shop.example/a?b=1&c='2'#d", "https://shop.example/a?b=1&amp;c=&apos;2&apos;#d"),
        ("https://shop.example/%e4%7E%41&", "https://shop.example/%e4%7E%41&amp;"),
        ("https://shop.example/100%&%4", "https://shop.example/100%25&amp;%254"),
        ("https://shop.example/%%41", "https://shop.example/%25%41"),
        ("https://shop.example/a#b#c?d", "https://shop.example/a#b%23c?d"),
        ("https://shop.example/a[1]?b[]=2", "https://shop.example/a%5B1%5D?b%5B%5D=2"),
        ("https://shop.example/a b\"<>^`{|}", "https://shop.example/a%20b%22%3C%3E%5E%60%7B%7C%7D"),
        ("https:\\\\shop.example\\a\\b?c\\d#e\\f", "https://shop.example/a/b?c%5Cd#e%5Cf"),
        ("https://shop.example\\.evil.example/", "https://shop.example/.evil.example/"),
        ("https://shop.example?a\\b", "https://shop.example?a%5Cb"),
        ("/a\\b\\..\\c", "https://shop.example/a/c"),
        ("/a/%2e%2E/b", "https://shop.example/a/%2e%2E/b"),
        ("/a/%2e%2E/../b/./.%2e", "https://shop.example/"),
        ("https://shop.example/a/../b/./c", "https://shop.example/a/../b/./c"),
        ("https://shop.example/🛒\u{85}", "https://shop.example/%F0%9F%9B%92%C2%85"),
        ("/p?a=1&b", "https://shop.example/p?a=1&amp;b"),
        ("/", "https://shop.example/"),
        ("/a/../b.html", "https://shop.example/b.html"),
        ("/.hidden", "https://shop.example/.hidden"),
        ("p q", "https://shop.example/base/dir/p%20q"),
        ("../x", "https://shop.example/base/x"),
        ("../../../..", "https://shop.example/"),
        (".", "https://shop.example/base/dir/"),
        ("?q=../x", "https://shop.example/base/dir/page?q=../x"),
        ("#top", "https://shop.example/base/dir/page#top"),
        ("//SHOP.example/a/../b", "https://SHOP.example/b"),
        ("//shop.example", "https://shop.example"),
        ("p/x:y", "https://shop.example/base/dir/p/x:y"),
    ] {
        assert_eq!(url(&shop(), raw).as_deref(), Ok(form), "{raw}");
    }
}

#[test]
fn each_fault() {
    for (raw, fault) in [
        ("", LocFault::Empty),
        (" \t\r\n", LocFault::Empty),
        ("https:///a/b/c/d", LocFault::NoHost),
        ("https:/shop.example/", LocFault::NoHost),
        ("https:shop.example/", LocFault::NoHost),
        ("https://:443/abc", LocFault::NoHost),
        ("https://", LocFault::NoHost),
        ("///a", LocFault::NoHost),
        ("ftp://shop.example/a", LocFault::Scheme),
        ("javascript:alert(1)", LocFault::Scheme),
        ("shop.example:443/a", LocFault::Scheme),
        ("\u{feff}https://shop.example/", LocFault::Scheme),
        (":a", LocFault::Scheme),
        ("https://www.shop.example/", LocFault::OtherHost),
        ("https://shop.example.evil.example/", LocFault::OtherHost),
        ("https://shop.examplee", LocFault::OtherHost),
        ("https://shop.example./", LocFault::OtherHost),
        ("//evil.example/", LocFault::OtherHost),
        ("http://shop.example/", LocFault::OtherScheme),
        ("http://shop.example:443/", LocFault::OtherScheme),
        ("https://shop.example:80/", LocFault::OtherPort),
        ("https://shop.example:0/", LocFault::OtherPort),
        ("https://shop.example/a\nb", LocFault::Control),
        ("https://shop.example/a\x7f", LocFault::Control),
        ("https://shop.example/\0", LocFault::Control),
        ("https://shop.example:65536/", LocFault::Host),
        ("https://shop.example:+80/", LocFault::Host),
        ("https://shop.example:4a/", LocFault::Host),
        ("https://shop.example:1:2/", LocFault::Host),
        ("https://shop .example/", LocFault::Host),
        ("https://sho%70.example/", LocFault::Host),
        ("https://shop..example/", LocFault::Host),
        ("https://-shop.example/", LocFault::Host),
        ("https://shop-.example/", LocFault::Host),
        ("https://https://shop.example/", LocFault::TwoSchemes),
        ("http://HTTP//shop.example/", LocFault::TwoSchemes),
        ("N/A", LocFault::Placeholder),
        ("{{product:url}}", LocFault::Placeholder),
        ("https://xn--a.example/", LocFault::Host),
        ("https://a\u{ff0f}b.example/", LocFault::Host),
        ("https://1.2.3.999/", LocFault::Host),
        ("https://[::1/", LocFault::Host),
        ("https://[::g]/", LocFault::Host),
        ("https://[fe80::1%25eth0]/", LocFault::Host),
        ("https://[::1]]/", LocFault::Host),
        ("https://[::1]x/", LocFault::Host),
        ("https://user@shop.example/", LocFault::Userinfo),
        ("https://shop.example:a@evil.example/", LocFault::Userinfo),
    ] {
        assert_eq!(url(&shop(), raw), Err(fault), "{raw}");
    }
    assert_eq!(
        write(&shop(), b"https://shop.example/\xff").map(|(url, _)| url),
        Err(LocFault::NotUtf8)
    );
    assert_eq!(
        write(&shop(), b"https://shop.example/\xed\xa0\x80").map(|(url, _)| url),
        Err(LocFault::NotUtf8)
    );
    let strict = rules("https://shop.example", Hosts::Same, true, None);
    assert_eq!(url(&strict, "/a%2"), Err(LocFault::Percent));
    assert_eq!(url(&strict, "/a?b=%zz"), Err(LocFault::Percent));
    assert_eq!(url(&strict, "/a%2f#%C3").as_deref(), Ok("https://shop.example/a%2f#%C3"));
}

#[test]
fn a_cell_is_a_url_or_a_path() {
    let strict = rules("https://shop.example/base/", Hosts::Any, false, None);
    for raw in [
        "/",
        "/a",
        "/?a",
        "/#a",
        "/a//b",
        "/N/A",
        "https://null",
        "HTTP://a.example/-",
        "/{{slug}}",
        "/a:b",
    ] {
        assert!(url(&strict, raw).is_ok(), "{raw}");
    }
    for (raw, fault) in [
        ("N/A", LocFault::Placeholder),
        (" null\n", LocFault::Placeholder),
        ("NULL", LocFault::Placeholder),
        ("#N/A", LocFault::Placeholder),
        ("nan", LocFault::Placeholder),
        ("-", LocFault::Placeholder),
        ("0", LocFault::Placeholder),
        ("\\N", LocFault::Placeholder),
        ("{{url}}", LocFault::Placeholder),
        ("{{product:url}}", LocFault::Placeholder),
        ("[object Object]", LocFault::Placeholder),
        ("www.shop.example/p/1", LocFault::NoScheme),
        ("shop.example/p", LocFault::NoScheme),
        ("Münster.de", LocFault::NoScheme),
        ("https//www.shop.example/p", LocFault::Misspelt),
        ("http;//www.shop.example/p", LocFault::Misspelt),
        ("HTTPS.//www.shop.example/p", LocFault::Misspelt),
        ("//shop.example/p", LocFault::TwoSlashes),
        ("///p", LocFault::TwoSlashes),
        ("/\\shop.example/p", LocFault::TwoSlashes),
        ("\\\\shop.example\\p", LocFault::TwoSlashes),
        ("\\p", LocFault::Relative),
        ("p", LocFault::Relative),
        ("p/1", LocFault::Relative),
        ("p.html", LocFault::Relative),
        ("12345", LocFault::Relative),
        ("./p", LocFault::Relative),
        ("../p", LocFault::Relative),
        ("?p=1", LocFault::Relative),
        ("#p", LocFault::Relative),
        ("httpsx", LocFault::Relative),
        ("http://", LocFault::NoHost),
        ("http:/x", LocFault::NoHost),
        ("htp://shop.example/", LocFault::Scheme),
        ("shop.example:80/p", LocFault::Scheme),
    ] {
        assert_eq!(url(&strict, raw), Err(fault), "{raw}");
        let code =
            if raw.contains(":/") || raw.contains(":8") { fault.code() } else { "loc.relative" };
        assert_eq!(fault.code(), code);
    }
    let joining = strict.joining(true);
    for (raw, form) in [
        ("www.shop.example/p/1", "https://shop.example/base/www.shop.example/p/1"),
        ("..", "https://shop.example/"),
        ("\\p", "https://shop.example/p"),
        ("\\\\b.example\\p", "https://b.example/p"),
        ("%2e%2e/p", "https://shop.example/base/%2e%2e/p"),
    ] {
        assert_eq!(url(&joining, raw).as_deref(), Ok(form), "{raw}");
    }
    for raw in ["N/A", "0", "-", "null", "{{url}}"] {
        assert_eq!(url(&joining, raw), Err(LocFault::Placeholder), "{raw}");
    }
}

#[test]
fn what_is_counted() {
    let rules = rules("https://shop.example/base", Hosts::Same, false, None);
    for (raw, notes) in [
        ("https://shop.example/a?b=1&c=2&d;&amp", &[][..]),
        ("https://shop.example/?a&amp;b", &["loc.entity"]),
        ("https://shop.example/ü?a&amp;b", &["loc.entity"]),
        ("https://shop.example/?a&#38;b", &["loc.fragment", "loc.entity"]),
        ("https://shop.example/?a&#x26;b", &["loc.fragment", "loc.entity"]),
        ("https://shop.example/?a&#x;&#;&#g;", &["loc.fragment"]),
        ("https://shop.example/?a&lt;", &["loc.entity"]),
        ("https://shop.example/a#", &["loc.fragment"]),
        ("https://shop.example/ü#a", &["loc.fragment"]),
        ("https://shop.example/a\\b", &["loc.backslash"]),
        ("https://shop.example/a?\\b", &[]),
        ("/a", &["loc.site_path"]),
        ("/ü", &["loc.site_path"]),
        ("https://shop.example/{{slug}}", &["loc.placeholder"]),
        ("https://shop.example/a?b=${id}#c", &["loc.fragment", "loc.placeholder"]),
        ("https://shop.example/%7B%7Bslug%7D%7D", &[]),
        ("https://shop.example/{3F2504E0}", &[]),
    ] {
        let (_, info) = write(&rules, raw).unwrap();
        assert_eq!(info.notes().collect::<Vec<_>>(), notes, "{raw}");
        assert_eq!(info.any(), !notes.is_empty());
    }
    for site in ["https://shop.example", "https://shop.example/"] {
        let rules = self::rules(site, Hosts::Same, false, None);
        assert!(!write(&rules, "/a").unwrap().1.any());
    }
}

#[test]
fn idn_and_literal_hosts() {
    let any = rules("https://shop.example", Hosts::Any, false, None);
    for (raw, form) in [
        ("https://WWW.Münster.de:8080/ä", "https://www.xn--mnster-3ya.de:8080/%C3%A4"),
        ("http://דוגמה.קום/", "http://xn--6dbbec0c.xn--9dbq2a/"),
        ("https://مثال.إختبار", "https://xn--mgbh0fb.xn--kgbechtv"),
        ("https://XN--MNSTER-3YA.de/", "https://XN--MNSTER-3YA.de/"),
        ("https://[2001:DB8::1]:8443/a[b]", "https://[2001:DB8::1]:8443/a%5Bb%5D"),
        ("https://127.0.0.1/aaa", "https://127.0.0.1/aaa"),
        ("https://m_1.example.:08080/", "https://m_1.example.:08080/"),
    ] {
        assert_eq!(url(&any, raw).as_deref(), Ok(form), "{raw}");
    }
    let german = rules("https://Münster.de", Hosts::Same, false, None);
    assert_eq!(german.site.origin(), "https://xn--mnster-3ya.de");
    for raw in ["https://münster.de/a", "https://xn--mnster-3ya.de/a", "/a"] {
        assert_eq!(url(&german, raw).as_deref(), Ok("https://xn--mnster-3ya.de/a"), "{raw}");
    }
    let long = format!("https://{}.example/", "a".repeat(64));
    assert_eq!(url(&any, &long), Err(LocFault::Host));
    let long = format!("https://{}example/", "abcdefg.".repeat(31));
    assert_eq!(url(&any, &long), Err(LocFault::Host));
}

#[test]
fn lists_of_hosts() {
    let list = ["M.shop.example", "münster.de", "old.example:8080"].map(str::to_owned).to_vec();
    let rules = rules("https://shop.example", Hosts::List(list), false, None);
    for good in [
        "https://shop.example/",
        "https://m.shop.example/",
        "http://M.SHOP.example:80/",
        "http://m.shop.example/a b",
        "https://Münster.de/",
        "http://old.example:8080/",
        "https://old.example:8080/",
    ] {
        assert!(url(&rules, good).is_ok(), "{good}");
    }
    for (raw, fault) in [
        ("http://shop.example/", LocFault::OtherScheme),
        ("https://m.shop.example:80/", LocFault::OtherPort),
        ("https://old.example/", LocFault::OtherPort),
        ("https://other.example/", LocFault::OtherHost),
    ] {
        assert_eq!(url(&rules, raw), Err(fault), "{raw}");
    }
    for wrong in ["", "a b", "https://a.example", "a@b", "a/b", "a:b"] {
        let site = Site::parse("https://shop.example").unwrap();
        let error = LocRules::new(site, Hosts::List(vec![wrong.to_owned()]), false, 2047, None);
        assert_eq!(error.err().map(|error| error.code.name()), Some("config.hosts"), "{wrong}");
    }
}

#[test]
fn lengths() {
    let any = rules("https://shop.example", Hosts::Any, false, None);
    assert_eq!(url(&any, "http://a.co"), Err(LocFault::TooShort));
    assert_eq!(url(&any, "http://a.co/").as_deref(), Ok("http://a.co/"));
    let start = "https://shop.example/";
    for (tail, weight) in [("a", 1), ("&", 1), ("ü", 6), ("%C3", 3)] {
        let url = |chars: usize| {
            let count = (chars - start.len()) / weight;
            let filler = "b".repeat(chars - start.len() - count * weight);
            write(&any, format!("{start}{filler}{}", tail.repeat(count)))
        };
        assert!(!url(1024).unwrap().1.notes().any(|code| code == "loc.over_1024"));
        assert!(url(1025).unwrap().1.notes().any(|code| code == "loc.over_1024"));
        assert!(url(2047).unwrap().1.notes().any(|code| code == "loc.over_1024"));
        assert_eq!(url(2048), Err(LocFault::TooLong), "{tail}");
    }
}

#[test]
fn folders() {
    let outside = |folder: &str, raw: &str| {
        let rules = rules("https://shop.example", Hosts::Any, false, Some(folder));
        write(&rules, raw).unwrap().1.notes().any(|code| code == "loc.outside_folder")
    };
    for (folder, raw) in [
        ("https://shop.example", "https://shop.example?a"),
        ("https://shop.example/", "https://shop.example"),
        ("https://shop.example/", "https://shop.example#a b"),
        ("https://shop.example/shop", "/shop/a"),
        ("https://shop.example/shop/", "https://shop.example/shop/?ü"),
        ("https://shop.example/ü/", "https://shop.example/ü/a"),
        ("https://{host}/", "https://www.other.example/"),
        ("https://{host}/a/", "https://other.example/a/"),
        ("https://shop.example:443/", "HTTPS://SHOP.EXAMPLE/"),
    ] {
        assert!(!outside(folder, raw), "{folder} {raw}");
    }
    for (folder, raw) in [
        ("https://shop.example/shop", "https://shop.example/shop"),
        ("https://shop.example/shop", "https://shop.example/shopping/a"),
        ("https://shop.example/shop", "/?/shop/"),
        ("https://shop.example/shop", "https://shop.example"),
        ("https://cdn.example/", "https://shop.example/a"),
        ("https://shop.example/", "http://shop.example/a"),
        ("https://shop.example/", "https://shop.example:444/a"),
        ("https://{host}/a/", "https://other.example/b/a/"),
        ("https://{host}/", "http://other.example/"),
    ] {
        assert!(outside(folder, raw), "{folder} {raw}");
    }
}

#[test]
fn sites() {
    for (site, origin, path) in [
        ("https://www.Shop.example", "https://www.shop.example", ""),
        (" HTTP://shop.example:80/ ", "http://shop.example", "/"),
        ("http://shop.example:443/a/../b c/", "http://shop.example:443", "/b%20c/"),
        ("https://[::A]:8443", "https://[::a]:8443", ""),
    ] {
        let site = Site::parse(site).unwrap();
        assert_eq!((site.origin(), site.path()), (origin, path));
    }
    for wrong in [
        "",
        "shop.example",
        "/a",
        "//shop.example",
        "ftp://a.example",
        "https://",
        "https://a@b.example",
        "https://a b",
        "https://shop.example?q",
        "https://shop.example/#f",
        "https://a.example/\n/b",
        "https://a.example/%",
    ] {
        assert_eq!(
            Site::parse(wrong).err().map(|error| error.code.name()),
            Some("config.site"),
            "{wrong}"
        );
        assert_eq!(
            Folder::parse(wrong).err().map(|error| error.code.name()),
            Some("config.sitemap_url"),
            "{wrong}"
        );
    }
}
