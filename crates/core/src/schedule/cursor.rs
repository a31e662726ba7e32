//! The cursor: the frontier up to which a schedule's slots are answered.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::DateTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Slot;

/// The frontier up to which slots have been answered with a run or a skip.
///
/// Two frontiers in one: an instant, and what each zone's clock showed there. A slot is new only if it lies behind
/// both, so that an update of the zone data, which moves instants, never brings a nominal time back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cursor {
    /// Every slot scheduled up to here is answered.
    pub at: Timestamp,
    /// The last nominal time answered, by zone. Second passes of repeated times do not count.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reached: BTreeMap<String, DateTime>,
}

impl Cursor {
    /// Where a schedule starts that is created, edited or resumed at an instant.
    pub fn starting(at: Timestamp) -> Cursor {
        Cursor { at, reached: BTreeMap::new() }
    }

    /// Whether a slot is still to be answered.
    pub fn is_new(&self, slot: &Slot) -> bool {
        if slot.scheduled_at <= self.at {
            return false;
        }
        // A second pass shows again what the first has reached: only its instant counts.
        slot.is_second_pass
            || !slot.is_civil()
            || self.reached.get(slot.zone()).is_none_or(|reached| *reached < slot.nominal())
    }

    /// Moves the frontier to a slot that has been answered.
    pub(crate) fn pass(&mut self, slot: &Slot) {
        self.at = self.at.max(slot.scheduled_at);
        if slot.is_civil() && !slot.is_second_pass {
            let nominal = slot.nominal();
            match self.reached.get_mut(slot.zone()) {
                Some(reached) => *reached = nominal.max(*reached),
                None => drop(self.reached.insert(slot.zone().to_owned(), nominal)),
            }
        }
    }
}
