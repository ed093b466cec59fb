//! The Python module `urlset._core`: each function extracts, detaches, calls the core once, converts.
use pyo3::prelude::*;

mod parse;

#[pymodule]
mod _core {
    use super::*;

    /// The version of the package.
    #[pymodule_export]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use super::parse::{Stream, diff_stream, finding_codes, peek, read_stream, verify_files};

    #[pymodule_init]
    fn init(_m: &Bound<'_, PyModule>) -> PyResult<()> {
        Ok(())
    }
}
