//! Playing a step on a store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use jiff::civil::date;
use jiff::{SignedDuration, Timestamp};
use punctual_core::Elapsed;
use punctual_core::journal::{Entry, PlanEntry, PlannedRun, SkipEntry, World};
use punctual_core::plan::{EarlyDecisions, Kept, Limits, Outage};
use punctual_core::run::{Report, Run, RunState, Terms};
use punctual_core::schedule::{Cursor, Schedule, Timetables};
use punctual_core::time::{SlotKey, Zones};
use punctual_store::conformance::block_on;
use punctual_store::{
    About, AttemptReport, Cancellation, ClaimRequest, Claimed, Expected, Head, HistoryFilter, HistoryItem, NodeRecord,
    PlanSubject, PlanTask, PlanWrite, PlannerLease, Renewal, RunFilter, RunWritten, ScheduleChange, Settlement, Sign,
    StartRequest, Started, Store, StoreError, Totals, Written, ZoneDay,
};

use super::names::{RunNumber, node_id, run_id, schedule_id, slot_key, time};
use super::step::{Alive, Asked, Caps, Change, Op, Planned, Read, Slot, Step, Which, Write};

/// The zone data that starts have.
static TIMETABLES: LazyLock<Arc<Timetables>> = LazyLock::new(|| {
    let zones = Zones::bundled();
    Arc::new(Timetables::new(Arc::new(zones), BTreeMap::new()))
});

/// What a store answers. Errors are told in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Failed(String),
    Nothing,
    Yes(bool),
    Number(u64),
    Time(Option<Timestamp>),
    Writes(Vec<Written>),
    Runs(Vec<RunWritten>),
    Cancelled(Cancellation),
    Claimed(Claimed),
    Started(Started),
    Renewed(Renewal),
    Planner(PlannerLease),
    Schedules(Vec<Arc<Schedule>>),
    Tasks(Vec<PlanTask>),
    Subject(Box<Option<PlanSubject>>),
    Zones(Vec<ZoneDay>),
    Rows(Vec<Run>),
    Nodes(Vec<NodeRecord>),
    Entries(Vec<Entry>),
    World(Box<World>),
    Head(Head),
    History(Vec<HistoryItem>, Vec<Totals>, u64),
    Words(Vec<String>),
}

fn told<T>(result: Result<T, StoreError>, answer: impl FnOnce(T) -> Answer) -> Answer {
    // The words of an error are for people; which one it is, is the answer.
    result.map_or_else(|error| Answer::Failed(format!("{error:?}")), answer)
}

pub(crate) fn play(store: &dyn Store, step: &Step) -> Answer {
    block_on(call(store, store, step))
}

/// Makes the call of a step. What a caller has to know before is read from `known`.
pub(crate) async fn call(store: &dyn Store, known: &dyn Store, step: &Step) -> Answer {
    let now = time(step.now);
    // The clock of a real server shows another time than the game's.
    let renewed = |renewal| Answer::Renewed(Renewal { at: now, ..renewal });
    match &step.op {
        Op::Plan(writes) => {
            told(store.plan(now, writes.iter().map(|it| write(known, it)).collect()).await, Answer::Writes)
        }
        Op::Ask(asked) => told(store.ask(now, asked_run(asked, now), None).await, Answer::Yes),
        Op::Cancel { run } => told(store.cancel(now, run_id(*run), None).await, Answer::Cancelled),
        Op::Resume { run } => told(store.resume(now, run_id(*run), None, None).await, |run| Answer::Runs(vec![run])),
        Op::Claim { node, limit, agents, caps } => {
            let (node, limit) = (node_id(*node), *limit);
            let (agents, limits) = (names(agents), Arc::new(limits(caps)));
            told(store.claim(&ClaimRequest { node, now, limit, agents, limits }).await, Answer::Claimed)
        }
        Op::Start { node, limit, agents, caps } => {
            let (node, limit) = (node_id(*node), *limit);
            let (agents, limits) = (names(agents), Arc::new(limits(caps)));
            let request = StartRequest {
                claim: ClaimRequest { node, now, limit, agents, limits },
                held: Arc::default(),
                begun: None,
                agents: Arc::default(),
                due_max: 5,
                timetables: Arc::clone(&TIMETABLES),
                approval_wait: Elapsed::from_seconds(600),
            };
            told(store.start(&request).await, Answer::Started)
        }
        Op::Settle(settled) => {
            let settlement =
                |it: &super::step::Settled| Settlement { run: run_id(it.run), epoch: it.epoch, decision: it.decision };
            told(store.settle(now, settled.iter().map(settlement).collect()).await, Answer::Runs)
        }
        Op::Finish(finished) => {
            let report = |it: &super::step::Finished| AttemptReport {
                run: run_id(it.run),
                epoch: it.epoch,
                event: it.event,
                report: Report { summary: Some(it.said.to_string()), ..Report::default() },
            };
            told(store.finish(now, finished.iter().map(report).collect()).await, Answer::Runs)
        }
        Op::Join(alive) => told(store.join(&sign(alive, now)).await, renewed),
        Op::Renew(alive) => told(store.renew(&sign(alive, now)).await, renewed),
        Op::Leave { node } => told(store.leave(now, node_id(*node)).await, |()| Answer::Nothing),
        Op::Bury => {
            let nodes = block_on(known.nodes()).unwrap_or_default();
            let dead = nodes.iter().map(NodeRecord::lease).filter(|lease| lease.until < now).collect();
            told(store.bury(now, dead).await, |count| Answer::Number(count as u64))
        }
        Op::TakePlanner(alive) => told(store.take_planner(&sign(alive, now)).await, Answer::Planner),
        Op::NoteOutage { node, from } => {
            told(store.note_outage(now, node_id(*node), time(*from)).await, |()| Answer::Nothing)
        }
        Op::BeginDay { zone, day } => told(store.begin_day(now, zone, date(2026, 1, *day)).await, Answer::Yes),
        Op::ForgetAnswers { before } => {
            told(store.forget_answers(time(*before)).await, |count| Answer::Number(count as u64))
        }
        Op::Prune { before } => told(store.prune(time(*before)).await, Answer::Number),
        Op::Read(question) => read(store, question, now).await,
    }
}

async fn read(store: &dyn Store, question: &Read, now: Timestamp) -> Answer {
    match question {
        Read::Schedule { schedule } => {
            let found = store.schedule(schedule_id(*schedule)).await;
            told(found, |found| Answer::Schedules(found.into_iter().map(Arc::new).collect()))
        }
        Read::Schedules { after, limit } => {
            told(store.schedules(after.map(schedule_id), *limit).await, Answer::Schedules)
        }
        Read::Count => told(store.count_schedules().await, Answer::Number),
        Read::ToPlan { zone_data, limit } => told(store.to_plan(now, zone_data, *limit).await, Answer::Tasks),
        Read::NextPlanAt => told(store.next_plan_at().await, Answer::Time),
        Read::Subject { schedule } => {
            told(store.subject(schedule_id(*schedule), now).await, |it| Answer::Subject(Box::new(it)))
        }
        Read::ZoneDays => told(store.zone_days().await, Answer::Zones),
        Read::Run { run } => told(store.run(run_id(*run)).await, |run| Answer::Rows(run.into_iter().collect())),
        Read::Runs { schedule, from, until, which, limit } => {
            let filter = RunFilter {
                schedule: schedule.map(schedule_id),
                from: from.map(time),
                until: until.map(time),
                only_live: *which == Which::Live,
                except_succeeded: *which == Which::NotSucceeded,
                limit: *limit,
                ..RunFilter::default()
            };
            told(store.runs(&filter).await, Answer::Rows)
        }
        Read::Nodes => told(store.nodes().await.map(without_skew), Answer::Nodes),
        Read::Entries { after, limit } => told(store.entries(*after, *limit).await, Answer::Entries),
        Read::About { schedule, run, each } => {
            let (schedule, run) = (schedule_id(*schedule).0, run_id(*run).0);
            // Which of them comes first is the store's business.
            let sorted = |mut entries: Vec<Entry>| {
                entries.sort_by_key(|entry| (entry.body.subject() == Some(run), std::cmp::Reverse(entry.seq)));
                Answer::Entries(entries)
            };
            told(store.about(&[schedule, run], *each).await, sorted)
        }
        Read::Base => told(store.base().await, |base| Answer::World(Box::new(base))),
        Read::Head => told(store.head().await, Answer::Head),
        Read::History { schedule, run, offset, limit } => {
            let (schedule, run) = (schedule.map(schedule_id), run.map(run_id));
            let filter = HistoryFilter { schedule, run, offset: *offset, limit: *limit, ..HistoryFilter::default() };
            // Sums are of all pages; those of the hours before, too, which may be some days.
            let hours = i64::try_from(*offset).unwrap_or(i64::MAX).min(1_000);
            let from = (0 < hours).then(|| now - SignedDuration::from_hours(hours));
            let summed = HistoryFilter { from, ..filter.clone() };
            let (totals, count) = (store.totals(&summed).await, store.count_history(&summed).await);
            let sums = totals.and_then(|totals| Ok((totals, count?)));
            told(store.history(&filter).await.and_then(|items| Ok((items, sums?))), |(items, (totals, count))| {
                Answer::History(items, totals, count)
            })
        }
        Read::Verify => told(store.verify().await, Answer::Words),
    }
}

/// How far clocks differ is measured, not told.
fn without_skew(mut nodes: Vec<NodeRecord>) -> Vec<NodeRecord> {
    nodes.iter_mut().for_each(|node| node.about.skew = 0);
    nodes
}

fn names(names: &[&str]) -> Arc<BTreeSet<String>> {
    Arc::new(names.iter().map(|name| (*name).to_owned()).collect())
}

pub(crate) fn limits(caps: &Caps) -> Limits {
    let named = |caps: &[(&str, u32)]| caps.iter().map(|(name, max)| ((*name).to_owned(), *max)).collect();
    Limits { global: caps.global, agents: named(&caps.agents), projects: named(&caps.projects) }
}

fn sign(alive: &Alive, now: Timestamp) -> Sign {
    Sign {
        node: node_id(alive.node),
        name: format!("node {}", alive.node),
        now,
        lease: Elapsed::from_seconds(alive.lease),
        agents: names(&alive.agents),
        about: About { running: alive.agents.len(), ..About::default() },
    }
}

fn asked_run(asked: &Asked, now: Timestamp) -> Run {
    let id = run_id(asked.run);
    Run {
        id,
        schedule: asked.schedule.map(schedule_id),
        version: 1,
        key: asked.event.map_or(SlotKey::manual(id), |event| SlotKey::event(&event.to_string())),
        scheduled_at: now,
        due_at: time(asked.due),
        expires_at: asked.expires.map(time),
        follows: None,
        terms: Arc::new(Terms::of(&asked.shape.schedule(0, 1, 0))),
        state: RunState::planned(time(asked.due), 0),
        started_at: None,
        ended_at: None,
        has_started: false,
        is_parked: false,
        is_cancelling: false,
        last_end: None,
    }
}

fn write(known: &dyn Store, write: &Write) -> PlanWrite {
    let number = write.schedule;
    let schedule = schedule_id(number);
    let expected = match write.expects {
        None => Expected::New,
        Some((version, cursor)) => {
            let known = block_on(known.subject(schedule, time(cursor))).ok().flatten().map(|it| it.task.record);
            let outage = known.as_ref().and_then(|record| record.outage);
            let known = known.as_ref().map(|record| &record.schedule);
            let same = known.filter(|known| known.cursor.at == time(cursor)).map(|known| known.cursor.clone());
            let cursor = same.unwrap_or_else(|| Cursor::starting(time(cursor)));
            let early = known.map(|known| known.early.clone()).unwrap_or_default();
            Expected::At { schedule, version, cursor, early, outage }
        }
    };
    let runs = |numbers: &[RunNumber]| numbers.iter().map(|number| run_id(*number)).collect::<Vec<_>>();
    let change = match &write.change {
        Change::None => ScheduleChange::None,
        Change::Put { version, cursor, shape } => {
            ScheduleChange::Put(Box::new(shape.schedule(number, *version, *cursor)))
        }
        Change::Delete { withdrawn } => ScheduleChange::Delete { withdrawn: runs(withdrawn), next_gone: None },
    };
    let skip = |skips: &super::step::Skips| {
        let last = skips.from + 1_000 * skips.count as i64;
        SkipEntry {
            schedule,
            version: skips.version,
            agent: "a".to_owned(),
            project: None,
            first: slot_key(skips.from),
            first_at: time(skips.from),
            last: slot_key(last),
            last_at: time(last),
            count: skips.count,
            reason: skips.reason,
            pause: None,
            workflow: None,
        }
    };
    let plan = write.plan.as_ref().map(|plan| plan_entry(number, plan));
    PlanWrite {
        expected,
        change,
        skips: write.skips.iter().map(skip).collect(),
        cancelled: runs(&write.cancelled),
        plan,
        by: None,
    }
}

fn plan_entry(schedule: u32, plan: &Planned) -> PlanEntry {
    let slot = |slot: &Slot| PlannedRun {
        id: run_id(slot.run),
        key: slot_key(slot.key),
        scheduled_at: time(slot.scheduled),
        due_at: time(slot.due),
        expires_at: slot.expires.map(time),
        follows: slot.follows.map(run_id),
    };
    let outage = |(from, until, kept): (i64, i64, Option<i64>)| Outage {
        from: time(from),
        until: time(until),
        kept: kept.map(|from| Kept { from: Some(time(from)), until: time(until) }),
    };
    PlanEntry {
        schedule: schedule_id(schedule),
        version: plan.version,
        cursor: Cursor::starting(time(plan.cursor)),
        plan_at: plan.plan_at.map(time),
        zone_data: plan.zone_data.to_owned(),
        early: EarlyDecisions::default(),
        outage: plan.outage.map(outage),
        next: None,
        next_gone: None,
        was_next: false,
        runs: plan.runs.iter().map(slot).collect(),
        moved: plan.moved.iter().map(slot).collect(),
        withdrawn: plan.withdrawn.iter().map(|run| run_id(*run)).collect(),
    }
}
