//! A slot: one nominal time of a schedule, the unit of idempotency.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::civil::{datetime_of, local_of};
use super::walk::Hit;
use super::zone::{Zone, floor_second, instant};
use crate::run::SkipReason;

/// One nominal time of a schedule.
///
/// A slot that does not run is still a slot: it carries the reason, so that it can be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// When the clock of the zone shows the nominal time; for one that falls into a gap, the end of the gap.
    pub scheduled_at: Timestamp,
    /// When the run becomes due: `scheduled_at` plus jitter.
    pub due_at: Timestamp,
    /// The zone's offset at `scheduled_at`.
    pub offset: Offset,
    /// Whether the nominal time is shown a second time here, after the clock went back.
    pub is_second_pass: bool,
    /// Why the slot has no run, if the rules of time say so.
    pub skipped: Option<SkipReason>,
    /// Whether the nominal time fell into a gap, so that `scheduled_at` is later than the clock's own reading.
    pub is_in_gap: bool,
    local: i64,
    zone: Arc<str>,
    form: KeyForm,
}

/// How a slot is told from the other slots of its schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyForm {
    /// By what the clock shows: it survives an update of the zone data.
    Local,
    /// By the instant.
    Instant,
}

impl Slot {
    /// The slot of a civil pattern.
    pub(crate) fn civil(hit: &Hit, zone: &Zone, skipped: Option<SkipReason>) -> Option<Slot> {
        let scheduled_at = instant(hit.second)?;
        Some(Slot {
            scheduled_at,
            due_at: scheduled_at,
            offset: Offset::from_seconds(hit.offset).ok()?,
            is_second_pass: hit.is_second_pass,
            skipped,
            is_in_gap: hit.gap != 0,
            local: hit.local,
            zone: zone.shared_name(),
            form: KeyForm::Local,
        })
    }

    /// The slot of a trigger that knows instants, not clocks.
    pub(crate) fn at_instant(scheduled_at: Timestamp, zone: &Zone) -> Option<Slot> {
        let second = floor_second(scheduled_at);
        let segment = zone.segment(second);
        let local = second + i64::from(segment.offset);
        Some(Slot {
            scheduled_at,
            due_at: scheduled_at,
            offset: Offset::from_seconds(segment.offset).ok()?,
            is_second_pass: local < segment.repeated_until(),
            skipped: None,
            is_in_gap: false,
            local,
            zone: zone.shared_name(),
            form: KeyForm::Instant,
        })
    }

    /// What the clock shows, or would show if it did not jump over it.
    pub fn nominal(&self) -> DateTime {
        datetime_of(self.local)
    }

    /// The IANA name of the zone whose clock is meant.
    pub fn zone(&self) -> &str {
        &self.zone
    }

    /// 1 in the second pass of a repeated time, else 0.
    pub fn fold(&self) -> u8 {
        self.is_second_pass.into()
    }

    /// The key: unique within the schedule, and the same after an edit, a restart or an update of the zone data.
    pub fn key(&self) -> SlotKey {
        let mut key = String::new();
        self.write_key(&mut key).expect("writing to a string does not fail");
        SlotKey(key)
    }

    pub(crate) fn write_key(&self, to: &mut impl fmt::Write) -> fmt::Result {
        match self.form {
            KeyForm::Local => write!(to, "{}/{}@{}", self.nominal(), self.fold(), self.zone),
            KeyForm::Instant => write!(to, "i:{}", floor_second(self.scheduled_at)),
        }
    }

    /// Whether the slot is known by what a clock shows, so that its nominal time bounds a cursor.
    pub(crate) fn is_civil(&self) -> bool {
        self.form == KeyForm::Local
    }
}

/// The key of a slot, unique per schedule.
///
/// Cron and times of day: `2026-03-08T09:00:00/0@Europe/Paris` (nominal time, fold, zone). Other times: `i:<UTC
/// seconds>`. Runs that no slot stands for have keys of their own: `e:<event id>` and `m:<run id>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SlotKey(String);

impl SlotKey {
    /// The key of the run that an event asks for.
    pub fn event(event_id: &str) -> SlotKey {
        SlotKey(format!("e:{event_id}"))
    }

    /// The key of a run that a person asks for.
    pub fn manual(run_id: crate::RunId) -> SlotKey {
        SlotKey(format!("m:{run_id}"))
    }

    /// The key of the run that another one asks for when it is done.
    pub fn next_of(run_id: crate::RunId) -> SlotKey {
        SlotKey::event(&format!("next:{run_id}"))
    }

    /// The run that asked for this one, if one did.
    pub fn asked_by(&self) -> Option<&str> {
        self.0.strip_prefix("e:next:")
    }

    /// The key as it is stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What a key of a slot names; `None` for events and manual runs, which no slot stands for.
    pub(crate) fn named(&self) -> Option<Named<'_>> {
        if let Some(second) = self.0.strip_prefix("i:") {
            return Some(Named::Instant(second.parse().ok()?));
        }
        let (nominal, rest) = self.0.split_once('/')?;
        let (fold, zone) = rest.split_once('@')?;
        let local = local_of(nominal.parse().ok()?);
        Some(Named::Local { local, is_second_pass: fold == "1", zone })
    }

    /// Whether the key names a slot of a schedule.
    pub fn is_slot(&self) -> bool {
        !self.is_manual() && !self.is_event()
    }

    /// Whether the run was asked for by a person.
    pub fn is_manual(&self) -> bool {
        self.0.starts_with("m:")
    }

    /// Whether the run was asked for by an event.
    pub fn is_event(&self) -> bool {
        self.0.starts_with("e:")
    }
}

/// What the key of a slot names.
pub(crate) enum Named<'k> {
    /// A second of UTC.
    Instant(i64),
    /// What a clock shows.
    Local { local: i64, is_second_pass: bool, zone: &'k str },
}

impl fmt::Display for SlotKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
