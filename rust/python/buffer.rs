//! ISA-L by way of the Python wheel `isal`: called once a shard, with the GIL released inside.

use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use urlset_core::shard::gzip::{Compressed, Encoder};
use urlset_core::{Error, Kind, Result};

/// The bytes of a shard, lent to Python for one call. To hand over a copy would hold the GIL for
/// 2 ms a shard, which 12 threads would feel.
#[pyclass(frozen)]
struct Shard {
    /// taken back only when nobody looks at it any more
    bytes: Mutex<Vec<u8>>,
    /// how many views there are
    views: AtomicUsize,
}

impl Shard {
    /// The buffer for reuse: a new one would cost 2,300 page faults a shard.
    fn take_back(&self) -> Vec<u8> {
        if self.views.load(Ordering::Acquire) > 0 {
            return Vec::new(); // somebody kept a view; the memory stays theirs
        }
        self.bytes.lock().map(|mut bytes| std::mem::take(&mut *bytes)).unwrap_or_default()
    }
}

#[pymethods]
impl Shard {
    unsafe fn __getbuffer__(
        slf: PyRef<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let bytes = slf.bytes.lock().map_err(|e| PyBufferError::new_err(e.to_string()))?;
        let length = ffi::Py_ssize_t::try_from(bytes.len())
            .map_err(|_| PyBufferError::new_err("too large"))?;
        // SAFETY: the view is the caller's to be filled. It keeps a reference to this object, and
        // while `views` counts it the bytes are neither moved, freed nor written (readonly = 1).
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
        if failed != 0 {
            return Err(PyErr::fetch(slf.py()));
        }
        slf.views.fetch_add(1, Ordering::Release);
        Ok(())
    }

    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.views.fetch_sub(1, Ordering::Release);
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
            let bytes = Mutex::new(std::mem::take(input));
            let shard = Bound::new(py, Shard { bytes, views: AtomicUsize::new(0) })?;
            let output = self.compress.bind(py).call1((&shard,))?.extract::<PyBackedBytes>()?;
            *input = shard.get().take_back();
            Ok(Box::new(output))
        })
        .map_err(|e| Error::new(Kind::Output, "internal.gzip", format!("ISA-L failed: {e}")))
    }
}
