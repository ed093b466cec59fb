//! A window over the bytes of a file, with its offset and line, and the first invalid UTF-8.

use std::io::{self, BufRead, Read};

use crate::inspect::codes::Severity;
use crate::inspect::document::encoding;
use crate::inspect::document::inflate::{Bytes, Damage};
use crate::inspect::finding::Location;

const WINDOW: usize = 256 << 10;

/// Limit of a tag, text or comment: 1 MiB. The longest legal one has a few thousand bytes.
pub const MAX_TOKEN: usize = 1 << 20;

/// The bytes of one file.
pub struct Window {
    buf: Vec<u8>,
    pos: usize,
    end: usize,
    reader: Option<Box<dyn Read + Send>>,
    /// offset of `buf[0]`
    base: u64,
    /// line at `pos`
    line: u64,
    /// bytes that the current token may still have
    budget: usize,
    /// `buf[..checked]` is UTF-8
    checked: usize,
    bad_utf8: Option<Location>,
    damage: Option<Damage>,
    decoded: bool,
}

impl Window {
    /// A window over `bytes`.
    pub fn new(bytes: Bytes) -> Window {
        let (buf, end, reader) = match bytes {
            Bytes::Whole(all) => {
                let end = all.len();
                (all, end, None)
            }
            Bytes::Stream(reader) => (Vec::new(), 0, Some(reader)),
        };
        let mut source = Window {
            buf,
            pos: 0,
            end,
            reader,
            base: 0,
            line: 1,
            budget: MAX_TOKEN,
            checked: 0,
            bad_utf8: None,
            damage: None,
            decoded: false,
        };
        source.check_utf8();
        source
    }

    /// The bytes from here on, decoded to UTF-8; locations are those of the decoded bytes.
    pub fn decode(self, form: encoding::SourceEncoding) -> Window {
        let Window { mut buf, pos, end, reader, damage, .. } = self;
        buf.truncate(end);
        let mut ahead = io::Cursor::new(buf);
        ahead.set_position(pos as u64);
        let rest: Box<dyn Read + Send> = match reader {
            Some(reader) => Box::new(ahead.chain(reader)),
            None => Box::new(ahead),
        };
        let bytes = Bytes::Stream(Box::new(encoding::Decoded::new(form, rest)));
        Window { decoded: true, damage, ..Window::new(bytes) }
    }

    /// Whether the bytes were in another encoding than UTF-8.
    pub fn is_decoded(&self) -> bool {
        self.decoded
    }

    /// The location of the next byte.
    pub fn at(&self) -> Location {
        Location { offset: self.base + self.pos as u64, line: self.line }
    }

    /// The unread bytes in the window.
    pub fn window(&self) -> &[u8] {
        &self.buf[self.pos..self.end]
    }

    /// Starts a new token, which may have [`MAX_TOKEN`] bytes.
    pub fn start_token(&mut self) {
        self.budget = MAX_TOKEN;
    }

    /// Whether the token has reached its limit.
    pub fn is_token_too_long(&self) -> bool {
        self.budget == 0
    }

    /// The location of the first byte that is not UTF-8, among those read so far.
    pub fn bad_utf8(&self) -> Option<Location> {
        self.bad_utf8
    }

    /// Whether the compressed data is damaged; a second member or trailing bytes do not count.
    pub fn is_damaged(&self) -> bool {
        self.damage.as_ref().is_some_and(|damage| damage.code.severity == Severity::Error)
    }

    /// The fault of the compressed data, if any, and the location at which the bytes end.
    pub fn take_damage(&mut self) -> Option<(Damage, Location)> {
        let damage = self.damage.take()?;
        let line = self.line + memchr::memchr_iter(b'\n', self.window()).count() as u64;
        Some((damage, Location { offset: self.base + self.end as u64, line }))
    }

    /// Fills the window. Returns false at the end of the file, and if the window is full.
    pub fn more(&mut self) -> io::Result<bool> {
        if self.reader.is_none() {
            return Ok(false);
        }
        if self.buf.len() < WINDOW {
            self.buf.resize(WINDOW, 0);
        }
        if self.pos > 0 {
            self.buf.copy_within(self.pos..self.end, 0);
            self.base += self.pos as u64;
            self.end -= self.pos;
            self.checked = self.checked.saturating_sub(self.pos);
            self.pos = 0;
        }
        let before = self.end;
        while self.end < self.buf.len() {
            let Some(reader) = &mut self.reader else { break };
            match reader.read(&mut self.buf[self.end..]) {
                Ok(0) => self.reader = None,
                Ok(n) => self.end += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    self.reader = None;
                    match e.downcast::<Damage>() {
                        Ok(damage) => self.damage = Some(damage),
                        Err(e) => return Err(e),
                    }
                }
            }
        }
        self.check_utf8();
        Ok(self.end > before)
    }

    /// Skips to the end of the file, unless `stopped` returns true.
    pub fn drain(&mut self, stopped: impl Fn() -> bool) {
        while !stopped() {
            let left = self.window().len();
            self.advance(left);
            if !matches!(self.more(), Ok(true)) {
                break;
            }
        }
    }

    /// Skips to the next `<` for which `wanted` returns true; it receives the bytes from there on, at
    /// least 32 of them except at the end of the file. Returns false if there is none.
    pub fn skip_to(&mut self, mut wanted: impl FnMut(&[u8]) -> bool) -> io::Result<bool> {
        loop {
            let window = self.window();
            let last = match self.reader {
                Some(_) => window.len().saturating_sub(31),
                None => window.len(),
            };
            let found =
                memchr::memchr_iter(b'<', &window[..last]).find(|&at| wanted(&window[at..]));
            if let Some(at) = found {
                self.advance(at);
                return Ok(true);
            }
            self.advance(last);
            if self.reader.is_none() {
                return Ok(false);
            }
            self.more()?;
        }
    }

    /// Skips `n` bytes of the window.
    pub fn advance(&mut self, n: usize) {
        let to = (self.pos + n).min(self.end);
        self.line += memchr::memchr_iter(b'\n', &self.buf[self.pos..to]).count() as u64;
        self.pos = to;
    }

    /// The buffer, for reuse.
    pub fn into_buffer(self) -> Vec<u8> {
        self.buf
    }

    fn check_utf8(&mut self) {
        if self.bad_utf8.is_some() || self.checked >= self.end {
            return;
        }
        let Err(error) = simdutf8::compat::from_utf8(&self.buf[self.checked..self.end]) else {
            self.checked = self.end;
            return;
        };
        self.checked += error.valid_up_to();
        if error.error_len().is_some() || self.reader.is_none() {
            let read = &self.buf[self.pos..self.checked.max(self.pos)];
            let line = self.line + memchr::memchr_iter(b'\n', read).count() as u64;
            self.bad_utf8 = Some(Location { offset: self.base + self.checked as u64, line });
        }
    }
}

impl Read for Window {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let got = self.fill_buf()?.read(out)?;
        self.consume(got);
        Ok(got)
    }
}

impl BufRead for Window {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.pos == self.end && self.reader.is_some() {
            self.more()?;
        }
        if self.budget == 0 {
            return Err(io::Error::other("longer than a token may be"));
        }
        let end = self.end.min(self.pos + self.budget);
        Ok(&self.buf[self.pos..end])
    }

    fn consume(&mut self, n: usize) {
        self.advance(n);
        self.budget = self.budget.saturating_sub(n);
    }
}
