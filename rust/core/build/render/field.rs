//! The fields of a row: their values, lastmod, and what happens to an invalid one.

use crate::UNCHECKED;
use crate::build::render::field_writer::FieldWriter;
use crate::build::render::plan::{Plan, ValueSource};
use crate::build::render::rules::{LASTMOD_WRONG, Rules};
use crate::flow::cell::Cell;
use crate::flow::chunk::{Chunk, MAX_REJECT_VALUE, Reject};
use crate::flow::entry::NO_LASTMOD;
use crate::flow::row::Row;
use crate::sitemap::date::{Lastmod, Order, canonical};

/// Whether a lastmod may be a count of seconds since 1970. A year alone is not.
fn is_count(cell: &Cell<'_>) -> bool {
    match *cell {
        Cell::Int(_) | Cell::UInt(_) | Cell::Float(_) => true,
        Cell::Text(text) => {
            let text = text.trim_ascii();
            (9..=14).contains(&text.len()) && text.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    }
}

const LASTMOD_INTEGER: &str =
    "is a number; if it counts from 1970, set the unit (--lastmod-epoch seconds, or milliseconds)";

/// Appends the lastmod that a row has by itself, and returns it.
#[inline]
pub(crate) fn lastmod(
    rules: &Rules,
    plan: &Plan,
    value: &mut Vec<u8>,
    row: &impl Row,
    chunk: &mut Chunk,
    out: &mut FieldWriter,
) -> std::result::Result<Order, Box<Reject>> {
    let Some(from) = &plan.lastmod else { return Ok(NO_LASTMOD) };
    let cell = cell(from, row, value);
    if let Cell::Null = cell {
        return Ok(NO_LASTMOD);
    }
    let before = out.end();
    out.push(b"<lastmod>");
    // written in place: a copy would read bytes that were just written in other widths, which
    // stalls (measured: 5 ns per row)
    let written = out.fill(|text: &mut [u8; 20]| {
        let short = match cell {
            Cell::Text(raw) if UNCHECKED && raw.len() <= text.len() => {
                text[..raw.len()].copy_from_slice(raw);
                Some((raw.len(), 0))
            }
            Cell::Text(raw) if rules.epoch.is_none() => canonical(raw, rules.zone.is_none(), text),
            Cell::Instant(seconds) => Some(Lastmod::from_seconds(seconds)?.text(text)),
            _ => None,
        };
        short.or_else(|| Some(rules.lastmod(&cell)?.text(text)))
    });
    match written {
        Some(order) => {
            out.push(b"</lastmod>");
            Ok(order)
        }
        None => {
            out.cut(before);
            let counts = rules.epoch.is_none() && is_count(&cell);
            let what = if counts { LASTMOD_INTEGER } else { LASTMOD_WRONG };
            let what = ("lastmod.invalid", what);
            bad_field(rules, plan, what, from, &cell, chunk).map(|()| NO_LASTMOD)
        }
    }
}

#[inline]
pub(crate) fn cell<'a>(
    from: &'a ValueSource,
    row: &'a impl Row,
    scratch: &'a mut Vec<u8>,
) -> Cell<'a> {
    match from {
        ValueSource::Slot(slot) => row.cell(*slot, scratch),
        ValueSource::Constant(text) => Cell::Text(text),
    }
}

/// Omits and counts the field, or rejects the row (`--on-bad-field`).
#[cold]
pub(crate) fn bad_field(
    rules: &Rules,
    plan: &Plan,
    (code, message): (&'static str, &'static str),
    from: &ValueSource,
    cell: &Cell<'_>,
    chunk: &mut Chunk,
) -> std::result::Result<(), Box<Reject>> {
    if rules.omit {
        chunk.note(code);
        return Ok(());
    }
    let mut value = Vec::new();
    cell.write(&mut value);
    value.truncate(MAX_REJECT_VALUE);
    let column = match from {
        ValueSource::Slot(slot) => Some(plan.names[*slot].clone()),
        ValueSource::Constant(_) => None,
    };
    Err(Box::new(Reject { row: 0, column, code, message: message.into(), value }))
}
