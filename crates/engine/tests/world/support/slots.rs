//! Every slot has exactly one answer: the journal of a schedule against what its versions say.
//!
//! The timetable of each version is enumerated for the time in which that version was in force, and compared with the runs
//! and skips that the journal has. A checker of its own: it shares the timetable with the engine, and nothing else.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use punctual_core::journal::{Body, Entry};
use punctual_core::schedule::{Schedule, ScheduleState, Trigger};
use punctual_core::time::{SlotKey, Timetable};
use punctual_core::{RunId, ScheduleId};
use punctual_engine::settings::Settings;

/// What stands for a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Answer {
    Run(RunId),
    Skip(&'static str),
    /// Its run was withdrawn when its time had come already: an edit wants it no more.
    Superseded,
}

struct Checker<'a> {
    id: ScheduleId,
    settings: &'a Settings,
    /// The version in force, and since when its slots count.
    force: Option<(Schedule, Timestamp)>,
    timetables: BTreeMap<u64, Timetable>,
    expected: BTreeMap<SlotKey, Timestamp>,
    /// Slots of a pause that is not over: they are answered at its end.
    paused: BTreeMap<SlotKey, Timestamp>,
    answers: BTreeMap<SlotKey, Vec<Answer>>,
    runs: BTreeMap<RunId, (SlotKey, Timestamp)>,
}

/// Checks one schedule up to an instant, and says how many slots it had.
pub(super) fn check(entries: &[Entry], id: ScheduleId, settings: &Settings, until: Timestamp) -> usize {
    let mut checker = Checker {
        id,
        settings,
        force: None,
        timetables: BTreeMap::new(),
        expected: BTreeMap::new(),
        paused: BTreeMap::new(),
        answers: BTreeMap::new(),
        runs: BTreeMap::new(),
    };
    for entry in entries.iter().filter(|entry| entry.body.schedule() == Some(id)) {
        checker.take(entry);
    }
    checker.close(until);
    checker.compare(until)
}

impl Checker<'_> {
    fn take(&mut self, entry: &Entry) {
        match &entry.body {
            Body::ScheduleChanged { schedule, .. } => {
                self.close(entry.at);
                let timetable = schedule.timetable(&self.settings.zones, &self.settings.calendars).unwrap();
                self.timetables.insert(schedule.version, timetable);
                let is_once = matches!(*schedule.trigger, Trigger::At(_) | Trigger::After(_) | Trigger::Immediate(_));
                let from = if is_once { entry.at - SignedDuration::from_nanos(1) } else { entry.at };
                if !matches!(schedule.state, ScheduleState::Paused(_)) {
                    self.expected.append(&mut self.paused);
                }
                self.force = Some(((**schedule).clone(), from));
            }
            Body::ScheduleDeleted { .. } => {
                self.close(entry.at);
                self.expected.append(&mut self.paused);
                self.force = None;
            }
            Body::Planned(plan) => {
                for id in &plan.withdrawn {
                    let Some((key, scheduled_at)) = self.runs.remove(id) else { continue };
                    let answers = self.answers.get_mut(&key).unwrap();
                    answers.retain(|answer| *answer != Answer::Run(*id));
                    let is_put_off = self.force.as_ref().is_some_and(|(schedule, _)| {
                        let is_paused = matches!(schedule.state, ScheduleState::Paused(_));
                        is_paused && schedule.policy.catch_up.covers_pauses
                    });
                    if is_put_off {
                        self.paused.extend(self.expected.remove_entry(&key));
                    } else if scheduled_at <= entry.at {
                        answers.push(Answer::Superseded);
                    }
                }
                for run in &plan.runs {
                    self.answers.entry(run.key.clone()).or_default().push(Answer::Run(run.id));
                    self.runs.insert(run.id, (run.key.clone(), run.scheduled_at));
                }
            }
            Body::Skipped(skip) => {
                let timetable = &self.timetables[&skip.version];
                let slots = timetable.slots(skip.first_at - SignedDuration::from_nanos(1));
                let mut keys = slots.map(|slot| slot.key()).skip_while(|key| *key != skip.first);
                for left in (0..skip.count).rev() {
                    let key = keys.next().expect("a skipped slot is one of its version's");
                    assert!(
                        left != 0 || key == skip.last,
                        "the range {} to {} has another count",
                        skip.first,
                        skip.last
                    );
                    self.answers.entry(key).or_default().push(Answer::Skip(skip.reason.as_str()));
                }
            }
            _ => {}
        }
    }

    /// What the version in force has asked for up to an instant is to be answered.
    fn close(&mut self, until: Timestamp) {
        let Some((schedule, from)) = &mut self.force else { return };
        let from = std::mem::replace(from, until);
        let slots = self.timetables[&schedule.version].slots(from);
        let slots = slots.take_while(|slot| slot.scheduled_at <= until).map(|slot| (slot.key(), slot.scheduled_at));
        match schedule.state {
            ScheduleState::Active => self.expected.extend(slots),
            ScheduleState::Paused(_) => self.paused.extend(slots),
            ScheduleState::Ended(_) => {}
        }
    }

    fn compare(&self, until: Timestamp) -> usize {
        for (key, scheduled_at) in &self.expected {
            let answers = self.answers.get(key).map_or(&[][..], Vec::as_slice);
            assert!(answers.len() == 1, "slot {key} of {} ({scheduled_at}) has these answers: {answers:?}", self.id);
        }
        for (key, answers) in &self.answers {
            let is_ahead = |answer: &Answer| match answer {
                Answer::Run(id) => until < self.runs[id].1,
                _ => false,
            };
            let is_known = self.expected.contains_key(key) || answers.iter().all(is_ahead);
            assert!(is_known, "nobody asked for slot {key} of {}, which has these answers: {answers:?}", self.id);
        }
        self.expected.len()
    }
}
