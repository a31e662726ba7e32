//! The store as a process sees it: the model behind a line that is slow, breaks, loses answers, and kills.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;
use punctual_core::journal::Entry;
use punctual_core::run::Run;
use punctual_core::schedule::Schedule;
use punctual_core::{By, NodeId, RunId, ScheduleId, Token, TokenId};
use punctual_store::{
    Answers, AttemptReport, Cancellation, ClaimRequest, Claimed, Claims, Head, History, HistoryFilter, HistoryItem,
    Journal, Keep, LiveCounts, NodeLease, NodeRecord, Nodes, Output, Piece, Plan, PlanSubject, PlanTask, PlanWrite,
    PlannerLease, PrintedPiece, RecordFilter, RecordPage, Records, Renewal, Result, RunFilter, RunWritten, Runs,
    ScheduleFilter, SchedulePage, Schedules, Settlement, SharedTime, Sign, StoreError, TokenRecord, Tokens, Totals,
    Written, ZoneDay,
};

use crate::faults::CallKind::{Read, Upkeep, Write};
use crate::faults::{CallFate, CallKind};
use crate::hearing::Hearing;
use crate::invariants::ownership;
use crate::sim::Sim;
use crate::standby::Seen;
use crate::timeline::Group;

/// The store of one process.
pub(crate) struct FaultyStore {
    sim: Arc<Sim>,
    group: Group,
    hearing: Hearing,
    seen: Seen,
}

impl FaultyStore {
    /// Opens the store for a process, which hears its time if it has one.
    pub(crate) fn open(sim: &Arc<Sim>, group: Group) -> FaultyStore {
        let hearing = Hearing::default();
        if !sim.setup.is_exclusive {
            hearing.hear(sim, group, sim.timeline.boot(), sim.timeline.now());
        }
        FaultyStore { sim: Arc::clone(sim), group, hearing, seen: Seen::default() }
    }

    /// A node says that it lives. Until when it may believe so is told to the ledger.
    async fn sign(
        &self,
        name: &str,
        sign: &Sign,
        call: impl Future<Output = Result<Renewal>> + Send,
    ) -> Result<Renewal> {
        let Sim { timeline, setup, .. } = &*self.sim;
        let sent_at = timeline.boot();
        let mut valid_until = sent_at;
        let call = async {
            let renewal = call.await?;
            // A lease that a clock behind the store's has given is so much shorter.
            let behind = Duration::try_from(renewal.at.duration_since(sign.now)).unwrap_or_default();
            valid_until = timeline.boot().saturating_sub(behind).min(sent_at) + setup.lease;
            self.sim.ledger().nodes.leased(sign.node, valid_until);
            Ok(renewal)
        };
        let renewal = self.call(name, Upkeep, call).await?;
        if !setup.is_exclusive && name == "renew" {
            self.hearing.hear(&self.sim, self.group, sent_at, renewal.at);
        }
        self.sim.ledger().nodes.renewed(sign.node, valid_until);
        Ok(renewal)
    }

    /// Lets a call meet its fate.
    async fn call<T: Send>(
        &self,
        name: &str,
        kind: CallKind,
        call: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let sim = &self.sim;
        let call = async {
            if kind != Read {
                self.seen.notice(sim)?;
            }
            let answer = call.await;
            if kind != Read {
                self.seen.catch_up(sim);
            }
            answer
        };
        let fate = sim.faults().fate(self.group, kind, sim.timeline.boot());
        if !matches!(fate, CallFate::Works(before, after) if before.max(after) < Duration::from_secs(1)) {
            sim.tell(format_args!("p{} {name}: {fate:?}", self.group));
        }
        let failed = || StoreError::Unavailable { doing: "simulating", source: "the line broke".into() };
        match fate {
            CallFate::Works(before, after) => {
                sim.wait(before).await;
                let answer = call.await;
                sim.observe(self.group);
                sim.wait(after).await;
                answer
            }
            CallFate::ReplyLost(after) => {
                call.await?;
                sim.observe(self.group);
                sim.wait(after).await;
                Err(failed())
            }
            CallFate::Fails(after) => {
                sim.wait(after).await;
                Err(failed())
            }
            CallFate::DiskFull => Err(StoreError::DiskFull),
            CallFate::CrashBefore => self.crash().await,
            CallFate::CrashAfter => {
                call.await?;
                sim.observe(self.group);
                self.crash().await
            }
        }
    }

    async fn crash<T>(&self) -> T {
        crate::cluster::crash(&self.sim, self.group);
        std::future::pending().await
    }
}

#[async_trait]
impl Schedules for FaultyStore {
    async fn schedule(&self, id: ScheduleId) -> Result<Option<Schedule>> {
        self.call("schedule", Read, self.sim.store.schedule(id)).await
    }

    async fn schedules(&self, after: Option<ScheduleId>, limit: usize) -> Result<Vec<Schedule>> {
        self.call("schedules", Read, self.sim.store.schedules(after, limit)).await
    }

    async fn count_schedules(&self) -> Result<u64> {
        self.call("count_schedules", Read, self.sim.store.count_schedules()).await
    }

    async fn find_schedules(&self, filter: &ScheduleFilter) -> Result<SchedulePage> {
        self.call("find_schedules", Read, self.sim.store.find_schedules(filter)).await
    }
}

#[async_trait]
impl Plan for FaultyStore {
    async fn to_plan(&self, now: Timestamp, zone_data: &str, limit: usize) -> Result<Vec<PlanTask>> {
        self.call("to_plan", Read, self.sim.store.to_plan(now, zone_data, limit)).await
    }

    async fn next_plan_at(&self) -> Result<Option<Timestamp>> {
        self.call("next_plan_at", Read, self.sim.store.next_plan_at()).await
    }

    async fn subject(&self, id: ScheduleId, now: Timestamp) -> Result<Option<PlanSubject>> {
        self.call("subject", Read, self.sim.store.subject(id, now)).await
    }

    async fn plan(&self, now: Timestamp, writes: Vec<PlanWrite>) -> Result<Vec<Written>> {
        let kind = if writes.is_empty() { Read } else { Write };
        self.call("plan", kind, self.sim.store.plan(now, writes)).await
    }

    async fn zone_days(&self) -> Result<Vec<ZoneDay>> {
        self.call("zone_days", Read, self.sim.store.zone_days()).await
    }

    async fn begin_day(&self, now: Timestamp, zone: &str, date: Date) -> Result<bool> {
        self.call("begin_day", Upkeep, self.sim.store.begin_day(now, zone, date)).await
    }
}

#[async_trait]
impl Runs for FaultyStore {
    async fn run(&self, id: RunId) -> Result<Option<Run>> {
        self.call("run", Read, self.sim.store.run(id)).await
    }

    async fn live_counts(&self, now: Timestamp) -> Result<LiveCounts> {
        self.call("live_counts", Read, self.sim.store.live_counts(now)).await
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<Run>> {
        self.call("runs", Read, self.sim.store.runs(filter)).await
    }

    async fn ask(&self, now: Timestamp, run: Run, by: Option<By>) -> Result<bool> {
        self.call("ask", Write, self.sim.store.ask(now, run, by)).await
    }

    async fn cancel(&self, now: Timestamp, id: RunId, by: Option<By>) -> Result<Cancellation> {
        self.call("cancel", Write, self.sim.store.cancel(now, id, by)).await
    }

    async fn resume(&self, now: Timestamp, id: RunId, epoch: Option<u64>, by: Option<By>) -> Result<RunWritten> {
        self.call("resume", Write, self.sim.store.resume(now, id, epoch, by)).await
    }
}

#[async_trait]
impl Claims for FaultyStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed> {
        self.call("claim", Upkeep, self.sim.store.claim(request)).await
    }

    async fn settle(&self, now: Timestamp, settlements: Vec<Settlement>) -> Result<Vec<RunWritten>> {
        let sim = &self.sim;
        let named: Vec<(RunId, u64)> = settlements.iter().map(|it| (it.run, it.epoch)).collect();
        let settle = async {
            let before = ownership::before_write(&sim.store, &named);
            let answers = sim.store.settle(now, settlements).await?;
            let is_lost = |(run, epoch)| sim.ledger().effects.is_lost(self.group, run, epoch);
            sim.check(ownership::after_write(&sim.store, &named, &before, &answers, is_lost));
            Ok(answers)
        };
        self.call("settle", Write, settle).await
    }

    async fn finish(&self, now: Timestamp, reports: Vec<AttemptReport>) -> Result<Vec<RunWritten>> {
        let sim = &self.sim;
        let named: Vec<(RunId, u64)> = reports.iter().map(|it| (it.run, it.epoch)).collect();
        let finish = async {
            let before = ownership::before_write(&sim.store, &named);
            let answers = sim.store.finish(now, reports).await?;
            let is_lost = |(run, epoch)| sim.ledger().effects.is_lost(self.group, run, epoch);
            sim.check(ownership::after_write(&sim.store, &named, &before, &answers, is_lost));
            Ok(answers)
        };
        self.call("finish", Write, finish).await
    }
}

#[async_trait]
impl Nodes for FaultyStore {
    fn is_exclusive(&self) -> bool {
        self.sim.store.is_exclusive()
    }

    fn shared_time(&self) -> Option<SharedTime> {
        self.hearing.last()
    }

    async fn join(&self, sign: &Sign) -> Result<Renewal> {
        self.sim.ledger().nodes.knows(sign.node, self.group);
        self.sign("join", sign, self.sim.store.join(sign)).await
    }

    async fn renew(&self, sign: &Sign) -> Result<Renewal> {
        self.sign("renew", sign, self.sim.store.renew(sign)).await
    }

    async fn leave(&self, now: Timestamp, node: NodeId) -> Result<()> {
        self.sim.ledger().nodes.leaves(node);
        self.call("leave", Upkeep, self.sim.store.leave(now, node)).await
    }

    async fn bury(&self, now: Timestamp, dead: Vec<NodeLease>) -> Result<usize> {
        self.call("bury", Upkeep, self.sim.store.bury(now, dead)).await
    }

    async fn nodes(&self) -> Result<Vec<NodeRecord>> {
        self.call("nodes", Read, self.sim.store.nodes()).await
    }

    async fn take_planner(&self, sign: &Sign) -> Result<PlannerLease> {
        let sim = &self.sim;
        let take = async {
            let before = sim.store.look(|state| state.planner);
            let lease = sim.store.take_planner(sign).await?;
            sim.check(sim.store.look(|state| ownership::planner_taken(before, sign, &lease, state)));
            Ok(lease)
        };
        self.call("take_planner", Upkeep, take).await
    }

    async fn note_outage(&self, now: Timestamp, node: NodeId, from: Timestamp) -> Result<()> {
        self.call("note_outage", Write, self.sim.store.note_outage(now, node, from)).await
    }
}

#[async_trait]
impl Journal for FaultyStore {
    async fn entries(&self, after: u64, limit: usize) -> Result<Vec<Entry>> {
        self.call("entries", Read, self.sim.store.entries(after, limit)).await
    }

    async fn head(&self) -> Result<Head> {
        self.call("head", Read, self.sim.store.head()).await
    }

    async fn forget_runs(&self, now: Timestamp, before: Timestamp) -> Result<usize> {
        self.call("forget_runs", Upkeep, self.sim.store.forget_runs(now, before)).await
    }

    async fn prune(&self, now: Timestamp, before: Timestamp) -> Result<u64> {
        self.call("prune", Upkeep, self.sim.store.prune(now, before)).await
    }

    async fn verify(&self) -> Result<Vec<String>> {
        self.call("verify", Read, self.sim.store.verify()).await
    }
}

#[async_trait]
impl History for FaultyStore {
    async fn history(&self, filter: &HistoryFilter) -> Result<Vec<HistoryItem>> {
        self.call("history", Read, self.sim.store.history(filter)).await
    }

    async fn count_history(&self, filter: &HistoryFilter) -> Result<u64> {
        self.call("count_history", Read, self.sim.store.count_history(filter)).await
    }

    async fn totals(&self, filter: &HistoryFilter) -> Result<Vec<Totals>> {
        self.call("totals", Read, self.sim.store.totals(filter)).await
    }
}

#[async_trait]
impl Records for FaultyStore {
    async fn records(&self, filter: &RecordFilter) -> Result<RecordPage> {
        self.call("records", Read, self.sim.store.records(filter)).await
    }

    async fn archive(&self, schedules: Option<&[ScheduleId]>, keep: Keep) -> Result<usize> {
        self.call("archive", Write, self.sim.store.archive(schedules, keep)).await
    }
}

#[async_trait]
impl Tokens for FaultyStore {
    async fn tokens(&self) -> Result<Vec<TokenRecord>> {
        self.call("tokens", Read, self.sim.store.tokens()).await
    }

    async fn make_token(&self, now: Timestamp, token: Token, by: Option<By>) -> Result<()> {
        self.call("make_token", Write, self.sim.store.make_token(now, token, by)).await
    }

    async fn revoke_token(&self, now: Timestamp, id: TokenId, by: Option<By>) -> Result<bool> {
        self.call("revoke_token", Write, self.sim.store.revoke_token(now, id, by)).await
    }

    async fn note_used(&self, used: Vec<(TokenId, Timestamp)>) -> Result<()> {
        self.call("note_used", Write, self.sim.store.note_used(used)).await
    }
}

#[async_trait]
impl Answers for FaultyStore {
    async fn forget_answers(&self, before: Timestamp) -> Result<usize> {
        self.call("forget_answers", Write, self.sim.store.forget_answers(before)).await
    }
}

#[async_trait]
impl Output for FaultyStore {
    async fn print(&self, pieces: Vec<Piece>, keep: u64) -> Result<()> {
        self.call("print", Write, self.sim.store.print(pieces, keep)).await
    }

    async fn printed(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<PrintedPiece>> {
        self.call("printed", Read, self.sim.store.printed(run, after, limit)).await
    }

    async fn forget_output(&self, before: Timestamp) -> Result<usize> {
        self.call("forget_output", Write, self.sim.store.forget_output(before)).await
    }
}
