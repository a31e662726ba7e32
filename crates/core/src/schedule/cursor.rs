//! The cursor: the frontier up to which a schedule's slots are answered.

use jiff::Timestamp;
use jiff::civil::DateTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::readings::Readings;
use crate::time::{Slot, Timetable, Zone, just_before};

/// The frontier up to which slots have been answered with a run or a skip.
///
/// Two frontiers in one: an instant, and what each zone's clock had shown there. What a clock has shown decides where it is
/// known: an update of the zone data, which moves instants, never brings a nominal time back, and never swallows one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cursor {
    /// Every slot scheduled up to here is answered.
    pub at: Timestamp,
    /// The nominal time up to which all are answered, by zone. Second passes of repeated times do not count.
    #[serde(default, skip_serializing_if = "Readings::is_empty")]
    pub reached: Readings,
}

impl Cursor {
    /// Where a schedule starts that is created, edited or resumed at an instant.
    pub fn starting(at: Timestamp) -> Cursor {
        Cursor { at, reached: Readings::default() }
    }

    /// Whether a slot is still to be answered.
    pub fn is_new(&self, slot: &Slot) -> bool {
        // A second pass shows again what the first has reached: only its instant counts.
        let reached = (slot.is_civil() && !slot.is_second_pass).then(|| self.reached.get(slot.zone())).flatten();
        reached.map_or(self.at < slot.scheduled_at, |reached| *reached < slot.nominal())
    }

    /// Behind which instant there may be slots to be answered. That is before the frontier where zone data has moved them.
    pub fn starts_behind(&self, timetable: &Timetable) -> Timestamp {
        let reached = |zone: &Zone| self.reached.get(zone.name()).map(|reached| just_before(zone.shows(*reached)));
        timetable.clocks().filter_map(reached).fold(self.at, Timestamp::min)
    }

    /// Moves the frontier to an instant up to which every slot has been answered.
    pub(crate) fn pass_until(&mut self, timetable: &Timetable, until: Timestamp) {
        // The frontier may lie later, where the clock of the machine was set back.
        self.note_clocks(timetable);
        self.at = self.at.max(until);
        for zone in timetable.clocks() {
            self.reach(zone.name(), zone.shown_until(until));
        }
    }

    /// Notes what the clocks have shown at the frontier, where that is not known yet.
    pub(crate) fn note_clocks(&mut self, timetable: &Timetable) {
        for zone in timetable.clocks() {
            if self.reached.get(zone.name()).is_none() {
                self.reached.set(zone.name(), zone.shown_until(self.at));
            }
        }
    }

    /// Sets the clocks of all zones to the frontier, when every slot before `next_at` has been answered and one there has not.
    ///
    /// No clock goes further than just before that slot: at the end of a gap, other slots may lie at the same instant.
    pub(crate) fn set_clocks_before(&mut self, timetable: &Timetable, next_at: Timestamp) {
        self.note_clocks(timetable);
        let until = self.at.min(just_before(next_at));
        for zone in timetable.clocks() {
            self.reach(zone.name(), zone.shown_until(until));
        }
    }

    /// Moves the frontier to a slot that has been answered.
    pub(crate) fn pass(&mut self, slot: &Slot) {
        self.at = self.at.max(slot.scheduled_at);
        if slot.is_civil() && !slot.is_second_pass {
            self.reach(slot.zone(), slot.nominal());
        }
    }

    fn reach(&mut self, zone: &str, nominal: DateTime) {
        let reached = self.reached.get(zone).map_or(nominal, |reached| nominal.max(*reached));
        self.reached.set(zone, reached);
    }
}
