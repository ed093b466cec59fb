//! The value that a set is split by, told for each element.

use super::address::host_of;
use super::chunk::Chunk;
use super::class::trim;
use super::plan::Split;
use super::row::{Element, Renderer};
use crate::read::cell::Row;

impl Renderer<'_> {
    /// Tells the value that the element is split by.
    pub(super) fn split(
        &mut self,
        split: Split,
        row: &impl Row,
        element: &Element,
        chunk: &mut Chunk,
    ) {
        let value = &mut self.encoded;
        value.clear();
        match split {
            Split::Host => {
                value.extend_from_slice(host_of(&chunk.bytes[element.loc.clone()]));
                value.make_ascii_lowercase();
            }
            Split::Slot(slot) => row.cell(slot, &mut self.value).write(value),
        }
        chunk.push_split(trim(value));
    }
}
