//! Files read in parallel into one ordered stream of Arrow batches.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use crate::error::{Error, ErrorCode, Result};
use crate::inspect::codes;
use crate::inspect::document::entry::{Entry, Form, Visitor};
use crate::inspect::document::inflate::Inflater;
use crate::inspect::document::{parse, regular};
use crate::inspect::finding::Log;
use crate::inspect::rows::{Rows, schema};
use crate::thread::{guard, inject, start, start_several};

/// Limit of the batches of one file that wait for the consumer.
const MAX_WAITING: usize = 2;

/// What a thread sends. `None` marks the end: without it, a closed channel means that the thread died.
pub(crate) type Sent = Option<Result<RecordBatch>>;

/// A stream of batches that threads produce; dropping it stops them.
pub struct BatchStream {
    schema: SchemaRef,
    files: std::vec::IntoIter<Receiver<Sent>>,
    current: Option<Receiver<Sent>>,
    /// a batch that was received and not returned yet
    ahead: Option<Result<RecordBatch>>,
    stop: Arc<AtomicBool>,
}

impl BatchStream {
    /// A stream of the batches of `files`, one file after the other.
    pub(crate) fn new(
        schema: SchemaRef,
        files: Vec<Receiver<Sent>>,
        stop: Arc<AtomicBool>,
    ) -> BatchStream {
        BatchStream { schema, files: files.into_iter(), current: None, ahead: None, stop }
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The flag that stops the threads.
    pub fn stopper(&self) -> Arc<AtomicBool> {
        self.stop.clone()
    }

    /// Waits up to `time` for the next batch or the end; returns false after that time.
    pub fn wait(&mut self, time: Duration) -> bool {
        while self.ahead.is_none() {
            if self.current.is_none() {
                self.current = self.files.next();
            }
            let Some(current) = &self.current else { return true };
            match current.recv_timeout(time) {
                Ok(None) => self.current = None,
                Ok(batch) => self.ahead = batch,
                Err(RecvTimeoutError::Timeout) => return false,
                Err(RecvTimeoutError::Disconnected) => {
                    self.ahead = Some(Err(internal("a thread died; this is a defect of urlset")));
                }
            }
        }
        true
    }
}

impl Drop for BatchStream {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Iterator for BatchStream {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.wait(Duration::from_secs(60)) {}
        let batch = self.ahead.take()?;
        if batch.is_err() {
            // nothing comes after an error
            self.stop.store(true, Ordering::Relaxed);
            self.files = Vec::new().into_iter();
            self.current = None;
        }
        Some(batch)
    }
}

/// A defect of urlset.
pub(crate) fn internal(message: impl Into<String>) -> Error {
    ErrorCode::ReadInternal.error(message)
}

/// Reads `files` (path and name) in order on `threads` threads. The first damage ends the stream
/// with an error; with `lenient`, the unreadable part of a file is skipped.
pub fn read(files: Vec<(PathBuf, String)>, threads: usize, lenient: bool) -> BatchStream {
    let schema = schema();
    let stop = Arc::new(AtomicBool::new(false));
    let (senders, receivers): (Vec<_>, Vec<_>) =
        files.iter().map(|_| bounded::<Sent>(MAX_WAITING)).unzip();
    let threads = threads.clamp(1, files.len().max(1));
    let work = Arc::new(ReadWork {
        files,
        senders: senders.into_iter().map(|sender| Mutex::new(Some(sender))).collect(),
        next: AtomicUsize::new(0),
        stop: stop.clone(),
        schema: schema.clone(),
        lenient,
    });
    let started = start_several(threads, || {
        let (here, failed) = (work.clone(), work.clone());
        start("read", move || here.run(), move |error| failed.fail(error))
    });
    if let Err(error) = started {
        work.fail(error);
    }
    BatchStream::new(schema, receivers, stop)
}

/// Sends an error as the last message; the consumer may be gone.
pub(crate) fn send_error(sender: Sender<Sent>) -> impl FnOnce(Error) {
    move |error| drop(sender.send(Some(Err(error))))
}

struct ReadWork {
    files: Vec<(PathBuf, String)>,
    senders: Vec<Mutex<Option<Sender<Sent>>>>,
    next: AtomicUsize,
    stop: Arc<AtomicBool>,
    schema: SchemaRef,
    lenient: bool,
}

impl ReadWork {
    /// Sends an error instead of the first file that no thread has begun: the stream ends there.
    fn fail(&self, error: Error) {
        let take = |slot: &Mutex<Option<_>>| slot.lock().ok()?.take();
        if let Some(sender) = self.senders.iter().find_map(take) {
            send_error(sender)(error);
        }
    }

    fn run(&self) {
        let mut inflater = Inflater::default();
        while !self.stop.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some((path, name)) = self.files.get(number) else { return };
            let sender = self.senders.get(number).and_then(|slot| slot.lock().ok()?.take());
            let Some(sender) = sender else { return };
            // the channel stays open until the error is sent
            let errors = sender.clone();
            let one = || self.one(path, name, sender, &mut inflater);
            if let Err(error) = guard("read.file", one) {
                send_error(errors)(error);
                return;
            }
        }
    }

    fn one(&self, path: &Path, name: &str, sender: Sender<Sent>, inflater: &mut Inflater) {
        let mut visitor = RowVisitor {
            rows: Rows::new(self.schema.clone(), name.to_owned()),
            sender,
            stop: &self.stop,
            lenient: self.lenient,
        };
        let mut log = Log::new(1);
        match inflater.open(path) {
            Ok(opened) => {
                log = Log::of_file(1, opened.size);
                let (_, buffer) = parse(opened.bytes, &mut visitor, &mut log, true);
                inflater.recycle(buffer);
                regular::check(opened.identity, path, &mut log);
            }
            Err(error) => {
                log.whole_file(&codes::FILE_UNREADABLE, || crate::error::plain(&error));
            }
        }
        visitor.finish(name, &log);
    }
}

struct RowVisitor<'a> {
    rows: Rows,
    sender: Sender<Sent>,
    stop: &'a AtomicBool,
    lenient: bool,
}

impl RowVisitor<'_> {
    /// Sends the batch; waits while the queue is full.
    fn flush(&mut self) -> ControlFlow<()> {
        inject("read.flush");
        let batch = self.rows.finish().map_err(|error| internal(error.to_string()));
        match self.sender.send(Some(batch)) {
            Ok(()) if !self.stop.load(Ordering::Relaxed) => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }

    fn finish(mut self, name: &str, log: &Log) {
        if !self.rows.is_empty() && self.flush().is_break() {
            return;
        }
        if let Some(first) = log.first_break().filter(|_| !self.lenient) {
            // the consumer may be gone
            self.sender.send(Some(Err(first.error().in_input(name)))).ok();
        }
        self.sender.send(None).ok(); // likewise
    }
}

impl Visitor for RowVisitor<'_> {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn entry(&mut self, form: Form, entry: &Entry<'_>, log: &mut Log) -> ControlFlow<()> {
        if form == Form::Index {
            return ControlFlow::Continue(());
        }
        if log.is_broken() && !self.lenient {
            return ControlFlow::Break(());
        }
        if entry.loc.is_empty() && self.lenient {
            return ControlFlow::Continue(());
        }
        self.rows.push(entry);
        if self.rows.is_full() { self.flush() } else { ControlFlow::Continue(()) }
    }
}
