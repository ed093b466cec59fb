//! Bytes of any encoding as UTF-8: for the inputs of a build, and for sitemaps.

use std::io::{self, Read};

use encoding_rs::mem::convert_latin1_to_utf8_partial;
use encoding_rs::{Decoder, DecoderResult};

/// Bytes that are decoded at once.
const PIECE: usize = 64 << 10;
/// Room for the longest character and what stands for an invalid one.
const ROOM: usize = 16;

/// Gives the bytes of a reader in UTF-8.
pub struct Transcoder<R> {
    inner: R,
    /// `None` for ISO 8859-1, of which each byte is the code point: the encoding standard reads it as
    /// windows-1252.
    decoder: Option<Decoder>,
    /// What stands for bytes that are not in the encoding.
    invalid: &'static [u8],
    found_invalid: bool,
    raw: Vec<u8>,
    /// `raw[used..got]` is not decoded yet.
    used: usize,
    got: usize,
    ready: Vec<u8>,
    /// `ready[given..filled]` is not given out yet.
    given: usize,
    filled: usize,
    ended: bool,
    finished: bool,
}

impl<R: Read> Transcoder<R> {
    /// Decodes all bytes of `inner`, ISO 8859-1 without a decoder. `invalid` replaces each sequence
    /// of bytes that is not in the encoding.
    pub fn new(inner: R, decoder: Option<Decoder>, invalid: &'static [u8]) -> Transcoder<R> {
        Transcoder {
            inner,
            decoder,
            invalid,
            found_invalid: false,
            raw: vec![0; PIECE],
            used: 0,
            got: 0,
            ready: vec![0; PIECE],
            given: 0,
            filled: 0,
            ended: false,
            finished: false,
        }
    }

    /// Whether anything was replaced so far.
    pub fn found_invalid(&self) -> bool {
        self.found_invalid
    }

    /// Decodes the next piece; nothing is ready at the end.
    fn more(&mut self) -> io::Result<()> {
        if self.used == self.got && !self.ended {
            self.got = self.inner.read(&mut self.raw)?;
            self.used = 0;
            self.ended = self.got == 0;
        }
        (self.given, self.filled) = (0, 0);
        while PIECE - self.filled > ROOM {
            let raw = &self.raw[self.used..self.got];
            let ready = &mut self.ready[self.filled..PIECE - self.invalid.len()];
            let Some(decoder) = &mut self.decoder else {
                let (read, written) = convert_latin1_to_utf8_partial(raw, ready);
                (self.used, self.filled) = (self.used + read, self.filled + written);
                self.finished = self.ended;
                return Ok(());
            };
            let (result, read, written) =
                decoder.decode_to_utf8_without_replacement(raw, ready, self.ended);
            (self.used, self.filled) = (self.used + read, self.filled + written);
            match result {
                DecoderResult::Malformed(..) => {
                    let end = self.filled + self.invalid.len();
                    self.ready[self.filled..end].copy_from_slice(self.invalid);
                    self.filled = end;
                    self.found_invalid = true;
                }
                DecoderResult::InputEmpty => {
                    self.finished = self.ended;
                    return Ok(());
                }
                DecoderResult::OutputFull => return Ok(()),
            }
        }
        Ok(())
    }
}

impl<R: Read> Read for Transcoder<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.given == self.filled && !self.finished {
            self.more()?;
        }
        let given = (&self.ready[self.given..self.filled]).read(out)?;
        self.given += given;
        Ok(given)
    }
}
