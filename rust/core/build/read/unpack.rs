//! Decompression of gzip, zstd, bzip2 and xz, which are detected by their first bytes.

use std::io::{self, BufReader, Cursor, Read};

/// Limit of the memory that an xz file may need; files of `xz -9` need 65 MiB.
const XZ_MEMORY: u64 = 256 << 20;

/// A stream of bytes that can move to the reader thread.
pub type ByteStream = Box<dyn Read + Send>;

/// Returns the content of `from`, decompressed, and whether it was compressed.
pub fn unpack(mut from: ByteStream) -> io::Result<(ByteStream, bool)> {
    let head = peek(&mut from, 6)?;
    let packed = Cursor::new(head.clone()).chain(from);
    let buffered = |packed| BufReader::with_capacity(256 << 10, packed);
    let text: ByteStream = match &head[..] {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(buffered(packed))),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(zstd::stream::read::Decoder::new(packed)?),
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41]
        | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72] => {
            Box::new(bzip2::bufread::MultiBzDecoder::new(buffered(packed)))
        }
        [0xfd, b'7', b'z', b'X', b'Z', 0x00] => {
            let flags = liblzma::stream::CONCATENATED;
            let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, flags)
                .map_err(io::Error::from)?;
            Box::new(liblzma::bufread::XzDecoder::new_stream(buffered(packed), stream))
        }
        _ => return Ok((Box::new(packed), false)),
    };
    Ok((text, true))
}

/// Reads up to `limit` bytes.
pub fn peek(from: &mut impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(limit);
    from.take(limit as u64).read_to_end(&mut head)?;
    Ok(head)
}
