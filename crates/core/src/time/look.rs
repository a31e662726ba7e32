//! The bound of a walk over slots: how many it looks at, whether they are skipped or not.
//!
//! Nothing bounds a walk that only counts what it finds: a calendar that is closed on all days of a cron lets it find nothing
//! for ever. So every walk has this bound, and says where it ended for it.

use jiff::Timestamp;

use super::slot::Slot;

/// How many slots a walk looks at unless it says otherwise: more than the longest day of a schedule that fires every second.
pub const LOOK_MAX: usize = 100_000;

/// How many slots a walk may still look at, and where it ended for that.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    left: usize,
    cut_at: Option<Timestamp>,
}

impl Look {
    pub(super) fn at_most(max: usize) -> Look {
        Look { left: max, cut_at: None }
    }

    /// The first slot that was not looked at, if there is one.
    pub(super) fn cut_at(&self) -> Option<Timestamp> {
        self.cut_at
    }

    /// The next slot, unless that is one too many: then it only says when it is.
    pub(super) fn at(&mut self, advance: impl FnOnce() -> Option<Slot>) -> Option<Slot> {
        if self.cut_at.is_some() {
            return None;
        }
        let slot = advance()?;
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => {
                self.cut_at = Some(slot.scheduled_at);
                return None;
            }
        }
        Some(slot)
    }
}
