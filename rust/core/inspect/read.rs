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
use crate::inspect::document::parse;
use crate::inspect::finding::{Location, Log};
use crate::inspect::rows::{Rows, schema};
use crate::thread::{guard, inject, start};

/// Batches of one file that may wait to be taken.
const WAITING: usize = 2;

/// What a thread sends. `None` marks the end: without it, a closed channel means that the thread died.
pub(crate) type Sent = Option<Result<RecordBatch>>;

/// A stream of batches made by threads behind it; dropping it stops them.
pub struct BatchStream {
    schema: SchemaRef,
    files: std::vec::IntoIter<Receiver<Sent>>,
    present: Option<Receiver<Sent>>,
    /// what was received and not taken yet
    ahead: Option<Result<RecordBatch>>,
    stop: Arc<AtomicBool>,
}

impl BatchStream {
    /// A stream of what comes out of `files`, one after the other.
    pub(crate) fn new(
        schema: SchemaRef,
        files: Vec<Receiver<Sent>>,
        stop: Arc<AtomicBool>,
    ) -> BatchStream {
        BatchStream { schema, files: files.into_iter(), present: None, ahead: None, stop }
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The flag that makes the threads behind it stop.
    pub fn stopper(&self) -> Arc<AtomicBool> {
        self.stop.clone()
    }

    /// Waits for the next batch or the end; false where neither is there in time.
    pub fn wait(&mut self, time: Duration) -> bool {
        while self.ahead.is_none() {
            if self.present.is_none() {
                self.present = self.files.next();
            }
            let Some(present) = &self.present else { return true };
            match present.recv_timeout(time) {
                Ok(None) => self.present = None,
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
            self.present = None;
        }
        Some(batch)
    }
}

/// A defect of urlset.
pub(crate) fn internal(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::ReadInternal, message)
}

/// Reads `files` (path and name) in order on `threads` threads. `lenient`: what cannot be read of
/// a file is left out; else the first damage ends the stream with an error.
pub fn read(files: Vec<(PathBuf, String)>, threads: usize, lenient: bool) -> BatchStream {
    let schema = schema();
    let stop = Arc::new(AtomicBool::new(false));
    let (senders, receivers): (Vec<_>, Vec<_>) =
        files.iter().map(|_| bounded::<Sent>(WAITING)).unzip();
    let threads = threads.clamp(1, files.len().max(1));
    let work = Arc::new(ReadWork {
        files,
        senders: senders.into_iter().map(|sender| Mutex::new(Some(sender))).collect(),
        next: AtomicUsize::new(0),
        stop: stop.clone(),
        schema: schema.clone(),
        lenient,
    });
    for number in 0..threads {
        let (here, failed) = (work.clone(), work.clone());
        let started = start("read", move || here.run(), move |error| failed.fail(error));
        match started {
            Ok(_) => {}
            Err(error) if number == 0 => work.fail(error),
            Err(_) => break, // those that there are do all the work
        }
    }
    BatchStream::new(schema, receivers, stop)
}

/// Sends an error as the last thing; the taker may be gone.
pub(crate) fn tell(sender: Sender<Sent>) -> impl FnOnce(Error) {
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
    /// Tells an error in place of the first file that no thread has begun: the stream ends there.
    fn fail(&self, error: Error) {
        let take = |slot: &Mutex<Option<_>>| slot.lock().ok()?.take();
        if let Some(sender) = self.senders.iter().find_map(take) {
            tell(sender)(error);
        }
    }

    fn run(&self) {
        let mut inflater = Inflater::default();
        while !self.stop.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some((path, name)) = self.files.get(number) else { return };
            let sender = self.senders.get(number).and_then(|slot| slot.lock().ok()?.take());
            let Some(sender) = sender else { return };
            // it stays open until it is told why nothing comes
            let told = sender.clone();
            let one = || self.one(path, name, sender, &mut inflater);
            if let Err(error) = guard("read.file", one) {
                tell(told)(error);
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
                opened.stamp.check(path, &mut log);
            }
            Err(error) => {
                log.add(&codes::FILE_UNREADABLE, Location::default(), None, || {
                    crate::error::plain(&error)
                });
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
    /// Gives the batch out; waits while the taker is busy.
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
            // the consumer may have stopped
            self.sender.send(Some(Err(first.error().in_input(name)))).ok();
        }
        self.sender.send(None).ok(); // likewise
    }
}

impl Visitor for RowVisitor<'_> {
    const CHECKS: bool = false;

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
