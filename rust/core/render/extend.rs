//! What the extensions of a `<url>` share (PROTOCOL section 2): the policy for bad entries.

use super::chunk::{Chunk, REJECT_VALUE, Reject};
use super::plan::Plan;
use super::row::Rules;
use crate::read::cell::Cell;
use crate::read::value::Value;

/// The end of a row that is rejected.
pub(super) type Rejected = Box<Reject>;

/// What is wrong with an entry.
pub(super) struct Bad<'a> {
    /// Such as `image.invalid`.
    pub code: &'static str,
    /// What is wrong and what to do.
    pub message: &'a str,
    /// The column, by slot.
    pub slot: Option<usize>,
    /// The entry.
    pub value: &'a [u8],
}

/// Leaves the entry out and counts it, or rejects the row, as the policy says.
#[cold]
pub(super) fn bad(
    rules: &Rules,
    plan: &Plan,
    bad: &Bad<'_>,
    chunk: &mut Chunk,
) -> Result<(), Rejected> {
    if rules.omit {
        chunk.note(bad.code);
        return Ok(());
    }
    Err(Box::new(Reject {
        row: 0,
        column: bad.slot.map(|slot| plan.names[slot].clone()),
        code: bad.code,
        message: bad.message.to_owned(),
        value: bad.value[..bad.value.len().min(REJECT_VALUE)].to_vec(),
    }))
}

/// A value as a reject shows it.
pub(super) fn shown(value: Value<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    match value.cell() {
        Some(Cell::Null) => text.extend_from_slice(b"null"),
        Some(cell) => cell.write(&mut text),
        None => text.extend_from_slice(b"(a value with parts)"),
    }
    text
}
