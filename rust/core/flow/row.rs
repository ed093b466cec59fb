//! One row of an input.

use crate::flow::cell::Cell;
use crate::flow::value::Value;

/// One row as the renderer sees it: its mapped columns, by slot. A slot is the index of a column among
/// those that the mapping uses.
pub trait Row {
    /// The value of a slot. It borrows from `scratch` if it had to be unescaped.
    fn cell<'a>(&'a self, slot: usize, scratch: &'a mut Vec<u8>) -> Cell<'a>;

    /// The value of a slot with its parts, if the input has such types.
    #[inline]
    fn value<'a>(&'a self, slot: usize, scratch: &'a mut Vec<u8>) -> Value<'a> {
        Value::Cell(self.cell(slot, scratch))
    }
}
