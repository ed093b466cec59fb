//! Whether what became of the rows adds up, and whether it may be published.

use crate::error::{Error, Kind, Result};
use crate::flow::outcome::{Outcome, RunError};

/// Every row has one fate, and every URL is in a shard.
pub(crate) fn check_fates(outcome: &Outcome) -> Result<()> {
    let fates = outcome.urls + outcome.rejected + outcome.filtered + outcome.duplicates;
    let listed: u64 = outcome.shards.iter().map(|shard| u64::from(shard.urls)).sum();
    if outcome.rows + outcome.expanded == fates && listed == outcome.urls {
        return Ok(());
    }
    let message = format!(
        "{} rows and {} expanded do not add up to {} URLs ({listed} in shards), {} rejected, {} filtered, \
         {} duplicates; nothing was published; please report this",
        outcome.rows,
        outcome.expanded,
        outcome.urls,
        outcome.rejected,
        outcome.filtered,
        outcome.duplicates
    );
    Err(Error::new(Kind::Output, "internal.fates", message))
}

/// Every rejected row is in the reject file.
pub(crate) fn check_rejects(written: u64, rejected: u64) -> Result<()> {
    if written == rejected {
        return Ok(());
    }
    let message = format!(
        "the reject file holds {written} rows of {rejected} that were rejected; nothing was \
         published; please report this"
    );
    Err(Error::new(Kind::Output, "internal.rejects", message))
}

/// More rows are rejected than the `most` allowed; `first` is the first of them.
pub(crate) fn too_many(outcome: &mut Outcome, most: String, first: Option<&str>) -> RunError {
    let codes: Vec<String> =
        outcome.rejects_by_code.iter().map(|(code, n)| format!("{code} {n}")).collect();
    let message = format!(
        "{} of {} rows rejected, more than {most} ({}); the first is {}; see the reject file, then mend \
         the data or allow more (--max-rejects)",
        outcome.rejected,
        outcome.rows,
        codes.join(", "),
        first.unwrap_or("in it")
    );
    let mut outcome = std::mem::take(outcome);
    outcome.shards.clear(); // none of them will be published
    let outcome = Some(Box::new(outcome));
    RunError { error: Error::new(Kind::Rejects, "rejects.limit", message), outcome }
}
