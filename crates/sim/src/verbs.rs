//! The verbs of the store: what is written goes through the kernel, what is read comes from the rows.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;
use punctual_core::journal::{Entry, World};
use punctual_core::run::Run;
use punctual_core::schedule::Schedule;
use punctual_core::{By, NodeId, RunId, ScheduleId, Token, TokenId};
use punctual_kernel::transaction::{Needs, Transaction, needs_of_ask};
use punctual_store::{
    Answers, AttemptReport, Cancellation, ClaimRequest, Claimed, Claims, Head, History, HistoryFilter, HistoryItem,
    Journal, Keep, LiveCounts, NodeLease, NodeRecord, Nodes, Output, Piece, Plan, PlanSubject, PlanTask, PlanWrite,
    PlannerLease, PrintedPiece, RecordFilter, RecordPage, Records, Renewal, Result, RunFilter, RunWritten, Runs,
    ScheduleFilter, SchedulePage, Schedules, Settlement, SharedTime, Sign, StartRequest, Started, TokenRecord, Tokens,
    Totals, Written, ZoneDay,
};
use uuid::Uuid;

use crate::faults::CallKind::{Read, Row, Upkeep, Write};
use crate::invariants::ownership;
use crate::sim::locked;
use crate::store::FaultyStore;

/// So many entries are let go at a time.
const PRUNE_PIECE: usize = 500;

/// What a command needs to read: these runs, should they be over, and the request that it was asked by.
fn needs(runs: impl IntoIterator<Item = RunId>, by: Option<&By>) -> Needs {
    Needs { runs: runs.into_iter().collect(), ..Needs::default() }.asked_by(by)
}

/// What nodes that come or go need: that none renews its lease in the same moment.
fn locking_nodes() -> Needs {
    Needs { locks_nodes: true, ..Needs::default() }
}

#[async_trait]
impl Schedules for FaultyStore {
    async fn schedule(&self, id: ScheduleId) -> Result<Option<Schedule>> {
        self.call("schedule", Read, self.rows().schedule(id)).await
    }

    async fn schedule_of_slot(&self, run: RunId) -> Result<Option<Schedule>> {
        self.call("schedule_of_slot", Read, self.rows().schedule_of_slot(run)).await
    }

    async fn schedules(&self, after: Option<ScheduleId>, limit: usize) -> Result<Vec<Arc<Schedule>>> {
        self.call("schedules", Read, self.rows().schedules(after, limit)).await
    }

    async fn count_schedules(&self) -> Result<u64> {
        self.call("count_schedules", Read, self.rows().count_schedules()).await
    }

    async fn find_schedules(&self, filter: &ScheduleFilter) -> Result<SchedulePage> {
        self.call("find_schedules", Read, self.rows().find_schedules(filter)).await
    }
}

#[async_trait]
impl Plan for FaultyStore {
    async fn to_plan(&self, now: Timestamp, zone_data: &str, limit: usize) -> Result<Vec<PlanTask>> {
        self.call("to_plan", Read, self.rows().to_plan(now, zone_data, limit)).await
    }

    async fn next_plan_at(&self) -> Result<Option<Timestamp>> {
        self.call("next_plan_at", Read, self.rows().next_plan_at()).await
    }

    async fn subject(&self, id: ScheduleId, now: Timestamp) -> Result<Option<PlanSubject>> {
        self.call("subject", Read, self.rows().subject(id, now)).await
    }

    async fn plan(&self, now: Timestamp, writes: Vec<PlanWrite>) -> Result<Vec<Written>> {
        let kind = if writes.is_empty() { Read } else { Write };
        let all = writes.iter().fold(Needs::default(), |needs, write| needs.asked_by(write.by.as_ref()));
        let plan = |transaction: &mut Transaction<'_>| transaction.plan_all(now, &writes);
        self.write("plan", kind, all, plan).await
    }

    async fn zone_days(&self) -> Result<Vec<ZoneDay>> {
        self.call("zone_days", Read, self.rows().zone_days()).await
    }

    async fn begin_day(&self, now: Timestamp, zone: &str, date: Date) -> Result<bool> {
        self.write("begin_day", Upkeep, Needs::default(), |it| Ok(it.begin_day(now, zone, date))).await
    }
}

#[async_trait]
impl Runs for FaultyStore {
    async fn run(&self, id: RunId) -> Result<Option<Run>> {
        self.call("run", Read, self.rows().run(id)).await
    }

    async fn live_counts(&self, now: Timestamp) -> Result<LiveCounts> {
        self.call("live_counts", Read, self.rows().live_counts(now)).await
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<Run>> {
        self.call("runs", Read, self.rows().runs(filter)).await
    }

    async fn ask(&self, now: Timestamp, run: Run, by: Option<By>) -> Result<bool> {
        let needs = needs_of_ask(&run, by.as_ref());
        self.write("ask", Write, needs, |it| it.ask(now, run.clone(), by.clone())).await
    }

    async fn cancel(&self, now: Timestamp, id: RunId, by: Option<By>) -> Result<Cancellation> {
        let needs = needs([id], by.as_ref());
        self.write("cancel", Write, needs, |it| it.cancel(now, id, by.clone())).await
    }

    async fn resume(&self, now: Timestamp, id: RunId, epoch: Option<u64>, by: Option<By>) -> Result<RunWritten> {
        let needs = needs([], by.as_ref());
        self.write("resume", Write, needs, |it| it.resume(now, id, epoch, by.clone())).await
    }
}

#[async_trait]
impl Claims for FaultyStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed> {
        self.write("claim", Upkeep, Needs::default(), |it| it.claim(request)).await
    }

    async fn start(&self, request: &StartRequest) -> Result<Started> {
        self.write("start", Upkeep, Needs::default(), |it| it.start(request)).await
    }

    async fn settle(&self, now: Timestamp, settlements: Vec<Settlement>) -> Result<Vec<RunWritten>> {
        let named: Vec<(RunId, u64)> = settlements.iter().map(|it| (it.run, it.epoch)).collect();
        let before = Mutex::default();
        let needs = Needs::default();
        let settle = |it: &mut Transaction<'_>| {
            *locked(&before) = ownership::before_write(&self.sim.log, &named);
            Ok(it.settle(now, &settlements))
        };
        let committed = |replies: &Vec<RunWritten>| self.check_write(&named, &locked(&before), replies);
        self.write_and("settle", Write, needs, settle, committed).await
    }

    async fn finish(&self, now: Timestamp, reports: Vec<AttemptReport>) -> Result<Vec<RunWritten>> {
        let named: Vec<(RunId, u64)> = reports.iter().map(|it| (it.run, it.epoch)).collect();
        let before = Mutex::default();
        let needs = needs(named.iter().map(|(run, _)| *run), None);
        let finish = |it: &mut Transaction<'_>| {
            *locked(&before) = ownership::before_write(&self.sim.log, &named);
            Ok(it.finish(now, reports.clone()))
        };
        let committed = |replies: &Vec<RunWritten>| self.check_write(&named, &locked(&before), replies);
        self.write_and("finish", Write, needs, finish, committed).await
    }
}

impl FaultyStore {
    /// Lets entries go in pieces, between which others write.
    async fn prune_all(&self, before: Timestamp) -> Result<u64> {
        let mut all = 0;
        loop {
            let gone = self.sim.log.prune(before, PRUNE_PIECE);
            let gone = gone.unwrap_or_else(|violation| {
                self.sim.check(Err(violation));
                0
            });
            all += gone as u64;
            if gone < PRUNE_PIECE {
                self.sim.tell(format_args!("p{} lets go of {all} entries", self.group));
                return Ok(all);
            }
            self.sim.wait(Duration::from_millis(5)).await;
        }
    }

    fn check_write(&self, named: &[(RunId, u64)], before: &[Option<Run>], replies: &[RunWritten]) {
        let is_lost = |(run, epoch)| self.sim.ledger().effects.is_lost(self.group, run, epoch);
        self.sim.check(ownership::after_write(&self.sim.log, named, before, replies, is_lost));
        let ledger = self.sim.ledger();
        self.sim.check(ownership::said_again(named, before, replies, ledger.lives.ends()));
    }
}

#[async_trait]
impl Nodes for FaultyStore {
    fn is_exclusive(&self) -> bool {
        self.sim.setup.is_exclusive
    }

    fn shared_time(&self) -> Option<SharedTime> {
        self.hearing.last()
    }

    async fn join(&self, sign: &Sign) -> Result<Renewal> {
        self.sim.ledger().nodes.knows(sign.node, self.group);
        let sent_at = self.sim.timeline.boot();
        let valid_until = Mutex::new(sent_at);
        let join = |it: &mut Transaction<'_>| {
            // Where one process has the store for itself, every earlier node is dead.
            if self.is_exclusive() {
                let earlier: Vec<NodeId> = it.cluster.nodes.keys().copied().filter(|id| *id != sign.node).collect();
                earlier.into_iter().for_each(|node| it.remove_node(node, sign.now, true));
            }
            it.join(sign)
        };
        let committed = |renewal: &Renewal| *locked(&valid_until) = self.lease(sent_at, sign, renewal.at);
        let renewal = self.write_and("join", Upkeep, locking_nodes(), join, committed).await?;
        let valid_until = *locked(&valid_until);
        self.sim.ledger().nodes.renewed(sign.node, valid_until);
        Ok(renewal)
    }

    async fn renew(&self, sign: &Sign) -> Result<Renewal> {
        let sent_at = self.sim.timeline.boot();
        let (renewal, valid_until) = self.call("renew", Row, self.renew_row(sent_at, sign)).await?;
        if !self.is_exclusive() {
            self.hearing.hear(&self.sim, self.group, sent_at, renewal.at);
        }
        self.sim.ledger().nodes.renewed(sign.node, valid_until);
        Ok(renewal)
    }

    async fn leave(&self, now: Timestamp, node: NodeId) -> Result<()> {
        self.sim.ledger().nodes.leaves(node);
        let leave = |it: &mut Transaction<'_>| {
            it.leave(now, node);
            Ok(())
        };
        self.write("leave", Upkeep, locking_nodes(), leave).await
    }

    async fn bury(&self, now: Timestamp, dead: Vec<NodeLease>) -> Result<usize> {
        self.write("bury", Upkeep, locking_nodes(), |it| Ok(it.bury(now, &dead))).await
    }

    async fn nodes(&self) -> Result<Vec<NodeRecord>> {
        self.call("nodes", Read, self.rows().nodes()).await
    }

    async fn take_planner(&self, sign: &Sign) -> Result<PlannerLease> {
        let sim = &self.sim;
        let before = Mutex::default();
        let take = |it: &mut Transaction<'_>| {
            *locked(&before) = it.cluster.planner;
            it.take_planner(sign)
        };
        let committed = |lease: &PlannerLease| {
            sim.check(sim.log.look(|rows| ownership::planner_taken(*locked(&before), sign, lease, rows)));
        };
        self.write_and("take_planner", Upkeep, Needs::default(), take, committed).await
    }

    async fn planned_until(&self) -> Result<Option<Timestamp>> {
        let read = |it: &mut Transaction<'_>| Ok(it.cluster.planner.map(|planner| planner.until));
        self.write("planned_until", Upkeep, Needs::default(), read).await
    }

    async fn note_outage(&self, now: Timestamp, node: NodeId, from: Timestamp) -> Result<()> {
        self.write("note_outage", Write, Needs::default(), |it| it.note_outage(now, node, from)).await
    }
}

#[async_trait]
impl Journal for FaultyStore {
    async fn entries(&self, after: u64, limit: usize) -> Result<Vec<Entry>> {
        self.call("entries", Read, self.rows().entries(after, limit)).await
    }

    async fn head(&self) -> Result<Head> {
        self.call("head", Read, async { Ok(self.sim.log.head()) }).await
    }

    async fn about(&self, subjects: &[Uuid], each: usize) -> Result<Vec<Entry>> {
        self.call("about", Read, self.rows().about(subjects, each)).await
    }

    async fn base(&self) -> Result<World> {
        self.call("base", Read, self.rows().base()).await
    }

    async fn prune(&self, before: Timestamp) -> Result<u64> {
        self.call("prune", Row, self.prune_all(before)).await
    }

    async fn verify(&self) -> Result<Vec<String>> {
        self.call("verify", Read, self.rows().verify()).await
    }
}

#[async_trait]
impl History for FaultyStore {
    async fn history(&self, filter: &HistoryFilter) -> Result<Vec<HistoryItem>> {
        self.call("history", Read, self.rows().history(filter)).await
    }

    async fn count_history(&self, filter: &HistoryFilter) -> Result<u64> {
        self.call("count_history", Read, self.rows().count_history(filter)).await
    }

    async fn totals(&self, filter: &HistoryFilter) -> Result<Vec<Totals>> {
        self.call("totals", Read, self.rows().totals(filter)).await
    }
}

#[async_trait]
impl Records for FaultyStore {
    async fn records(&self, filter: &RecordFilter) -> Result<RecordPage> {
        self.call("records", Read, self.rows().records(filter)).await
    }

    async fn archive(&self, schedules: Option<&[ScheduleId]>, keep: Keep) -> Result<usize> {
        self.call("archive", Row, self.rows().archive(schedules, keep)).await
    }
}

#[async_trait]
impl Tokens for FaultyStore {
    async fn tokens(&self) -> Result<Vec<TokenRecord>> {
        self.call("tokens", Read, self.rows().tokens()).await
    }

    async fn make_token(&self, now: Timestamp, token: Token, by: Option<By>) -> Result<()> {
        let needs = needs([], by.as_ref());
        self.write("make_token", Write, needs, |it| it.make_token(now, token.clone(), by.clone())).await
    }

    async fn revoke_token(&self, now: Timestamp, id: TokenId, by: Option<By>) -> Result<bool> {
        self.write("revoke_token", Write, Needs::default(), |it| Ok(it.revoke_token(now, id, by.clone()))).await
    }

    async fn note_used(&self, used: Vec<(TokenId, Timestamp)>) -> Result<()> {
        self.call("note_used", Row, self.rows().note_used(used)).await
    }
}

#[async_trait]
impl Answers for FaultyStore {
    async fn forget_answers(&self, before: Timestamp) -> Result<usize> {
        self.call("forget_answers", Row, self.rows().forget_answers(before)).await
    }
}

#[async_trait]
impl Output for FaultyStore {
    async fn print(&self, pieces: Vec<Piece>, keep: u64) -> Result<()> {
        self.call("print", Row, self.rows().print(pieces, keep)).await
    }

    async fn printed(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<PrintedPiece>> {
        self.call("printed", Read, self.rows().printed(run, after, limit)).await
    }

    async fn forget_output(&self, before: Timestamp) -> Result<usize> {
        self.call("forget_output", Row, self.rows().forget_output(before)).await
    }
}
