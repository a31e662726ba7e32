//! The journal folds to the present: the same entries give the same world, and what cannot have happened changes nothing.

use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::*;
use punctual_core::journal::{
    Attempt, Body, EndedRun, Entry, JournalError, Parts, PlanEntry, PlannedRun, RunChange, ScheduleRecord, SkipEntry,
    Verdict, World,
};
use punctual_core::plan::EarlyDecisions;
use punctual_core::run::{FailureCode, Outcome, Report, Run, RunEvent, RunState, SkipReason, Terms, WaitFor};
use punctual_core::schedule::{Cursor, Schedule};
use punctual_core::{Actor, By, NodeId, RunId, ScheduleId};
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
        cursor: Cursor::starting(at("2026-01-05T12:00:00Z")),
        plan_at: None,
        zone_data: "2026e".to_owned(),
        runs: runs.iter().map(|number| planned(*number)).collect(),
        ..PlanEntry::unchanged(&ScheduleRecord::new(schedule(1), at("2026-01-05T00:00:00Z")))
    }
}

/// A world in which bodies happen one after another, at noon unless it is later.
struct Story {
    world: World,
    /// What a process has that follows the changes alone.
    follower: World,
    entries: Vec<Entry>,
    now: Timestamp,
}

impl Story {
    fn empty() -> Story {
        Story { world: World::default(), follower: World::default(), entries: vec![], now: at("2026-01-05T12:00:00Z") }
    }

    fn new() -> Story {
        let mut story = Story::empty();
        story.tell(Body::ScheduleChanged { schedule: Box::new(schedule(1)), by: None });
        story.tell(Body::Planned(plan(&[1, 2, 3])));
        story
    }

    fn attempt(&mut self, body: Body) -> Result<(), JournalError> {
        let entry = Entry { seq: self.world.seq + 1, at: self.now, body };
        self.world.apply(&entry)?;
        self.follow(&entry);
        self.entries.push(entry);
        Ok(())
    }

    /// The parts of an entry are the entry again, and its change does what it does.
    fn follow(&mut self, entry: &Entry) {
        let parts = Parts::of(&entry.body);
        assert_eq!(parts.as_ref().body().unwrap(), entry.body);
        let body = Parts::bare_body(&parts.change).unwrap();
        assert_eq!(
            (body.kind(), body.schedule(), body.run()),
            (entry.body.kind(), entry.body.schedule(), entry.body.run())
        );
        assert_eq!(body.subject(), entry.body.subject());
        self.follower.apply(&Entry { body, ..entry.clone() }).unwrap();
        assert_eq!(self.follower, self.world);
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

    fn run(&self, number: u128) -> &Run {
        &self.world.runs[&run_id(number)]
    }

    fn state(&self, number: u128) -> RunState {
        self.run(number).state
    }

    /// Something happens to a run, under its epoch.
    fn changed(&self, number: u128, event: RunEvent) -> Body {
        let as_planned = || {
            let terms = Arc::new(Terms::of(&schedule(1)));
            Arc::new(Run::of_slot(&schedule(1), &terms, &planned(number), 0))
        };
        let run = self.world.runs.get(&run_id(number)).cloned().unwrap_or_else(as_planned);
        Body::RunChanged(RunChange::of(&run, event, self.now))
    }

    fn change(&mut self, number: u128, event: RunEvent) {
        self.tell(self.changed(number, event));
    }

    /// The attempt that a run is at comes to its end.
    fn end(&mut self, number: u128, event: RunEvent) {
        self.tell(Body::AttemptEnded(Box::new(Attempt::of(self.run(number), event, Report::default(), self.now))));
    }

    /// The run that the last entry has ended.
    fn ended(&self) -> EndedRun {
        EndedRun::of(self.entries.last().unwrap()).unwrap()
    }
}

/// The same, with another epoch.
fn under(epoch: u64, body: Body) -> Body {
    let Body::RunChanged(change) = body else { return body };
    Body::RunChanged(RunChange { epoch, ..change })
}

fn failed() -> RunEvent {
    let at = at("2026-01-05T12:00:00Z");
    RunEvent::Failed { at, code: FailureCode::Error, is_retryable: true, retry_after: None }
}

#[test]
fn a_schedule_and_its_runs_are_rebuilt_from_what_happened() {
    let mut story = Story::new();
    assert_eq!(story.world.schedules[&SCHEDULE].schedule.cursor.at, at("2026-01-05T12:00:00Z"));
    story.claim(1);
    story.start(1);
    story.change(1, failed());
    let RunState::Planned { due_at, tally, .. } = story.state(1) else { panic!() };
    assert_eq!((due_at, tally.attempt), (at("2026-01-05T12:01:00Z"), 1));
    story.change(2, RunEvent::Cancelled);
    assert_eq!(story.ended().state().name(), "cancelled");
    story.tell(Body::Planned(PlanEntry { withdrawn: vec![run_id(3)], ..plan(&[4]) }));
    assert_eq!(story.world.runs.keys().copied().collect::<Vec<_>>(), [1, 4].map(run_id));
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
fn an_entry_that_changes_nothing_leaves_the_schedule_as_it_is() {
    let mut story = Story::new();
    let before = story.world.schedules[&SCHEDULE].clone();
    story.tell(Body::Planned(PlanEntry::unchanged(&before)));
    assert_eq!(story.world.schedules[&SCHEDULE], before);
}

#[test]
fn early_decisions_follow_the_plan_and_outlive_an_edit() {
    let mut story = Story::new();
    let early = |story: &Story| story.world.schedules[&SCHEDULE].schedule.early.clone();
    let mut decided = EarlyDecisions::default();
    decided.decide(planned(15).key).unwrap();
    story.tell(Body::Planned(PlanEntry { early: decided.clone(), ..plan(&[]) }));
    assert_eq!(early(&story), decided);
    // An edit that knows nothing of them.
    story.tell(Body::ScheduleChanged { schedule: Box::new(schedule(2)), by: None });
    assert_eq!(early(&story), decided);
    story.tell(Body::Planned(PlanEntry { version: 2, ..plan(&[]) }));
    assert!(early(&story).is_empty(), "the cursor has passed them");
}

#[test]
fn what_the_stream_tells_of_the_next_slot_is_kept_in_the_entry_and_changes_no_run() {
    let mut story = Story::new();
    let before = story.world.clone();
    let entry = PlanEntry { next: Some(planned(4)), next_gone: Some(run_id(5)), was_next: true, ..plan(&[]) };
    let text = serde_json::to_string(&Body::Planned(entry.clone())).unwrap();
    assert_eq!(serde_json::from_str::<Body>(&text).unwrap(), Body::Planned(entry.clone()));
    story.tell(Body::Planned(entry));
    assert_eq!((&story.world.runs, &story.world.schedules), (&before.runs, &before.schedules));
    // What is not there takes no space.
    let text = serde_json::to_string(&Body::Planned(plan(&[]))).unwrap();
    assert!(!["early", "next", "was_next"].iter().any(|field| text.contains(field)), "{text}");
}

#[test]
fn the_first_start_of_a_run_wakes_a_schedule_that_time_does_not() {
    let plan_at = |story: &Story| story.world.schedules[&SCHEDULE].plan_at;
    let mut story = Story::new();
    assert_eq!(plan_at(&story), None);
    story.claim(1);
    assert_eq!(plan_at(&story), None);
    story.start(1);
    assert_eq!(plan_at(&story), Some(story.now), "there is a place for another");
    // A retry is no first start: the run held no place that it could give.
    story.tell(Body::Planned(plan(&[])));
    story.change(1, failed());
    story.now = at("2026-01-05T12:01:00Z");
    story.claim(1);
    story.start(1);
    assert_eq!(plan_at(&story), None);
    story.change(1, RunEvent::Succeeded);
    assert_eq!(plan_at(&story), Some(story.now), "the schedule may be over");
    // A time that is known stays.
    let later = Some(at("2026-01-05T15:00:00Z"));
    story.tell(Body::Planned(PlanEntry { plan_at: later, ..plan(&[]) }));
    story.claim(2);
    story.start(2);
    assert_eq!(plan_at(&story), later);
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
        (under(0, story.changed(1, RunEvent::Succeeded)), "has epoch 1, not 0"),
        (story.changed(2, RunEvent::Succeeded), "a run that is planned cannot be succeeded"),
        (story.changed(9, RunEvent::Cancelled), "run 00000000-0000-0000-0000-000000000009 does not exist"),
    ] {
        let before = story.world.clone();
        let error = story.attempt(body.clone()).unwrap_err().to_string();
        assert!(error.contains(message), "{body:?}: {error}");
        assert_eq!(story.world, before, "{body:?}");
    }
    let gap = Entry { seq: story.world.seq + 2, ..story.entries[0].clone() };
    assert_eq!(story.world.apply(&gap), Err(JournalError::OutOfOrder { after: 4, found: 6 }));
}

/// Holds what the last entry about a run says of it against the run itself; what nobody asks any more is not kept.
fn check_ended(before: &Run, event: &RunEvent, entry: &Entry) {
    let after = before.after(event, entry.at).unwrap();
    let known = Run { expires_at: None, follows: None, is_parked: false, ..after };
    let ended = EndedRun::of(entry).unwrap();
    assert_eq!(ended.state(), known.state);
    assert_eq!(entry.body.ended(), Some((known.id, known.state)));
    assert_eq!(entry.body.mark(entry.at).map(|mark| mark.is_final), Some(true));
    assert_eq!(ended.into_run(Arc::clone(&known.terms)), known);
}

#[test]
fn a_run_that_is_over_leaves_the_world_and_its_last_entry_says_what_it_came_to() {
    let mut story = Story::new();
    story.claim(1);
    story.start(1);
    let before = story.run(1).clone();
    story.end(1, RunEvent::Succeeded);
    assert!(!story.world.runs.contains_key(&run_id(1)));
    let ended = story.ended();
    let Body::AttemptEnded(attempt) = &story.entries.last().unwrap().body else { panic!() };
    assert_eq!(ended.last_end, Some(attempt.last_end(ended.state())), "the same report again has the same answer");
    let last_end = ended.last_end;
    let after = Run { last_end, ..before.after(&RunEvent::Succeeded, story.now).unwrap() };
    assert_eq!(ended.into_run(Arc::clone(&after.terms)), after);
    // What is gone is not there for another end.
    let again = Body::AttemptEnded(Box::new(Attempt::of(&before, RunEvent::Succeeded, Report::default(), story.now)));
    assert_eq!(story.attempt(again), Err(JournalError::UnknownRun(run_id(1))));
    // Its slot is the cursor's to protect, and no longer the run's.
    assert_eq!(story.world.schedules[&SCHEDULE].schedule.runs_started, 1);
}

#[test]
fn runs_that_were_never_at_work_are_over_with_what_was_known_of_them() {
    let skipped = RunEvent::Skipped(SkipReason::Late);
    for (event, outcome, verdict) in [
        (skipped, Outcome::Skipped(SkipReason::Late), Verdict::Skipped),
        (RunEvent::Cancelled, Outcome::Cancelled, Verdict::Cancelled),
    ] {
        let mut story = Story::new();
        let before = story.run(2).clone();
        story.change(2, event);
        let ended = story.ended();
        assert_eq!((ended.end.outcome, ended.end.version, ended.end.due_at), (outcome, 1, before.due_at));
        assert_eq!((ended.end.has_started, ended.end.attempts, ended.last_end), (false, 0, None));
        let entry = story.entries.last().unwrap();
        assert_eq!(entry.body.mark(entry.at).unwrap().verdict, verdict);
        check_ended(&before, &event, entry);
        assert!(!story.world.runs.contains_key(&run_id(2)));
    }
}

#[test]
fn a_run_that_was_cancelled_between_two_attempts_still_knows_how_the_first_ended() {
    for event in [failed(), RunEvent::Stopped { at: at("2026-01-05T12:00:00Z") }] {
        let mut story = Story::new();
        story.claim(1);
        story.start(1);
        story.end(1, event);
        let before = story.run(1).clone();
        assert!(before.last_end.is_some_and(|end| end.epoch == 1 && end.state == before.state), "{event:?}");
        story.change(1, RunEvent::Cancelled);
        let entry = story.entries.last().unwrap().clone();
        assert_eq!(story.ended().last_end, before.last_end, "{event:?}");
        assert!(story.ended().end.has_started);
        check_ended(&before, &RunEvent::Cancelled, &entry);
    }
}

#[test]
fn a_run_that_was_being_cancelled_and_leaves_its_node_ends_as_cancelled_and_is_history() {
    let mut story = Story::new();
    story.claim(1);
    story.start(1);
    story.change(1, RunEvent::CancelAsked);
    assert!(story.entries.last().unwrap().body.mark(story.now).is_none(), "it is still at work");
    let before = story.run(1).clone();
    let waits = RunEvent::Waits { on: WaitFor::Callback, wait_until: at("2026-01-05T13:00:00Z") };
    story.change(1, waits);
    assert!(!story.world.runs.contains_key(&run_id(1)));
    let ended = story.ended();
    assert_eq!((ended.end.outcome, ended.end.is_cancelling), (Outcome::Cancelled, true));
    let entry = story.entries.last().unwrap();
    let mark = entry.body.mark(entry.at).unwrap();
    assert_eq!((mark.verdict, mark.is_final), (Verdict::Cancelled, true));
    check_ended(&before, &waits, entry);
}

#[test]
fn a_change_has_nothing_of_what_people_read() {
    let mut story = Story::new();
    let marker = r#"only people read this: \"},{\" [, ü"#;
    story.claim(1);
    story.start(1);
    let report = Report { summary: Some(marker.to_owned()), output: marker.repeat(100), ..Report::default() };
    let attempt = Attempt::of(story.run(1), failed(), report, story.now);
    let by = By { actor: Actor::Operator, reason: Some(marker.to_owned()), once: None };
    let cancelled = RunChange { by: Some(by.clone()), ..RunChange::of(story.run(2), RunEvent::Cancelled, story.now) };
    let (first, last) = (planned(1), planned(2));
    let skipped = SkipEntry {
        schedule: SCHEDULE,
        version: 1,
        agent: marker.to_owned(),
        project: None,
        first: first.key,
        first_at: first.scheduled_at,
        last: last.key,
        last_at: last.scheduled_at,
        count: 2,
        reason: SkipReason::Paused,
        pause: None,
        workflow: None,
    };
    let bodies = [
        Body::AttemptEnded(Box::new(attempt)),
        Body::RunChanged(cancelled),
        Body::Skipped(skipped),
        Body::ScheduleChanged { schedule: Box::new(schedule(2)), by: Some(by) },
    ];
    for body in bodies {
        let parts = Parts::of(&body);
        assert!(!parts.change.contains("people"), "{}", parts.change);
        assert!(parts.detail.contains("people"), "{}", parts.detail);
        story.tell(body);
    }
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
                4 => under(epoch, story.changed(number, RunEvent::Succeeded)),
                5 => under(epoch, story.changed(number, failed())),
                6 => under(epoch, story.changed(number, RunEvent::OwnerLost { at: noon })),
                7 => under(epoch, story.changed(number, RunEvent::HandedBack { due_at: at("2026-01-05T11:00:00Z"), parks: false })),
                8 => under(epoch, story.changed(number, RunEvent::Waits { on: WaitFor::Callback, wait_until: noon })),
                9 => under(epoch, story.changed(number, RunEvent::Resumed { at: noon })),
                10 => under(epoch, story.changed(number, RunEvent::Skipped(SkipReason::Late))),
                _ => Body::Planned(PlanEntry { withdrawn: vec![run_id(number)], ..plan(&[]) }),
            };
            let is_withdrawal = matches!(body, Body::Planned(_));
            if story.attempt(body).is_err() {
                prop_assert_eq!(&story.world, &before);
            }
            // What is over has gone, and its last entry says what it came to.
            for run in before.live_runs().filter(|run| !is_withdrawal && !story.world.runs.contains_key(&run.id)) {
                let entry = story.entries.last().unwrap();
                let Body::RunChanged(change) = &entry.body else { panic!() };
                check_ended(run, &change.event, entry);
            }
            for (id, run) in &story.world.runs {
                let tally = run.state.tally();
                prop_assert!(tally.attempt <= run.terms.retry.max_attempts.get());
                if let Some(run_before) = before.runs.get(id) {
                    prop_assert!(run_before.state.tally().epoch <= tally.epoch);
                }
                prop_assert!(!run.state.is_final());
            }
        }
        let mut again = World::default();
        for entry in &story.entries {
            let json = serde_json::to_string(entry).unwrap();
            let read: Entry = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(&read, entry);
            again.apply(&read).unwrap();
        }
        prop_assert_eq!(again, story.world);
    }
}
