//! An Arrow C stream of a producer with wrong values for everything but its memory: rows or an
//! error, and every cell of the rows can be read.
//!
//! Each buffer has `SIZE` bytes, independent of the lengths in the array. No consumer can check that an
//! array is not longer than its memory, so lengths either fit or are clearly invalid.
#![no_main]

#[path = "../shared/drain.rs"]
mod drain;

use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_data::layout;
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use libfuzzer_sys::fuzz_target;
use urlset_core::build::read::stream::ArrowStream;

/// Bytes of a buffer.
const SIZE: usize = 1 << 16;
/// Rows that fit: views have 16 bytes, items of lists are twice as many as their rows.
const ROWS: i64 = 500;

/// The struct of the C data interface, whose fields arrow-rs keeps private.
#[repr(C)]
struct Raw {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Raw,
    dictionary: *mut Raw,
    release: Option<unsafe extern "C" fn(*mut Raw)>,
    private_data: *mut c_void,
}

/// The memory of an array and its children.
#[derive(Default)]
struct Memory {
    buffers: Vec<Box<[u64]>>,
    pointers: Vec<Box<[*const c_void]>>,
    arrays: Vec<Box<Raw>>,
    children: Vec<Box<[*mut Raw]>>,
}

unsafe extern "C" fn release_array(array: *mut Raw) {
    // SAFETY: `Producer::next` created the array and its memory.
    unsafe {
        drop(Box::from_raw((*array).private_data.cast::<Memory>()));
        (*array).release = None;
    }
}

struct Producer {
    bytes: Vec<u8>,
    at: usize,
    schema: Schema,
    left: u8,
}

impl Producer {
    /// The next byte; zeros after the last one.
    fn byte(&mut self) -> u8 {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        byte
    }

    fn data_type(&mut self, depth: usize) -> DataType {
        let item = |this: &mut Producer| {
            Arc::new(Field::new("item", this.data_type(depth + 1), this.byte() & 1 == 0))
        };
        match self.byte() % if depth < 3 { 18 } else { 10 } {
            0 => DataType::Utf8,
            1 => DataType::LargeUtf8,
            2 => DataType::Utf8View,
            3 => DataType::Boolean,
            4 => DataType::Float64,
            5 => DataType::Timestamp(TimeUnit::Microsecond, None),
            6 => DataType::Decimal128(10, 2),
            7 => DataType::Null,
            8 => DataType::Binary,
            9 => DataType::BinaryView,
            10 => DataType::List(item(self)),
            11 => DataType::LargeList(item(self)),
            12 => DataType::ListView(item(self)),
            13 => DataType::FixedSizeList(item(self), 2),
            14 => {
                let fields: Fields = (0..self.byte() % 3).map(|_| item(self)).collect();
                DataType::Struct(fields)
            }
            15 => {
                let key = Field::new("key", DataType::Utf8, false);
                let value = Field::new("value", self.data_type(depth + 1), true);
                let entries = DataType::Struct(vec![key, value].into());
                DataType::Map(Arc::new(Field::new("entries", entries, false)), false)
            }
            16 => {
                let ends = Field::new("run_ends", DataType::Int32, false);
                DataType::RunEndEncoded(Arc::new(ends), item(self))
            }
            _ => {
                let keys = [DataType::Int8, DataType::UInt32, DataType::Int64];
                let keys = keys[usize::from(self.byte()) % 3].clone();
                DataType::Dictionary(Box::new(keys), Box::new(self.data_type(depth + 1)))
            }
        }
    }

    /// A valid or an invalid number.
    fn number(&mut self, right: i64) -> i64 {
        match self.byte() {
            255 => -1,
            254 => i64::MIN,
            253 => i64::MAX,
            252 => -right,
            251 => i64::MAX - right,
            _ => right,
        }
    }

    fn buffer(&mut self, memory: &mut Memory, width: usize, small: bool) -> *const c_void {
        if self.byte() == 255 {
            return null();
        }
        let mut words = vec![0_u64; SIZE / 8].into_boxed_slice();
        let some = usize::from(self.byte());
        if small {
            // ascending numbers, with some that are not
            let mut last = 0_i64;
            for at in 0..(SIZE / width) {
                last = (last + i64::from(if at < some { self.byte() } else { 1 } % 4)).min(ROWS);
                let value = if at < some && self.byte() > 250 { -last } else { last };
                let place = at * width;
                let bytes = value.to_le_bytes();
                for (n, byte) in bytes[..width].iter().enumerate() {
                    let word = &mut words[(place + n) / 8];
                    *word |= u64::from(*byte) << ((place + n) % 8 * 8);
                }
            }
        } else {
            for word in words.iter_mut().take(some) {
                *word = u64::from_le_bytes(std::array::from_fn(|_| self.byte()));
            }
        }
        let pointer = words.as_ptr().cast();
        memory.buffers.push(words);
        pointer
    }

    fn array(&mut self, memory: &mut Memory, data_type: &DataType, rows: i64) -> *mut Raw {
        let physical = match data_type {
            DataType::Dictionary(keys, _) => keys,
            other => other,
        };
        let found = layout(physical);
        let mut buffers = Vec::new();
        if found.can_contain_null_mask {
            buffers.push(if self.byte() & 1 == 0 { null() } else { self.buffer(memory, 8, false) });
        }
        for _ in 0..found.buffers.len() {
            let (width, small) = match data_type {
                DataType::LargeUtf8 | DataType::LargeList(_) => (8, buffers.len() == 1),
                DataType::Utf8 | DataType::Binary | DataType::List(_) | DataType::Map(..) => {
                    (4, buffers.len() == 1)
                }
                DataType::ListView(_) => (4, true),
                DataType::Dictionary(..) => (physical.primitive_width().unwrap_or(8), true),
                DataType::Int32 => (4, true),
                _ => (8, false),
            };
            let buffer = self.buffer(memory, width, small);
            buffers.push(buffer);
        }
        if found.variadic {
            let count = usize::from(self.byte() % 3);
            let mut sizes = vec![0_u64; 4].into_boxed_slice();
            for size in sizes.iter_mut().take(count) {
                let buffer = self.buffer(memory, 8, false);
                buffers.push(buffer);
                let right = if buffer.is_null() { 0 } else { SIZE as i64 };
                let claimed = self.number(right);
                *size = if claimed > right { right } else { claimed } as u64;
            }
            buffers.push(sizes.as_ptr().cast());
            memory.buffers.push(sizes);
        }
        let below: Vec<DataType> = match data_type {
            DataType::List(field)
            | DataType::LargeList(field)
            | DataType::ListView(field)
            | DataType::FixedSizeList(field, _)
            | DataType::Map(field, _) => vec![field.data_type().clone()],
            DataType::Struct(fields) => fields.iter().map(|f| f.data_type().clone()).collect(),
            DataType::RunEndEncoded(a, b) => vec![a.data_type().clone(), b.data_type().clone()],
            _ => Vec::new(),
        };
        let mut children: Vec<*mut Raw> = Vec::new();
        for child in &below {
            let rows = if self.byte() > 240 { 1 } else { rows };
            let child =
                if self.byte() > 252 { null_mut() } else { self.array(memory, child, rows) };
            children.push(child);
        }
        let dictionary = match data_type {
            DataType::Dictionary(_, values) if self.byte() < 250 => {
                self.array(memory, values, rows)
            }
            _ => null_mut(),
        };
        let mut buffers = buffers.into_boxed_slice();
        let mut children = children.into_boxed_slice();
        let nulls = self.byte() % 3;
        let offset = i64::from(self.byte() % 8);
        let raw = Raw {
            length: self.number(rows),
            null_count: self.number(i64::from(nulls) - 1),
            offset: self.number(offset),
            n_buffers: self.number(buffers.len() as i64),
            n_children: self.number(children.len() as i64),
            buffers: if self.byte() > 252 { null_mut() } else { buffers.as_mut_ptr() },
            children: if self.byte() > 252 { null_mut() } else { children.as_mut_ptr() },
            dictionary,
            release: None,
            private_data: null_mut(),
        };
        memory.pointers.push(buffers);
        memory.children.push(children);
        memory.arrays.push(Box::new(raw));
        memory.arrays.last_mut().map_or(null_mut(), |raw| &raw mut **raw)
    }

    fn next(&mut self) -> Raw {
        let mut memory = Box::<Memory>::default();
        let fields = DataType::Struct(self.schema.fields().clone());
        let rows = i64::from(self.byte()).min(ROWS);
        let top = self.array(&mut memory, &fields, rows);
        // SAFETY: `array` has just written it; only the copy is used.
        let raw = unsafe { std::ptr::read(top) };
        let private_data = Box::into_raw(memory).cast();
        Raw { release: Some(release_array), private_data, ..raw }
    }
}

unsafe extern "C" fn get_schema(
    stream: *mut FFI_ArrowArrayStream,
    out: *mut FFI_ArrowSchema,
) -> c_int {
    // SAFETY: the producer of the stream is in this file.
    let producer = unsafe { &mut *(*stream).private_data().cast::<Producer>() };
    match FFI_ArrowSchema::try_from(&producer.schema) {
        Ok(schema) => {
            // SAFETY: the caller passes `out` to be written to.
            unsafe { out.write(schema) };
            0
        }
        Err(_) => 22,
    }
}

unsafe extern "C" fn get_next(
    stream: *mut FFI_ArrowArrayStream,
    out: *mut FFI_ArrowArray,
) -> c_int {
    // SAFETY: as above.
    let producer = unsafe { &mut *(*stream).private_data().cast::<Producer>() };
    if producer.left == 0 {
        return c_int::from(producer.byte() & 1); // an error without a message, or the end
    }
    producer.left -= 1;
    // SAFETY: as above; both are the same struct.
    unsafe { out.cast::<Raw>().write(producer.next()) };
    0
}

unsafe extern "C" fn release_stream(stream: *mut FFI_ArrowArrayStream) {
    // SAFETY: as above; it is called once.
    unsafe {
        drop(Box::from_raw((*stream).set_private_data(null_mut()).cast::<Producer>()));
        (*stream).set_release(None);
    }
}

fuzz_target!(|data: &[u8]| {
    let mut producer = Producer { bytes: data.to_vec(), at: 0, schema: Schema::empty(), left: 0 };
    let columns = producer.byte() % 4;
    let fields: Fields = (0..columns)
        .map(|n| Field::new(format!("c{n}"), producer.data_type(0), producer.byte() & 1 == 0))
        .collect();
    producer.schema = Schema::new(fields);
    producer.left = producer.byte() % 4;
    let private = Box::into_raw(Box::new(producer)).cast();
    // SAFETY: the callbacks are made for this data.
    let stream = unsafe {
        FFI_ArrowArrayStream::new_unchecked(
            Some(get_schema),
            Some(get_next),
            None,
            Some(release_stream),
            private,
        )
    };
    if let Ok(stream) = ArrowStream::new("fuzz", stream, 100) {
        drain::drain(stream);
    }
});
