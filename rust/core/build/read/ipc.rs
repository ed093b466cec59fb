//! Arrow IPC, the file format and the stream format, as a source.
//!
//! Any byte of such a file may be wrong. No memory is reserved for sizes that only the file claims.
//! Every position is checked against the size of the file. The crate arrow-ipc validates every array
//! in full (offsets, views, dictionary keys, UTF-8, null counts), and a panic of it counts as damage.
//! pyarrow reads the same files without validating the arrays.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::{Block, BodyCompressionMethod, Endianness, MessageHeader, MetadataVersion};
use arrow_schema::SchemaRef;

use crate::build::read::arrow::{ArrowBatch, ArrowRows, columns};
use crate::build::read::decode;
use crate::build::read::decode::OpenFile;
use crate::build::read::message::{MAGIC, Message, Messages, damaged, ranges};
use crate::error::{Error, ErrorCode, Result, plain};
use crate::file::read_exact_at;
use crate::flow::cell::Columns;
use crate::flow::source::Source;
use crate::panic::silenced;

/// Limit of the bytes that any buffer may inflate to.
const MAX_INFLATED: usize = 1 << 30;
/// Limit of the compression ratio of larger buffers.
const MAX_RATIO: usize = 1000;

/// An Arrow IPC file or stream; `-` is standard input.
pub struct Ipc {
    path: String,
    open_file: Option<OpenFile>,
    rows: usize,
    opened: Option<OpenIpc>,
    /// bytes of the last batch
    batch_memory: usize,
    consumed: Arc<AtomicU64>,
}

struct OpenIpc {
    messages: Messages,
    schema: SchemaRef,
    dictionaries: HashMap<i64, ArrayRef>,
    /// columns of the file, by slot
    slots: Vec<usize>,
    /// record batches read
    batches: u64,
    /// the remaining rows of the current record batch
    rest: Option<ArrowRows>,
}

impl Ipc {
    /// A source that has not been opened yet, with batches of up to `rows` rows.
    pub fn new(path: impl Into<String>, rows: usize) -> Ipc {
        Ipc {
            path: path.into(),
            open_file: None,
            rows: rows.max(1),
            opened: None,
            batch_memory: 0,
            consumed: Arc::default(),
        }
    }

    /// Reads a file that is open already; the path is then only its name.
    pub fn with_file(self, file: OpenFile) -> Ipc {
        Ipc { open_file: Some(file), ..self }
    }
}

impl Source for Ipc {
    type Batch = ArrowBatch;

    fn name(&self) -> &str {
        &self.path
    }

    fn open(&mut self) -> Result<Columns> {
        let open_file = self.open_file.take();
        let opened = guarded(|| OpenIpc::new(&self.path, open_file, &self.consumed), "its schema")
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

    fn next(&mut self, _spare: Vec<u8>) -> Result<Option<ArrowBatch>> {
        let Some(opened) = &mut self.opened else { return Ok(None) };
        while opened.rest.as_ref().is_none_or(ArrowRows::is_empty) {
            let number = format!("batch {}", opened.batches + 1);
            let batch = guarded(|| opened.batch(), &number).map_err(|e| e.in_input(&self.path))?;
            let Some(batch) = batch else { return Ok(None) };
            opened.batches += 1;
            opened.rest = Some(ArrowRows::new(batch.columns(), batch.num_rows()));
            if batch.num_rows() == 0 {
                // return, so that the reader can notice a stop
                return Ok(Some(ArrowBatch::Filtered(0)));
            }
        }
        let rows = opened.rest.as_mut().map(|rest| rest.take(self.rows));
        self.batch_memory = rows.as_ref().map_or(0, ArrowRows::bytes);
        Ok(rows.map(ArrowBatch::Rows))
    }

    fn consumed(&self) -> u64 {
        self.consumed.load(Ordering::Relaxed)
    }

    fn batch_memory(&self) -> usize {
        self.batch_memory
    }
}

impl OpenIpc {
    fn new(path: &str, open_file: Option<OpenFile>, consumed: &Arc<AtomicU64>) -> Result<OpenIpc> {
        let (messages, schema) = match directory(path, open_file.as_ref(), consumed)? {
            Some(found) => found,
            None => stream(path, open_file, consumed)?,
        };
        Ok(OpenIpc {
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
                return Err(damaged(&"another schema begins; pass each stream as a separate file"));
            } else {
                let kind = message.header_type().variant_name().unwrap_or("an unknown message");
                return Err(damaged(&format!("it is {kind}, not a record batch")));
            }
        }
        Ok(None)
    }
}

/// The directory of a file; `None` if the input is read as a stream.
fn directory(
    path: &str,
    open_file: Option<&OpenFile>,
    consumed: &Arc<AtomicU64>,
) -> Result<Option<(Messages, SchemaRef)>> {
    let unreadable = |e: io::Error| {
        let missing = e.kind() == io::ErrorKind::NotFound;
        let code = if missing { ErrorCode::InputMissing } else { ErrorCode::InputUnreadable };
        code.error(plain(&e)).caused_by(e)
    };
    let file = match open_file {
        // bytes were read from it already: it is a stream
        Some(open) if open.head.is_empty() => open.file.try_clone().map_err(unreadable)?,
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
    match read_exact_at(&file, &mut head, 0) {
        Ok(()) if head == *MAGIC => {}
        _ => return Ok(None),
    }
    let cut = || damaged(&"it is cut short: the directory at its end is missing");
    let mut tail = [0; 10];
    let at = size.checked_sub(tail.len() as u64).ok_or_else(cut)?;
    read_exact_at(&file, &mut tail, at).map_err(unreadable)?;
    let [a, b, c, d, magic @ ..] = tail;
    let length = u32::from_le_bytes([a, b, c, d]);
    let start = at.checked_sub(length.into()).filter(|_| magic == *MAGIC).ok_or_else(cut)?;
    let mut footer = vec![0; length as usize]; // at most the size of the file
    read_exact_at(&file, &mut footer, start).map_err(unreadable)?;
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
    open_file: Option<OpenFile>,
    consumed: &Arc<AtomicU64>,
) -> Result<(Messages, SchemaRef)> {
    let (bytes, _) = decode::bytes(path, open_file.map(Into::into), consumed.clone())?;
    let mut messages = Messages::Streamed(bytes);
    let Some(Message { metadata, .. }) = messages.next(|_| None)? else {
        return Err(ErrorCode::InputEmpty.error("is empty; an Arrow stream has at least a schema"));
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

/// Checks that all buffers are within the body, and that their inflated sizes are plausible.
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
        let Some(&size) = bytes.first_chunk() else { continue }; // an error later, if the column is read
        let size = usize::try_from(i64::from_le_bytes(size)).unwrap_or(0);
        // the decompressor reserves this size at once
        let fits = size <= MAX_INFLATED.max(bytes.len().saturating_mul(MAX_RATIO))
            && Vec::<u8>::new().try_reserve_exact(size).is_ok();
        if !fits {
            let from = bytes.len();
            return Err(damaged(&format!("{from} bytes that claim to inflate to {size}")));
        }
    }
    Ok(())
}

/// Runs code that reads untrusted bytes: a panic of the library counts as damage.
fn guarded<T>(read: impl FnOnce() -> Result<T>, what: &str) -> Result<T> {
    silenced(|| catch_unwind(AssertUnwindSafe(read)))
        .unwrap_or_else(|_| Err(damaged(&"its parts contradict one another")))
        .map_err(|error| match error.code {
            ErrorCode::InputDamaged | ErrorCode::InputTruncated => {
                Error { message: format!("{what} cannot be read: {}", error.message), ..error }
            }
            _ => error,
        })
}
