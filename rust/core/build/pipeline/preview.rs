//! The first rows of an input, for `urlset init`: nothing is written.

use std::collections::BTreeMap;

use crate::build::pipeline::input::{AnySource, Rendering};
use crate::build::render::plan::Plan;
use crate::build::render::row::Renderer;
use crate::build::render::rules::{Rules, check_constants};
use crate::config::Config;
use crate::error::Result;
use crate::flow::cell::Columns;
use crate::flow::chunk::Chunk;
use crate::flow::outcome::Chosen;
use crate::flow::source::BatchEnd;

/// The columns that a mapping needs of an input, and the source of each field.
pub fn choose(config: &Config, columns: &Columns) -> Result<(Vec<String>, Vec<Chosen>)> {
    let (plan, chosen) = Plan::new(config, columns)?;
    Ok((plan.names, chosen))
}

/// The first rows of an input, rendered.
#[derive(Debug, Default, serde::Serialize)]
pub struct Preview {
    /// The columns of the input.
    pub columns: Vec<String>,
    /// The source of each field.
    pub mapping: Vec<Chosen>,
    /// The elements of the first rows.
    pub urls: Vec<String>,
    /// Why the first rejected rows were rejected.
    pub rejects: Vec<String>,
    /// The number of rows that were rendered.
    pub rows: u64,
    /// The number of rejected rows among them, by code.
    pub rejected: BTreeMap<&'static str, u64>,
    /// Values that were left out, and other warnings, by code.
    pub notes: BTreeMap<&'static str, u64>,
}

/// Renders the first batch of a source, and returns up to `limit` elements and rejects.
///
/// # Errors
/// As [`run`](super::run), for the rows that it reads.
pub fn preview(config: &Config, mut source: Box<dyn AnySource>, limit: usize) -> Result<Preview> {
    let rules = Rules::new(config, None)?;
    let columns = source.open()?;
    let (plan, mapping) = Plan::new(config, &columns).map_err(|e| e.in_input(source.name()))?;
    check_constants(&rules, &plan)?;
    source.select(&plan.columns);
    let mut rendering = Rendering::new(Renderer::new(&rules, &plan), Chunk::default());
    if let Some(mut batch) = source.next(Vec::new())?
        && let BatchEnd::Failed(error) = batch.render(&mut Vec::new(), &mut rendering)
    {
        return Err(error.in_input(source.name()).at_row(rendering.chunk.rows + 1));
    }
    let chunk = rendering.chunk;
    let mut preview = Preview { columns: columns.names, mapping, ..Preview::default() };
    preview.rows = chunk.rows;
    preview.notes.clone_from(&chunk.notes);
    for reject in &chunk.rejects {
        *preview.rejected.entry(reject.code).or_default() += 1;
    }
    let mut start = 0;
    for entry in chunk.entries.iter().take(limit) {
        let element = &chunk.bytes[start..start + entry.len as usize];
        preview.urls.push(String::from_utf8_lossy(element).trim_end().to_owned());
        start += element.len();
    }
    for reject in chunk.rejects.iter().take(limit) {
        let (row, message, code) = (reject.row + 1, &reject.message, reject.code);
        preview.rejects.push(format!("row {row}: {message} [{code}]"));
    }
    Ok(preview)
}
