//! What the last build recorded of each URL, for `--lastmod-from`: a hash of its loc, a hash of its
//! content, and the lastmod that it was given.
//!
//! The stamps are a file in the order of the input of the last build (`build/stamps`). A worker
//! looks up the first URL of a batch in the index, then reads on: where tonight's order is last
//! night's, the next stamp is that of the next row. If the next few are not, the index decides.
//!
//! # For maintainers
//!
//! **What must stay true.** The outcome of a lookup depends on the stamps alone, not on the position
//! of the cursor, on batches or threads: the same rows must give the same bytes. So a URL with several
//! stamps ([`Table::several`]) is always looked up in the index, and the last of the stamps that are
//! in question decides; the index sorts them by content, then by lastmod.
//!
//! **Hashes.** 48 bits each, with a secret key, of a fast hash that is not cryptographic: who could
//! find two values with the same hash without the key would only hide a change of his own page. Two of 10 million URLs share a hash with a probability
//! of 0.2; they are then treated as one URL with two rows, which is harmless. A change is missed
//! with a probability of 2⁻⁴⁸.
//!
//! **Trust.** The digest of the file is checked while rows are read, before anything is published.
//! Nothing here panics whatever the file contains: a
//! position beyond the file or a lastmod that is no date is an error of the run.

pub mod bits;
pub mod cursor;
pub mod stamp;
pub mod table;

use crate::flow::hash::{FastHash, HashKey};
use crate::flow::stamps::stamp::HASH_BITS;
use crate::flow::stamps::table::Table;
use crate::sitemap::date::Order;

/// The stamps of the last build, and the rules for those of this one.
pub struct Stamps {
    /// The key of the hashes, which all builds of a set share.
    pub key: HashKey,
    /// The hash with this key.
    pub hash: FastHash,
    /// The lastmod of what changes: the start of the build.
    pub now: Order,
    /// The same in seconds since 1970.
    pub seconds: i64,
    /// Seconds after which URLs that are gone are forgotten.
    pub forget: i64,
    /// The stamps of the last build; `None` in a first build.
    pub table: Option<Table>,
}

impl Stamps {
    /// The hash of a loc or a content, as a stamp has it.
    #[inline]
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        self.hash.of(bytes) >> (64 - HASH_BITS)
    }
}
