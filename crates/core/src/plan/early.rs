//! Early decisions: slots that a person has cancelled before their time.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schedule::Cursor;
use crate::time::civil::DAY;
use crate::time::zone::floor_second;
use crate::time::{Named, SlotKey, Timetable};

/// The most early decisions that a schedule keeps.
pub const EARLY_DECISIONS_MAX: usize = 1_000;

/// The slots of one schedule that are decided although they lie after its cursor, by key. Each has its record already.
///
/// A decision is dropped when the cursor has passed its slot, and not before: one whose slot an edit has removed stays, so that the
/// slot does not come back when the edit is undone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "BTreeSet<SlotKey>", into = "BTreeSet<SlotKey>")]
#[schemars(with = "BTreeSet<SlotKey>")]
#[expect(
    clippy::box_collection,
    reason = "hardly one of a million schedules has any: none is a null pointer, never an empty set"
)]
pub struct EarlyDecisions(Option<Box<BTreeSet<SlotKey>>>);

static NONE: BTreeSet<SlotKey> = BTreeSet::new();

/// A schedule has as many early decisions as it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a schedule can have at most {EARLY_DECISIONS_MAX} slots cancelled ahead of time; pause it or change its times"
)]
pub struct TooManyEarlyDecisions;

impl EarlyDecisions {
    /// Whether no slot is decided.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The slots that are decided.
    pub fn keys(&self) -> &BTreeSet<SlotKey> {
        self.0.as_deref().unwrap_or(&NONE)
    }

    /// Whether a slot is decided.
    pub fn has(&self, key: &SlotKey) -> bool {
        self.keys().contains(key)
    }

    /// Decides a slot ahead of its time; `false` if it was decided already.
    pub fn decide(&mut self, key: SlotKey) -> Result<bool, TooManyEarlyDecisions> {
        if self.has(&key) {
            return Ok(false);
        }
        if EARLY_DECISIONS_MAX <= self.keys().len() {
            return Err(TooManyEarlyDecisions);
        }
        Ok(self.0.get_or_insert_default().insert(key))
    }

    /// Drops the decisions whose slots the cursor has passed.
    pub fn drop_passed(&mut self, timetable: &Timetable, cursor: &Cursor) {
        if let Some(keys) = &mut self.0 {
            keys.retain(|key| !is_passed(key, timetable, cursor));
        }
        self.0.take_if(|keys| keys.is_empty());
    }
}

/// Whether the cursor has passed the slot of a key.
fn is_passed(key: &SlotKey, timetable: &Timetable, cursor: &Cursor) -> bool {
    if let Some(slot) = timetable.slot(key) {
        return !cursor.is_new(&slot);
    }
    // No slot of the version in force. It is over when every clock there is has shown its time.
    let frontier = floor_second(cursor.at);
    match key.named() {
        Some(Named::Instant(second)) => second <= frontier,
        Some(Named::Local { local, .. }) => local + 2 * DAY <= frontier,
        None => true,
    }
}

impl TryFrom<BTreeSet<SlotKey>> for EarlyDecisions {
    type Error = TooManyEarlyDecisions;

    fn try_from(keys: BTreeSet<SlotKey>) -> Result<EarlyDecisions, TooManyEarlyDecisions> {
        if EARLY_DECISIONS_MAX < keys.len() {
            return Err(TooManyEarlyDecisions);
        }
        Ok(EarlyDecisions((!keys.is_empty()).then(|| Box::new(keys))))
    }
}

impl From<EarlyDecisions> for BTreeSet<SlotKey> {
    fn from(decisions: EarlyDecisions) -> BTreeSet<SlotKey> {
        decisions.0.map(|keys| *keys).unwrap_or_default()
    }
}
