//! Errors of the core as the exceptions of `urlset.errors`.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use urlset_core::flow::outcome::RunError;
use urlset_core::{Error, Kind};

/// The exception that an error of the core is in Python.
pub fn exception(py: Python<'_>, error: &Error) -> PyErr {
    build(py, error).unwrap_or_else(|failed| failed)
}

/// The exception for a failed run, with the accounts of the rows as JSON in `outcome` where they are
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
        Kind::Data if error.code == "rejects.limit" => "RejectLimitError",
        Kind::Data => "DataError",
        Kind::Output => "PublishError",
    };
    let named = PyDict::new(py);
    named.set_item("code", error.code)?;
    if error.kind == Kind::Input {
        named.set_item("input", &error.position.input)?;
        named.set_item("row", error.position.row)?;
        named.set_item("column", &error.position.column)?;
    }
    let class = py.import("urlset.errors")?.getattr(class)?;
    let exception = class.call((error.to_string(),), Some(&named))?;
    Ok(PyErr::from_value(exception))
}
