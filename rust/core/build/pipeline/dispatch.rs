//! The way of complete shards to the workers and of what they say back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, SendTimeoutError, Sender};

use crate::error::{Error, Result};
use crate::flow::memory::MemoryUse;
use crate::flow::outcome::ShardEntry;
use crate::flow::shard::Shard;

/// Bytes of shards that may wait to be compressed or are being compressed, or one shard. Pieces are
/// let go as they are compressed, so two shards of 50 MiB are under way at a time.
const UNDER_WAY: usize = 64 << 20;
/// The same for each worker, where there are many: a usual shard has 6 MiB.
const UNDER_WAY_EACH: usize = 8 << 20;
/// How long a stop may go unnoticed.
pub(crate) const PATIENCE: Duration = Duration::from_millis(100);
/// How long to wait before asking again whether there is room.
const PAUSE: Duration = Duration::from_millis(2);

/// Hands shards to the workers, and takes note of those that are done.
pub(crate) struct Dispatch<'r> {
    shards: Sender<Shard>,
    done: Receiver<Result<ShardEntry>>,
    stop: &'r AtomicBool,
    room: MemoryUse,
    /// bytes that may be under way
    most: usize,
    /// shards of which the workers have not told anything yet
    open: usize,
    list: Vec<ShardEntry>,
}

impl<'r> Dispatch<'r> {
    /// `stop` ends every wait.
    pub fn new(
        shards: Sender<Shard>,
        done: Receiver<Result<ShardEntry>>,
        stop: &'r AtomicBool,
        workers: usize,
    ) -> Dispatch<'r> {
        let most = UNDER_WAY.max(workers.saturating_mul(UNDER_WAY_EACH));
        Dispatch { shards, done, stop, most, room: MemoryUse::default(), open: 0, list: Vec::new() }
    }

    /// Hands over a shard, when there is room for it.
    ///
    /// # Errors
    /// Those of shards that were written meanwhile; `cancelled` after a stop.
    pub fn send(&mut self, mut shard: Shard) -> Result<()> {
        for written in self.done.try_iter() {
            self.open -= 1;
            self.list.push(written?);
        }
        shard.charge(&self.room);
        while self.open > 0 && self.room.used() > self.most {
            self.wait(PAUSE)?;
        }
        loop {
            self.check()?;
            match self.shards.send_timeout(shard, PATIENCE) {
                Ok(()) => break,
                Err(SendTimeoutError::Timeout(back)) => shard = back,
                Err(SendTimeoutError::Disconnected(_)) => return Err(Error::thread()),
            }
        }
        self.open += 1;
        Ok(())
    }

    /// Waits until all shards are written. With the queue closed the workers end once it is empty.
    ///
    /// # Errors
    /// As of [`Dispatch::send`].
    pub fn finish(mut self) -> Result<Vec<ShardEntry>> {
        self.shards = crossbeam_channel::bounded(0).0;
        while self.open > 0 {
            self.wait(PATIENCE)?;
        }
        Ok(self.list)
    }

    fn wait(&mut self, time: Duration) -> Result<()> {
        self.check()?;
        match self.done.recv_timeout(time) {
            Ok(written) => {
                self.open -= 1;
                self.list.push(written?);
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => Err(Error::thread()),
        }
    }

    fn check(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) { Err(Error::cancelled()) } else { Ok(()) }
    }
}
