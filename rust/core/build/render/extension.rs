//! The extensions of a row, in the order of their descriptors.

use crate::build::render::block::{BlocksOutcome, ValueContext};
use crate::build::render::field::cell;
use crate::build::render::invalid::{Invalid, Rejected, handle};
use crate::build::render::plan::GroupColumns;
use crate::build::render::row::{Renderer, RowElement};
use crate::flow::chunk::Chunk;
use crate::flow::member::Member;
use crate::flow::row::Row;
use crate::sitemap::characters::trim;
use crate::sitemap::hreflang::{self, CodePolicy};
use crate::sitemap::namespaces;

impl Renderer<'_> {
    /// Appends the extensions of a row whose element begins at `start`.
    pub(crate) fn extend(
        &mut self,
        row: &impl Row,
        start: usize,
        element: &mut RowElement,
        chunk: &mut Chunk,
    ) -> Result<(), Rejected> {
        let Renderer { rules, plan, value, .. } = self;
        if !plan.images.is_empty() && self.images.write(rules, plan, row, chunk)? {
            element.namespaces |= namespaces::IMAGE;
        }
        if let Some(from) = &plan.alternates {
            match &from.group {
                Some(GroupColumns { key, language }) => {
                    let code = cell(language, row, value);
                    let mut written = Vec::new();
                    code.write(&mut written);
                    let code = trim(&written);
                    let checked = hreflang::check(code, CodePolicy::Write);
                    let key = row.cell(*key, value);
                    let mut text = Vec::new();
                    key.write(&mut text);
                    let mut member = Member::default();
                    if !trim(&text).is_empty() {
                        // a row without a valid code is adjacent to its group, but not part of it
                        let mut known = code;
                        if let Err(message) = &checked {
                            let slot = language.slot();
                            let what =
                                Invalid { code: "alternate.code", message, slot, value: code };
                            handle(rules, plan, &what, chunk)?;
                            known = b"";
                        }
                        let key = rules.group_key.hash128(trim(&text)).max(1);
                        member = Member::new(key, element.loc.len(), known).unwrap_or_default();
                    }
                    member.insertion_offset = (chunk.bytes.len() - start) as u32;
                    chunk.members.push(member);
                }
                None => {
                    if self.links.write(rules, plan, from, row, element.loc.clone(), chunk)? {
                        element.namespaces |= namespaces::XHTML;
                    }
                }
            }
        }
        if plan.blocks.is_empty() {
            return Ok(());
        }
        let loc = chunk.bytes[element.loc.clone()].to_vec();
        let context = ValueContext { rules, plan, loc: &loc };
        for (blocks, (place, mapped)) in self.blocks.iter_mut().zip(&plan.blocks) {
            match blocks.write(&context, mapped, row, chunk)? {
                BlocksOutcome::Nothing => {}
                BlocksOutcome::Block => element.namespaces |= namespaces::bit(*place),
                BlocksOutcome::TooOld(code) => element.dropped = Some(code),
            }
        }
        Ok(())
    }
}
