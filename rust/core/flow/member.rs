//! An entry as a member of a group of languages.

/// The membership of an entry in a group.
#[derive(Debug, Clone, Copy, Default)]
pub struct Member {
    /// The keyed hash of the group's key; 0 for a row without a group.
    pub key: u128,
    /// The offset in the element at which the list of alternates is inserted.
    pub insertion_offset: u32,
    /// Bytes of the escaped loc, which begins at [`crate::flow::entry::LOC_OFFSET`].
    pub loc: u32,
    code: [u8; 15],
    code_len: u8,
}

impl Member {
    /// A member without its insertion offset; `None` if the language code is longer than any valid
    /// one.
    pub fn new(key: u128, loc: usize, code: &[u8]) -> Option<Member> {
        let mut member = Member {
            key,
            loc: u32::try_from(loc).ok()?,
            code_len: code.len() as u8,
            ..Member::default()
        };
        member.code.get_mut(..code.len())?.copy_from_slice(code);
        Some(member)
    }

    /// The language code; empty for a row without a valid one.
    pub fn code(&self) -> &[u8] {
        &self.code[..usize::from(self.code_len)]
    }
}
