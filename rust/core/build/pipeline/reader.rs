//! The thread that reads.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};

use crate::build::pipeline::{Event, Input, Progress, Work};
use crate::build::read::Source;
use crate::build::render::plan::Plan;
use crate::build::render::rules::{Rules, check_constants};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::flow::memory::MemoryUse;
use crate::thread::inject;

/// Bytes of batches of Arrow that may be under way, and one batch; buffers bound those of CSV.
const BATCHES: usize = 16 << 20;
/// How long the reader waits before it looks again whether there is room.
const PAUSE: Duration = Duration::from_millis(1);

/// The thread that reads.
pub(crate) struct Reader {
    pub config: Config,
    pub rules: Arc<Rules>,
    pub buffers: Receiver<Vec<u8>>,
    pub work: Sender<Work>,
    pub events: Sender<(u64, Event)>,
    pub progress: Arc<Progress>,
    /// what batches of Arrow take that are under way
    pub room: MemoryUse,
}

impl Reader {
    /// Reads all sources, and tells the collector how that ended.
    pub fn read_all(self, sources: Vec<Box<dyn Source>>) {
        let mut seq = 0;
        let mut spare = None;
        for source in sources {
            if let Err(error) = self.read(source, &mut seq, &mut spare) {
                // a collector that is gone has its own error
                let _ = self.events.send((seq, Event::Failed(error)));
                return;
            }
        }
        inject("reader.end");
        let _ = self.events.send((seq, Event::End));
    }

    /// Reads one source; a buffer that it has no more use for is `spare` for the next.
    fn read(
        &self,
        mut source: Box<dyn Source>,
        seq: &mut u64,
        spare: &mut Option<Vec<u8>>,
    ) -> Result<()> {
        let name = source.name().to_owned();
        let columns = source.open()?;
        let (plan, chosen) = Plan::new(&self.config, &columns).map_err(|e| e.in_input(&name))?;
        check_constants(&self.rules, &plan)?;
        source.select(&plan.columns);
        let input = Arc::new(Input { name, plan, chosen });
        let before = self.progress.bytes.load(Ordering::Relaxed);
        loop {
            let buffer = match spare.take() {
                Some(buffer) => buffer,
                None => self.buffers.recv().map_err(|_| Error::cancelled())?,
            };
            while self.room.used() > BATCHES && !self.progress.stop.load(Ordering::Relaxed) {
                sleep(PAUSE);
            }
            if self.progress.stop.load(Ordering::Relaxed) {
                return Err(Error::cancelled());
            }
            inject("reader.batch");
            let Some(batch) = source.next(buffer)? else {
                *spare = Some(Vec::new());
                return Ok(());
            };
            self.progress.bytes.store(before + source.consumed(), Ordering::Relaxed);
            let charge = self.room.charge(source.held());
            let work = Work { seq: *seq, input: input.clone(), batch, charge };
            if self.work.send(work).is_err() {
                return Err(Error::cancelled());
            }
            *seq += 1;
        }
    }
}
