//! From the file to the store: which schedules are to be created, edited, deleted.
//!
//! In: the schedules of the file, those of the store, `now`. Out: [`Changes`]. Pure: whoever holds the planner lease
//! carries them out.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use punctual_core::ScheduleId;
use punctual_core::schedule::{
    After, EndReason, Immediate, Origin, Pause, PauseKind, Schedule, ScheduleState, Trigger,
};
use punctual_core::time::Every;

use super::schedule::FileSchedule;
use super::trigger::FileTrigger;

/// Who pauses what the file switches off.
const PAUSE_SOURCE: &str = "config";

/// What brings the store in line with the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Changes {
    /// Schedules that the store does not have, in the order of the file.
    pub(crate) create: Vec<Schedule>,
    /// Schedules that the store has otherwise, as they are to be: version and cursor are already those of the edit. One
    /// that was paused has slots to be answered under the version before, up to now.
    pub(crate) edit: Vec<Schedule>,
    /// Schedules that came from the file and are not in it any more.
    pub(crate) delete: Vec<ScheduleId>,
    /// Schedules of the file whose name somebody else's schedule has. They are left out.
    pub(crate) taken: Vec<NameTaken>,
}

/// A name of the file that a schedule made elsewhere has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NameTaken {
    /// The name.
    pub(crate) name: String,
    /// Its project.
    pub(crate) project: Option<String>,
    /// The schedule that has it.
    pub(crate) by: ScheduleId,
}

/// Compares the file with the store. `stored` may be everything there is: what came from elsewhere is not touched.
pub(crate) fn changes(
    file: &[FileSchedule],
    stored: &[Schedule],
    now: Timestamp,
    mut new_id: impl FnMut() -> ScheduleId,
) -> Changes {
    let named =
        stored.iter().filter_map(|schedule| Some(((schedule.project.as_deref(), schedule.name.as_deref()?), schedule)));
    let (own, others): (BTreeMap<_, &Schedule>, BTreeMap<_, &Schedule>) =
        named.partition(|(_, schedule)| is_of_file(schedule));
    let mut changes = Changes::default();
    let mut kept = BTreeSet::new();
    for wanted in file {
        let name = (wanted.project.as_deref(), wanted.name.as_str());
        match (own.get(&name), others.get(&name)) {
            (Some(existing), _) => {
                kept.insert(existing.id);
                changes.edit.extend(wanted.edit_of(existing, now));
            }
            (None, None) => changes.create.push(wanted.to_schedule(new_id(), now, None)),
            (None, Some(other)) => changes.taken.push(NameTaken {
                name: wanted.name.clone(),
                project: wanted.project.clone(),
                by: other.id,
            }),
        }
    }
    let gone = stored.iter().filter(|schedule| is_of_file(schedule) && !kept.contains(&schedule.id));
    changes.delete = gone.map(|schedule| schedule.id).collect();
    changes
}

fn is_of_file(schedule: &Schedule) -> bool {
    schedule.origin == Some(Origin::File)
}

impl FileSchedule {
    /// The schedule that the file asks for: a new one, or an edit of the one that exists.
    ///
    /// What counts from somewhere goes on counting from there: an interval as long as it and its zone stay the same, a
    /// delay and an immediate run always, the latter unless it is enabled again. A pause that the file did not make is
    /// kept.
    pub(crate) fn to_schedule(&self, id: ScheduleId, now: Timestamp, existing: Option<&Schedule>) -> Schedule {
        let trigger = self.trigger_from(now, existing);
        Schedule {
            id,
            version: existing.map_or(1, |existing| existing.version + 1),
            name: Some(self.name.clone()),
            project: self.project.clone().into(),
            origin: Some(Origin::File),
            calendar: self.calendar.clone().into(),
            bounds: self.bounds.into(),
            jitter: self.jitter,
            policy: self.policy.clone().into(),
            state: self.state_from(&trigger, now, existing),
            cursor: Schedule::cursor_from(&trigger, now),
            runs_started: existing.map_or(0, |existing| existing.runs_started),
            read_until: existing.and_then(|existing| existing.read_until),
            created_at: existing.map_or(now, |existing| existing.created_at),
            updated_at: existing.map_or(now, |existing| existing.updated_at),
            ..Schedule::draft(self.work.clone(), trigger, self.zone.name(), now)
        }
    }

    /// The edit that brings `existing` in line with the file; `None` if it is.
    pub(crate) fn edit_of(&self, existing: &Schedule, now: Timestamp) -> Option<Schedule> {
        let edited = self.to_schedule(existing.id, now, Some(existing));
        let as_it_stands = Schedule { version: existing.version, cursor: existing.cursor.clone(), ..edited.clone() };
        (as_it_stands != *existing).then_some(edited)
    }

    fn trigger_from(&self, now: Timestamp, existing: Option<&Schedule>) -> Trigger {
        let before = existing.map(|existing| &*existing.trigger);
        match (&self.trigger, before) {
            (FileTrigger::Fixed(trigger), _) => trigger.clone(),
            (FileTrigger::Every(interval), Some(Trigger::Every(every)))
                if every.interval() == *interval && existing.is_some_and(|it| *it.zone == self.zone.name()) =>
            {
                Trigger::Every(*every)
            }
            (FileTrigger::Every(interval), _) => {
                let every = Every::anchored(*interval, &self.zone, now);
                Trigger::Every(every.expect("the interval was checked when it was read"))
            }
            (FileTrigger::After(delay), Some(Trigger::After(after))) => {
                Trigger::After(After { delay: *delay, from: after.from })
            }
            (FileTrigger::After(delay), _) => Trigger::After(After { delay: *delay, from: now }),
            (FileTrigger::Immediate, Some(Trigger::Immediate(immediate))) if !self.is_enabled_again(existing) => {
                Trigger::Immediate(*immediate)
            }
            (FileTrigger::Immediate, _) => Trigger::Immediate(Immediate { at: now }),
        }
    }

    fn state_from(&self, trigger: &Trigger, now: Timestamp, existing: Option<&Schedule>) -> ScheduleState {
        let disabled = || {
            let source = PAUSE_SOURCE.to_owned();
            ScheduleState::Paused(Box::new(Pause {
                kind: PauseKind::Disabled,
                at: now,
                source,
                reason: None,
                until: None,
            }))
        };
        let Some(existing) = existing else {
            return if self.enabled { ScheduleState::Active } else { disabled() };
        };
        match &existing.state {
            ScheduleState::Active if !self.enabled => disabled(),
            ScheduleState::Paused(_) if self.is_enabled_again(Some(existing)) => ScheduleState::Active,
            // New times for what had merely run out of them.
            ScheduleState::Ended(EndReason::Done | EndReason::MaxRuns | EndReason::NoFutureMatch)
                if existing.trigger != *trigger || existing.bounds != self.bounds =>
            {
                if self.enabled {
                    ScheduleState::Active
                } else {
                    disabled()
                }
            }
            // An immediate run comes again whenever it is enabled, so it can be switched off when it is over.
            ScheduleState::Ended(EndReason::Done) if !self.enabled && self.trigger == FileTrigger::Immediate => {
                disabled()
            }
            state => state.clone(),
        }
    }

    /// Whether the file had switched the schedule off and now switches it on.
    fn is_enabled_again(&self, existing: Option<&Schedule>) -> bool {
        let is_off = existing.is_some_and(|existing| match &existing.state {
            ScheduleState::Paused(pause) => pause.kind == PauseKind::Disabled && pause.source == PAUSE_SOURCE,
            ScheduleState::Active | ScheduleState::Ended(_) => false,
        });
        self.enabled && is_off
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use punctual_core::time::Zones;

    use super::super::Config;
    use super::*;

    const FIRST_SEEN: &str = "2026-11-16T10:13:20Z";
    const LATER: &str = "2026-11-18T12:00:00Z";

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn id(number: u128) -> ScheduleId {
        ScheduleId(uuid::Uuid::from_u128(number))
    }

    /// The schedule of a file with these lines in it.
    fn file(lines: &str) -> FileSchedule {
        let agent = "[agents.a]\nrunner = \"process\"\ncommand = [\"true\"]\n";
        let text = format!("{agent}[[schedules]]\nname = \"x\"\nagent = \"a\"\n{lines}");
        let config = Config::parse(&text, "punctual.toml", Path::new("/"), &Zones::bundled(), []);
        config.unwrap_or_else(|error| panic!("{error}")).schedules.remove(0)
    }

    fn stored(lines: &str) -> Schedule {
        file(lines).to_schedule(id(1), at(FIRST_SEEN), None)
    }

    fn edited(before: &str, after: &str) -> Option<Schedule> {
        file(after).edit_of(&stored(before), at(LATER))
    }

    fn disabled(since: &str) -> ScheduleState {
        let (kind, source) = (PauseKind::Disabled, "config".to_owned());
        ScheduleState::Paused(Box::new(Pause { kind, at: at(since), source, reason: None, until: None }))
    }

    #[test]
    fn a_new_schedule_counts_from_when_it_is_first_seen() {
        let schedule = stored("every = \"7h\"\nmax_runs = 3");
        assert_eq!((schedule.id, schedule.version, schedule.origin), (id(1), 1, Some(Origin::File)));
        assert_eq!((schedule.name.as_deref(), schedule.runs_started), (Some("x"), 0));
        assert_eq!(schedule.cursor.at, at(FIRST_SEEN));
        let Trigger::Every(every) = *schedule.trigger else { panic!("{schedule:?}") };
        assert_eq!(every.anchor(), at(FIRST_SEEN));
        assert_eq!(stored("immediate = true").trigger, Trigger::Immediate(Immediate { at: at(FIRST_SEEN) }));
        assert_eq!(stored("every = \"1m\"\nenabled = false").state, disabled(FIRST_SEEN));
    }

    #[test]
    fn what_has_not_changed_needs_no_edit_however_much_later() {
        for lines in [
            "cron = \"0 9 * * *\"",
            "times = [\"09:00\"]\ntimezone = \"Europe/Paris\"",
            "every = \"30m\"",
            "every = \"7h\"\nenabled = false",
            "at = 2026-11-17T00:00:00",
            "after = \"1h\"",
            "immediate = true",
        ] {
            assert_eq!(edited(lines, lines), None, "{lines}");
            let mut grown = stored(lines);
            (grown.version, grown.runs_started, grown.cursor.at) = (9, 5, at(LATER));
            assert_eq!(file(lines).edit_of(&grown, at(LATER)), None, "{lines}");
        }
    }

    #[test]
    fn an_edit_keeps_what_the_schedule_counts_from() {
        let edit = edited("every = \"7h\"", "every = \"7h\"\nprompt = \"Hello\"").unwrap();
        assert_eq!((edit.id, edit.version, edit.cursor.at), (id(1), 2, at(LATER)));
        assert_eq!(edit.trigger, stored("every = \"7h\"").trigger);
        let edit = edited("after = \"3d\"", "after = \"4d\"").unwrap();
        assert_eq!(
            edit.trigger,
            Trigger::After(After { delay: "4d".to_owned().try_into().unwrap(), from: at(FIRST_SEEN) })
        );
        let edit = edited("immediate = true", "immediate = true\npriority = 9").unwrap();
        assert_eq!(edit.trigger, stored("immediate = true").trigger);
    }

    #[test]
    fn another_interval_or_zone_counts_from_the_edit() {
        for (before, after, anchor) in [
            ("every = \"7h\"", "every = \"5h\"", LATER),
            ("every = \"1h\"", "every = \"1h\"\ntimezone = \"Asia/Kolkata\"", "2026-11-17T18:30:00Z"),
            ("cron = \"@daily\"", "every = \"7h\"", LATER),
        ] {
            let Trigger::Every(every) = *edited(before, after).unwrap().trigger else { panic!("{after}") };
            assert_eq!(every.anchor(), at(anchor), "{after}");
        }
    }

    #[test]
    fn enabled_switches_off_and_on_and_leaves_other_pauses_alone() {
        let (on, off) = ("immediate = true", "immediate = true\nenabled = false");
        assert_eq!(edited(on, off).unwrap().state, disabled(LATER));
        let again = edited(off, on).unwrap();
        assert_eq!(again.state, ScheduleState::Active);
        assert_eq!(again.trigger, Trigger::Immediate(Immediate { at: at(LATER) }));

        let (kind, source) = (PauseKind::Disabled, "ada".to_owned());
        let by_ada =
            ScheduleState::Paused(Box::new(Pause { kind, at: at(FIRST_SEEN), source, reason: None, until: None }));
        let paused = Schedule { state: by_ada.clone(), ..stored(on) };
        assert_eq!(file(on).edit_of(&paused, at(LATER)), None);
        assert_eq!(file(off).edit_of(&paused, at(LATER)), None);
        let edit = file("immediate = true\npriority = 9").edit_of(&paused, at(LATER)).unwrap();
        assert_eq!((edit.state, edit.trigger), (by_ada, paused.trigger));
    }

    #[test]
    fn what_had_run_out_of_times_goes_on_when_it_gets_new_ones() {
        let before = "at = 2026-11-17T00:00:00Z";
        for (reason, after, expected) in [
            (EndReason::Done, "at = 2026-12-17T00:00:00Z", ScheduleState::Active),
            (EndReason::Done, "at = 2026-12-17T00:00:00Z\nenabled = false", disabled(LATER)),
            (EndReason::MaxRuns, "at = 2026-11-17T00:00:00Z\nmax_runs = 7", ScheduleState::Active),
            (EndReason::Done, "at = 2026-11-17T00:00:00Z\npriority = 9", ScheduleState::Ended(EndReason::Done)),
            (EndReason::Cancelled, "at = 2026-12-17T00:00:00Z", ScheduleState::Ended(EndReason::Cancelled)),
        ] {
            let ended = Schedule { state: ScheduleState::Ended(reason), ..stored(before) };
            assert_eq!(file(after).edit_of(&ended, at(LATER)).unwrap().state, expected, "{after}");
            assert_eq!(file(before).edit_of(&ended, at(LATER)), None);
        }
        let over = Schedule { state: ScheduleState::Ended(EndReason::Done), ..stored("immediate = true") };
        let off = file("immediate = true\nenabled = false").edit_of(&over, at(LATER)).unwrap();
        assert_eq!(off.state, disabled(LATER));
        assert!(file("immediate = true").edit_of(&off, at(LATER)).unwrap().is_active());
    }

    #[test]
    fn the_store_follows_the_file_and_what_others_made_is_theirs() {
        let wanted = |name: &str, project: Option<&str>, lines: &str| FileSchedule {
            name: name.to_owned(),
            project: project.map(str::to_owned),
            ..file(lines)
        };
        let now = at(FIRST_SEEN);
        let minutely = "every = \"1m\"";
        let stored = [
            wanted("same", None, minutely).to_schedule(id(1), now, None),
            wanted("other", None, minutely).to_schedule(id(2), now, None),
            wanted("gone", None, minutely).to_schedule(id(3), now, None),
            Schedule { origin: None, ..wanted("theirs", None, minutely).to_schedule(id(4), now, None) },
            Schedule { origin: None, name: None, ..wanted("x", None, minutely).to_schedule(id(5), now, None) },
            wanted("same", Some("atlas"), minutely).to_schedule(id(6), now, None),
        ];
        let file = [
            wanted("same", None, minutely),
            wanted("other", None, "every = \"2m\""),
            wanted("theirs", None, minutely),
            wanted("gone", Some("atlas"), minutely),
            wanted("same", Some("atlas"), minutely),
        ];
        let changes = changes(&file, &stored, now, || id(9));
        assert_eq!(changes.create, [file[3].to_schedule(id(9), now, None)]);
        assert_eq!(changes.edit, [file[1].to_schedule(id(2), now, Some(&stored[1]))]);
        assert_eq!(changes.delete, [id(3)]);
        assert_eq!(changes.taken, [NameTaken { name: "theirs".to_owned(), project: None, by: id(4) }]);
    }
}
