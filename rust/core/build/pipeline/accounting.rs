//! Row accounting: every row has one outcome, every rejected row is in the reject file, and every
//! URL is in a shard.

use std::mem::take;
use std::sync::atomic::Ordering;

use crate::build::duplicates::exclusion::Exclusion;
use crate::build::duplicates::seen::{Seen, SeenUrls};
use crate::build::pipeline::message::Input;
use crate::build::pipeline::progress::Progress;
use crate::build::pipeline::warnings::Warnings;
use crate::build::render::rules::Rules;
use crate::build::stamps::log::Log;
use crate::build::stamps::syncer::Syncer;
use crate::build::write::rejects::RejectFile;
use crate::config::{Config, Duplicates, MaxRejects, OnInvalid, Output};
use crate::error::{ErrorCode, Result};
use crate::flow::chunk::{Chunk, Reject};
use crate::flow::order::{LocRange, loc_of};
use crate::flow::outcome::{Outcome, RunError, SetEntry, ShardEntry};
use crate::sitemap::escape::unescaped;

/// The accounts of a run.
pub(crate) struct Accounting<'r> {
    config: &'r Config,
    progress: &'r Progress,
    /// the URLs to leave out, if there are any
    exclusion: Option<Exclusion>,
    /// the URLs so far, unless duplicates are kept
    seen: Option<SeenUrls>,
    rejects: RejectFile,
    warnings: Warnings,
    /// the stamps of URLs, if content decides lastmod
    log: Option<Log<'r>>,
    /// of their file, once they are complete
    syncer: Option<Syncer>,
    /// the counts so far
    pub outcome: Outcome,
    position: BatchPosition,
    /// the last loc so far, if the rows are ordered
    last: Vec<u8>,
}

/// The current batch in its input.
#[derive(Debug, Default)]
struct BatchPosition {
    /// rows of the input before the batch
    before: u64,
    /// rows of the batch so far
    rows: u64,
}

impl BatchPosition {
    /// The number of a row in the input, from its number in the batch.
    fn row(&self, number: u32) -> u64 {
        self.before + 1 + u64::from(number)
    }
}

impl<'r> Accounting<'r> {
    /// Accounts without any row.
    ///
    /// # Errors
    /// `config.invalid` for an exclusion that is not one.
    pub fn new(
        config: &'r Config,
        progress: &'r Progress,
        seen: Option<SeenUrls>,
        rejects: RejectFile,
        log: Option<Log<'r>>,
    ) -> Result<Accounting<'r>> {
        let (outcome, warnings) = (Outcome::default(), Warnings::default());
        let position = BatchPosition::default();
        let last = Vec::new();
        let exclusion = (!config.exclude.is_empty())
            .then(|| Exclusion::parse(&config.exclude, config.output == Output::Text))
            .transpose()?;
        Ok(Accounting {
            config,
            progress,
            exclusion,
            seen,
            rejects,
            warnings,
            outcome,
            position,
            last,
            log,
            syncer: None,
        })
    }

    /// The rows that follow belong to another input.
    pub fn begin_input(&mut self, input: &Input) {
        if self.outcome.mapping.is_empty() {
            self.outcome.mapping.clone_from(&input.chosen);
        }
        self.position = BatchPosition::default();
        if let Some(log) = &mut self.log {
            log.columns(input.plan.content_list);
        }
    }

    /// The rows that follow belong to another batch.
    pub fn end_batch(&mut self) {
        self.position.before += take(&mut self.position.rows);
    }

    /// The number of the row after the last one.
    pub fn next_row(&self) -> u64 {
        self.position.before + self.position.rows + 1
    }

    /// The number of the first row of the current batch.
    pub fn first_row(&self) -> u64 {
        self.position.row(0)
    }

    /// Counts the outcomes of the rows of a chunk, and removes excluded URLs and duplicates from it.
    ///
    /// # Errors
    /// A rejected row under `--on-invalid fail`, a duplicate under `--duplicates fail`, too many
    /// rejected rows, or a reject file that cannot be written.
    pub fn add(&mut self, input: &Input, chunk: &mut Chunk, rules: &Rules) -> Result<(), RunError> {
        self.outcome.rows += chunk.rows;
        self.outcome.filtered += chunk.filtered;
        self.outcome.expanded += chunk.expanded;
        for (code, count) in &chunk.notes {
            *self.outcome.notes.entry(code).or_default() += count;
        }
        for reject in &chunk.rejects {
            self.reject(input, reject)?;
        }
        if let MaxRejects::Count(limit) = self.config.max_rejects
            && self.config.max_rejects.is_exceeded(self.outcome.rejected, self.outcome.rows)
        {
            return Err(self.too_many_rejects(&limit.to_string()));
        }
        self.check_order(input, chunk)?;
        if let Some(exclusion) = &self.exclusion {
            let removed = exclusion.remove(chunk);
            self.outcome.filtered += removed;
            if removed > 0 {
                *self.outcome.notes.entry("loc.excluded").or_default() += removed;
            }
        }
        self.remove_duplicates(input, chunk)?;
        self.count_ages(chunk, rules);
        self.warnings.add(chunk, &rules.rate);
        if let Some(log) = &mut self.log {
            log.push(&chunk.stamps)?;
        }
        let urls = chunk.entries.len() as u64;
        self.outcome.urls += urls;
        self.progress.urls.fetch_add(urls, Ordering::Relaxed);
        self.position.rows += chunk.rows + chunk.blank;
        Ok(())
    }

    /// Counts the ages of the URLs that are left.
    fn count_ages(&mut self, chunk: &mut Chunk, rules: &Rules) {
        if rules.ages.is_none() {
            return;
        }
        if chunk.totals.is_none() {
            chunk.sum_up(rules.ages.as_ref());
        }
        if let Some(totals) = &chunk.totals {
            for (sum, count) in self.outcome.ages.iter_mut().zip(totals.ages) {
                *sum += u64::from(count);
            }
        }
    }

    fn reject(&mut self, input: &Input, reject: &Reject) -> Result<()> {
        let row = self.position.row(reject.row);
        if self.config.on_invalid == OnInvalid::Fail {
            let value = String::from_utf8_lossy(&reject.value);
            let message = format!("{value:?} {}", reject.message);
            let mut error = ErrorCode::Reject(reject.code).error(message);
            error.position.column.clone_from(&reject.column);
            return Err(error.in_input(&input.name).at_row(row));
        }
        self.outcome.rejected += 1;
        *self.outcome.rejects_by_code.entry(reject.code).or_default() += 1;
        self.rejects.write(&input.name, row, reject)
    }

    fn check_order(&mut self, input: &Input, chunk: &mut Chunk) -> Result<()> {
        let Some(LocRange { first, last, descent }) = chunk.range.take() else { return Ok(()) };
        let descent = if first < self.last { Some(0) } else { descent };
        self.last = last;
        let Some((number, entry)) =
            descent.and_then(|number| Some((number, chunk.entries.get(number)?)))
        else {
            return Ok(());
        };
        let message = format!(
            "its URL is less than that of a row before, but the rows must ascend by URL: {}",
            self.loc(chunk, number)
        );
        let error = ErrorCode::RowsOrder.error(message);
        Err(error.in_input(&input.name).at_row(self.position.row(entry.row)))
    }

    /// The loc of an entry, for messages: in rows that an engine has sorted, the number of the row
    /// does not find it.
    fn loc(&self, chunk: &Chunk, number: usize) -> String {
        let before: usize = chunk.entries[..number].iter().map(|entry| entry.len as usize).sum();
        let element = chunk.bytes.get(before..).unwrap_or_default();
        unescaped(loc_of(element, self.config.output == Output::Text))
    }

    fn remove_duplicates(&mut self, input: &Input, chunk: &mut Chunk) -> Result<()> {
        let Some(seen) = &mut self.seen else { return Ok(()) };
        let mut duplicates = Vec::new();
        seen.hashes.insert(&chunk.keys, &mut duplicates);
        if let Some(&first) = duplicates.first()
            && self.config.duplicates == Duplicates::Fail
        {
            let row = self.position.row(chunk.entries[first as usize].row);
            let message = format!(
                "its URL occurred before: {}; drop such rows (--duplicates drop) or fix the data",
                self.loc(chunk, first as usize)
            );
            let error = ErrorCode::DuplicatesFound.error(message);
            return Err(error.in_input(&input.name).at_row(row));
        }
        self.outcome.duplicates += duplicates.len() as u64;
        chunk.remove(&duplicates);
        Ok(())
    }

    /// All rows have been read: the next run of the build continues with the URLs so far, and the
    /// stamps are complete.
    pub fn end_rows(&mut self, kept: &Seen) -> Result<()> {
        if let Some(seen) = self.seen.take() {
            kept.give(seen);
        }
        let Some(log) = self.log.take() else { return Ok(()) };
        if log.urls() != self.outcome.urls {
            let message = format!(
                "{} stamps of {} URLs; nothing was published; please report this",
                log.urls(),
                self.outcome.urls
            );
            return Err(ErrorCode::InternalFates.error(message));
        }
        let (changes, syncer) = log.finish()?;
        (self.outcome.lastmod, self.syncer) = (Some(changes), Some(syncer));
        Ok(())
    }

    /// Checks that the accounts agree with the shards, and returns the outcome.
    ///
    /// # Errors
    /// `internal.fates` and `internal.rejects` if they do not agree; too many rejected rows.
    pub fn finish(
        mut self,
        mut shards: Vec<ShardEntry>,
        sets: Vec<SetEntry>,
    ) -> Result<Outcome, RunError> {
        shards
            .sort_unstable_by_key(|shard| (shard.set.as_ref().map(|set| set.number), shard.number));
        if self.config.ordered {
            self.outcome.firsts =
                shards.iter_mut().filter_map(|shard| shard.first.take()).collect();
            self.outcome.last = (!self.last.is_empty()).then(|| unescaped(&self.last));
        }
        (self.outcome.shards, self.outcome.sets) = (shards, sets);
        if let Some(syncer) = self.syncer.take() {
            syncer.finish()?;
        }
        self.rejects.finish()?;
        check_rejects(self.rejects.rows(), self.outcome.rejected)?;
        check_outcomes(&self.outcome)?;
        self.warnings.finish(&mut self.outcome);
        if let MaxRejects::Share(limit) = self.config.max_rejects
            && self.config.max_rejects.is_exceeded(self.outcome.rejected, self.outcome.rows)
        {
            // 29% is 28.999999999999996 when it is computed from 0.29
            let percent = (limit * 1e8).round() / 1e6;
            return Err(self.too_many_rejects(&format!("{percent}%")));
        }
        Ok(self.outcome)
    }

    /// The error for more rejected rows than `limit`.
    fn too_many_rejects(&mut self, limit: &str) -> RunError {
        let mut outcome = take(&mut self.outcome);
        let codes: Vec<String> =
            outcome.rejects_by_code.iter().map(|(code, n)| format!("{code} {n}")).collect();
        let message = format!(
            "{} of {} rows rejected, more than {limit} ({}); the first is {}; see the reject file, \
             then fix the data or allow more (--max-rejects)",
            outcome.rejected,
            outcome.rows,
            codes.join(", "),
            self.rejects.first().unwrap_or("in it")
        );
        outcome.shards.clear(); // none of them will be published
        let error = ErrorCode::RejectsLimit.error(message);
        RunError { error, outcome: Some(Box::new(outcome)) }
    }
}

/// Every row has one outcome, and every URL is in a shard.
fn check_outcomes(outcome: &Outcome) -> Result<()> {
    let outcomes = outcome.urls + outcome.rejected + outcome.filtered + outcome.duplicates;
    let listed: u64 = outcome.shards.iter().map(|shard| u64::from(shard.urls)).sum();
    if outcome.rows + outcome.expanded == outcomes && listed == outcome.urls {
        return Ok(());
    }
    let message = format!(
        "{} rows and {} expanded do not add up to {} URLs ({listed} in shards), {} rejected, {} \
         filtered, {} duplicates; nothing was published; please report this",
        outcome.rows,
        outcome.expanded,
        outcome.urls,
        outcome.rejected,
        outcome.filtered,
        outcome.duplicates
    );
    Err(ErrorCode::InternalFates.error(message))
}

/// Every rejected row is in the reject file.
fn check_rejects(written: u64, rejected: u64) -> Result<()> {
    if written == rejected {
        return Ok(());
    }
    let message = format!(
        "the reject file has {written} rows of {rejected} that were rejected; nothing was \
         published; please report this"
    );
    Err(ErrorCode::InternalRejects.error(message))
}
