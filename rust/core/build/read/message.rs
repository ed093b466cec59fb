//! The messages of Arrow IPC: a length, metadata, and a body.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_buffer::{Buffer, MutableBuffer};
use arrow_data::layout;
use arrow_ipc::Block;
use arrow_schema::{DataType, Schema};

use crate::build::read::decode;
use crate::build::read::import::children;
use crate::error::{Error, ErrorCode, Result};
use crate::file::read_exact_at;

/// The first and the last bytes of a file with a directory.
pub(crate) const MAGIC: &[u8; 6] = b"ARROW1";
/// The bytes before the length of a message, except in files older than 2019.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// Limit of the bytes of a body that are reserved before any of them is read.
const STEP: usize = 64 << 20;

/// A message without its length.
pub(crate) struct Message {
    pub(crate) metadata: Vec<u8>,
    pub(crate) body: Buffer,
}

/// The source of the messages after the schema.
pub(crate) enum Messages {
    /// The positions in the directory at the end of a file.
    Placed { file: File, blocks: VecDeque<Block>, read: Arc<AtomicU64> },
    /// A stream.
    Streamed(Box<dyn Read + Send>),
}

impl Messages {
    /// The next message; `None` at the end. `wanted` returns the ranges of the body of a batch that
    /// are read, if the rest can be left out.
    pub(crate) fn next(
        &mut self,
        wanted: impl Fn(&arrow_ipc::RecordBatch<'_>) -> Option<Vec<Range<usize>>>,
    ) -> Result<Option<Message>> {
        match self {
            Messages::Placed { file, blocks, read } => {
                let Some(block) = blocks.pop_front() else { return Ok(None) };
                let message = placed(file, &block, wanted)?;
                let size = message.metadata.len() + message.body.len();
                read.fetch_add(size as u64, Ordering::Relaxed);
                Ok(Some(message))
            }
            Messages::Streamed(from) => streamed(from),
        }
    }
}

/// The message at a position, which is within the file.
fn placed(
    file: &File,
    block: &Block,
    wanted: impl Fn(&arrow_ipc::RecordBatch<'_>) -> Option<Vec<Range<usize>>>,
) -> Result<Message> {
    let [start, length, size] = [block.offset(), block.metaDataLength().into(), block.bodyLength()]
        .map(|number| u64::try_from(number).unwrap_or(0));
    let mut metadata = vec![0; length as usize];
    read_exact_at(file, &mut metadata, start).map_err(|e| read_error(&e))?;
    let prefix = if metadata.starts_with(&CONTINUATION) { 8 } else { 4 };
    metadata.drain(..prefix.min(metadata.len()));
    let size = size as usize;
    Vec::<u8>::new().try_reserve_exact(size).map_err(|e| damaged(&e))?;
    // zeroed pages of the system take no memory before they are written; a MutableBuffer has a
    // larger alignment and writes to all of them
    let mut body = vec![0; size];
    let batch = arrow_ipc::root_as_message(&metadata).ok();
    let ranges = batch.and_then(|message| wanted(&message.header_as_record_batch()?));
    let ranges = ranges.filter(|ranges| {
        // reads no more than the file has, even if the directory names the same bytes repeatedly
        let sum = ranges.iter().fold(0, |sum: usize, range| sum.saturating_add(range.len()));
        sum <= body.len() && ranges.iter().all(|range| range.end <= body.len())
    });
    let at = start + length;
    match ranges {
        None => read_exact_at(file, &mut body, at).map_err(|e| read_error(&e))?,
        Some(ranges) => {
            for range in ranges {
                let at = at + range.start as u64;
                read_exact_at(file, &mut body[range], at).map_err(|e| read_error(&e))?;
            }
        }
    }
    Ok(Message { metadata, body: Buffer::from_vec(body) })
}

/// The ranges of the selected columns in the body of a batch; `None` if they are unknown. Bytes that
/// are not read stay zero and take no memory: a batch may be a whole file of many columns.
pub(crate) fn ranges(
    batch: &arrow_ipc::RecordBatch<'_>,
    schema: &Schema,
    slots: &[usize],
) -> Option<Vec<Range<usize>>> {
    let found = batch.buffers()?;
    let mut views = batch.variadicBufferCounts().into_iter().flatten();
    let mut ranges = Vec::new();
    let mut at = 0;
    for (column, field) in schema.fields().iter().enumerate() {
        let next = buffers(field.data_type(), &mut views)?.checked_add(at)?;
        if next > found.len() {
            return None;
        }
        if slots.contains(&column) {
            for buffer in (at..next).map(|at| found.get(at)) {
                let start = usize::try_from(buffer.offset()).ok()?;
                ranges.push(start..start.checked_add(usize::try_from(buffer.length()).ok()?)?);
            }
        }
        at = next;
    }
    (at == found.len()).then_some(ranges)
}

/// The number of buffers of a column of a type.
fn buffers(data_type: &DataType, views: &mut impl Iterator<Item = i64>) -> Option<usize> {
    let layout = layout(data_type);
    let mut count = layout.buffers.len() + usize::from(layout.can_contain_null_mask);
    if layout.variadic {
        count = count.checked_add(usize::try_from(views.next()?).ok()?)?;
    }
    for child in children(data_type) {
        count = count.checked_add(buffers(child, views)?)?;
    }
    Some(count)
}

/// The next message of a stream.
fn streamed(from: &mut Box<dyn Read + Send>) -> Result<Option<Message>> {
    let mut prefix = [0; 4];
    let mut first = [0];
    loop {
        match from.read(&mut first) {
            Ok(0) => return Ok(None), // a stream may end without a marker
            Ok(_) => break,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(read_error(&e)),
        }
    }
    prefix[0] = first[0];
    from.read_exact(&mut prefix[1..]).map_err(|e| read_error(&e))?;
    if prefix == CONTINUATION {
        from.read_exact(&mut prefix).map_err(|e| read_error(&e))?;
    } else if prefix == MAGIC[..4] {
        let message = "is an Arrow file, whose directory is at its end: it is read from regular, \
                       uncompressed files only; write the stream format for a pipe";
        return Err(ErrorCode::InputFormat.error(message));
    } else if prefix == *b"FEA1" {
        let message = "is Feather version 1; convert it to Feather version 2 or Parquet";
        return Err(ErrorCode::InputFormat.error(message));
    }
    let length = i32::from_le_bytes(prefix);
    if length == 0 {
        return nothing_more(from).map(|()| None);
    }
    let length = u64::try_from(length).map_err(|_| damaged(&"the length of a message"))?;
    let mut metadata = Vec::new();
    from.take(length).read_to_end(&mut metadata).map_err(|e| read_error(&e))?;
    if metadata.len() as u64 != length {
        return Err(read_error(&io::ErrorKind::UnexpectedEof.into()));
    }
    let message = arrow_ipc::root_as_message(&metadata).map_err(|e| damaged(&e))?;
    let size = usize::try_from(message.bodyLength()).map_err(|_| damaged(&"a body's length"))?;
    let mut body = MutableBuffer::try_from_len_zeroed(size.min(STEP)).map_err(|e| damaged(&e))?;
    let mut filled = 0;
    loop {
        from.read_exact(&mut body[filled..]).map_err(|e| read_error(&e))?;
        filled = body.len();
        if filled == size {
            return Ok(Some(Message { metadata, body: body.into() }));
        }
        body.try_resize(size.min(filled * 2), 0).map_err(|e| damaged(&e))?;
    }
}

/// Only zeros may follow the end of a stream: the rows of another stream would be lost.
fn nothing_more(from: &mut Box<dyn Read + Send>) -> Result<()> {
    let mut rest = [0; 4096];
    loop {
        match from.read(&mut rest) {
            Ok(0) => return Ok(()),
            Ok(n) if rest[..n].iter().all(|&byte| byte == 0) => {}
            Ok(_) => {
                let more = "there are bytes after the end of its stream; pass each stream as a separate file";
                return Err(damaged(&more));
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(read_error(&e)),
        }
    }
}

fn read_error(error: &io::Error) -> Error {
    decode::read_error(error)
}

pub(crate) fn damaged(error: &dyn std::fmt::Display) -> Error {
    let text = error.to_string();
    let text = text.lines().next().unwrap_or_default();
    let text = ["Ipc error: ", "Parser error: ", "Invalid argument error: ", "Schema error: "]
        .iter()
        .fold(text, |text, prefix| text.strip_prefix(prefix).unwrap_or(text));
    ErrorCode::InputDamaged.error(text)
}
