//! Playing a step on a store.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::date;
use punctual_core::Elapsed;
use punctual_core::journal::{Entry, PlanEntry, PlannedRun, SkipEntry};
use punctual_core::plan::{Kept, Limits, Outage};
use punctual_core::run::{Report, Run, RunState, Terms};
use punctual_core::schedule::{Cursor, Schedule};
use punctual_core::time::SlotKey;
use punctual_store::conformance::bench::bury_the_dead;
use punctual_store::conformance::block_on;
use punctual_store::{
    About, AttemptReport, Cancellation, ClaimRequest, Claimed, Expected, Head, HistoryFilter, HistoryItem, NodeRecord,
    PlanSubject, PlanTask, PlanWrite, PlannerLease, Renewal, RunFilter, RunWritten, ScheduleChange, Settlement, Sign,
    Store, StoreError, Written, ZoneDay,
};

use super::names::{node_id, run_id, schedule_id, slot_key, time};
use super::step::{Alive, Asked, Caps, Change, Op, Planned, Read, Slot, Step, Write};

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
    Renewed(Renewal),
    Planner(PlannerLease),
    Schedules(Vec<Schedule>),
    Tasks(Vec<PlanTask>),
    Subject(Box<Option<PlanSubject>>),
    Zones(Vec<ZoneDay>),
    Rows(Vec<Run>),
    Nodes(Vec<NodeRecord>),
    Entries(Vec<Entry>),
    Head(Head),
    History(Vec<HistoryItem>),
    Words(Vec<String>),
}

fn told<T>(result: Result<T, StoreError>, answer: impl FnOnce(T) -> Answer) -> Answer {
    // The words of an error are for people; which one it is, is the answer.
    result.map_or_else(|error| Answer::Failed(format!("{error:?}")), answer)
}

pub(crate) fn play(store: &dyn Store, step: &Step) -> Answer {
    let now = time(step.now);
    match &step.op {
        Op::Plan(writes) => {
            told(block_on(store.plan(now, writes.iter().map(|it| write(store, it)).collect())), Answer::Writes)
        }
        Op::Ask(asked) => told(block_on(store.ask(now, asked_run(asked, now))), Answer::Yes),
        Op::Cancel { run } => told(block_on(store.cancel(now, run_id(*run))), Answer::Cancelled),
        Op::Resume { run } => told(block_on(store.resume(now, run_id(*run))), |run| Answer::Runs(vec![run])),
        Op::Claim { node, limit, agents, caps } => {
            let (node, limit) = (node_id(*node), *limit);
            let (agents, limits) = (names(agents), Arc::new(limits(caps)));
            told(block_on(store.claim(&ClaimRequest { node, now, limit, agents, limits })), Answer::Claimed)
        }
        Op::Settle(settled) => {
            let settlement =
                |it: &super::step::Settled| Settlement { run: run_id(it.run), epoch: it.epoch, decision: it.decision };
            told(block_on(store.settle(now, settled.iter().map(settlement).collect())), Answer::Runs)
        }
        Op::Finish(finished) => {
            let report = |it: &super::step::Finished| AttemptReport {
                run: run_id(it.run),
                epoch: it.epoch,
                event: it.event,
                report: Report { summary: Some(it.said.to_string()), ..Report::default() },
            };
            told(block_on(store.finish(now, finished.iter().map(report).collect())), Answer::Runs)
        }
        Op::Join(alive) => told(block_on(store.join(&sign(alive, now))), Answer::Renewed),
        Op::Renew(alive) => told(block_on(store.renew(&sign(alive, now))), Answer::Renewed),
        Op::Leave { node } => told(block_on(store.leave(now, node_id(*node))), |()| Answer::Nothing),
        Op::Bury => told(block_on(bury_the_dead(store, now)), |count| Answer::Number(count as u64)),
        Op::TakePlanner(alive) => told(block_on(store.take_planner(&sign(alive, now))), Answer::Planner),
        Op::NoteOutage { node, from } => {
            told(block_on(store.note_outage(now, node_id(*node), time(*from))), |()| Answer::Nothing)
        }
        Op::BeginDay { zone, day } => told(block_on(store.begin_day(now, zone, date(2026, 1, *day))), Answer::Yes),
        Op::Forget { before } => {
            told(block_on(store.forget_runs(now, time(*before))), |count| Answer::Number(count as u64))
        }
        Op::Prune { before } => told(block_on(store.prune(now, time(*before))), Answer::Number),
        Op::Read(question) => read(store, question, now),
    }
}

fn read(store: &dyn Store, question: &Read, now: Timestamp) -> Answer {
    match question {
        Read::Schedule { schedule } => {
            let found = block_on(store.schedule(schedule_id(*schedule)));
            told(found, |found| Answer::Schedules(found.into_iter().collect()))
        }
        Read::Schedules { after, limit } => {
            told(block_on(store.schedules(after.map(schedule_id), *limit)), Answer::Schedules)
        }
        Read::Count => told(block_on(store.count_schedules()), Answer::Number),
        Read::ToPlan { zone_data, limit } => told(block_on(store.to_plan(now, zone_data, *limit)), Answer::Tasks),
        Read::NextPlanAt => told(block_on(store.next_plan_at()), Answer::Time),
        Read::Subject { schedule } => {
            told(block_on(store.subject(schedule_id(*schedule), now)), |it| Answer::Subject(Box::new(it)))
        }
        Read::ZoneDays => told(block_on(store.zone_days()), Answer::Zones),
        Read::Run { run } => told(block_on(store.run(run_id(*run))), |run| Answer::Rows(run.into_iter().collect())),
        Read::Runs { schedule, from, until, only_live, limit } => {
            let filter = RunFilter {
                schedule: schedule.map(schedule_id),
                from: from.map(time),
                until: until.map(time),
                only_live: *only_live,
                limit: *limit,
            };
            told(block_on(store.runs(&filter)), Answer::Rows)
        }
        Read::Nodes => told(block_on(store.nodes()).map(without_skew), Answer::Nodes),
        Read::Entries { after, limit } => told(block_on(store.entries(*after, *limit)), Answer::Entries),
        Read::Head => told(block_on(store.head()), Answer::Head),
        Read::History { schedule, run, before, limit } => {
            let (schedule, run) = (schedule.map(schedule_id), run.map(run_id));
            let filter = HistoryFilter { schedule, run, before: *before, limit: *limit };
            told(block_on(store.history(&filter)), Answer::History)
        }
        Read::Verify => told(block_on(store.verify()), Answer::Words),
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

fn write(store: &dyn Store, write: &Write) -> PlanWrite {
    let number = write.schedule;
    let schedule = schedule_id(number);
    let expected = match write.expects {
        None => Expected::New,
        Some((version, cursor)) => {
            let outage =
                block_on(store.subject(schedule, time(cursor))).ok().flatten().and_then(|it| it.task.record.outage);
            Expected::At { schedule, version, cursor: Cursor::starting(time(cursor)), outage }
        }
    };
    let runs = |numbers: &[u32]| numbers.iter().map(|number| run_id(*number)).collect::<Vec<_>>();
    let change = match &write.change {
        Change::None => ScheduleChange::None,
        Change::Put { version, cursor, shape } => {
            ScheduleChange::Put(Box::new(shape.schedule(number, *version, *cursor)))
        }
        Change::Delete { withdrawn } => ScheduleChange::Delete { withdrawn: runs(withdrawn) },
    };
    let skip = |skips: &super::step::Skips| {
        let last = skips.from + 1_000 * skips.count as i64;
        SkipEntry {
            schedule,
            version: skips.version,
            first: slot_key(skips.from),
            first_at: time(skips.from),
            last: slot_key(last),
            last_at: time(last),
            count: skips.count,
            reason: skips.reason,
        }
    };
    let plan = write.plan.as_ref().map(|plan| plan_entry(number, plan));
    PlanWrite { expected, change, skips: write.skips.iter().map(skip).collect(), let_go: runs(&write.let_go), plan }
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
        kept: kept.map(|from| Kept { waiting_from: None, unplanned_from: Some(time(from)), until: time(until) }),
    };
    PlanEntry {
        schedule: schedule_id(schedule),
        version: plan.version,
        cursor: Cursor::starting(time(plan.cursor)),
        plan_at: plan.plan_at.map(time),
        zone_data: plan.zone_data.to_owned(),
        outage: plan.outage.map(outage),
        runs: plan.runs.iter().map(slot).collect(),
        moved: plan.moved.iter().map(slot).collect(),
        withdrawn: plan.withdrawn.iter().map(|run| run_id(*run)).collect(),
    }
}
