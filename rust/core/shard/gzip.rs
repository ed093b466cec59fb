//! Compression of a whole shard: one member, no name, no time, so that same bytes give same bytes.

use crate::error::{Error, Kind, Result};

/// A compressed shard.
pub type Compressed = Box<dyn AsRef<[u8]> + Send>;

/// Compresses shards. Called by several threads at once.
pub trait Encoder: Send + Sync {
    /// The gzip file of `input`. The buffer may be taken over for the call, and is given back.
    ///
    /// # Errors
    /// When memory or the library behind it fails.
    fn encode(&self, input: &mut Vec<u8>) -> Result<Compressed>;
}

/// libdeflate, where ISA-L is missing and for the best compression.
pub struct Libdeflate {
    level: libdeflater::CompressionLvl,
}

impl Libdeflate {
    /// With a level of 1 to 12.
    pub fn new(level: i32) -> Result<Libdeflate> {
        let level = libdeflater::CompressionLvl::new(level).map_err(|_| {
            Error::config("config.level", format!("libdeflate has no level {level}"))
        })?;
        Ok(Libdeflate { level })
    }
}

impl Encoder for Libdeflate {
    fn encode(&self, input: &mut Vec<u8>) -> Result<Compressed> {
        // to make a compressor takes little beside the 20 ms and more that a shard takes
        let mut compressor = libdeflater::Compressor::new(self.level);
        let mut output = vec![0; compressor.gzip_compress_bound(input.len())];
        let length = compressor.gzip_compress(input, &mut output).map_err(|e| {
            let message = format!("libdeflate could not compress a shard: {e}");
            Error::new(Kind::Output, "internal.gzip", message)
        })?;
        output.truncate(length);
        Ok(Box::new(output))
    }
}
