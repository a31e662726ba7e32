//! Retention: what is let go of runs and of the journal.

use jiff::Timestamp;
use punctual_core::journal::Body;

use super::Transaction;
use crate::change::raised_floor;
use crate::compare::checkpoints;
use crate::error::Result;
use crate::types::Head;

impl Transaction<'_> {
    /// Lets go of the old runs that were found. How many.
    pub fn forget_runs(&mut self, now: Timestamp, before: Timestamp) -> Result<usize> {
        let old = std::mem::take(&mut self.found.old);
        if !old.is_empty() {
            self.append(now, Body::RunsForgotten { before })?;
            self.changes.forgotten.extend(&old);
        }
        Ok(old.len())
    }

    /// Raises every epoch above all that were ever given, also while `floor` was the highest. If it cannot be written, the
    /// state has to be opened anew.
    pub fn begin_anew(&mut self, now: Timestamp, floor: u64) -> Result<()> {
        let epoch_floor = raised_floor(self.mirror.epoch_floor().max(floor), now);
        self.append(now, Body::Restored { epoch_floor })?;
        self.mirror.raise_epochs(epoch_floor);
        self.changes.epoch_floor = Some(epoch_floor);
        Ok(())
    }

    /// Writes everything as it is now, and moves the beginning of the journal to the last checkpoint at `before` or earlier.
    /// How many entries are before it.
    pub fn prune(&mut self, now: Timestamp, before: Timestamp) -> Result<u64> {
        let world = self.found.everything.take().unwrap_or_default();
        let is_old = now <= before;
        let here = self.head;
        for part in checkpoints(&world) {
            self.append(now, Body::Checkpoint(Box::new(part)))?;
        }
        let first = self.found.first;
        // What was just written may be old enough already.
        let start = if is_old { Some(Head { seq: here.seq + 1, ..here }) } else { self.found.start };
        let Some(start) = start.filter(|start| first.seq < start.seq) else { return Ok(0) };
        self.changes.first = Some(start);
        Ok(start.seq - first.seq)
    }
}
