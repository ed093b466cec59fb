//! Errors of the core as the exceptions of `urlset.errors`: the only place that maps them.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use urlset_core::flow::outcome::RunError;
use urlset_core::{Error, Kind, Position};

/// The exception for an error of the core.
pub fn exception(py: Python<'_>, error: &Error) -> PyErr {
    build(py, error).unwrap_or_else(|failed| failed)
}

/// The exception for a failed run, with the row accounting as JSON in `outcome`, if it is
/// known.
pub fn run_exception(py: Python<'_>, failed: &RunError) -> PyErr {
    let exception = exception(py, &failed.error);
    let outcome = failed.outcome.as_deref().and_then(|o| serde_json::to_string(o).ok());
    match outcome.map_or(Ok(()), |outcome| exception.value(py).setattr("outcome", outcome)) {
        Ok(()) => exception,
        Err(failed) => failed,
    }
}

fn build(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let class = match error.kind {
        Kind::Cancelled => return Ok(PyKeyboardInterrupt::new_err(error.to_string())),
        Kind::Config => "ConfigError",
        Kind::Input => "InputError",
        Kind::Data => "DataError",
        Kind::Rejects => "RejectLimitError",
        Kind::Output => "PublishError",
    };
    let Position { input, row, column } = &error.position;
    let attributes = PyDict::new(py);
    attributes.set_item("code", error.code.name())?;
    attributes.set_item("input", input)?;
    attributes.set_item("row", row)?;
    attributes.set_item("column", column)?;
    let class = py.import("urlset.errors")?.getattr(class)?;
    let exception = class.call((error.to_string(),), Some(&attributes))?;
    Ok(PyErr::from_value(exception))
}
