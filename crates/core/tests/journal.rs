//! The journal folds to the present: the same entries give the same world, and what cannot have happened changes nothing.

use jiff::Timestamp;
use proptest::prelude::*;
use punctual_core::journal::{Body, Entry, JournalError, PlanEntry, PlannedRun, RunChange, World};
use punctual_core::run::{FailureCode, RunEvent, RunState, SkipReason, WaitFor};
use punctual_core::schedule::{Cursor, Schedule};
use punctual_core::{NodeId, RunId, ScheduleId};
use serde_json::json;
use uuid::Uuid;

const SCHEDULE: ScheduleId = ScheduleId(Uuid::from_u128(1));
const NODE: NodeId = NodeId(Uuid::from_u128(7));

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn run_id(number: u128) -> RunId {
    RunId(Uuid::from_u128(number))
}

fn schedule(version: u64) -> Schedule {
    let schedule = json!({
        "id": SCHEDULE, "version": version, "work": {"agent": {"agent": "reporter"}},
        "trigger": {"cron": [{"expression": "0 * * * *"}]}, "zone": "UTC", "cursor": {"at": "2026-01-05T00:00:00Z"},
    });
    serde_json::from_value(schedule).unwrap()
}

/// A planned run of hour `number`.
fn planned(number: u128) -> PlannedRun {
    let hour = at(&format!("2026-01-05T{number:02}:00:00Z"));
    let key = serde_json::from_value(format!("2026-01-05T{number:02}:00:00/0@UTC").into()).unwrap();
    PlannedRun { id: run_id(number), key, scheduled_at: hour, due_at: hour, expires_at: None, follows: None }
}

fn plan(runs: &[u128]) -> PlanEntry {
    PlanEntry {
        schedule: SCHEDULE,
        version: 1,
        cursor: Cursor::starting(at("2026-01-06T00:15:00Z")),
        plan_at: None,
        zone_data: "2026e".to_owned(),
        outage: None,
        runs: runs.iter().map(|number| planned(*number)).collect(),
        moved: vec![],
        withdrawn: vec![],
    }
}

fn changed(number: u128, epoch: u64, event: RunEvent) -> Body {
    let PlannedRun { id: run, key, scheduled_at, .. } = planned(number);
    let (schedule, agent) = (Some(SCHEDULE), "reporter".to_owned());
    Body::RunChanged(RunChange {
        run,
        epoch,
        schedule,
        key,
        agent,
        project: None,
        scheduled_at,
        event,
        workflow: None,
        by: None,
        pause: None,
    })
}

/// A world in which bodies happen one after another, at noon.
struct Story {
    world: World,
    entries: Vec<Entry>,
}

impl Story {
    fn new() -> Story {
        let mut story = Story { world: World::default(), entries: vec![] };
        story.tell(Body::ScheduleChanged { schedule: Box::new(schedule(1)), by: None });
        story.tell(Body::Planned(plan(&[1, 2, 3])));
        story
    }

    fn attempt(&mut self, body: Body) -> Result<(), JournalError> {
        let entry = Entry { seq: self.world.seq + 1, at: at("2026-01-05T12:00:00Z"), body };
        self.world.apply(&entry)?;
        self.entries.push(entry);
        Ok(())
    }

    fn tell(&mut self, body: Body) {
        self.attempt(body).unwrap();
    }

    fn claim(&mut self, number: u128) {
        self.tell(Body::RunsClaimed { owner: NODE, runs: vec![run_id(number)] });
    }

    fn start(&mut self, number: u128) {
        self.tell(Body::RunsStarted { runs: vec![run_id(number)] });
    }

    fn state(&self, number: u128) -> RunState {
        self.world.runs[&run_id(number)].state
    }
}

fn failed() -> RunEvent {
    let at = at("2026-01-05T12:00:00Z");
    RunEvent::Failed { at, code: FailureCode::Error, is_retryable: true, retry_after: None }
}

#[test]
fn a_schedule_and_its_runs_are_rebuilt_from_what_happened() {
    let mut story = Story::new();
    assert_eq!(story.world.schedules[&SCHEDULE].schedule.cursor.at, at("2026-01-06T00:15:00Z"));
    story.claim(1);
    story.start(1);
    story.tell(changed(1, 1, failed()));
    let RunState::Planned { due_at, tally, .. } = story.state(1) else { panic!() };
    assert_eq!((due_at, tally.attempt), (at("2026-01-05T12:01:00Z"), 1));
    story.tell(changed(2, 0, RunEvent::Cancelled));
    story.tell(Body::Planned(PlanEntry { withdrawn: vec![run_id(3)], ..plan(&[4]) }));
    assert_eq!(story.world.runs.keys().copied().collect::<Vec<_>>(), [1, 2, 4].map(run_id));
    assert_eq!(story.state(2).name(), "cancelled");
    // A retry is the same run: it has counted for its schedule once.
    assert_eq!(story.world.schedules[&SCHEDULE].schedule.runs_started, 1);
    story.tell(Body::ScheduleDeleted { schedule: SCHEDULE, by: None });
    assert!(story.world.schedules.is_empty());
}

#[test]
fn a_withdrawn_slot_may_come_back_in_the_same_breath() {
    let mut story = Story::new();
    let again = PlannedRun { id: run_id(30), ..planned(3) };
    story.tell(Body::Planned(PlanEntry { withdrawn: vec![run_id(3)], runs: vec![again], ..plan(&[]) }));
    assert!(story.world.runs.contains_key(&run_id(30)));
}

#[test]
fn a_run_moves_with_the_zone_data() {
    let mut story = Story::new();
    let moved = at("2026-01-05T04:00:00Z");
    let moved = vec![PlannedRun { scheduled_at: moved, due_at: moved, ..planned(3) }];
    story.tell(Body::Planned(PlanEntry { moved, ..plan(&[]) }));
    assert_eq!(story.state(3), RunState::planned(at("2026-01-05T04:00:00Z"), 0));
}

#[test]
fn what_cannot_have_happened_is_refused_and_changes_nothing() {
    let mut story = Story::new();
    story.claim(1);
    story.start(1);
    let other = ScheduleId(Uuid::from_u128(99));
    let duplicate = PlannedRun { id: run_id(40), ..planned(2) };
    let twice = vec![planned(5), PlannedRun { id: run_id(50), ..planned(5) }];
    for (body, message) in [
        (
            Body::ScheduleDeleted { schedule: other, by: None },
            "schedule 00000000-0000-0000-0000-000000000063 does not exist",
        ),
        (Body::Planned(PlanEntry { version: 2, ..plan(&[4]) }), "has version 1, not 2"),
        (Body::Planned(plan(&[4, 2])), "run 00000000-0000-0000-0000-000000000002 exists already"),
        (
            Body::Planned(PlanEntry { runs: vec![planned(4), duplicate], ..plan(&[]) }),
            "slot 2026-01-05T02:00:00/0@UTC of schedule",
        ),
        (Body::Planned(PlanEntry { runs: twice, ..plan(&[]) }), "slot 2026-01-05T05:00:00/0@UTC of schedule"),
        (Body::Planned(PlanEntry { withdrawn: vec![run_id(2), run_id(1)], ..plan(&[]) }), "is not planned any more"),
        (
            Body::RunsClaimed { owner: NODE, runs: vec![run_id(2), run_id(9)] },
            "run 00000000-0000-0000-0000-000000000009 does not exist",
        ),
        (
            Body::RunsClaimed { owner: NODE, runs: vec![run_id(2), run_id(1)] },
            "a run that is running cannot be claimed",
        ),
        (Body::RunsStarted { runs: vec![run_id(2)] }, "a run that is planned cannot be started"),
        // What is true of each is not true of the second, and the fold must not stumble over it.
        (Body::RunsClaimed { owner: NODE, runs: vec![run_id(2), run_id(2)] }, "stands in it twice"),
        (Body::RunsStarted { runs: vec![run_id(1), run_id(1)] }, "stands in it twice"),
        (
            Body::Planned(PlanEntry { withdrawn: vec![run_id(2)], moved: vec![planned(2)], ..plan(&[]) }),
            "stands in it twice",
        ),
        (changed(1, 0, RunEvent::Succeeded), "has epoch 1, not 0"),
        (changed(2, 0, RunEvent::Succeeded), "a run that is planned cannot be succeeded"),
    ] {
        let before = story.world.clone();
        let error = story.attempt(body.clone()).unwrap_err().to_string();
        assert!(error.contains(message), "{body:?}: {error}");
        assert_eq!(story.world, before, "{body:?}");
    }
    let gap = Entry { seq: story.world.seq + 2, ..story.entries[0].clone() };
    assert_eq!(story.world.apply(&gap), Err(JournalError::OutOfOrder { after: 4, found: 6 }));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is tried, the entries that were taken in give the same world again, also through JSON, and the counters of a
    /// run keep their promises.
    #[test]
    fn the_fold_is_the_world(tries in prop::collection::vec((0_u8..12, 1_u128..=3, 0_u64..4), 1..60)) {
        let mut story = Story::new();
        for (kind, number, epoch) in tries {
            let before = story.world.clone();
            let noon = at("2026-01-05T12:00:00Z");
            let body = match kind {
                0 | 1 => Body::RunsClaimed { owner: NODE, runs: vec![run_id(number)] },
                2 | 3 => Body::RunsStarted { runs: vec![run_id(number)] },
                4 => changed(number, epoch, RunEvent::Succeeded),
                5 => changed(number, epoch, failed()),
                6 => changed(number, epoch, RunEvent::OwnerLost { at: noon }),
                7 => changed(number, epoch, RunEvent::HandedBack { due_at: at("2026-01-05T11:00:00Z"), parks: false }),
                8 => changed(number, epoch, RunEvent::Waits { on: WaitFor::Callback, wait_until: noon }),
                9 => changed(number, epoch, RunEvent::Resumed { at: noon }),
                10 => changed(number, epoch, RunEvent::Skipped(SkipReason::Late)),
                _ => Body::Planned(PlanEntry { withdrawn: vec![run_id(number)], ..plan(&[]) }),
            };
            if story.attempt(body).is_err() {
                prop_assert_eq!(&story.world, &before);
            }
            for (id, run) in &story.world.runs {
                let tally = run.state.tally();
                prop_assert!(tally.attempt <= run.terms.retry.max_attempts.get());
                if let Some(run_before) = before.runs.get(id) {
                    prop_assert!(run_before.state.tally().epoch <= tally.epoch);
                    prop_assert!(!run_before.state.is_final() || run_before == run);
                }
            }
        }
        let mut again = World::default();
        for entry in &story.entries {
            let json = serde_json::to_string(entry).unwrap();
            again.apply(&serde_json::from_str(&json).unwrap()).unwrap();
        }
        prop_assert_eq!(again, story.world);
    }
}
