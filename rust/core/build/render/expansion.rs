//! Rows that become several URLs: their own, and those of their alternates.

use std::mem::take;

use crate::build::render::plan::Split;
use crate::build::render::row::{Renderer, RowElement};
use crate::build::render::stamper::without_lastmod;
use crate::config::MAX_BYTES;
use crate::flow::chunk::Chunk;
use crate::flow::entry::{ELEMENT_START, Entry};
use crate::flow::hash::boundary_hash;
use crate::sitemap::namespaces;
use crate::sitemap::url::host_of;

impl Renderer<'_> {
    /// Makes entries of the alternates of the last row: its element, which begins at `start`, with
    /// another loc.
    pub(crate) fn expand(&mut self, start: usize, element: &RowElement, chunk: &mut Chunk) {
        let Some(&entry) = chunk.entries.last() else { return };
        let loc = chunk.bytes[element.loc.clone()].to_vec();
        let tail = chunk.bytes[element.loc.end..].to_vec();
        let frame = namespaces::length(entry.namespaces);
        let open = element.loc.start - start;
        let split = chunk.split_of(chunk.entries.len() - 1).to_vec();
        let mut together = u64::from(entry.len);
        // `others` borrows the links while the chunk is passed on
        let links = take(&mut self.links);
        for href in links.others(&loc, chunk) {
            // together they are the square of the size of the row
            if !self.hand_on(chunk) {
                break;
            }
            let lastmod = self.stamper.as_mut().map(|stamper| stamper.of_alternate(href));
            let (head, rest, newest) = match &lastmod {
                None => (&b""[..], &tail[..], entry.newest),
                Some((text, order)) => (text.as_slice(), without_lastmod(&tail), *order),
            };
            let len = open + href.len() + head.len() + rest.len();
            let fits = together + len as u64 <= MAX_BYTES;
            if len as u64 + frame > self.rules.max_bytes || !fits {
                chunk.note("alternate.not_a_row");
                continue;
            }
            together += len as u64;
            chunk.bytes.extend_from_slice(ELEMENT_START);
            chunk.bytes.extend_from_slice(href);
            chunk.bytes.extend_from_slice(head);
            chunk.bytes.extend_from_slice(rest);
            if let Some(stamper) = &self.stamper {
                chunk.stamps.push(stamper.stamped);
            }
            if let Some(key) = self.rules.key {
                chunk.keys.push(key.hash128(href));
            }
            if self.rules.boundaries {
                chunk.boundaries.push(boundary_hash(href));
            }
            chunk.entries.push(Entry { len: len as u32, newest, ..entry });
            match self.plan.split {
                None => {}
                Some(Split::Host) => chunk.push_split(&host_of(href).to_ascii_lowercase()),
                // the value of the original row
                Some(Split::Slot(_)) => chunk.push_split(&split),
            }
            chunk.expanded += 1;
        }
        self.links = links;
        chunk.end_row(true);
    }
}
