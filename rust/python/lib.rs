//! The Python module `urlset._core`. Each function extracts its arguments, detaches from the
//! interpreter, calls the core once and converts the result.

mod buffer;
mod error;
mod extension;
mod index;
mod object;
mod run;
mod sink;
mod stream;
mod url;
mod verify;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::run::{
        Progress, Seen, address, build, choose, column_names, count_rejects, digest,
        exceeds_rejects, exclude, find_live, is_prose, limits, loc_columns, locs, look, pack_live,
        preview, recognise,
    };

    #[pymodule_export]
    use super::extension::{Extension, ExtensionOption, extensions};

    #[pymodule_export]
    use super::index::{Child, Finding, Listing, peek, read_index};

    #[pymodule_export]
    use super::stream::{Reading, Stream, diff_stream, read_stream, write_differences};

    #[pymodule_export]
    use super::url::{Url, split_url, url_fault};

    #[pymodule_export]
    use super::verify::{FileReport, age_steps, finding_codes, verify_files};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let unchecked = if urlset_core::UNCHECKED { "+unchecked" } else { "" };
        module.add("MAX_URLS", urlset_core::config::MAX_URLS)?;
        module.add("MAX_BYTES", urlset_core::config::MAX_BYTES)?;
        module.add("__version__", format!("{}{unchecked}", env!("CARGO_PKG_VERSION")))
    }
}
