//! Claims about what should never have come in: a row that has it all the same holds up nothing.
#![expect(missing_docs, reason = "the names are the claims")]

use jiff::Timestamp;
use punctual_core::run::{RunEvent, RunState};
use punctual_core::time::zone::floor_microsecond;
use serde_json::json;

use super::bench::{ALL, Bench, said};
use super::block_on;
use crate::{Decision, HistoryFilter, RecordFilter, RunFilter, RunWritten, ScheduleFilter};

/// Names that no edge lets in: with a NUL character, and longer than an index has room for, however well it is packed.
fn names() -> [String; 2] {
    let long = (0..3_000_u64).map(|n| format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    ["a\0b".to_owned(), long]
}

/// The whole life of a run whose project nobody should have let in, beside one that is like any other.
pub fn a_run_with_a_project_that_cannot_be_kept_lives_and_ends(bench: &mut Bench) {
    for project in names() {
        let (odd, plain) = (bench.due_run(json!({"project": project})), bench.due_run(json!({})));
        let node = bench.join("a");
        let claimed = bench.claim(node, ALL);
        assert_eq!(claimed.len(), 2);
        for run in &claimed {
            bench.settle(run, Decision::Start);
            let written = bench.report(run, RunEvent::Succeeded, said("do\0ne"));
            assert!(matches!(written, RunWritten::Done(RunState::Finished { .. })), "{written:?}");
        }
        assert_eq!((bench.state(odd), bench.state(plain)), ("succeeded", "succeeded"));
    }
    let history = block_on(bench.store.history(&HistoryFilter { limit: ALL, ..HistoryFilter::default() })).unwrap();
    assert_eq!(history.len(), 4);
    assert!(block_on(bench.store.totals(&HistoryFilter::default())).is_ok());
}

pub fn a_dead_node_whose_run_has_such_a_project_is_removed(bench: &mut Bench) {
    if bench.store.is_exclusive() {
        return;
    }
    for project in names() {
        let (odd, plain) = (bench.due_run(json!({"project": project})), bench.due_run(json!({})));
        let node = bench.join("a");
        for run in bench.claim(node, ALL) {
            bench.settle(&run, Decision::Start);
        }
        bench.pass(40);
        assert_eq!(bench.bury(), 1);
        let other = bench.join("b");
        assert!(block_on(bench.store.cancel(bench.now, odd, None)).is_ok());
        assert!(block_on(bench.store.cancel(bench.now, plain, None)).is_ok());
        block_on(bench.store.leave(bench.now, other)).unwrap();
    }
}

pub fn a_skip_of_such_a_project_is_written(bench: &mut Bench) {
    for project in names() {
        bench.due_run(json!({"project": project}));
        let node = bench.join("a");
        let run = bench.claim_one(node);
        let skipped = bench.settle(&run, Decision::Skip(punctual_core::run::SkipReason::Overlap));
        assert!(matches!(skipped, RunWritten::Done(_)));
    }
}

/// Years that no store counts to are before everything, or behind it.
pub fn a_filter_may_name_any_instant(bench: &mut Bench) {
    bench.due_run(json!({}));
    let ancient: Timestamp = "-009998-01-01T00:00:00.000000001Z".parse().unwrap();
    for (from, until, count) in [
        (Timestamp::MIN, Timestamp::MAX, 1),
        (ancient, Timestamp::MAX, 1),
        (Timestamp::MIN, ancient, 0),
        (Timestamp::MAX, Timestamp::MAX, 0),
    ] {
        let (from, until) = (Some(from), Some(until));
        let runs = RunFilter { from, until, limit: ALL, ..RunFilter::default() };
        assert_eq!(block_on(bench.store.runs(&runs)).unwrap().len(), count, "{runs:?}");
        let history = HistoryFilter { from, until, limit: ALL, ..HistoryFilter::default() };
        assert_eq!(block_on(bench.store.history(&history)).unwrap().len(), 0, "{history:?}");
        let records = RecordFilter { after: from, before: until, limit: ALL, ..RecordFilter::default() };
        assert_eq!(block_on(bench.store.records(&records)).unwrap().records.len(), 0, "{records:?}");
    }
    for before in [Timestamp::MIN, ancient] {
        assert_eq!(block_on(bench.store.prune(before)).unwrap(), 0);
        assert_eq!(block_on(bench.store.forget_output(before)).unwrap(), 0);
        assert_eq!(block_on(bench.store.forget_answers(before)).unwrap(), 0);
    }
}

/// The numbers of pages and entries are as large as a caller likes.
pub fn a_filter_may_name_any_page(bench: &mut Bench) {
    bench.due_run(json!({}));
    for far in [usize::MAX, i64::MAX as usize, i64::MAX as usize + 1] {
        let history = HistoryFilter { offset: far, limit: far, ..HistoryFilter::default() };
        assert_eq!(block_on(bench.store.history(&history)).unwrap().len(), 0);
        let schedules = ScheduleFilter { offset: far, limit: far, ..ScheduleFilter::default() };
        assert_eq!(block_on(bench.store.find_schedules(&schedules)).unwrap().schedules.len(), 0);
        let records = RecordFilter { offset: far, limit: far, ..RecordFilter::default() };
        assert_eq!(block_on(bench.store.records(&records)).unwrap().records.len(), 0);
        assert_eq!(block_on(bench.store.entries(far as u64, ALL)).unwrap().len(), 0);
    }
}

/// What lies in the last second of all time can be read again.
pub fn the_last_microsecond_of_all_time_is_kept(bench: &mut Bench) {
    let last = floor_microsecond(Timestamp::MAX);
    let id = bench.add(json!({}));
    let mut run = bench.manual_run(id);
    (run.id, run.scheduled_at) = (bench.run_id(last), last);
    (run.due_at, run.state) = (last, RunState::planned(last, 0));
    assert!(block_on(bench.store.ask(bench.now, run.clone(), None)).unwrap());
    assert_eq!(bench.run(run.id), run);
}
