//! Decompression of gzip, zstd, bzip2 and xz, which are detected by their first bytes.

use std::io::{self, BufReader, Cursor, Read};

/// Limit of the memory that an xz file may need; files of `xz -9` need 65 MiB.
const XZ_MEMORY: u64 = 256 << 20;

/// A stream of bytes that can move to the reader thread.
pub type ByteStream = Box<dyn Read + Send>;

/// Returns the content of `from`, decompressed, and whether it was compressed.
pub fn unpack(mut from: ByteStream) -> io::Result<(ByteStream, bool)> {
    let (head, n) = peek::<6>(&mut from)?;
    let packed = Cursor::new(head).take(n as u64).chain(from);
    let buffered = |packed| BufReader::with_capacity(256 << 10, packed);
    let text: ByteStream = match &head[..n] {
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

/// Reads up to `N` bytes.
pub fn peek<const N: usize>(from: &mut impl Read) -> io::Result<([u8; N], usize)> {
    let mut head = [0; N];
    let mut n = 0;
    while n < N {
        match from.read(&mut head[n..]) {
            Ok(0) => break,
            Ok(more) => n += more,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok((head, n))
}
