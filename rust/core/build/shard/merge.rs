//! Sorted runs of a file as one.

use crate::error::{Error, Kind, Result};
use crate::flow::spill::Segment;
use crate::sitemap::date::Order;

/// What stands before an element in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Head {
    /// Bytes of the element.
    pub len: u32,
    /// Bytes of its loc.
    pub loc: u32,
    /// Bytes of the value that it is split by, which stands behind it.
    pub split: u32,
    /// As [`crate::flow::entry::Entry::newest`].
    pub newest: Order,
    /// As in [`crate::flow::chunk::Chunk::borders`].
    pub border: u64,
    /// As [`crate::flow::entry::Entry::namespaces`].
    pub namespaces: u8,
}

impl Head {
    /// Bytes in the file.
    pub const SIZE: usize = 29;

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; Head::SIZE];
        bytes[..4].copy_from_slice(&self.len.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.loc.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.split.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.newest.to_le_bytes());
        bytes[20..28].copy_from_slice(&self.border.to_le_bytes());
        bytes[28] = self.namespaces;
        out.extend_from_slice(&bytes);
    }

    fn read(bytes: &[u8]) -> Option<Head> {
        let word = |at: usize| bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        let long = |at: usize| bytes[at..at + 8].try_into().unwrap_or_default();
        (bytes.len() >= Head::SIZE).then(|| Head {
            len: word(0),
            loc: word(4),
            split: word(8),
            newest: Order::from_le_bytes(long(12)),
            border: u64::from_le_bytes(long(20)),
            namespaces: bytes[28],
        })
    }

    /// Bytes of all that belongs to it.
    fn whole(&self) -> usize {
        Head::SIZE + self.len as usize + self.split as usize
    }
}

/// Reads a run through a buffer.
pub struct Cursor {
    segment: Segment,
    /// how much of the segment was read
    read: usize,
    buffer: Vec<u8>,
    size: usize,
    /// where the element at hand begins in the buffer, with its head
    at: usize,
    head: Option<Head>,
    loc_at: usize,
}

impl Cursor {
    /// At the first element of a run; the buffer has `size` bytes, or those of an element.
    pub fn new(segment: Segment, size: usize, loc_at: usize) -> Result<Cursor> {
        let buffer = Vec::new();
        let mut cursor = Cursor { segment, read: 0, buffer, size, at: 0, head: None, loc_at };
        cursor.look()?;
        Ok(cursor)
    }

    /// The element at hand: its head, its bytes, its value. None at the end.
    pub fn row(&self) -> Option<(Head, &[u8], &[u8])> {
        let head = self.head?;
        let texts = &self.buffer[self.at + Head::SIZE..self.at + head.whole()];
        let (bytes, split) = texts.split_at(head.len as usize);
        Some((head, bytes, split))
    }

    #[inline]
    fn loc(&self) -> Option<&[u8]> {
        let start = self.at + Head::SIZE + self.loc_at;
        Some(&self.buffer[start..start + self.head.as_ref()?.loc as usize])
    }

    /// Goes on to the next element.
    pub fn advance(&mut self) -> Result<()> {
        self.at += self.head.map_or(0, |head| head.whole());
        self.look()
    }

    fn look(&mut self) -> Result<()> {
        self.head = None;
        if self.at == self.buffer.len() && self.read == self.segment.length() {
            return Ok(());
        }
        self.fill(Head::SIZE)?;
        let head = Head::read(&self.buffer[self.at..]).unwrap_or_default();
        if self.loc_at + head.loc as usize > head.len as usize {
            return Err(damaged());
        }
        self.fill(head.whole())?;
        self.head = Some(head);
        Ok(())
    }

    /// Sees to it that `need` bytes are in the buffer.
    fn fill(&mut self, need: usize) -> Result<()> {
        if self.buffer.len() - self.at >= need {
            return Ok(());
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        let held = self.buffer.len();
        let more = (self.size.max(need) - held).min(self.segment.length() - self.read);
        if held + more < need {
            return Err(damaged());
        }
        self.buffer.resize(held + more, 0);
        self.segment.read_at(self.read, &mut self.buffer[held..])?;
        self.read += more;
        Ok(())
    }
}

fn damaged() -> Error {
    let message = "the temporary file of the sort is damaged: is the disk sound?";
    Error::new(Kind::Output, "output.spill", message)
}

/// Which of the cursors has the smallest loc: a tree of losers, so that a new one plays once a level.
pub struct Tournament {
    /// the winner first, then who lost at each node
    tree: Vec<usize>,
}

/// Nobody has come to a node yet.
const NOBODY: usize = usize::MAX;

impl Tournament {
    /// Plays for the first time; there is one cursor at least.
    pub fn new(cursors: &[Cursor]) -> Tournament {
        let mut tournament = Tournament { tree: vec![NOBODY; cursors.len()] };
        (0..cursors.len()).for_each(|player| tournament.play(player, cursors));
        tournament
    }

    /// The cursor with the smallest loc; of equals the first, so that the order of the input stays.
    pub fn winner(&self) -> usize {
        self.tree[0]
    }

    /// Plays again after the winner went on.
    pub fn replay(&mut self, cursors: &[Cursor]) {
        self.play(self.tree[0], cursors);
    }

    fn play(&mut self, mut player: usize, cursors: &[Cursor]) {
        let mut node = (player + cursors.len()) / 2;
        while node > 0 {
            let other = self.tree[node];
            if other == NOBODY {
                self.tree[node] = player;
                return;
            }
            if before(other, player, cursors) {
                self.tree[node] = player;
                player = other;
            }
            node /= 2;
        }
        self.tree[0] = player;
    }
}

/// Whether the one comes before the other; who is at the end comes last.
#[inline]
fn before(one: usize, other: usize, cursors: &[Cursor]) -> bool {
    match (cursors[one].loc(), cursors[other].loc()) {
        (Some(a), Some(b)) => (a, one) < (b, other),
        (a, b) => a.is_some() && b.is_none(),
    }
}
