//! The value that a set is split by.

use crate::build::render::plan::Split;
use crate::build::render::row::{Renderer, RowElement};
use crate::flow::chunk::Chunk;
use crate::flow::row::Row;
use crate::sitemap::characters::trim;
use crate::sitemap::url::host_of;

impl Renderer<'_> {
    /// Records the value that the element is split by.
    pub(crate) fn split(
        &mut self,
        split: Split,
        row: &impl Row,
        element: &RowElement,
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
