//! The first rows of an input, for `urlset init`: nothing is written.

use std::collections::BTreeMap;

use crate::build::pipeline::csv::{End, fault_error, render_csv};
use crate::build::read::{Batch, Source};
use crate::build::render::plan::Plan;
use crate::build::render::row::Renderer;
use crate::build::render::rules::{Rules, check_constants};
use crate::config::Config;
use crate::error::Result;
use crate::flow::cell::Columns;
use crate::flow::chunk::Chunk;
use crate::flow::outcome::Chosen;

/// What each field is taken from, of an input with these columns.
pub fn choose(config: &Config, columns: &Columns) -> Result<(Vec<String>, Vec<Chosen>)> {
    let (plan, chosen) = Plan::new(config, columns)?;
    Ok((plan.names, chosen))
}

/// What the first rows of an input become.
#[derive(Debug, Default, serde::Serialize)]
pub struct Preview {
    /// The columns of the input.
    pub columns: Vec<String>,
    /// What each field was taken from.
    pub mapping: Vec<Chosen>,
    /// The elements of the first rows.
    pub urls: Vec<String>,
    /// What is wrong with the first rows that became none.
    pub rejects: Vec<String>,
    /// Rows that were rendered.
    pub rows: u64,
    /// Those of them that were rejected, by code.
    pub rejected: BTreeMap<&'static str, u64>,
    /// Values that were left out, and other notes, by code.
    pub notes: BTreeMap<&'static str, u64>,
}

/// Renders the first batch of a source and gives at most `most` elements, for `urlset init`.
///
/// # Errors
/// As [`run`](super::run), for as far as it reads.
pub fn preview(config: &Config, mut source: Box<dyn Source>, most: usize) -> Result<Preview> {
    let rules = Rules::new(config, None)?;
    let columns = source.open()?;
    let (plan, mapping) = Plan::new(config, &columns).map_err(|e| e.in_input(source.name()))?;
    check_constants(&rules, &plan)?;
    source.select(&plan.columns);
    let mut chunk = Chunk::default();
    let mut renderer = Renderer::new(&rules, &plan);
    match source.next(Vec::new())? {
        None => {}
        Some(Batch::Csv(block)) => {
            if let End::Fault(fault) =
                render_csv(&block, &plan, &mut Vec::new(), &mut renderer, &mut chunk)
            {
                return Err(fault_error(&fault, config.max_cell, source.name(), chunk.rows));
            }
        }
        Some(Batch::Skipped(_)) => {}
        Some(Batch::Arrow(rows)) => {
            for (number, row) in (rows.start..rows.end).take(1_000).enumerate() {
                renderer.render(&rows.row(row), number as u32, &mut chunk);
            }
        }
    }
    let mut preview = Preview { columns: columns.names, mapping, ..Preview::default() };
    preview.rows = chunk.rows;
    for (code, count) in &chunk.notes {
        *preview.notes.entry(code).or_default() += count;
    }
    for reject in &chunk.rejects {
        *preview.rejected.entry(reject.code).or_default() += 1;
    }
    let mut at = 0;
    for entry in chunk.entries.iter().take(most) {
        let end = at + entry.len as usize;
        preview.urls.push(String::from_utf8_lossy(&chunk.bytes[at..end]).trim_end().to_owned());
        at = end;
    }
    for reject in chunk.rejects.iter().take(most) {
        preview.rejects.push(format!(
            "row {}: {} [{}]",
            reject.row + 1,
            reject.message,
            reject.code
        ));
    }
    Ok(preview)
}
