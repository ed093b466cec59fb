//! The thread that reads.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};

use crate::build::pipeline::input::AnySource;
use crate::build::pipeline::message::{Event, EventKind, Input, Work};
use crate::build::pipeline::progress::Progress;
use crate::build::render::plan::Plan;
use crate::build::render::rules::{Rules, check_constants};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::flow::memory::MemoryUse;
use crate::thread::inject;

/// Limit of the memory of Arrow batches that are in work; one more batch may exceed it. The number
/// of buffers limits the memory of CSV.
const MAX_BATCH_MEMORY: usize = 16 << 20;
/// How often the reader checks whether memory has become free.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The thread that reads.
pub(crate) struct Reader {
    pub config: Config,
    pub rules: Arc<Rules>,
    /// Used buffers come back here. They are the back-pressure: without one the reader waits.
    pub buffers: Receiver<Vec<u8>>,
    pub work: Sender<Work>,
    pub events: Sender<Event>,
    pub progress: Arc<Progress>,
    /// the memory of Arrow batches that are in work
    pub memory: MemoryUse,
}

impl Reader {
    /// Reads all sources, and sends the collector the end or the error.
    pub fn read_all(self, sources: Vec<Box<dyn AnySource>>) {
        let mut batch = 0;
        let mut spare = None;
        for source in sources {
            if let Err(error) = self.read(source, &mut batch, &mut spare) {
                // the collector has ended with its own error
                let _ = self.events.send(Event { batch, kind: EventKind::Failed(error) });
                return;
            }
        }
        inject("reader.end");
        let _ = self.events.send(Event { batch, kind: EventKind::End });
    }

    /// Reads one source. `batch` is the number of the next batch; `spare` keeps the buffer that is
    /// left at the end of a source for the next one.
    fn read(
        &self,
        mut source: Box<dyn AnySource>,
        batch: &mut u64,
        spare: &mut Option<Vec<u8>>,
    ) -> Result<()> {
        let input = Arc::new(self.open(&mut *source)?);
        let before = self.progress.bytes.load(Ordering::Relaxed);
        loop {
            let buffer = match spare.take() {
                Some(buffer) => buffer,
                None => self.buffers.recv().map_err(|_| Error::cancelled())?,
            };
            while self.memory.used() > MAX_BATCH_MEMORY && !self.progress.stopped() {
                sleep(POLL_INTERVAL);
            }
            self.progress.check()?;
            inject("reader.batch");
            let Some(next) = source.next(buffer)? else {
                *spare = Some(Vec::new());
                return Ok(());
            };
            self.progress.bytes.store(before + source.consumed(), Ordering::Relaxed);
            let charge = self.memory.charge(source.batch_memory());
            let work = Work { number: *batch, input: input.clone(), batch: next, charge };
            if self.work.send(work).is_err() {
                return Err(Error::cancelled());
            }
            *batch += 1;
        }
    }

    /// Opens a source and resolves the mapping for its columns.
    fn open(&self, source: &mut dyn AnySource) -> Result<Input> {
        let name = source.name().to_owned();
        let columns = source.open()?;
        let (plan, chosen) = Plan::new(&self.config, &columns).map_err(|e| e.in_input(&name))?;
        check_constants(&self.rules, &plan)?;
        source.select(&plan.columns);
        Ok(Input { name, plan, chosen })
    }
}
