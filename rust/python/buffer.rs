//! ISA-L through the Python wheel `isal`: one stream for each shard and one call for each block, which
//! releases the GIL.

use std::ffi::c_int;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use urlset_core::Result;
use urlset_core::build::write::gzip::{Encoder, FixedBlocks, OutputFn};
use urlset_core::error::ErrorCode;
use urlset_core::flow::shard::Piece;

/// The bytes of a piece as a Python buffer. Copying them would hold the GIL for longer than the call
/// itself does, which limits builds with 12 threads.
#[pyclass(frozen)]
pub(crate) struct PieceBuffer(pub Piece);

#[pymethods]
impl PieceBuffer {
    unsafe fn __getbuffer__(
        slf: PyRef<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let bytes = slf.0.as_bytes();
        let length = ffi::Py_ssize_t::try_from(bytes.len())
            .map_err(|_| PyBufferError::new_err("too large"))?;
        // SAFETY: the caller passes a view to fill. The view keeps a reference to this object, whose
        // piece never changes, so the bytes stay valid (readonly = 1).
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

/// Compresses with the streams that a callable returns: `compress(buffer)` and `flush()` as in zlib.
pub struct Isal {
    stream: Py<PyAny>,
}

impl Isal {
    /// An encoder with a callable that begins a gzip file.
    pub fn new(stream: Py<PyAny>) -> Isal {
        Isal { stream }
    }
}

impl Encoder for Isal {
    fn encode(
        &self,
        pieces: &mut dyn Iterator<Item = Piece>,
        output: &mut OutputFn<'_>,
    ) -> Result<()> {
        let failed = |e: PyErr| ErrorCode::InternalGzip.error(format!("ISA-L failed: {e}"));
        let stream = Python::attach(|py| self.stream.call0(py)).map_err(failed)?;
        for piece in FixedBlocks::new(pieces) {
            let packed = Python::attach(|py| {
                let piece = Bound::new(py, PieceBuffer(piece))?;
                let packed = stream.bind(py).call_method1(intern!(py, "compress"), (piece,))?;
                packed.extract::<PyBackedBytes>().map_err(PyErr::from)
            });
            output(&packed.map_err(failed)?)?;
        }
        let last = Python::attach(|py| {
            let last = stream.bind(py).call_method0(intern!(py, "flush"))?;
            last.extract::<PyBackedBytes>().map_err(PyErr::from)
        });
        output(&last.map_err(failed)?)
    }
}
