//! Claims about the role [`crate::Records`], and about schedules as they are searched.
#![expect(missing_docs, reason = "the names are the claims")]

use punctual_core::ScheduleId;
use punctual_core::journal::{RecordState, WORKFLOW_ID};
use punctual_core::run::{Report, RunEvent, SkipReason};
use punctual_core::schedule::{Face, Pause, PauseKind, ScheduleState};
use serde_json::{Map, Value, json};

use super::bench::{ALL, Bench, at, failed};
use super::block_on;
use crate::{
    Condition, Decision, Direction, Keep, RecordFilter, RecordItem, RecordOrder, RecordPage, ScheduleFilter,
    SchedulePage,
};

/// A schedule that starts a workflow.
fn starter(name: &str, workflow: &str, others: Value) -> Value {
    let request = json!({"name": workflow, "started_by": name});
    let mut fields = json!({
        "name": name, "face": "conductor", "work": {"workflow": {"agent": "reporter", "request": request}},
    });
    if let (Some(fields), Value::Object(others)) = (fields.as_object_mut(), others) {
        fields.extend(others);
    }
    fields
}

fn find(bench: &Bench, filter: ScheduleFilter) -> SchedulePage {
    let filter = if filter.limit == 0 { ScheduleFilter { limit: ALL, ..filter } } else { filter };
    block_on(bench.store.find_schedules(&filter)).unwrap()
}

fn names(bench: &Bench, filter: ScheduleFilter) -> Vec<String> {
    let page = find(bench, filter);
    page.schedules.into_iter().map(|schedule| schedule.name.unwrap_or_default()).collect()
}

fn records(bench: &Bench, filter: RecordFilter) -> RecordPage {
    let filter = if filter.limit == 0 { RecordFilter { limit: ALL, ..filter } } else { filter };
    block_on(bench.store.records(&filter)).unwrap()
}

fn all_records(bench: &Bench) -> Vec<RecordItem> {
    records(bench, RecordFilter::default()).records
}

fn accepted(id: &str) -> Report {
    Report { refs: Map::from_iter([(WORKFLOW_ID.to_owned(), json!(id))]), ..Report::default() }
}

/// Runs the slot of a schedule that is due now to its end.
fn fire(bench: &mut Bench, schedule: ScheduleId, event: RunEvent, report: Report) {
    let now = bench.now.to_string();
    bench.plan(schedule, &[&now]);
    let node = bench.join("a");
    let run = bench.start_one(node);
    bench.report(&run, event, report);
    block_on(bench.store.leave(bench.now, node)).unwrap();
}

pub fn schedules_are_found_by_everything_that_a_filter_says(bench: &mut Bench) {
    bench.add(json!({"name": "plain", "agent": "other"}));
    let nightly = bench.add(starter("Nightly-Report", "report", json!({"description": "every NIGHT"})));
    bench.add(starter("hourly", "report", json!({"project": "atlas"})));
    bench.add(starter("clean-up", "sweep", json!({})));
    let pause = Pause { kind: PauseKind::Paused, at: bench.now, source: "ada".to_owned(), reason: None, until: None };
    bench.edit(nightly, |schedule| schedule.state = ScheduleState::Paused(Box::new(pause.clone())));
    let conductor = ScheduleFilter { face: Some(Face::Conductor), ..ScheduleFilter::default() };
    let text = |text: &str| Some(text.to_owned());
    for (expected, filter) in [
        (vec!["plain", "Nightly-Report", "hourly", "clean-up"], ScheduleFilter::default()),
        (vec!["plain"], ScheduleFilter { face: Some(Face::Executions), ..ScheduleFilter::default() }),
        (vec!["Nightly-Report", "hourly", "clean-up"], conductor.clone()),
        (vec!["Nightly-Report", "clean-up"], ScheduleFilter { projects: Some(vec![None]), ..conductor.clone() }),
        (vec!["hourly"], ScheduleFilter { projects: Some(vec![text("atlas"), text("x")]), ..conductor.clone() }),
        (vec!["plain"], ScheduleFilter { agent: text("other"), ..ScheduleFilter::default() }),
        (vec!["Nightly-Report", "hourly"], ScheduleFilter { workflow: text("report"), ..conductor.clone() }),
        (vec!["hourly"], ScheduleFilter { name: text("hourly"), ..conductor.clone() }),
        (vec![], ScheduleFilter { name: text("hour"), ..conductor.clone() }),
        (vec!["Nightly-Report", "hourly"], ScheduleFilter { name_part: text("LY"), ..conductor.clone() }),
        (vec!["Nightly-Report"], ScheduleFilter { text: text("very night"), ..conductor.clone() }),
        (vec!["clean-up"], ScheduleFilter { text: text("SWEE"), ..conductor.clone() }),
        (vec!["Nightly-Report"], ScheduleFilter { conditions: Some(vec![Condition::Paused]), ..conductor.clone() }),
        (
            vec!["hourly", "clean-up"],
            ScheduleFilter { conditions: Some(vec![Condition::Active, Condition::Ended]), ..conductor.clone() },
        ),
        (vec!["Nightly-Report", "clean-up", "hourly"], ScheduleFilter { is_by_name: true, ..conductor.clone() }),
        (vec!["clean-up", "hourly"], ScheduleFilter { is_reversed: true, limit: 2, ..conductor.clone() }),
        (vec!["clean-up"], ScheduleFilter { offset: 2, ..conductor.clone() }),
    ] {
        assert_eq!(names(bench, filter.clone()), expected, "{filter:?}");
    }
    let page = find(bench, ScheduleFilter { limit: 1, offset: 5, ..conductor });
    assert_eq!((page.total, page.schedules.len()), (3, 0), "how many there are does not depend on the page");
}

pub fn a_name_belongs_to_one_schedule_of_a_face(bench: &mut Bench) {
    bench.add(json!({"name": "nightly"}));
    bench.add(starter("nightly", "report", json!({})));
    assert_eq!(names(bench, ScheduleFilter::default()), ["nightly", "nightly"]);
}

pub fn a_start_is_recorded_from_its_beginning_to_its_end(bench: &mut Bench) {
    let schedule = bench.add(starter("nightly", "report", json!({"project": "atlas"})));
    let now = bench.now.to_string();
    let planned = bench.plan(schedule, &[&now, "09:30:00"]);
    assert_eq!(all_records(bench), [], "what nobody has taken is no record");
    let node = bench.join("a");
    let run = bench.start_one(node);
    let begun = RecordItem {
        seq: None,
        schedule_id: Some(schedule),
        run: Some(planned[0]),
        project: Some("atlas".to_owned()),
        schedule: "nightly".to_owned(),
        workflow: "report".to_owned(),
        workflow_id: None,
        state: RecordState::Polled,
        note: None,
        scheduled_at: bench.now,
        executed_at: Some(bench.now),
    };
    assert_eq!(all_records(bench), std::slice::from_ref(&begun));
    let started_at = bench.now;
    bench.pass(3);
    let event = failed(bench.now);
    bench.report(&run, event, Report::default());
    assert_eq!(all_records(bench), [RecordItem { executed_at: None, ..begun.clone() }], "it will be tried again");
    bench.pass(60);
    let run = bench.start_one(node);
    bench.report(&run, RunEvent::Succeeded, accepted("wf-1"));
    let seq = bench.seq();
    let workflow_id = Some("wf-1".to_owned());
    let executed_at = Some(bench.now);
    let ended = RecordItem { seq: Some(seq), workflow_id, state: RecordState::Executed, executed_at, ..begun };
    assert_eq!(all_records(bench), [ended]);
    assert!(started_at < bench.now);
}

pub fn what_was_not_started_is_recorded_with_its_reason(bench: &mut Bench) {
    let schedule = bench.add(starter("nightly", "report", json!({"policy": {"retry": {"max_attempts": 1}}})));
    fire(bench, schedule, failed(bench.now), Report::default());
    bench.pass(60);
    // It was accepted, whatever became of it.
    fire(bench, schedule, failed(bench.now), accepted("wf-2"));
    bench.pass(60);
    let now = bench.now.to_string();
    let cancelled = bench.plan(schedule, &[&now])[0];
    block_on(bench.store.cancel(bench.now, cancelled, None)).unwrap();
    bench.pass(60);
    let now = bench.now.to_string();
    bench.plan(schedule, &[&now]);
    let node = bench.join("b");
    let claimed = bench.claim_one(node);
    bench.settle(&claimed, Decision::Skip(SkipReason::Paused));
    // An agent that stands in for a workflow has no id but that of its run.
    bench.pass(60);
    fire(bench, schedule, RunEvent::Succeeded, Report::default());
    let found = all_records(bench);
    let told: Vec<_> = found.iter().map(|item| (item.state, item.note.as_deref())).collect();
    let expected = [
        (RecordState::Executed, None),
        (RecordState::Failed, Some("skipped: paused")),
        (RecordState::Failed, Some("cancelled")),
        (RecordState::Executed, None),
        (RecordState::Failed, Some("failed: Error")),
    ];
    assert_eq!(told, expected);
    assert_eq!(found[0].workflow_id, found[0].run.map(|run| run.to_string()));
    assert_eq!(found[3].workflow_id.as_deref(), Some("wf-2"));
    // What belongs to no workflow is none of them.
    bench.pass(60);
    let plain = bench.add(json!({}));
    fire(bench, plain, RunEvent::Succeeded, Report::default());
    assert_eq!(all_records(bench).len(), 5);
}

pub fn records_are_found_by_everything_that_a_filter_says(bench: &mut Bench) {
    let nightly = bench.add(starter("nightly", "Report", json!({"policy": {"retry": {"max_attempts": 1}}})));
    let hourly = bench.add(starter("hourly", "sweep", json!({"project": "atlas"})));
    for (schedule, time, event, id) in [
        (nightly, "09:00:00", RunEvent::Succeeded, "wf-A"),
        (hourly, "09:10:00", RunEvent::Succeeded, "wf-B"),
        (nightly, "09:20:00", RunEvent::Succeeded, "wf-C"),
    ] {
        bench.go(time);
        fire(bench, schedule, event, accepted(id));
    }
    bench.go("09:30:00");
    fire(bench, nightly, failed(bench.now), Report::default());
    bench.go("09:40:00");
    let begun = bench.plan(hourly, &["09:40:00"])[0];
    let node = bench.join("b");
    bench.start_one(node);
    let ids = |filter: RecordFilter| -> Vec<String> {
        let word = |item: &RecordItem| item.workflow_id.clone().unwrap_or_else(|| item.state.as_str().to_owned());
        records(bench, filter).records.iter().map(word).collect()
    };
    let some = |text: &str| Some(vec![text.to_owned()]);
    let text = |text: &str| Some(text.to_owned());
    let by = |order, direction| RecordFilter { sort: vec![(order, direction)], ..RecordFilter::default() };
    for (expected, filter) in [
        (vec!["polled", "failed", "wf-C", "wf-B", "wf-A"], RecordFilter::default()),
        (vec!["polled", "wf-B"], RecordFilter { projects: Some(vec![text("atlas")]), ..RecordFilter::default() }),
        (vec!["failed", "wf-C", "wf-A"], RecordFilter { projects: Some(vec![None]), ..RecordFilter::default() }),
        (vec!["failed", "wf-C", "wf-A"], RecordFilter { schedules: some("nightly"), ..RecordFilter::default() }),
        (vec!["polled", "wf-B"], RecordFilter { workflows: some("sweep"), ..RecordFilter::default() }),
        (vec![], RecordFilter { workflows: some("report"), ..RecordFilter::default() }),
        (vec!["failed", "wf-C", "wf-A"], RecordFilter { workflow_part: text("epOR"), ..RecordFilter::default() }),
        (
            vec!["polled", "failed"],
            RecordFilter { states: Some(vec![RecordState::Failed, RecordState::Polled]), ..RecordFilter::default() },
        ),
        (vec!["polled"], RecordFilter { run: Some(begun), ..RecordFilter::default() }),
        (vec!["polled", "failed"], RecordFilter { after: Some(at("09:20:00")), ..RecordFilter::default() }),
        (vec!["wf-B", "wf-A"], RecordFilter { before: Some(at("09:20:00")), ..RecordFilter::default() }),
        (vec!["wf-B"], RecordFilter { text: text("WF-b"), ..RecordFilter::default() }),
        (vec!["failed"], RecordFilter { text: text("failed: err"), ..RecordFilter::default() }),
        (vec!["polled"], RecordFilter { text: Some(begun.to_string()), ..RecordFilter::default() }),
        (vec!["polled", "wf-B"], RecordFilter { text: text("hourl"), ..RecordFilter::default() }),
        (vec!["wf-A", "wf-B", "wf-C", "failed", "polled"], by(RecordOrder::ScheduledAt, Direction::Up)),
        (vec!["polled", "failed", "wf-C", "wf-B", "wf-A"], by(RecordOrder::ExecutedAt, Direction::Down)),
        (vec!["polled", "wf-B", "failed", "wf-C", "wf-A"], by(RecordOrder::Schedule, Direction::Up)),
        (vec!["polled", "wf-B", "failed", "wf-C", "wf-A"], by(RecordOrder::Workflow, Direction::Down)),
        (vec!["wf-C", "wf-B", "wf-A", "failed", "polled"], by(RecordOrder::State, Direction::Up)),
        (
            vec!["failed", "wf-C", "wf-A", "polled", "wf-B"],
            RecordFilter {
                sort: vec![(RecordOrder::Schedule, Direction::Down), (RecordOrder::ScheduledAt, Direction::Down)],
                ..RecordFilter::default()
            },
        ),
        (vec!["failed", "wf-C"], RecordFilter { offset: 1, limit: 2, ..RecordFilter::default() }),
    ] {
        assert_eq!(ids(filter.clone()), expected, "{filter:?}");
    }
    let page = records(bench, RecordFilter { limit: 1, ..RecordFilter::default() });
    assert_eq!((page.total, page.records.len()), (5, 1));
}

pub fn old_records_go_when_a_schedule_has_too_many(bench: &mut Bench) {
    let keep = Keep { max: 2, threshold: 4 };
    let (first, second) = (bench.add(starter("a", "x", json!({}))), bench.add(starter("b", "x", json!({}))));
    let left = |bench: &Bench, name: &str| {
        let filter = RecordFilter { schedules: Some(vec![name.to_owned()]), ..RecordFilter::default() };
        let page = records(bench, filter);
        assert_eq!(page.total as usize, page.records.len());
        page.records.iter().map(|item| item.workflow_id.clone().unwrap_or_default()).collect::<Vec<_>>()
    };
    let archive = |bench: &Bench, of: Option<&[ScheduleId]>| block_on(bench.store.archive(of, keep)).unwrap();
    for number in 1..=4 {
        bench.pass(60);
        fire(bench, first, RunEvent::Succeeded, accepted(&format!("a{number}")));
        fire(bench, second, RunEvent::Succeeded, accepted(&format!("b{number}")));
    }
    assert_eq!(archive(bench, None), 0, "as many as may be");
    let before = bench.seq();
    bench.pass(60);
    fire(bench, first, RunEvent::Succeeded, accepted("a5"));
    fire(bench, second, RunEvent::Succeeded, accepted("b5"));
    assert_eq!(archive(bench, Some(&[first])), 3);
    assert_eq!((left(bench, "a"), left(bench, "b").len()), (vec!["a5".to_owned(), "a4".to_owned()], 5));
    assert_eq!(archive(bench, None), 3);
    assert_eq!(left(bench, "b"), ["b5", "b4"]);
    assert_eq!(archive(bench, None), 0);
    assert!(before < bench.seq(), "the journal keeps everything");
    assert_eq!(
        block_on(bench.store.history(&crate::HistoryFilter { limit: ALL, ..Default::default() })).unwrap().len(),
        10
    );
}

pub fn records_go_with_the_entries_that_they_are_made_from(bench: &mut Bench) {
    let schedule = bench.add(starter("a", "x", json!({})));
    fire(bench, schedule, RunEvent::Succeeded, accepted("old"));
    bench.pass(60);
    let long_ago = bench.now - jiff::SignedDuration::from_hours(1);
    assert_eq!(block_on(bench.store.prune(long_ago)).unwrap(), 0);
    assert_eq!(all_records(bench).len(), 1, "its entry is kept");
    assert!(0 < block_on(bench.store.prune(bench.now)).unwrap());
    assert_eq!(all_records(bench), []);
    bench.pass(60);
    fire(bench, schedule, RunEvent::Succeeded, accepted("new"));
    assert_eq!(all_records(bench).len(), 1);
}
