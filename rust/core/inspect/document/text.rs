//! Text sitemaps: UTF-8, one URL per line, nothing else.

use std::io::{self, BufRead};
use std::ops::ControlFlow;

use crate::inspect::check::value::trim;
use crate::inspect::codes;
use crate::inspect::document::entry::{Entry, Form, Locations, Visitor};
use crate::inspect::document::names::first_illegal;
use crate::inspect::document::window::Window;
use crate::inspect::document::xml::Document;
use crate::inspect::finding::{Location, Log, TOKEN_STEPS};

/// The number of lines after which the parser checks whether the visitor wants to stop.
const STOP_CHECK_INTERVAL: u64 = 4096;

/// Reads a text sitemap. LF, CRLF and CR end a line.
pub fn parse(mut source: Window, visitor: &mut dyn Visitor, log: &mut Log) -> (Document, Window) {
    let mut document = Document { form: Form::Text, entries: 0, stopped: false };
    let mut line = Vec::new();
    let mut number = 0;
    document.stopped = visitor.root(Form::Text).is_break();
    while !document.stopped {
        number += 1;
        source.start_token();
        let at = Location { line: number, ..source.at() };
        line.clear();
        if !log.spend(TOKEN_STEPS) {
            if let Some(message) = log.exhausted() {
                log.add(&codes::FILE_ABANDONED, at, None, || message);
            }
            document.stopped = true;
            break;
        }
        if number.is_multiple_of(STOP_CHECK_INTERVAL) && visitor.stopped() {
            document.stopped = true;
            break;
        }
        match read_line(&mut source, &mut line) {
            Ok(false) => break,
            Ok(true) => {}
            Err(_) if source.is_token_too_long() => {
                log.add(&codes::XML_TOO_LONG, at, None, || "a line of more than 1 MiB".to_owned());
                break;
            }
            Err(error) => {
                log.add(&codes::FILE_UNREADABLE, at, None, || crate::error::plain(&error));
                break;
            }
        }
        let loc = trim(&line);
        if loc.is_empty() {
            continue;
        }
        document.entries += 1;
        log.spend(TOKEN_STEPS);
        if let Some((_, c)) = first_illegal(&String::from_utf8_lossy(loc)) {
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
            locations: Locations::Known([at; 4]),
            padded: u8::from(loc.len() < line.len()),
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

/// Reads a line without its line end; false at the end of the file.
fn read_line(source: &mut Window, line: &mut Vec<u8>) -> io::Result<bool> {
    let mut any = false;
    loop {
        let ahead = source.fill_buf()?;
        if ahead.is_empty() {
            return Ok(any);
        }
        any = true;
        let Some(end) = memchr::memchr2(b'\n', b'\r', ahead) else {
            line.extend_from_slice(ahead);
            let all = ahead.len();
            source.consume(all);
            continue;
        };
        line.extend_from_slice(&ahead[..end]);
        let is_lf = ahead[end] == b'\n';
        source.consume(end + 1);
        if !is_lf && source.fill_buf()?.first() == Some(&b'\n') {
            source.consume(1);
        }
        return Ok(true);
    }
}
