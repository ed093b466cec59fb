//! Text sitemaps: UTF-8, one URL a line, nothing else.

use std::io::BufRead;
use std::ops::ControlFlow;

use super::check::value::trim;
use super::codes;
use super::entry::{Entry, Form, Places, Visitor};
use super::finding::Log;
use super::names::is_char;
use super::source::Source;
use super::xml::Document;

/// Reads a text sitemap.
pub fn parse<V: Visitor>(mut source: Source, visitor: &mut V, log: &mut Log) -> (Document, Source) {
    let mut document = Document { form: Form::Text, entries: 0, news: 0, stopped: false };
    let mut line = Vec::new();
    loop {
        source.start_token();
        let at = source.at();
        line.clear();
        match source.read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => {}
            Err(_) if source.is_token_too_long() => {
                log.add(&codes::XML_TOO_LONG, at, None, || "a line of more than 1 MiB".to_owned());
                break;
            }
            Err(error) => {
                log.add(&codes::FILE_UNREADABLE, at, None, || crate::error::plain(&error));
                break;
            }
        }
        let written = line.strip_suffix(b"\n").unwrap_or(&line);
        let written = written.strip_suffix(b"\r").unwrap_or(written);
        let loc = trim(written);
        if loc.is_empty() {
            continue;
        }
        document.entries += 1;
        if let Some(c) = String::from_utf8_lossy(loc).chars().find(|&c| !is_char(c)) {
            log.add(&codes::XML_CHARACTER, at, Some(loc), || {
                format!("the character U+{:04X}", c as u32)
            });
        }
        let entry = Entry {
            loc,
            lastmod: None,
            changefreq: None,
            priority: None,
            parts: &[],
            arena: &[],
            at,
            places: Places::Known([at; 4]),
            padded: u8::from(loc.len() < written.len()),
            bare_apostrophe: false,
        };
        if visitor.entry(Form::Text, &entry, log) == ControlFlow::Break(()) {
            document.stopped = true;
            break;
        }
    }
    if let Some((damage, at)) = source.take_damage() {
        log.add(damage.code, at, None, || damage.message);
    }
    (document, source)
}
