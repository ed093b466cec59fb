//! Changes as Arrow batches: loc, lastmod and what happened.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::builder::{ArrayBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use crossbeam_channel::bounded;

use crate::error::{Error, Kind, Result};
use crate::inspect::diff::{Change, DiffCounts, Options, SetFile, diff};
use crate::inspect::read::{BatchStream, internal, send_error};
use crate::inspect::records::text;
use crate::inspect::rows::ROWS;
use crate::thread::{inject, start};

/// The columns of a change feed.
pub fn schema() -> SchemaRef {
    let column = |name: &str, null| Field::new(name, DataType::Utf8, null);
    Arc::new(Schema::new(vec![
        column("change", false),
        column("loc", false),
        column("lastmod", true),
        column("old_lastmod", true),
    ]))
}

struct Batches {
    schema: SchemaRef,
    columns: [StringBuilder; 4],
}

impl Batches {
    fn push(&mut self, change: &Change) {
        let [kind, loc, lastmod, old] = &mut self.columns;
        kind.append_value(change.kind.name());
        text(loc, Some(&change.loc));
        text(lastmod, change.lastmod.as_deref());
        text(old, change.old_lastmod.as_deref());
    }

    fn finish(&mut self) -> Result<RecordBatch> {
        let columns = self.columns.iter_mut().map(|b| Arc::new(b.finish()) as ArrayRef).collect();
        RecordBatch::try_new(self.schema.clone(), columns)
            .map_err(|error| internal(error.to_string()))
    }
}

/// Compares two sets in a thread, and returns the changes as a stream. `counts` is set at its end.
pub fn stream(
    old: Vec<SetFile>,
    new: Vec<SetFile>,
    options: Options,
    counts: Arc<Mutex<Option<DiffCounts>>>,
) -> BatchStream {
    let (sender, receiver) = bounded(4);
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let errors = sender.clone();
    let work = move || {
        let columns = std::array::from_fn(|_| StringBuilder::new());
        let mut batches = Batches { schema: schema(), columns };
        // no consumer is left
        let cancelled = |_| Error::cancelled();
        let mut sink = |change: &Change| -> Result<()> {
            inject("changes.row");
            batches.push(change);
            if batches.columns[0].len() < ROWS {
                Ok(())
            } else {
                sender.send(Some(batches.finish())).map_err(cancelled)
            }
        };
        let found = diff(&old, &new, &options, &mut || stopped.load(Ordering::Relaxed), &mut sink);
        match found {
            Ok(found) => {
                if let Ok(mut counts) = counts.lock() {
                    *counts = Some(found);
                }
                if batches.columns[0].len() > 0 {
                    sender.send(Some(batches.finish())).ok(); // the consumer may be gone
                }
            }
            Err(error) if error.kind == Kind::Cancelled => {}
            Err(error) => {
                sender.send(Some(Err(error))).ok(); // likewise
            }
        }
        sender.send(None).ok(); // likewise
    };
    let started = start("changes", work, send_error(errors.clone()));
    started.map(drop).unwrap_or_else(send_error(errors));
    BatchStream::new(schema(), vec![receiver], stop)
}
