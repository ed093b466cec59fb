//! ISA-L by way of the Python wheel `isal`: called once a shard, with the GIL released inside.

use std::ffi::c_int;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use urlset_core::shard::gzip::{Compressed, Encoder};
use urlset_core::{Error, Kind, Result};

/// The bytes of a shard, lent to Python for one call. To hand over a copy would hold the GIL for
/// 2 ms a shard, which 12 threads would feel.
#[pyclass(frozen)]
struct Shard(Vec<u8>);

#[pymethods]
impl Shard {
    unsafe fn __getbuffer__(
        slf: PyRef<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let bytes = &slf.0;
        let length = ffi::Py_ssize_t::try_from(bytes.len())
            .map_err(|_| PyBufferError::new_err("too large"))?;
        // SAFETY: the view is the caller's to be filled; the bytes live as long as this frozen
        // object, to which the view keeps a reference, and are never written (readonly = 1).
        let failed = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                bytes.as_ptr().cast_mut().cast(),
                length,
                1,
                flags,
            )
        };
        if failed == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}

/// Calls `compress(shard, *arguments)` of `isal.igzip_lib`.
pub struct Isal {
    compress: Py<PyAny>,
}

impl Isal {
    /// With a callable that takes a buffer and gives a gzip file as `bytes`.
    pub fn new(compress: Py<PyAny>) -> Isal {
        Isal { compress }
    }
}

impl Encoder for Isal {
    fn encode(&self, input: &mut Vec<u8>) -> Result<Compressed> {
        Python::attach(|py| -> PyResult<Compressed> {
            let shard = Bound::new(py, Shard(std::mem::take(input)))?;
            let output = self.compress.bind(py).call1((&shard,))?.extract::<PyBackedBytes>()?;
            Ok(Box::new(output))
        })
        .map_err(|e| Error::new(Kind::Output, "internal.gzip", format!("ISA-L failed: {e}")))
    }
}
