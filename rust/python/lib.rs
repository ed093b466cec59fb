//! The Python module `urlset._core`: each function extracts, detaches, calls the core once, converts.

mod buffer;
mod error;
mod extension;
mod parse;
mod run;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::run::{
        Progress, Seen, address, build, choose, column_names, count_rejects, digest,
        exceeds_rejects, is_prose, limits, look, preview, recognise,
    };

    #[pymodule_export]
    use super::extension::{Extension, ExtensionOption, extensions};

    #[pymodule_export]
    use super::parse::{
        Reading, Stream, diff_stream, finding_codes, peek, read_stream, trim, verify_files,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let unchecked = if urlset_core::UNCHECKED { "+unchecked" } else { "" };
        module.add("MAX_URLS", urlset_core::config::MAX_URLS)?;
        module.add("MAX_BYTES", urlset_core::config::MAX_BYTES)?;
        module.add("__version__", format!("{}{unchecked}", env!("CARGO_PKG_VERSION")))
    }
}
