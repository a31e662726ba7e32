//! A plan: the answers to slots, in order, and where to go on.

use crate::run::SkipReason;
use crate::schedule::Cursor;
use crate::time::Slot;

/// Decisions about slots while they are being taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The answers, in order: one for every slot up to the cursor that had none.
    pub(crate) answers: Vec<Answer>,
    /// The frontier after these answers.
    pub(crate) cursor: Cursor,
    /// Whether the next skipped slot follows directly on the last answer.
    is_contiguous: bool,
}

/// The answer to one slot, or to several in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A run.
    Run(Slot),
    /// No run, and why.
    Skip(SkipRange),
}

impl Answer {
    /// The slot that gets a run, if it is one.
    pub fn run(&self) -> Option<&Slot> {
        match self {
            Answer::Run(slot) => Some(slot),
            Answer::Skip(_) => None,
        }
    }

    /// The skipped slots, if it is no run.
    pub fn skip(&self) -> Option<&SkipRange> {
        match self {
            Answer::Run(_) => None,
            Answer::Skip(range) => Some(range),
        }
    }

    /// The same, taken out.
    pub fn into_skip(self) -> Option<SkipRange> {
        match self {
            Answer::Run(_) => None,
            Answer::Skip(range) => Some(range),
        }
    }
}

/// Slots in a row that are skipped for one reason.
///
/// Whoever checks it enumerates the slots from the first to the last and compares the count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkipRange {
    /// The first slot.
    pub first: Slot,
    /// The last slot; the first again in a range of one.
    pub last: Slot,
    /// How many slots.
    pub count: u64,
    /// Why.
    pub reason: SkipReason,
}

impl Plan {
    /// Nothing decided yet.
    pub(crate) fn nothing(cursor: &Cursor) -> Plan {
        Plan { answers: vec![], cursor: cursor.clone(), is_contiguous: true }
    }

    /// Answers a slot with a run.
    pub(crate) fn run(&mut self, slot: Slot) {
        self.cursor.pass(&slot);
        self.is_contiguous = true;
        self.answers.push(Answer::Run(slot));
    }

    /// Answers a slot with a skip, in the range of its neighbour where the reason is the same.
    pub(crate) fn skip(&mut self, slot: Slot, reason: SkipReason) {
        self.cursor.pass(&slot);
        let is_contiguous = std::mem::replace(&mut self.is_contiguous, true);
        if let Some(Answer::Skip(range)) = self.answers.last_mut()
            && range.reason == reason
            && is_contiguous
        {
            range.last = slot;
            range.count += 1;
            return;
        }
        self.answers.push(Answer::Skip(SkipRange { first: slot.clone(), last: slot, count: 1, reason }));
    }

    /// Moves on behind a slot that has its answer already.
    pub(crate) fn pass(&mut self, slot: &Slot) {
        self.cursor.pass(slot);
        self.is_contiguous = false;
    }
}
