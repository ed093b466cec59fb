//! The range of the locs of a chunk, and whether they ascend: for rows that an engine has sorted.

use crate::flow::entry::{Entry, LOC_OFFSET};

/// The locs of a chunk that is not empty, as they are in its bytes. XML escaping keeps their order: a
/// loc contains no other special characters than `&` and `'`, which are adjacent, and so are their
/// entities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocRange {
    /// The loc of the first entry.
    pub first: Vec<u8>,
    /// The loc of the last entry.
    pub last: Vec<u8>,
    /// The first entry whose loc is less than that of the entry before.
    pub descent: Option<usize>,
}

/// The loc of an element.
pub fn loc_of(element: &[u8], text: bool) -> &[u8] {
    let (start, end) = if text { (0, b'\n') } else { (LOC_OFFSET, b'<') };
    let loc = element.get(start..).unwrap_or_default();
    &loc[..memchr::memchr(end, loc).unwrap_or(loc.len())]
}

impl LocRange {
    /// The range of the elements in `bytes`; none if there are none. `text` is their form.
    pub fn of(mut bytes: &[u8], entries: &[Entry], text: bool) -> Option<LocRange> {
        let (mut last, mut descent) = (None::<&[u8]>, None);
        let mut first = None;
        for (number, entry) in entries.iter().enumerate() {
            let (element, others) = bytes.split_at(entry.len as usize);
            let loc = loc_of(element, text);
            if descent.is_none() && last.is_some_and(|last| loc < last) {
                descent = Some(number);
            }
            first.get_or_insert(loc);
            (bytes, last) = (others, Some(loc));
        }
        Some(LocRange { first: first?.to_vec(), last: last?.to_vec(), descent })
    }
}
