//! The blocks of an encoder.

use urlset_core::build::write::gzip::{BLOCK_BYTES, FixedBlocks};
use urlset_core::flow::shard::Piece;

use crate::common::random::Random;

fn blocks(pieces: impl Iterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
    let mut pieces = pieces.map(Piece::of);
    FixedBlocks::new(&mut pieces).map(|block| block.as_bytes().to_vec()).collect()
}

#[test]
fn blocks_depend_on_the_bytes_alone() {
    for length in [
        0,
        1,
        BLOCK_BYTES - 1,
        BLOCK_BYTES,
        BLOCK_BYTES + 1,
        5 * BLOCK_BYTES,
        7 * BLOCK_BYTES + 12_345,
    ] {
        let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        let wanted: Vec<Vec<u8>> = bytes.chunks(BLOCK_BYTES).map(<[u8]>::to_vec).collect();
        for size in [
            997,
            64 << 10,
            BLOCK_BYTES - 1,
            BLOCK_BYTES,
            BLOCK_BYTES + 1,
            3 * BLOCK_BYTES + 7,
            usize::MAX,
        ] {
            let cut = bytes.chunks(size).map(<[u8]>::to_vec);
            assert_eq!(blocks(cut), wanted, "{length} bytes in pieces of {size}");
        }
        let mut random = Random::new(5);
        let mut rest = &bytes[..];
        let mut cut = vec![Vec::new()];
        while !rest.is_empty() {
            let (now, later) = rest.split_at((random.below(600_000) as usize).min(rest.len()));
            cut.extend([now.to_vec(), Vec::new()]);
            rest = later;
        }
        assert_eq!(blocks(cut.into_iter()), wanted, "{length} bytes in random pieces");
    }
}
