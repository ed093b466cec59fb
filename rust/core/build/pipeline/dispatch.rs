//! Complete shards to the workers, and the entries of written shards back.

use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, SendTimeoutError, Sender, bounded};

use crate::build::pipeline::progress::Progress;
use crate::error::{Error, Result};
use crate::flow::memory::MemoryUse;
use crate::flow::outcome::ShardEntry;
use crate::flow::shard::Shard;

/// Limit of the memory of shards that are compressed or wait for it; a single shard may exceed it.
/// Pieces are freed as they are compressed, so two shards of 50 MiB are compressed at a time.
const MAX_MEMORY: usize = 64 << 20;
/// The limit for each worker, which counts if there are many: a usual shard has 6 MiB.
const MAX_WORKER_MEMORY: usize = 8 << 20;
/// The longest time after which a stop is noticed.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How often to check whether memory has become free.
const MEMORY_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Hands shards to the workers, and collects the entries of those that are written.
pub(crate) struct Dispatch<'r> {
    shards: Sender<Shard>,
    written: Receiver<Result<ShardEntry>>,
    progress: &'r Progress,
    memory: MemoryUse,
    max_memory: usize,
    /// shards without an entry yet
    open: usize,
    entries: Vec<ShardEntry>,
}

impl<'r> Dispatch<'r> {
    /// `progress` can end every wait.
    pub fn new(
        shards: Sender<Shard>,
        written: Receiver<Result<ShardEntry>>,
        progress: &'r Progress,
        workers: usize,
    ) -> Dispatch<'r> {
        let max_memory = MAX_MEMORY.max(workers.saturating_mul(MAX_WORKER_MEMORY));
        let (memory, entries) = (MemoryUse::default(), Vec::new());
        Dispatch { shards, written, progress, memory, max_memory, open: 0, entries }
    }

    /// Hands a shard over when there is memory for it.
    ///
    /// # Errors
    /// Those of shards that were written meanwhile; `cancelled` after a stop.
    pub fn send(&mut self, mut shard: Shard) -> Result<()> {
        for written in self.written.try_iter() {
            self.open -= 1;
            self.entries.push(written?);
        }
        shard.charge(&self.memory);
        while self.open > 0 && self.memory.used() > self.max_memory {
            self.wait(MEMORY_POLL_INTERVAL)?;
        }
        loop {
            self.progress.check()?;
            match self.shards.send_timeout(shard, POLL_INTERVAL) {
                Ok(()) => break,
                Err(SendTimeoutError::Timeout(back)) => shard = back,
                Err(SendTimeoutError::Disconnected(_)) => return Err(Error::thread()),
            }
        }
        self.open += 1;
        Ok(())
    }

    /// Waits until all shards are written, and returns their entries. The workers end when the queue
    /// is closed and empty.
    ///
    /// # Errors
    /// As [`Dispatch::send`].
    pub fn finish(mut self) -> Result<Vec<ShardEntry>> {
        self.shards = bounded(0).0;
        while self.open > 0 {
            self.wait(POLL_INTERVAL)?;
        }
        Ok(self.entries)
    }

    fn wait(&mut self, time: Duration) -> Result<()> {
        self.progress.check()?;
        match self.written.recv_timeout(time) {
            Ok(written) => {
                self.open -= 1;
                self.entries.push(written?);
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => Err(Error::thread()),
        }
    }
}
