//! Restoration: nobody holds a run by an epoch that was given before.

use jiff::Timestamp;
use punctual_core::journal::Body;

use super::Transaction;
use crate::change::raised_floor;
use crate::error::Result;

impl Transaction<'_> {
    /// Raises every epoch above all that were ever given, also while `floor` was the highest. If it cannot be written, the
    /// state has to be opened anew.
    pub fn begin_anew(&mut self, now: Timestamp, floor: u64) -> Result<()> {
        let epoch_floor = raised_floor(self.mirror.epoch_floor().max(floor), now);
        self.append(now, Body::Restored { epoch_floor })?;
        self.mirror.raise_epochs(epoch_floor);
        Ok(())
    }
}
