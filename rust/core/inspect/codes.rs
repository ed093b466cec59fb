//! Every finding that reading a sitemap can give: its stable code, its
//! severity and what to do about it.

use crate::sitemap::code::codes;
use crate::sitemap::extension;

pub use crate::sitemap::code::{Code, Severity};

codes! {
    FILE_UNREADABLE Error "file.unreadable" "make the file readable"
    FILE_EMPTY Error "file.empty" "write a sitemap with at least one URL, or remove the file from the index"
    FILE_NOT_SITEMAP Error "file.not_sitemap" "serve a urlset, a sitemapindex or a list of URLs here"
    FILE_CHANGED Error "file.changed" "verify it again when no process writes to it"
    FILE_ABANDONED Error "file.abandoned" "fix the reported problems and verify again: the rest of the file was not read"
    FILE_FEED Note "file.feed" "an RSS or Atom feed may serve as a sitemap; its entries are not checked"
    FILE_NAME Error "file.name" "name gzip files .gz and only them: readers trust the suffix"
    FILE_TEXT_NAME Note "file.text_name" "name a list of URLs .txt or .txt.gz: Google requires this suffix"
    GZIP_CORRUPT Error "gzip.corrupt" "compress the file again"
    GZIP_TRUNCATED Error "gzip.truncated" "the file is cut short: upload it again"
    GZIP_BOMB Error "gzip.bomb" "split the file: a sitemap has at most 52,428,800 bytes"
    GZIP_MEMBERS Warning "gzip.members" "write one gzip member per file: some clients read only the first"
    GZIP_TRAILING Warning "gzip.trailing" "remove the bytes after the end of the gzip data"
    UTF8_INVALID Error "utf8.invalid" "write the file in UTF-8"
    UTF8_BOM Note "utf8.bom" "remove the byte order mark"
    XML_ENCODING Error "xml.encoding" "declare UTF-8, and write UTF-8"
    XML_DECLARATION Error "xml.declaration" "start the file with <?xml version=\"1.0\" encoding=\"UTF-8\"?>, with nothing before it"
    XML_DOCTYPE Error "xml.doctype" "remove the DOCTYPE: crawlers refuse it"
    XML_PLAIN_DOCTYPE Warning "xml.plain_doctype" "remove the DOCTYPE: a sitemap does not need one"
    XML_ENTITY Error "xml.entity" "write the character itself, or one of &amp; &lt; &gt; &quot; &apos;"
    XML_CHARACTER Error "xml.character" "remove the character: XML 1.0 forbids it, even escaped"
    XML_MALFORMED Error "xml.malformed" "write well-formed XML: escape & < > in values, close every tag"
    XML_MISMATCH Error "xml.mismatch" "close the elements in the reverse of the order in which they open"
    XML_TRUNCATED Error "xml.truncated" "the file ends too early: write it again"
    XML_TRAILING Error "xml.trailing" "end the file after the root element"
    XML_DEPTH Error "xml.depth" "remove nested elements: a sitemap has at most five levels"
    XML_TOO_LONG Error "xml.too_long" "shorten the tag, text or entry"
    XML_STYLESHEET Note "xml.stylesheet" "browsers are removing support for XSLT; crawlers ignore style sheets"
    NS_MISSING Error "ns.missing" "declare xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" on the root"
    NS_WRONG Error "ns.wrong" "use exactly xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\""
    NS_PREFIX Error "ns.prefix" "declare the prefix with xmlns:PREFIX"
    NS_FOREIGN Warning "ns.foreign" "no schema is known for this namespace; crawlers ignore it"
    ELEMENT_UNKNOWN Error "element.unknown" "remove the element, or correct its name and namespace"
    ELEMENT_ORDER Error "element.order" "write loc, lastmod, changefreq, priority, then extensions; inside those the order of their schema"
    ELEMENT_REPEATED Error "element.repeated" "write the element once"
    ELEMENT_MISSING Error "element.missing" "add the element: it is required"
    ELEMENT_EMPTY Error "element.empty" "add a value, or remove the element"
    ELEMENT_TEXT Error "element.text" "remove the text or element: it is not allowed here"
    ELEMENT_ATTRIBUTE Error "element.attribute" "correct or remove the attribute"
    ELEMENT_RETIRED Note "element.retired" "remove it: Google has ignored it since 2022"
    LIMIT_URLS Error "limit.urls" "split the file: 50,000 URLs at most"
    LIMIT_BYTES Error "limit.bytes" "split the file: 52,428,800 bytes at most, before compression"
    LIMIT_SITEMAPS Error "limit.sitemaps" "write another index: an index lists at most 50,000 sitemaps"
    URLSET_EMPTY Error "urlset.empty" "write at least one entry, or remove the file from the index"
    LOC_MISSING Error "loc.missing" "add a loc to every entry"
    LOC_RELATIVE Error "loc.relative" "write the whole URL: https://host/path"
    LOC_SCHEME Error "loc.scheme" "use http or https"
    LOC_HOST Error "loc.host" "correct the host; write international names in punycode"
    LOC_CHARACTERS Error "loc.characters" "percent-encode the character as UTF-8 (RFC 3986)"
    LOC_PERCENT Error "loc.percent" "write %XX, and a bare percent sign as %25"
    LOC_TOO_LONG Error "loc.too_long" "shorten the URL: 2,047 characters at most"
    LOC_TOO_SHORT Error "loc.too_short" "write the whole URL: the schema requires at least 12 characters"
    LOC_APOSTROPHE Warning "loc.apostrophe" "write ' as &apos; or %27: the protocol requires it, the schema does not"
    LOC_FRAGMENT Note "loc.fragment" "remove the #fragment: crawlers ignore it"
    LOC_USERINFO Note "loc.userinfo" "remove user names and passwords from URLs"
    LOC_SPACE Note "loc.space" "write values without spaces and line breaks around them"
    LOC_OTHER_HOST Error "loc.other_host" "keep one scheme, host and port in a sitemap"
    LOC_CROSS_HOST Warning "loc.cross_host" "name this sitemap in the robots.txt of the host whose URLs it lists"
    LOC_SCOPE Warning "loc.scope" "move the sitemap up: it may list only URLs under its own directory"
    LOC_DUPLICATE Warning "loc.duplicate" "list each URL once"
    LOC_KEPT_DUPLICATE Note "loc.kept_duplicate" "list each URL once: this set was built with --duplicates keep"
    LASTMOD_INVALID Error "lastmod.invalid" "write YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ"
    LASTMOD_PRECISION Warning "lastmod.precision" "write YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ: the schema does not allow a year, a month or a time without seconds"
    LASTMOD_FUTURE Warning "lastmod.future" "write the time of the last change, not a time in the future"
    LASTMOD_SAME Note "lastmod.same" "write the time at which each page changed: search engines distrust one date on all pages"
    CHANGEFREQ_INVALID Error "changefreq.invalid" "use always, hourly, daily, weekly, monthly, yearly or never, in lower case"
    PRIORITY_INVALID Error "priority.invalid" "write a number from 0.0 to 1.0"
    DATE_INVALID Error "date.invalid" "write YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ"
    DATE_PRECISION Warning "date.precision" "write YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ: the schema does not allow a year, a month or a time without seconds"
    INDEX_MISSING_FILE Error "index.missing_file" "publish the sitemap, or remove it from the index"
    INDEX_WRONG_GZ Error "index.wrong_gz" "name the file in the index as it is published, .gz or not"
    INDEX_UNLISTED_FILE Note "index.unlisted_file" "list the sitemap in the index, or delete it"
    INDEX_NESTED Error "index.nested" "list sitemaps only: crawlers refuse an index in an index"
    INDEX_SELF Error "index.self" "remove the entry: an index must not list itself"
    INDEX_DUPLICATE Warning "index.duplicate" "list each sitemap once"
    INDEX_OTHER_HOST Error "index.other_host" "keep one scheme, host and port in an index"
    INDEX_ADDRESS Warning "index.address" "build again with the --sitemap-url under which the files are served, or move the files back"
    INDEX_TOO_MANY Warning "index.too_many" "list more sitemaps in each index, or use more properties: Search Console accepts 500 indexes per site"
    INDEX_SCOPE Warning "index.scope" "put sitemaps in the directory of their index or below it"
    FETCH_FAILED Error "fetch.failed" "check the address and that its server responds"
    FETCH_STATUS Error "fetch.status" "make the server respond with status 200 at this address"
    FETCH_REFUSED Error "fetch.refused" "list public http and https addresses (--allow-private checks private ones)"
    FETCH_REDIRECT Note "fetch.redirect" "list the final address"
    FETCH_ENCODING Error "fetch.encoding" "serve .gz without Content-Encoding, or the plain file with it; never both"
}

/// All codes, those of the extensions included, in the order of the documentation.
pub fn all() -> Vec<&'static Code> {
    let (entries, rest) = ALL
        .split_at(ALL.iter().position(|code| code.name.starts_with("index.")).unwrap_or(ALL.len()));
    let extensions = extension::ALL.iter().flat_map(|extension| extension.findings);
    entries.iter().chain(extensions).chain(rest).copied().collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_unique_and_well_formed() {
        let mut names: Vec<_> = super::all().iter().map(|code| code.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(names.iter().all(|name| name.split('.').count() == 2));
    }
}
