//! The loc of each row, and the range of locs that it belongs to: nothing is written. An engine
//! partitions and sorts the rows by it.

use crate::build::pipeline::input::{AnySource, Rendering};
use crate::build::render::plan::{LocSource, Plan};
use crate::build::render::row::Renderer;
use crate::build::render::rules::{Rules, check_constants};
use crate::config::{Config, Mapping, Output};
use crate::error::Result;
use crate::flow::cell::Columns;
use crate::flow::chunk::Chunk;
use crate::flow::order::loc_of;
use crate::flow::source::BatchEnd;

/// The locs of the rows of a source, as a column of large strings in Arrow.
#[derive(Debug, PartialEq, Eq)]
pub struct Locs {
    /// The locs, one after the other.
    pub text: Vec<u8>,
    /// Where each row begins in the text, and the end of the last one.
    pub offsets: Vec<i64>,
    /// A bit for each row, the lowest one first: whether it has a loc. A row that is rejected or
    /// filtered has none.
    pub valid: Vec<u8>,
    /// For each row the number of bounds that are not greater than its loc.
    pub ranges: Vec<i32>,
}

/// The configuration without what is irrelevant to the loc. A text sitemap consists of locs.
fn of_locs(config: &Config) -> Config {
    let Mapping { loc, loc_template, .. } = config.mapping.clone();
    let mapping = Mapping { loc, loc_template, ..Mapping::default() };
    Config { mapping, output: Output::Text, split_by: None, ..config.clone() }
}

/// The columns that loc and the filters need, of an input with these columns.
///
/// # Errors
/// As [`Plan::new`].
pub fn loc_columns(config: &Config, columns: &Columns) -> Result<Vec<String>> {
    let (plan, _) = Plan::new(&of_locs(config), columns)?;
    let mut slots = match &plan.loc {
        LocSource::Slot(slot) => vec![*slot],
        LocSource::Template(_, slots) => slots.clone(),
    };
    slots.extend(plan.filters.iter().map(|filter| filter.slot));
    slots.sort_unstable();
    slots.dedup();
    Ok(slots.into_iter().map(|slot| plan.names[slot].clone()).collect())
}

/// The locs of all rows of a source. `bounds` ascend; a row without a loc belongs to the range
/// `without`.
///
/// # Errors
/// As [`run`](super::run), for rows that cannot be read.
pub fn locs(
    config: &Config,
    mut source: Box<dyn AnySource>,
    bounds: &[String],
    without: i32,
) -> Result<Locs> {
    let config = of_locs(config);
    let rules = Rules::new(&config, None)?;
    let columns = source.open()?;
    let (plan, _) = Plan::new(&config, &columns).map_err(|e| e.in_input(source.name()))?;
    check_constants(&rules, &plan)?;
    source.select(&plan.columns);
    let (mut text, mut offsets, mut valid, mut ranges) =
        (Vec::new(), vec![0], Vec::new(), Vec::new());
    let mut scratch = Vec::new();
    while let Some(mut batch) = source.next(Vec::new())? {
        let renderer = Renderer::new(&rules, &plan);
        let mut rendering = Rendering::new(renderer, Chunk::default());
        if let BatchEnd::Failed(error) = batch.render(&mut scratch, &mut rendering) {
            let row = ranges.len() as u64 + rendering.chunk.rows + 1;
            return Err(error.in_input(source.name()).at_row(row));
        }
        let Chunk { bytes, entries, rows, .. } = &rendering.chunk;
        let (mut rest, mut entries) = (&bytes[..], entries.iter().peekable());
        for row in 0..*rows {
            let found = entries.next_if(|entry| u64::from(entry.row) == row);
            let range = found.map_or(without, |entry| {
                let (element, others) = rest.split_at(entry.len as usize);
                let loc = loc_of(element, true);
                text.extend_from_slice(loc);
                rest = others;
                bounds.partition_point(|bound| bound.as_bytes() <= loc) as i32
            });
            let bit = ranges.len() % 8;
            if bit == 0 {
                valid.push(0);
            }
            if let Some(last) = valid.last_mut() {
                *last |= u8::from(found.is_some()) << bit;
            }
            offsets.push(text.len() as i64);
            ranges.push(range);
        }
    }
    Ok(Locs { text, offsets, valid, ranges })
}
