//! Claims about the role [`crate::History`]: what became of runs and slots, for people.
#![expect(missing_docs, reason = "the names are the claims")]

use std::collections::BTreeMap;

use jiff::Timestamp;
use punctual_core::journal::{Body, SkipEntry, Verdict};
use punctual_core::run::{FailureCode, Outcome, RunEvent, SkipReason, WaitFor};
use punctual_core::schedule::{Pause, PauseKind, ScheduleState};
use punctual_core::{Actor, By, RunId, ScheduleId, TokenId};
use serde_json::json;

use super::bench::{ALL, Bench, at, failed, said, slot_key};
use super::block_on;
use crate::{Decision, HistoryFilter, HistoryItem, HistoryWhat, Totals, Written};

fn history(bench: &Bench, filter: HistoryFilter) -> Vec<HistoryItem> {
    let filter = if filter.limit == 0 { HistoryFilter { limit: ALL, ..filter } } else { filter };
    block_on(bench.store.history(&filter)).unwrap()
}

fn of_run(bench: &Bench, run: RunId) -> Vec<HistoryItem> {
    history(bench, HistoryFilter { run: Some(run), ..HistoryFilter::default() })
}

fn skip(schedule: ScheduleId) -> SkipEntry {
    let (first_at, last_at) = (at("09:10:00"), at("09:50:00"));
    let (first, last) = (slot_key(first_at), slot_key(last_at));
    SkipEntry {
        schedule,
        version: 1,
        agent: "reporter".to_owned(),
        project: None,
        first,
        first_at,
        last,
        last_at,
        count: 5,
        reason: SkipReason::CatchUp,
        pause: None,
        workflow: None,
    }
}

pub fn an_ended_attempt_is_told_with_what_it_said(bench: &mut Bench) {
    let id = bench.due_run(json!({"project": "p"}));
    let node = bench.join("a");
    let first = bench.start_one(node);
    let started_at = bench.now;
    bench.pass(7);
    let event = failed(bench.now);
    bench.report(&first, event, said("no luck"));
    bench.pass(60);
    let second = bench.start_one(node);
    bench.report(&second, RunEvent::Succeeded, said("done"));
    let items = of_run(bench, id);
    let attempts: Vec<_> = items
        .iter()
        .filter_map(|item| match &item.what {
            HistoryWhat::Attempt(attempt) => Some(attempt),
            _ => None,
        })
        .collect();
    assert_eq!(items.len(), 2);
    assert_eq!(items[0].at, bench.now);
    let said: Vec<_> =
        attempts.iter().map(|it| (it.attempt, it.epoch, it.event, it.report.summary.as_deref())).collect();
    assert_eq!(said, [(2, 2, RunEvent::Succeeded, Some("done")), (1, 1, event, Some("no luck"))], "latest first");
    assert_eq!((attempts[1].run, attempts[1].schedule), (id, first.schedule));
    assert_eq!((attempts[1].agent.as_str(), attempts[1].project.as_deref()), ("reporter", Some("p")));
    assert_eq!((attempts[1].started_at, attempts[1].scheduled_at), (Some(started_at), first.scheduled_at));
}

pub fn what_ends_without_an_attempt_is_told_too(bench: &mut Bench) {
    let node = bench.join("a");
    let skipped = bench.due_run(json!({}));
    let claimed = bench.claim_one(node);
    bench.settle(&claimed, Decision::Skip(SkipReason::Budget));
    let cancelled = bench.due_run(json!({}));
    block_on(bench.store.cancel(bench.now, cancelled, None)).unwrap();
    for (run, event) in [(skipped, RunEvent::Skipped(SkipReason::Budget)), (cancelled, RunEvent::Cancelled)] {
        let items = of_run(bench, run);
        let [HistoryItem { what: HistoryWhat::RunEnded(change), .. }] = &items[..] else { panic!("{items:?}") };
        assert_eq!((change.run, change.event, change.scheduled_at), (run, event, bench.now));
    }
}

pub fn skipped_slots_are_told(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let mut write = bench.write_for(schedule);
    write.skips = vec![skip(schedule)];
    assert_eq!(bench.write(write), Written::Done);
    let items = history(bench, HistoryFilter { schedule: Some(schedule), ..HistoryFilter::default() });
    let [HistoryItem { what: HistoryWhat::Skipped(told), .. }] = &items[..] else { panic!("{items:?}") };
    assert_eq!(*told, skip(schedule));
}

pub fn every_end_of_a_run_is_told(bench: &mut Bench) {
    let once = json!({"policy": {"retry": {"max_attempts": 1}}});
    let until = at("09:10:00");
    let end = |bench: &mut Bench, what: &str| {
        let node = bench.join("a");
        let id = bench.due_run(once.clone());
        let run = bench.claim_one(node);
        match what {
            "lost before it began" | "lost at work" => {
                if what == "lost at work" {
                    bench.settle(&run, Decision::Start);
                }
                bench.pass(31);
                bench.bury();
            }
            "called back" => {
                bench.settle(&run, Decision::Start);
                bench.finish(&run, RunEvent::Waits { on: WaitFor::Callback, wait_until: until });
                bench.report(&run, RunEvent::Succeeded, said("from afar"));
            }
            "never approved" => {
                bench.settle(&run, Decision::Wait { on: WaitFor::Approval, wait_until: bench.now });
                bench.claim(node, ALL);
            }
            _ => {
                bench.settle(&run, Decision::Start);
                bench.finish(&run, RunEvent::Waits { on: WaitFor::Callback, wait_until: bench.now });
                bench.claim(node, ALL);
            }
        }
        id
    };
    for (what, outcome) in [
        ("lost before it began", Outcome::Failed(FailureCode::OwnerLost)),
        ("lost at work", Outcome::Failed(FailureCode::OwnerLost)),
        ("called back", Outcome::Succeeded),
        ("never approved", Outcome::Cancelled),
        ("never called back", Outcome::Failed(FailureCode::WaitExpired)),
    ] {
        let id = end(bench, what);
        let state = bench.run(id).state;
        assert!(matches!(state, punctual_core::run::RunState::Finished { outcome: found, .. } if found == outcome));
        let items = of_run(bench, id);
        assert_eq!(items.len(), 1, "a run that was {what}");
        if what == "called back" {
            let HistoryWhat::Attempt(attempt) = &items[0].what else { panic!("{items:?}") };
            assert_eq!(attempt.report, said("from afar"), "what was reported is kept");
        }
    }
}

pub fn history_is_filtered_and_paged_latest_first(bench: &mut Bench) {
    let node = bench.join("a");
    let mut schedules = vec![];
    let mut runs = vec![];
    for _ in 0..2 {
        let schedule = bench.add(json!({}));
        runs.push(bench.plan(schedule, &["08:00:00", "08:01:00", "08:02:00"]));
        for _ in 0..3 {
            let run = bench.start_one(node);
            bench.finish(&run, RunEvent::Succeeded);
        }
        schedules.push(schedule);
    }
    let filter = HistoryFilter::default;
    let all = history(bench, filter());
    assert_eq!(all.len(), 6);
    assert!(all.windows(2).all(|pair| pair[1].seq < pair[0].seq), "latest first");
    assert_eq!(history(bench, HistoryFilter { limit: 2, ..filter() }), all[..2]);
    assert_eq!(history(bench, HistoryFilter { offset: 2, limit: 2, ..filter() }), all[2..4]);
    assert_eq!(history(bench, HistoryFilter { offset: 6, ..filter() }), []);
    assert_eq!(history(bench, HistoryFilter { schedule: Some(schedules[0]), ..filter() }), all[3..]);
    assert_eq!(history(bench, HistoryFilter { run: Some(runs[1][1]), ..filter() }), all[1..2]);
    let crossed = HistoryFilter { schedule: Some(schedules[0]), run: Some(runs[1][1]), ..filter() };
    assert_eq!(history(bench, crossed), []);
}

/// Three agents in two projects, with every verdict: what was written, latest first.
fn varied(bench: &mut Bench) -> Vec<HistoryItem> {
    vary(bench);
    let all = history(bench, HistoryFilter::default());
    assert_eq!(all.len(), 9);
    all
}

fn vary(bench: &mut Bench) {
    let node = bench.join("a");
    let llm = |tokens: u64, cost: f64| {
        let llm = json!({"promptTokens": tokens, "completionTokens": 5, "estimatedCostUsd": cost});
        let llm = llm.as_object().expect("an object").clone();
        punctual_core::run::Report { llm, ..said("done") }
    };
    for (agent, project) in [("reporter", "p"), ("reporter", "q"), ("reader", "p")] {
        bench.due_run(json!({"agent": agent, "project": project}));
        let run = bench.start_one(node);
        bench.pass(2);
        bench.report(&run, RunEvent::Succeeded, llm(100, 0.25));
        bench.due_run(json!({"agent": agent, "project": project, "policy": {"retry": {"max_attempts": 1}}}));
        let run = bench.start_one(node);
        bench.pass(1);
        let event = failed(bench.now);
        bench.report(&run, event, llm(10, 0.1));
        let cancelled = bench.due_run(json!({"agent": agent, "project": project}));
        block_on(bench.store.cancel(bench.now, cancelled, None)).unwrap();
        bench.pass(60);
    }
}

fn body(item: &HistoryItem) -> Body {
    match item.what.clone() {
        HistoryWhat::Attempt(attempt) => Body::AttemptEnded(attempt),
        HistoryWhat::RunEnded(change) => Body::RunChanged(change),
        HistoryWhat::Skipped(skip) => Body::Skipped(skip),
    }
}

fn mark(item: &HistoryItem) -> (String, Option<String>, Verdict, Timestamp) {
    let body = body(item);
    let mark = body.mark(item.at).expect("it is history");
    (mark.agent.to_owned(), mark.project.map(str::to_owned), mark.verdict, mark.shown_at)
}

pub fn filters_of_the_history_combine(bench: &mut Bench) {
    let all = varied(bench);
    let filter = HistoryFilter::default;
    let project = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>());
    let from = mark(&all[5]).3;
    for filter in [
        HistoryFilter { agent: Some("reporter".to_owned()), ..filter() },
        HistoryFilter { agent: Some("nobody".to_owned()), ..filter() },
        HistoryFilter { projects: project(&["p"]), ..filter() },
        HistoryFilter { projects: project(&["p", "q"]), ..filter() },
        HistoryFilter { projects: project(&[]), ..filter() },
        HistoryFilter { verdict: Some(Verdict::Failed), ..filter() },
        HistoryFilter { verdict: Some(Verdict::Cancelled), agent: Some("reader".to_owned()), ..filter() },
        HistoryFilter { from: Some(from), ..filter() },
        HistoryFilter { until: Some(from), ..filter() },
        HistoryFilter { agent: Some("reporter".to_owned()), projects: project(&["q"]), from: Some(from), ..filter() },
    ] {
        let is_found = |item: &&HistoryItem| {
            let (agent, project, verdict, shown_at) = mark(item);
            let is_of = |those: &Vec<String>| project.as_ref().is_some_and(|project| those.contains(project));
            filter.agent.as_ref().is_none_or(|it| *it == agent)
                && filter.projects.as_ref().is_none_or(is_of)
                && filter.verdict.is_none_or(|it| it == verdict)
                && filter.from.is_none_or(|from| from <= shown_at)
                && filter.until.is_none_or(|until| shown_at < until)
        };
        let expected: Vec<HistoryItem> = all.iter().filter(is_found).cloned().collect();
        assert_eq!(history(bench, filter.clone()), expected, "{filter:?}");
        assert_eq!(block_on(bench.store.count_history(&filter)).unwrap(), expected.len() as u64, "{filter:?}");
    }
}

pub fn attempts_that_began_are_summed_up(bench: &mut Bench) {
    varied(bench);
    let filter = HistoryFilter { agent: Some("reporter".to_owned()), ..HistoryFilter::default() };
    let sum = |verdict, duration_ms, tokens, cost_micros| Totals {
        agent: "reporter".to_owned(),
        verdict,
        attempts: 2,
        runs: 2,
        duration_ms,
        tokens,
        cost_micros,
        late: [2, 0, 0, 0, 0, 0, 0],
    };
    let expected = [sum(Verdict::Succeeded, 4_000, 210, 500_000), sum(Verdict::Failed, 2_000, 30, 200_000)];
    assert_eq!(block_on(bench.store.totals(&filter)).unwrap(), expected);
    assert_eq!(block_on(bench.store.totals(&HistoryFilter::default())).unwrap().len(), 4);
}

/// What rows of history come to, one after the other.
fn sum_up(items: &[HistoryItem]) -> Vec<Totals> {
    let mut totals: BTreeMap<(String, Verdict), Totals> = BTreeMap::new();
    for (body, at) in items.iter().map(|item| (body(item), item.at)) {
        let mark = body.mark(at).expect("it is history");
        let (agent, verdict) = (mark.agent.to_owned(), mark.verdict);
        let Some(duration) = mark.duration_ms else { continue };
        let total = totals.entry((agent.clone(), verdict)).or_insert(Totals {
            agent,
            verdict,
            attempts: 0,
            runs: 0,
            duration_ms: 0,
            tokens: 0,
            cost_micros: 0,
            late: [0; 7],
        });
        total.attempts += 1;
        total.runs += u64::from(mark.is_final);
        total.duration_ms += duration;
        total.tokens += mark.tokens.unwrap_or(0);
        total.cost_micros += mark.cost_micros.unwrap_or(0);
        if let Some(late) = mark.late_ms {
            let most = [10, 100, 1_000, 10_000, 60_000, 600_000, u64::MAX];
            total.late[most.iter().position(|most| late <= *most).expect("the last one")] += 1;
        }
    }
    totals.into_values().collect()
}

/// Whatever part of the history is asked for, sums and counts are those of its rows.
fn check_sums(bench: &Bench) {
    let filter = HistoryFilter::default;
    let named = |name: &str| Some(vec![name.to_owned()]);
    let all = history(bench, filter());
    let some = all.get(all.len() / 2).map(body);
    let (schedule, run) = (some.as_ref().and_then(Body::schedule), some.as_ref().and_then(Body::run));
    let time = |text: &str| Some(at(text));
    let ranges = [
        (None, None),
        (time("2026-01-06T00:00:00Z"), None),
        (None, time("2026-01-07T00:00:00Z")),
        (time("2026-01-05T09:01:02Z"), None),
        (time("2026-01-05T09:01:02Z"), time("2026-01-07T10:01:02.5Z")),
        (time("2026-01-06T10:00:00Z"), time("2026-01-06T20:00:00Z")),
        (time("2026-01-05T14:00:00Z"), time("2026-01-06T15:00:00Z")),
        (time("2026-01-08T00:00:00Z"), time("2026-01-06T00:00:00Z")),
        (Some(Timestamp::MIN), Some(Timestamp::MAX)),
    ];
    for wanted in [
        filter(),
        HistoryFilter { agent: Some("reporter".to_owned()), ..filter() },
        HistoryFilter { projects: named("p"), only_final: true, ..filter() },
        HistoryFilter { projects: named(""), ..filter() },
        HistoryFilter { projects: Some(vec![]), ..filter() },
        HistoryFilter { verdict: Some(Verdict::Failed), ..filter() },
        HistoryFilter { schedule, ..filter() },
        HistoryFilter { schedule, projects: named("q"), verdict: Some(Verdict::Succeeded), ..filter() },
        HistoryFilter { run, ..filter() },
    ] {
        for (from, until) in ranges {
            let wanted = HistoryFilter { from, until, ..wanted.clone() };
            let rows = history(bench, wanted.clone());
            assert_eq!(block_on(bench.store.totals(&wanted)).unwrap(), sum_up(&rows), "{wanted:?}");
            assert_eq!(block_on(bench.store.count_history(&wanted)).unwrap(), rows.len() as u64, "{wanted:?}");
        }
    }
}

pub fn sums_are_those_of_the_rows_of_any_days(bench: &mut Bench) {
    check_sums(bench);
    // Two and a half days.
    for _ in 0..12 {
        vary(bench);
        let late = bench.due_run(json!({"policy": {"retry": {"max_attempts": 2, "delay": "1s"}}}));
        bench.pass(45);
        let node = bench.join("late");
        for _ in 0..2 {
            let run = bench.start_one(node);
            assert_eq!(run.id, late);
            let event = failed(bench.now);
            bench.finish(&run, event);
            bench.pass(2);
        }
        bench.pass(5 * 3_600);
    }
    check_sums(bench);
    // What is to go has to be in the snapshot before: now the sums have most of it.
    let gone = block_on(bench.store.prune(at("2026-01-06T12:00:00Z"))).unwrap();
    assert!(0 < gone);
    check_sums(bench);
    vary(bench);
    check_sums(bench);
    assert_eq!(block_on(bench.store.verify()).unwrap(), [""; 0]);
    bench.pass(60);
    assert!(0 < block_on(bench.store.prune(bench.now)).unwrap());
    check_sums(bench);
    assert_eq!(block_on(bench.store.count_history(&HistoryFilter::default())).unwrap(), 0);
}

pub fn a_run_counts_once_and_its_last_attempt_is_final(bench: &mut Bench) {
    let id = bench.due_run(json!({"policy": {"retry": {"max_attempts": 2, "delay": "1s"}}}));
    let node = bench.join("a");
    for _ in 0..2 {
        let run = bench.start_one(node);
        bench.pass(1);
        let event = failed(bench.now);
        bench.finish(&run, event);
        bench.pass(1);
    }
    assert_eq!(bench.state(id), "failed");
    let totals = block_on(bench.store.totals(&HistoryFilter::default())).unwrap();
    let [totals] = &totals[..] else { panic!("{totals:?}") };
    assert_eq!((totals.verdict, totals.attempts, totals.runs), (Verdict::Failed, 2, 1));
    let all = history(bench, HistoryFilter::default());
    let last = history(bench, HistoryFilter { only_final: true, ..HistoryFilter::default() });
    assert_eq!((all.len(), &last[..]), (2, &all[..1]));
    let filter = HistoryFilter { only_final: true, ..HistoryFilter::default() };
    assert_eq!(block_on(bench.store.count_history(&filter)).unwrap(), 1);
}

pub fn what_is_called_off_ahead_of_its_time_is_no_news_of_the_future(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let [ahead] = bench.plan(schedule, &["23:00:00"])[..] else { panic!("one run") };
    block_on(bench.store.cancel(bench.now, ahead, None)).unwrap();
    bench.pass(60);
    let node = bench.join("a");
    bench.due_run(json!({}));
    let run = bench.start_one(node);
    bench.finish(&run, RunEvent::Succeeded);
    let all = history(bench, HistoryFilter::default());
    let of = |item: &HistoryItem| match &item.what {
        HistoryWhat::Attempt(attempt) => attempt.run,
        HistoryWhat::RunEnded(change) => change.run,
        HistoryWhat::Skipped(_) => panic!("{item:?}"),
    };
    assert_eq!(all.iter().map(of).collect::<Vec<_>>(), [run.id, ahead]);
    let from = HistoryFilter { from: Some(all[0].at), ..HistoryFilter::default() };
    assert_eq!(history(bench, from), all[..1], "it is found by when it was called off");
}

pub fn a_skip_keeps_the_pause_that_it_was_for(bench: &mut Bench) {
    let schedule = bench.add(json!({}));
    let [id] = bench.plan(schedule, &["09:00:00"])[..] else { panic!("one run") };
    let node = bench.join("a");
    let claimed = bench.claim_one(node);
    let pause = Pause {
        kind: PauseKind::Paused,
        at: bench.now,
        source: "ada".to_owned(),
        reason: Some("too loud".to_owned()),
        until: None,
    };
    bench.edit(schedule, |schedule| schedule.state = ScheduleState::Paused(Box::new(pause.clone())));
    bench.settle(&claimed, Decision::Start);
    bench.edit(schedule, |schedule| schedule.state = ScheduleState::Active);
    let items = of_run(bench, id);
    let [HistoryItem { what: HistoryWhat::RunEnded(change), .. }] = &items[..] else { panic!("{items:?}") };
    assert_eq!((change.event, change.pause.as_ref()), (RunEvent::Skipped(SkipReason::Paused), Some(&pause)));
}

pub fn who_asked_is_written_with_what_they_asked_for(bench: &mut Bench) {
    let actor = Actor::Token { id: TokenId(bench.id()), name: "ada".to_owned() };
    let by = By { reason: Some("too loud".to_owned()), ..By::new(actor) };
    let run = bench.due_run(json!({}));
    block_on(bench.store.cancel(bench.now, run, Some(by.clone()))).unwrap();
    let entries = block_on(bench.store.entries(0, ALL)).unwrap();
    let last = entries.last().expect("it was written");
    assert_eq!(last.body.by(), Some(&by));
    assert!(entries.iter().rev().skip(1).all(|entry| entry.body.by().is_none()), "nobody else asked for anything");
}
