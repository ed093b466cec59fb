//! Alternates of a `<url>`: the same page in other languages (docs/protocol.md, *hreflang*).

use std::mem::take;
use std::ops::Range;

use crate::build::render::invalid::{Invalid, Rejected, handle, shown};
use crate::build::render::plan::{Alternates, Plan};
use crate::build::render::rules::Rules;
use crate::flow::cell::Cell;
use crate::flow::chunk::Chunk;
use crate::flow::json::Json;
use crate::flow::row::Row;
use crate::flow::value::{Value, is_json};
use crate::sitemap::characters::trim;
use crate::sitemap::extension::alternate::LIMIT;
use crate::sitemap::hreflang::{self, CodePolicy};

/// The names of the fields of a struct that is an alternate.
const CODE: [&str; 5] = ["hreflang", "lang", "language", "locale", "code"];
const HREF: [&str; 4] = ["href", "url", "loc", "link"];

/// Collects the alternates of a row. The buffers are reused for all rows of a renderer.
#[derive(Default)]
pub(crate) struct Links {
    list: Vec<Link>,
    /// the codes and the URLs, escaped
    text: Vec<u8>,
    cell: Vec<u8>,
    encoded: Vec<u8>,
}

/// One alternate, as ranges of [`Links::text`].
struct Link {
    code: Range<usize>,
    href: Range<usize>,
    /// Its URL may also be the loc of an entry.
    own: bool,
}

impl Links {
    /// Appends the alternates of a row; `loc` is the range of its loc in the chunk. Returns false if
    /// there are none.
    pub fn write(
        &mut self,
        rules: &Rules,
        plan: &Plan,
        from: &Alternates,
        row: &impl Row,
        loc: Range<usize>,
        chunk: &mut Chunk,
    ) -> Result<bool, Rejected> {
        self.list.clear();
        self.text.clear();
        let mut cell = take(&mut self.cell);
        let result = self.collect(rules, plan, from, row, &mut cell, chunk);
        self.cell = cell;
        result?;
        if self.list.is_empty() {
            return Ok(false);
        }
        self.add_self(from, loc, chunk);
        if let Some(code) = &from.x_default {
            self.add_default(code);
        }
        for link in &self.list {
            let (code, href) = (&self.text[link.code.clone()], &self.text[link.href.clone()]);
            write_link(code, href, &mut chunk.bytes);
        }
        Ok(true)
    }

    fn collect(
        &mut self,
        rules: &Rules,
        plan: &Plan,
        from: &Alternates,
        row: &impl Row,
        cell: &mut Vec<u8>,
        chunk: &mut Chunk,
    ) -> Result<(), Rejected> {
        for (code, slot) in &from.columns {
            let at = LinkContext { rules, plan, rows: from.rows, slot: *slot };
            self.one(&at, code, row.value(*slot, cell), chunk)?;
        }
        for &slot in &from.whole {
            let at = LinkContext { rules, plan, rows: from.rows, slot };
            let value = row.value(slot, cell);
            match value.cell() {
                None => self.whole(&at, value, chunk)?,
                Some(Cell::Null) => {}
                Some(Cell::Text(text)) if is_json(text) => match Json::parse(text) {
                    Some(json) => self.whole(&at, Value::Json(&json), chunk)?,
                    None => {
                        at.bad(INVALID, "begins like JSON but is not valid JSON", text, chunk)?
                    }
                },
                Some(Cell::Text(text)) if trim(text).is_empty() => {}
                Some(_) => at.bad(INVALID, NO_MAP, &shown(value), chunk)?,
            }
        }
        Ok(())
    }

    /// A map of codes to URLs, or a list of structs with both.
    fn whole(
        &mut self,
        at: &LinkContext<'_>,
        value: Value<'_>,
        chunk: &mut Chunk,
    ) -> Result<(), Rejected> {
        let mut result = Ok(());
        let is_map = value.fields(|code, href| {
            if result.is_ok() {
                result = self.checked(at, code, href, chunk);
            }
        });
        if is_map {
            return result;
        }
        let is_list = value.items(|item| {
            if result.is_err() {
                return;
            }
            let (mut code, mut href) = (Cell::Null, Value::Cell(Cell::Null));
            let is_struct = item.fields(|name, value| {
                let Cell::Text(name) = name else { return };
                let named = |names: &[&str]| names.iter().any(|n| n.as_bytes() == name);
                if named(&CODE) {
                    code = value.cell().unwrap_or(Cell::Null);
                } else if named(&HREF) {
                    href = value;
                }
            });
            result = if is_struct {
                self.checked(at, code, href, chunk)
            } else {
                at.bad(INVALID, NO_MAP, &shown(item), chunk)
            };
        });
        if is_list { result } else { at.bad(INVALID, NO_MAP, &shown(value), chunk) }
    }

    fn checked(
        &mut self,
        at: &LinkContext<'_>,
        code: Cell<'_>,
        href: Value<'_>,
        chunk: &mut Chunk,
    ) -> Result<(), Rejected> {
        let code = match code {
            Cell::Text(text) => trim(text),
            _ => b"",
        };
        match hreflang::check(code, CodePolicy::Write) {
            Ok(()) => self.one(at, code, href, chunk),
            Err(message) => at.bad("alternate.code", &message, code, chunk),
        }
    }

    /// One alternate; the code has been checked.
    #[inline]
    fn one(
        &mut self,
        at: &LinkContext<'_>,
        code: &[u8],
        href: Value<'_>,
        chunk: &mut Chunk,
    ) -> Result<(), Rejected> {
        let raw = match href.cell() {
            Some(Cell::Text(text)) => trim(text),
            Some(Cell::Null) => b"",
            _ => return at.bad(INVALID, "is not a URL", &shown(href), chunk),
        };
        if raw.is_empty() {
            let message = "one of the languages has no URL; fill it in";
            return at.bad("alternate.empty", message, code, chunk);
        }
        if self.find(code).is_some() {
            return at.bad("alternate.duplicate", "one language has two URLs", code, chunk);
        }
        if self.list.len() == LIMIT.count as usize {
            chunk.note(LIMIT.note);
            return Ok(());
        }
        let start = self.text.len();
        self.text.extend_from_slice(code);
        let middle = self.text.len();
        match at.rules.any.write(raw, &mut self.encoded, &mut self.text) {
            Ok(info) => info.of_other().notes().for_each(|code| chunk.note(code)),
            Err(fault) => {
                self.text.truncate(start);
                return at.bad(INVALID, fault.message(), raw, chunk);
            }
        }
        let own = at.rows && at.rules.loc.encode(raw, &mut self.encoded).is_ok();
        let href = middle..self.text.len();
        self.list.push(Link { code: start..middle, href, own });
        Ok(())
    }

    fn find(&self, code: &[u8]) -> Option<&Link> {
        self.list.iter().find(|link| self.text[link.code.clone()].eq_ignore_ascii_case(code))
    }

    /// Adds the page to its own list, under the code of `--lang`. Without that code, counts pages
    /// that are missing in their list.
    fn add_self(&mut self, from: &Alternates, loc: Range<usize>, chunk: &mut Chunk) {
        let loc = &chunk.bytes[loc];
        if self.list.iter().any(|link| self.text[link.href.clone()] == *loc) {
            return;
        }
        match &from.lang {
            Some(code) if self.find(code).is_none() => {
                let start = self.text.len();
                self.text.extend_from_slice(code);
                let middle = self.text.len();
                self.text.extend_from_slice(loc);
                let href = middle..self.text.len();
                self.list.insert(0, Link { code: start..middle, href, own: false });
            }
            _ => chunk.note("alternate.no_self"),
        }
    }

    /// Adds the URL of one language as that of all other languages.
    fn add_default(&mut self, code: &[u8]) {
        if self.find(X_DEFAULT).is_some() {
            return;
        }
        let Some(href) = self.find(code).map(|link| link.href.clone()) else { return };
        let start = self.text.len();
        self.text.extend_from_slice(X_DEFAULT);
        let code = start..self.text.len();
        self.list.push(Link { code, href, own: false });
    }

    /// The URLs of the last row that become entries besides its loc, each once, escaped. URLs that
    /// are not allowed as a loc (of another host) are counted.
    pub fn others(&self, loc: &[u8], chunk: &mut Chunk) -> Vec<&[u8]> {
        let mut others: Vec<&[u8]> = Vec::new();
        for (place, link) in self.list.iter().enumerate() {
            let href = &self.text[link.href.clone()];
            // two languages may share a URL
            let seen = |other: &Link| self.text[other.href.clone()] == *href;
            if href == loc || self.list[..place].iter().any(seen) {
                continue;
            }
            if link.own {
                others.push(href);
            } else {
                chunk.note("alternate.not_a_row");
            }
        }
        others
    }
}

pub(crate) const X_DEFAULT: &[u8] = b"x-default";
const INVALID: &str = "alternate.invalid";
const NO_MAP: &str =
    "is neither a map of languages to URLs nor a list of structs with lang and url";

/// Appends a link. The code and the URL are escaped.
pub(crate) fn write_link(code: &[u8], href: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"<xhtml:link rel=\"alternate\" hreflang=\"");
    out.extend_from_slice(code);
    out.extend_from_slice(b"\" href=\"");
    out.extend_from_slice(href);
    out.extend_from_slice(b"\"/>");
}

/// The column of an alternate.
struct LinkContext<'a> {
    rules: &'a Rules,
    plan: &'a Plan,
    rows: bool,
    slot: usize,
}

impl LinkContext<'_> {
    #[cold]
    fn bad(
        &self,
        code: &'static str,
        message: &str,
        value: &[u8],
        chunk: &mut Chunk,
    ) -> Result<(), Rejected> {
        let what = Invalid { code, message, slot: Some(self.slot), value };
        handle(self.rules, self.plan, &what, chunk)
    }
}
