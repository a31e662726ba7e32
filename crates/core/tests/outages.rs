//! Outages are intervals of the world: no schedule changes when one is noted, and each has to catch up with those that missed a slot
//! of it, as if it had been marked then.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use punctual_core::journal::{Body, Entry, PlanEntry, World};
use punctual_core::plan::{Kept, Outage};
use punctual_core::run::{Run, Terms};
use punctual_core::schedule::{Schedule, Trigger};
use punctual_core::time::SlotKey;
use punctual_core::{NodeId, RunId, ScheduleId};
use serde_json::{Value, json};
use uuid::Uuid;

const NODE: NodeId = NodeId(Uuid::from_u128(7));

/// An instant, in minutes after midnight.
fn minute(number: i64) -> Timestamp {
    "2026-01-05T00:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_mins(number)
}

fn outage(from: i64, until: i64) -> Outage {
    Outage { from: minute(from), until: minute(until), kept: None }
}

fn id_of(number: u128) -> ScheduleId {
    ScheduleId(Uuid::from_u128(number))
}

fn schedule(number: u128, (name, value): (&str, Value)) -> Schedule {
    let mut schedule = json!({
        "id": id_of(number), "version": 1, "work": {"agent": {"agent": "reporter"}}, "zone": "UTC",
        "trigger": {"cron": [{"expression": "0 * * * *"}]}, "cursor": {"at": "2026-01-05T00:00:00Z"},
    });
    schedule[name] = value;
    serde_json::from_value(schedule).unwrap()
}

/// The kinds of schedules that outages tell apart: a field of each.
fn kind(number: usize) -> (&'static str, Value) {
    let pause = json!({"paused": {"kind": "paused", "at": "2026-01-05T10:00:00Z", "source": "ada"}});
    let on_event = json!({"on_event": {"event": "TicketCreated", "delay": "4h"}});
    [("tags", json!([])), ("state", pause), ("state", json!({"ended": "done"})), ("trigger", on_event)][number].clone()
}

/// A world, and the marks that schedules would have if each outage had marked those that may have missed a slot.
#[derive(Default)]
struct Story {
    world: World,
    marks: BTreeMap<ScheduleId, Outage>,
    minute: i64,
    runs: u128,
}

impl Story {
    fn tell(&mut self, body: Body) {
        self.world.apply(&Entry { seq: self.world.seq + 1, at: minute(self.minute), body }).unwrap();
    }

    fn put(&mut self, number: u128, of: usize) {
        let schedule = Box::new(schedule(number, kind(of)));
        self.tell(Body::ScheduleChanged { schedule, by: None });
    }

    fn plan(&mut self, number: u128, plan_at: Option<i64>, outage: Option<Outage>) {
        let Some(record) = self.world.schedules.get(&id_of(number)) else { return };
        let plan = PlanEntry { plan_at: plan_at.map(minute), outage, ..PlanEntry::unchanged(record) };
        self.tell(Body::Planned(plan));
        self.marks.remove(&id_of(number));
        self.marks.extend(outage.map(|outage| (id_of(number), outage)));
    }

    fn note(&mut self, outage: Outage) {
        for (id, record) in &self.world.schedules {
            let is_on_event = matches!(*record.schedule.trigger, Trigger::OnEvent(_));
            let has_slots = record.schedule.is_active() && !is_on_event;
            let mark = self.marks.get(id).copied();
            if mark.is_some() || record.plan_at.map_or(has_slots, |plan_at| plan_at <= outage.until) {
                self.marks.insert(*id, mark.map_or(outage, |earlier| earlier.and(outage)));
            }
        }
        let before = self.world.schedules.clone();
        self.tell(Body::PlannerTaken { node: NODE, epoch: 1, outage: Some(outage) });
        assert_eq!(self.world.schedules, before, "noting an outage changes no schedule");
    }

    /// A run of a schedule starts: that wakes one that no time is known for.
    fn start(&mut self, number: u128) {
        let Some(record) = self.world.schedules.get(&id_of(number)) else { return };
        self.runs += 1;
        let (id, terms) = (RunId(Uuid::from_u128(self.runs)), Arc::new(Terms::of(&record.schedule)));
        let run = Run::asked(id, Some((id_of(number), 1)), SlotKey::manual(id), minute(self.minute), terms);
        self.tell(Body::RunAsked { run: Box::new(run), by: None });
        self.tell(Body::RunsClaimed { owner: NODE, runs: vec![id] });
        self.tell(Body::RunsStarted { runs: vec![id] });
    }

    fn missed(&self, number: u128) -> Option<Outage> {
        self.world.schedules.get(&id_of(number)).and_then(|record| self.world.outages.of(record))
    }
}

#[test]
fn an_outage_concerns_only_what_may_have_missed_a_slot() {
    for (of, plan_at, has_missed) in [
        (0, Some(780), true),
        (0, Some(840), true),
        (0, Some(841), false),
        // No time is known: a schedule that is full or exhausted may have slots all the same.
        (0, None, true),
        (1, None, false),
        (2, None, false),
        (3, None, false),
    ] {
        let mut story = Story::default();
        story.put(1, of);
        story.plan(1, plan_at, None);
        story.note(outage(720, 840));
        assert_eq!(story.missed(1), has_missed.then_some(outage(720, 840)), "{of} {plan_at:?}");
    }
}

#[test]
fn a_schedule_with_an_outage_takes_the_next_one_as_well() {
    let mut story = Story::default();
    story.put(1, 0);
    let kept = Some(Kept { from: None, until: minute(780) });
    story.plan(1, Some(1_440), Some(Outage { kept, ..outage(720, 780) }));
    story.note(outage(900, 960));
    assert_eq!(story.missed(1), Some(outage(720, 960)));
    story.tell(Body::PlannerTaken { node: NODE, epoch: 1, outage: None });
    assert_eq!(story.missed(1), Some(outage(720, 960)));
}

#[test]
fn what_has_caught_up_with_an_outage_or_came_after_it_is_through_with_it() {
    let mut story = Story::default();
    story.put(1, 0);
    story.note(outage(0, 60));
    assert_eq!(story.missed(1), Some(outage(0, 60)));
    // The clock is set back: its next slot lies before the end of the outage, and was not missed.
    story.plan(1, Some(30), None);
    story.put(2, 0);
    story.plan(2, Some(30), None);
    assert_eq!((story.missed(1), story.missed(2)), (None, None));
    // What is edited, or wakes because a run has started, has missed what it had missed before.
    story.note(outage(90, 120));
    (story.minute, story.runs) = (180, 0);
    story.put(1, 0);
    assert_eq!(story.missed(1), Some(outage(90, 120)));
    story.plan(2, None, None);
    story.note(outage(130, 170));
    story.start(2);
    assert_eq!(story.world.schedules[&id_of(2)].plan_at, Some(minute(180)));
    assert_eq!(story.missed(2), Some(outage(130, 170)));
}

#[test]
fn many_outages_take_little_place() {
    let mut story = Story::default();
    story.put(1, 0);
    story.plan(1, Some(1_000), None);
    story.put(2, 0);
    story.plan(2, Some(20), None);
    for number in 0..500 {
        story.note(outage(2 * number, 2 * number + 1));
    }
    assert_eq!(story.world.outages.after(0).count(), 64);
    assert_eq!((story.missed(1), story.missed(2)), (None, Some(outage(0, 999))));
    story.note(outage(1_000, 1_001));
    assert_eq!(story.missed(1), Some(outage(1_000, 1_001)));
}

#[derive(Debug, Clone)]
enum Step {
    Note(i64, i64),
    Plan(u128, Option<i64>, Option<(i64, bool)>),
    Put(u128, usize),
    Start(u128),
    Delete(u128),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (number, time) = (1_u128..4, 0_i64..300);
    let step = prop_oneof![
        4 => (time.clone(), 0_i64..60).prop_map(|(from, length)| Step::Note(from, from + length)),
        4 => (number.clone(), proptest::option::of(time.clone()), proptest::option::weighted(0.2, (time, any::<bool>())))
            .prop_map(|(number, plan_at, rest)| Step::Plan(number, plan_at, rest)),
        2 => (number.clone(), 0_usize..4).prop_map(|(number, of)| Step::Put(number, of)),
        1 => number.clone().prop_map(Step::Start),
        1 => number.prop_map(Step::Delete),
    ];
    prop::collection::vec(step, 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn schedules_miss_what_marks_would_say(steps in steps()) {
        let mut story = Story::default();
        for step in steps {
            story.minute += 1;
            match step.clone() {
                Step::Note(from, until) => story.note(outage(from, until)),
                Step::Plan(number, plan_at, rest) => {
                    let kept = |until| Kept { from: None, until };
                    let rest = rest.map(|(until, is_chosen)| {
                        Outage { kept: is_chosen.then(|| kept(minute(until))), ..outage(0, until) }
                    });
                    story.plan(number, plan_at, rest);
                }
                Step::Put(number, of) => story.put(number, of),
                Step::Start(number) => story.start(number),
                Step::Delete(number) => {
                    if story.world.schedules.contains_key(&id_of(number)) {
                        story.tell(Body::ScheduleDeleted { schedule: id_of(number), by: None });
                        story.marks.remove(&id_of(number));
                    }
                }
            }
            for number in 1..4 {
                let (missed, mark) = (story.missed(number), story.marks.get(&id_of(number)).copied());
                let end = |it: Option<Outage>| it.map(|it| (it.until, it.kept));
                prop_assert_eq!(end(missed), end(mark), "schedule {} after {:?}", number, step);
                // Outages that were joined begin earlier.
                prop_assert!(missed.map(|it| it.from) <= mark.map(|it| it.from));
            }
        }
    }
}
