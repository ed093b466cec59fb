//! The policy for invalid values of extensions (`--on-bad-field`).

use crate::build::render::plan::Plan;
use crate::build::render::rules::Rules;
use crate::flow::cell::Cell;
use crate::flow::chunk::{Chunk, MAX_REJECT_VALUE, Reject};
use crate::flow::json::Json;
use crate::flow::value::{Value, is_json};

/// The reason why a row is rejected.
pub(crate) type Rejected = Box<Reject>;

/// An invalid value.
pub(crate) struct Invalid<'a> {
    /// Such as `image.invalid`.
    pub code: &'static str,
    /// What is wrong and what to do.
    pub message: &'a str,
    /// The column, by slot.
    pub slot: Option<usize>,
    /// The value.
    pub value: &'a [u8],
}

/// Leaves the value out and counts it, or rejects the row.
#[cold]
pub(crate) fn handle(
    rules: &Rules,
    plan: &Plan,
    invalid: &Invalid<'_>,
    chunk: &mut Chunk,
) -> Result<(), Rejected> {
    if rules.omit {
        chunk.note(invalid.code);
        return Ok(());
    }
    Err(Box::new(Reject {
        row: 0,
        column: invalid.slot.map(|slot| plan.names[slot].clone()),
        code: invalid.code,
        message: invalid.message.to_owned(),
        value: invalid.value[..invalid.value.len().min(MAX_REJECT_VALUE)].to_vec(),
    }))
}

/// A value as a reject shows it.
pub(crate) fn shown(value: Value<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    match value.cell() {
        Some(Cell::Null) => text.extend_from_slice(b"null"),
        Some(cell) => cell.write(&mut text),
        None => text.extend_from_slice(b"(a value with parts)"),
    }
    text
}

/// The JSON list or object in a cell.
pub(crate) fn json_of(value: Value<'_>) -> Option<Json<'_>> {
    match value.cell() {
        Some(Cell::Text(text)) if is_json(text) => Json::parse(text),
        _ => None,
    }
}
