//! Objects in a store, which Python reads: one call for each part of some kilobytes or more.

use std::io::{Error, Read, Result};
use std::ops::Range;

use pyo3::buffer::PyBuffer;
use pyo3::intern;
use pyo3::prelude::*;
use urlset_core::build::read::positioned::Access;

/// An object with `read(size)`, which returns a buffer.
pub struct ObjectReader(Py<PyAny>);

impl ObjectReader {
    /// Reads from the start.
    pub fn new(object: Bound<'_, PyAny>) -> ObjectReader {
        ObjectReader(object.unbind())
    }
}

impl Read for ObjectReader {
    fn read(&mut self, target: &mut [u8]) -> Result<usize> {
        Python::attach(|py| {
            let part = self.0.bind(py).call_method1(intern!(py, "read"), (target.len(),))?;
            copy(&part, target)
        })
        .map_err(Error::other)
    }
}

/// An object with `size`, `read_at(start, length)`, which returns a buffer, and `plan(columns)`.
pub struct ObjectAccess(Py<PyAny>);

impl ObjectAccess {
    /// Reads at any position.
    pub fn new(object: Bound<'_, PyAny>) -> ObjectAccess {
        ObjectAccess(object.unbind())
    }
}

impl Access for ObjectAccess {
    fn size(&self) -> Result<u64> {
        Python::attach(|py| self.0.bind(py).getattr(intern!(py, "size"))?.extract())
            .map_err(Error::other)
    }

    fn read_at(&self, target: &mut [u8], at: u64) -> Result<usize> {
        Python::attach(|py| {
            let arguments = (at, target.len());
            let part = self.0.bind(py).call_method1(intern!(py, "read_at"), arguments)?;
            copy(&part, target)
        })
        .map_err(Error::other)
    }

    fn plan(&self, columns: Vec<Vec<Range<u64>>>) -> Result<()> {
        let columns: Vec<Vec<(u64, u64)>> = columns
            .into_iter()
            .map(|ranges| ranges.into_iter().map(|range| (range.start, range.end)).collect())
            .collect();
        Python::attach(|py| self.0.bind(py).call_method1(intern!(py, "plan"), (columns,)).map(drop))
            .map_err(Error::other)
    }
}

/// Copies a buffer, which is at most as long as the target; returns its length.
fn copy(part: &Bound<'_, PyAny>, target: &mut [u8]) -> PyResult<usize> {
    let buffer = PyBuffer::<u8>::get(part)?;
    let length = buffer.item_count().min(target.len());
    buffer.copy_to_slice(part.py(), &mut target[..length])?;
    Ok(length)
}
