//! Checks of whole extension blocks: what the content model cannot say.

use crate::inspect::build::EntryBuf;
use crate::inspect::check::url::message;
use crate::inspect::codes;
use crate::inspect::document::entry::VideoField;
use crate::inspect::finding::{At, Log, quoted};
use crate::sitemap::hreflang::{self, Policy};
use crate::sitemap::url;

/// An `xhtml:link`, its attributes read.
pub(crate) fn alternate(entry: &EntryBuf, at: At, log: &mut Log) {
    let link = &entry.alternate;
    let loc = Some(entry.loc());
    match &link.rel {
        None => log.add(&codes::ALTERNATE_REL, at, loc, || "a link without rel".to_owned()),
        Some(rel) if !rel.eq_ignore_ascii_case(b"alternate") => {
            log.add(&codes::ALTERNATE_REL, at, loc, || format!("rel is {}", quoted(rel)));
            return;
        }
        Some(_) => {}
    }
    match &link.hreflang {
        // a page for another device: Google's form has media and no hreflang
        None if link.media => {}
        None => {
            log.add(&codes::ALTERNATE_HREFLANG, at, loc, || "a link without hreflang".to_owned())
        }
        Some(code) => {
            if let Err(why) = hreflang::check(code, Policy::Report) {
                log.add(&codes::ALTERNATE_HREFLANG, at, loc, || why);
            }
        }
    }
    match &link.href {
        None => log.add(&codes::ALTERNATE_HREF, at, loc, || "a link without href".to_owned()),
        Some(href) => {
            if let Some(fault) = url::written_fault(href, b"") {
                log.add(&codes::ALTERNATE_HREF, at, loc, || message(fault, href));
            }
        }
    }
}

/// The `video:video` that just ended.
pub(crate) fn video(entry: &EntryBuf, at: At, log: &mut Log) {
    let loc = entry.loc();
    let mut content = false;
    for (field, text) in entry.last_video() {
        let is_content = matches!(field, VideoField::ContentLoc | VideoField::PlayerLoc);
        content |= is_content;
        if is_content && text == loc && !loc.is_empty() {
            log.add(&codes::VIDEO_SAME_AS_LOC, at, Some(loc), || {
                format!("{} is the page itself", quoted(text))
            });
        }
        if field == VideoField::UploaderInfo && url::origin(text) != url::origin(loc) {
            log.add(&codes::VIDEO_UPLOADER, at, Some(loc), || {
                format!("info {} is on another host", quoted(text))
            });
        }
    }
    if !content {
        log.add(&codes::VIDEO_CONTENT, at, Some(loc), || {
            "a video without content_loc and player_loc".to_owned()
        });
    }
}
