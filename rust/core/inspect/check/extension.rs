//! Checks of whole extension blocks: what the content model cannot express.

use crate::inspect::check::url::message;
use crate::inspect::document::entry::PartField;
use crate::inspect::entry_buf::EntryBuf;
use crate::inspect::finding::{Location, Log, quoted};
use crate::sitemap::element::{Attribute, Content, Element};
use crate::sitemap::extension::alternate as link;
use crate::sitemap::extension::descriptor::Extension;
use crate::sitemap::hreflang::{self, CodePolicy};
use crate::sitemap::url;
use crate::sitemap::value::{UrlRule, ValueKind};

/// Checks an `xhtml:link` after its attributes were read.
pub(crate) fn alternate(entry: &EntryBuf, at: Location, log: &mut Log) {
    let found = &entry.alternate;
    let loc = Some(entry.loc());
    match &found.rel {
        None => log.add(&link::REL, at, loc, || "a link without rel".to_owned()),
        Some(rel) if !rel.eq_ignore_ascii_case(b"alternate") => {
            log.add(&link::REL, at, loc, || format!("rel is {}", quoted(rel)));
            return;
        }
        Some(_) => {}
    }
    match &found.hreflang {
        // a page for another device: Google's form has media and no hreflang
        None if found.media => {}
        None => log.add(&link::HREFLANG, at, loc, || "a link without hreflang".to_owned()),
        Some(code) => {
            if let Err(why) = hreflang::check(code, CodePolicy::Report) {
                log.add(&link::HREFLANG, at, loc, || why);
            }
        }
    }
    match &found.href {
        None => log.add(&link::HREF, at, loc, || "a link without href".to_owned()),
        Some(href) => {
            if let Some(fault) = url::written_fault(href, b"") {
                log.add(&link::HREF, at, loc, || message(fault, href));
            }
        }
    }
}

/// Checks the block of an extension that just ended.
pub(crate) fn block(extension: &Extension, entry: &EntryBuf, at: Location, log: &mut Log) {
    let loc = entry.loc();
    let one_of = extension.one_of.as_ref();
    let mut one = one_of.is_none();
    for (field, text) in entry.last_block() {
        let (name, kind) = match field {
            PartField::Text(&Element { name, content: Content::Text(kind), .. }) => (name, kind),
            PartField::Attribute(&Attribute { name, kind, .. }) => (name, kind),
            _ => continue,
        };
        one |= one_of.is_some_and(|one_of| one_of.names.contains(&name));
        match kind {
            ValueKind::Url(UrlRule::NotThePage(code)) if text == loc && !loc.is_empty() => {
                log.add(code, at, Some(loc), || format!("{} is the page itself", quoted(text)));
            }
            ValueKind::Url(UrlRule::SiteOfThePage(code))
                if url::origin(text) != url::origin(loc) =>
            {
                let message = || format!("{name} {} is on another host", quoted(text));
                log.add(code, at, Some(loc), message);
            }
            _ => {}
        }
    }
    if let Some(one_of) = one_of.filter(|_| !one) {
        let message =
            || format!("<{}> has none of {}", extension.root.name, one_of.names.join(", "));
        log.add(one_of.finding, at, Some(loc), message);
    }
}
