//! Arrow IPC, the file format and the stream format, as a source.
//!
//! Any byte of such a file may be wrong. Nothing is reserved for sizes that only the file claims,
//! every place is checked against the bytes that are there, every array is validated in full by the
//! crate arrow-ipc (offsets, views, keys of dictionaries, UTF-8, null counts), and a panic of that
//! crate counts as damage. pyarrow reads the same files without looking into the arrays.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_data::layout;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::{Block, BodyCompressionMethod, Endianness, MessageHeader, MetadataVersion};
use arrow_schema::{DataType, Schema, SchemaRef};

use super::arrow::{Rows, columns};
use super::cell::Columns;
use super::decode::Begun;
use super::import::children;
use super::{Batch, Source, decode};
use crate::error::{Error, Result, plain};
use crate::quiet::quiet;

const MAGIC: &[u8; 6] = b"ARROW1";
/// What stands before the length of a message, but for files older than 2019.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// Bytes of a body that are reserved before any of them was read.
const STEP: usize = 64 << 20;
/// Bytes that one buffer may inflate to, whatever it is made from.
const INFLATED: usize = 1 << 30;
/// Beyond that, bytes that one compressed byte may become.
const RATIO: usize = 1000;

/// An Arrow IPC file or stream; `-` is standard input.
pub struct Ipc {
    path: String,
    begun: Option<Begun>,
    rows: usize,
    opened: Option<Opened>,
    /// bytes of the rows given out last
    held: usize,
    consumed: Arc<AtomicU64>,
}

struct Opened {
    messages: Messages,
    schema: SchemaRef,
    dictionaries: HashMap<i64, ArrayRef>,
    /// columns of the file, by slot
    slots: Vec<usize>,
    /// record batches read
    batches: u64,
    /// what is left of the batch at hand
    rest: Option<Rows>,
}

/// A message without its length.
struct Message {
    metadata: Vec<u8>,
    body: Buffer,
}

/// Where the messages after the schema come from.
enum Messages {
    /// From the places that the directory at the end of a file names.
    Placed { file: File, blocks: VecDeque<Block>, read: Arc<AtomicU64> },
    /// One after the other.
    Streamed(Box<dyn Read + Send>),
}

impl Ipc {
    /// A source that has not been opened yet, with batches of so many rows.
    pub fn new(path: impl Into<String>, rows: usize) -> Ipc {
        Ipc {
            path: path.into(),
            begun: None,
            rows: rows.max(1),
            opened: None,
            held: 0,
            consumed: Arc::default(),
        }
    }

    /// The same source, of a file that is open already.
    pub fn begun(self, begun: Begun) -> Ipc {
        Ipc { begun: Some(begun), ..self }
    }
}

impl Source for Ipc {
    fn name(&self) -> &str {
        &self.path
    }

    fn open(&mut self) -> Result<Columns> {
        let begun = self.begun.take();
        let opened = guarded(|| Opened::new(&self.path, begun, &self.consumed), "its schema")
            .map_err(|e| e.in_input(&self.path))?;
        let columns = columns(&opened.schema);
        self.opened = Some(opened);
        Ok(columns)
    }

    fn select(&mut self, slots: &[usize]) {
        if let Some(opened) = &mut self.opened {
            opened.slots = slots.to_vec();
        }
    }

    fn next(&mut self, _spare: Vec<u8>) -> Result<Option<Batch>> {
        let Some(opened) = &mut self.opened else { return Ok(None) };
        while opened.rest.as_ref().is_none_or(Rows::is_empty) {
            let number = format!("batch {}", opened.batches + 1);
            let batch = guarded(|| opened.batch(), &number).map_err(|e| e.in_input(&self.path))?;
            let Some(batch) = batch else { return Ok(None) };
            opened.batches += 1;
            opened.rest = Some(Rows::new(batch.columns(), batch.num_rows()));
            if batch.num_rows() == 0 {
                // whoever drives is asked whether to go on
                return Ok(Some(Batch::Skipped(0)));
            }
        }
        let rows = opened.rest.as_mut().map(|rest| rest.take(self.rows));
        self.held = rows.as_ref().map_or(0, Rows::bytes);
        Ok(rows.map(Batch::Arrow))
    }

    fn consumed(&self) -> u64 {
        self.consumed.load(Ordering::Relaxed)
    }

    fn held(&self) -> usize {
        self.held
    }
}

impl Opened {
    fn new(path: &str, begun: Option<Begun>, consumed: &Arc<AtomicU64>) -> Result<Opened> {
        let (messages, schema) = match directory(path, begun.as_ref(), consumed)? {
            Some(found) => found,
            None => stream(path, begun, consumed)?,
        };
        Ok(Opened {
            messages,
            schema,
            dictionaries: HashMap::new(),
            slots: Vec::new(),
            batches: 0,
            rest: None,
        })
    }

    /// The next record batch, with the dictionaries that come before it.
    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(Message { metadata, body }) =
            self.messages.next(|batch| ranges(batch, &self.schema, &self.slots))?
        {
            let message = arrow_ipc::root_as_message(&metadata).map_err(|e| damaged(&e))?;
            let version = message.version();
            if version < MetadataVersion::V4 {
                return Err(damaged(&"its format is older than Arrow 0.8"));
            }
            if let Some(dictionary) = message.header_as_dictionary_batch() {
                let values = dictionary.data().ok_or_else(|| damaged(&"a dictionary is empty"))?;
                check_body(&values, &body)?;
                let known = &mut self.dictionaries;
                read_dictionary(&body, dictionary, &self.schema, known, &version)
                    .map_err(|e| damaged(&e))?;
            } else if let Some(batch) = message.header_as_record_batch() {
                check_body(&batch, &body)?;
                let (schema, known) = (self.schema.clone(), &self.dictionaries);
                let batch =
                    read_record_batch(&body, batch, schema, known, Some(&self.slots), &version)
                        .map_err(|e| damaged(&e))?;
                return Ok(Some(batch));
            } else if message.header_type() == MessageHeader::Schema {
                return Err(damaged(
                    &"another schema begins; give each stream as a file of its own",
                ));
            } else {
                let kind = message.header_type().variant_name().unwrap_or("an unknown message");
                return Err(damaged(&format!("it is {kind}, not a record batch")));
            }
        }
        Ok(None)
    }
}

/// The directory of a file that has one; nothing if it is to be read as a stream.
fn directory(
    path: &str,
    begun: Option<&Begun>,
    consumed: &Arc<AtomicU64>,
) -> Result<Option<(Messages, SchemaRef)>> {
    let unreadable = |e: io::Error| {
        let missing = e.kind() == io::ErrorKind::NotFound;
        let code = if missing { "input.missing" } else { "input.unreadable" };
        Error::input(code, plain(&e)).caused_by(e)
    };
    let file = match begun {
        // what was read of it is a stream's
        Some(begun) if begun.head.is_empty() => begun.file.try_clone().map_err(unreadable)?,
        Some(_) => return Ok(None),
        None if path == "-" => return Ok(None),
        // a pipe that is opened here cannot be opened again as a stream
        None if !std::fs::metadata(path).map_err(unreadable)?.is_file() => return Ok(None),
        None => File::open(path).map_err(unreadable)?,
    };
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Ok(None);
    }
    let size = metadata.len();
    let mut head = [0; MAGIC.len()];
    match file.read_exact_at(&mut head, 0) {
        Ok(()) if head == *MAGIC => {}
        _ => return Ok(None),
    }
    let cut = || damaged(&"it is cut short: the directory at its end is missing");
    let mut tail = [0; 10];
    let at = size.checked_sub(tail.len() as u64).ok_or_else(cut)?;
    file.read_exact_at(&mut tail, at).map_err(unreadable)?;
    let [a, b, c, d, magic @ ..] = tail;
    let length = u32::from_le_bytes([a, b, c, d]);
    let start = at.checked_sub(length.into()).filter(|_| magic == *MAGIC).ok_or_else(cut)?;
    let mut footer = vec![0; length as usize]; // no more than the file has
    file.read_exact_at(&mut footer, start).map_err(unreadable)?;
    let footer = arrow_ipc::root_as_footer(&footer).map_err(|e| damaged(&e))?;
    let schema = footer.schema().ok_or_else(|| damaged(&"its directory has no schema"))?;
    let schema = schema_of(&schema)?;
    let blocks: VecDeque<Block> = footer
        .dictionaries()
        .into_iter()
        .chain(footer.recordBatches())
        .flatten()
        .copied()
        .collect();
    let mut whole = 0_u64;
    for block in &blocks {
        let (metadata, body) = (block.metaDataLength().into(), block.bodyLength());
        let [offset, metadata, body] = [block.offset(), metadata, body]
            .map(|number| u64::try_from(number).unwrap_or(u64::MAX));
        whole = whole.saturating_add(metadata).saturating_add(body);
        let end = offset.saturating_add(metadata).saturating_add(body);
        if end > start || whole > start {
            return Err(damaged(&"its directory names places that are not in the file"));
        }
    }
    Ok(Some((Messages::Placed { file, blocks, read: consumed.clone() }, schema)))
}

/// A stream up to its schema.
fn stream(
    path: &str,
    begun: Option<Begun>,
    consumed: &Arc<AtomicU64>,
) -> Result<(Messages, SchemaRef)> {
    let (bytes, _) = decode::bytes(path, begun, consumed.clone())?;
    let mut messages = Messages::Streamed(bytes);
    let Some(Message { metadata, .. }) = messages.next(|_| None)? else {
        return Err(Error::input("input.empty", "is empty; an Arrow stream has a schema at least"));
    };
    let message = arrow_ipc::root_as_message(&metadata).map_err(|e| damaged(&e))?;
    let schema = message.header_as_schema();
    let schema = schema.ok_or_else(|| damaged(&"it does not begin with a schema"))?;
    Ok((messages, schema_of(&schema)?))
}

fn schema_of(schema: &arrow_ipc::Schema<'_>) -> Result<SchemaRef> {
    if schema.endianness() != Endianness::Little {
        return Err(damaged(&"its numbers are big-endian, which urlset does not read"));
    }
    Ok(Arc::new(try_fb_to_schema(*schema).map_err(|e| damaged(&e))?))
}

impl Messages {
    /// The next message; nothing at the end. `wanted` tells what of the body of a batch is read,
    /// where the rest can be left out.
    fn next(
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

/// The message at a place that is in the file.
fn placed(
    file: &File,
    block: &Block,
    wanted: impl Fn(&arrow_ipc::RecordBatch<'_>) -> Option<Vec<Range<usize>>>,
) -> Result<Message> {
    let [start, length, size] = [block.offset(), block.metaDataLength().into(), block.bodyLength()]
        .map(|number| u64::try_from(number).unwrap_or(0));
    let mut metadata = vec![0; length as usize];
    file.read_exact_at(&mut metadata, start).map_err(|e| read_error(&e))?;
    let prefix = if metadata.starts_with(&CONTINUATION) { 8 } else { 4 };
    metadata.drain(..prefix.min(metadata.len()));
    let size = size as usize;
    Vec::<u8>::new().try_reserve_exact(size).map_err(|e| damaged(&e))?;
    // zeros of the system, whose pages take no memory before they are written to; a MutableBuffer,
    // which is aligned to more, writes to all of them
    let mut body = vec![0; size];
    let batch = arrow_ipc::root_as_message(&metadata).ok();
    let ranges = batch.and_then(|message| wanted(&message.header_as_record_batch()?));
    let ranges = ranges.filter(|ranges| {
        // no more is read than there is, even if the same bytes are named again and again
        let sum = ranges.iter().fold(0, |sum: usize, range| sum.saturating_add(range.len()));
        sum <= body.len() && ranges.iter().all(|range| range.end <= body.len())
    });
    let at = start + length;
    match ranges {
        None => file.read_exact_at(&mut body, at).map_err(|e| read_error(&e))?,
        Some(ranges) => {
            for range in ranges {
                let at = at + range.start as u64;
                file.read_exact_at(&mut body[range], at).map_err(|e| read_error(&e))?;
            }
        }
    }
    Ok(Message { metadata, body: Buffer::from_vec(body) })
}

/// Where in the body of a batch the columns of the slots are; nothing if that cannot be told. What
/// is not read stays zero and costs no memory: a batch may be a whole file of many columns.
fn ranges(
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

/// How many buffers a column of a type has.
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
            Ok(0) => return Ok(None), // a stream may end without saying so
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
        return Err(Error::input("input.format", message));
    } else if prefix == *b"FEA1" {
        let message = "is Feather version 1; write it anew as Feather version 2 or Parquet";
        return Err(Error::input("input.format", message));
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

/// After the end of a stream nothing may come but zeros: rows of another one would be lost.
fn nothing_more(from: &mut Box<dyn Read + Send>) -> Result<()> {
    let mut rest = [0; 4096];
    loop {
        match from.read(&mut rest) {
            Ok(0) => return Ok(()),
            Ok(n) if rest[..n].iter().all(|&byte| byte == 0) => {}
            Ok(_) => {
                let more = "bytes come after the end of its stream; give each stream as a file";
                return Err(damaged(&more));
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(read_error(&e)),
        }
    }
}

/// All buffers are in the body, and what they claim to inflate to can be.
fn check_body(batch: &arrow_ipc::RecordBatch<'_>, body: &Buffer) -> Result<()> {
    let compression = batch.compression();
    if compression.is_some_and(|found| found.method() != BodyCompressionMethod::BUFFER) {
        return Err(damaged(&"an unknown kind of compression"));
    }
    for buffer in batch.buffers().into_iter().flatten() {
        let start = usize::try_from(buffer.offset()).ok();
        let length = usize::try_from(buffer.length()).ok();
        let bytes = start
            .zip(length)
            .and_then(|(start, length)| body.as_slice().get(start..start.checked_add(length)?));
        let Some(bytes) = bytes else { return Err(damaged(&"a buffer is not within its body")) };
        if compression.is_none() {
            continue;
        }
        let Some(&size) = bytes.first_chunk() else { continue }; // an error later, if it is wanted
        let size = usize::try_from(i64::from_le_bytes(size)).unwrap_or(0);
        // reserved at once by what inflates it
        let fits = size <= INFLATED.max(bytes.len().saturating_mul(RATIO))
            && Vec::<u8>::new().try_reserve_exact(size).is_ok();
        if !fits {
            let from = bytes.len();
            return Err(damaged(&format!("{from} bytes that claim to inflate to {size}")));
        }
    }
    Ok(())
}

/// Runs what reads bytes that may be anything: a panic of the library is damage, too.
fn guarded<T>(read: impl FnOnce() -> Result<T>, what: &str) -> Result<T> {
    quiet(|| catch_unwind(AssertUnwindSafe(read)))
        .unwrap_or_else(|_| Err(damaged(&"its parts contradict one another")))
        .map_err(|error| match error.code {
            "input.damaged" | "input.truncated" => {
                Error { message: format!("{what} cannot be read: {}", error.message), ..error }
            }
            _ => error,
        })
}

fn read_error(error: &io::Error) -> Error {
    decode::read_error(error)
}

fn damaged(error: &dyn std::fmt::Display) -> Error {
    let text = error.to_string();
    let text = text.lines().next().unwrap_or_default();
    let text = ["Ipc error: ", "Parser error: ", "Invalid argument error: ", "Schema error: "]
        .iter()
        .fold(text, |text, prefix| text.strip_prefix(prefix).unwrap_or(text));
    Error::input("input.damaged", text)
}
