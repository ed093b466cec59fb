//! Reads a file with the URLs that a build leaves out (`--exclude`).

use std::mem::take;

use crate::build::duplicates::exclusion::hashes;
use crate::build::pipeline::input::{AnySource, Rendering};
use crate::build::render::plan::Plan;
use crate::build::render::row::Renderer;
use crate::build::render::rules::Rules;
use crate::config::{Config, Output};
use crate::error::{ErrorCode, Result};
use crate::flow::chunk::Chunk;
use crate::flow::source::BatchEnd;

/// The hashes of all locs of a source, as [`Config::exclude`] takes them.
///
/// # Errors
/// `column.missing` without the column, `input.damaged` for the first row that is not a URL.
pub fn exclude(config: &Config, mut source: Box<dyn AnySource>) -> Result<String> {
    let rules = Rules::new(config, None)?;
    let columns = source.open()?;
    let (plan, _) = Plan::new(config, &columns).map_err(|e| e.in_input(source.name()))?;
    source.select(&plan.columns);
    let (mut found, mut rows, mut open) = (String::new(), 0, None);
    let (mut scratch, mut spare) = (Vec::new(), Vec::new());
    while let Some(mut batch) = source.next(take(&mut spare))? {
        if let Some(row) = open.take() {
            batch.join(row);
        }
        let mut rendering = Rendering::new(Renderer::new(&rules, &plan), Chunk::default());
        let end = batch.render(&mut scratch, &mut rendering);
        let chunk = rendering.chunk;
        if let Some(reject) = chunk.rejects.first() {
            let value = String::from_utf8_lossy(&reject.value);
            let mut error = ErrorCode::InputDamaged.error(format!("{value:?} {}", reject.message));
            error.position.column.clone_from(&reject.column);
            return Err(error.in_input(source.name()).at_row(rows + 1 + u64::from(reject.row)));
        }
        found.push_str(&hashes(&chunk, config.output == Output::Text));
        rows += chunk.rows + chunk.blank;
        match end {
            BatchEnd::Complete => {}
            BatchEnd::Open(row) => open = Some(row),
            BatchEnd::Failed(error) => {
                return Err(error.in_input(source.name()).at_row(rows + 1));
            }
        }
        spare = batch.into_buffer();
    }
    Ok(found)
}
