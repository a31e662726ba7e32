//! Several nodes in turn: each call goes to another handle of one database. What one writes, the next has to have read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;
use punctual_core::journal::{Entry, World};
use punctual_core::run::Run;
use punctual_core::schedule::Schedule;
use punctual_core::{By, NodeId, RunId, ScheduleId, Token, TokenId};
use punctual_store::conformance::block_on;
use punctual_store::postgres::PostgresStore;
use punctual_store::{
    Answers, AttemptReport, Cancellation, ClaimRequest, Claimed, Claims, Head, History, HistoryFilter, HistoryItem,
    Journal, Keep, LiveCounts, NodeLease, NodeRecord, Nodes, Output, Piece, Plan, PlanSubject, PlanTask, PlanWrite,
    PlannerLease, PrintedPiece, RecordFilter, RecordPage, Records, Renewal, Result, RunFilter, RunWritten, Runs,
    ScheduleFilter, SchedulePage, Schedules, Settlement, SharedTime, Sign, StartRequest, Started, TokenRecord, Tokens,
    Totals, Written, ZoneDay,
};
use uuid::Uuid;

use super::{fresh_schema, open};

/// Handles of one database that take turns.
pub(crate) struct InTurns {
    handles: Vec<PostgresStore>,
    turn: AtomicUsize,
}

impl InTurns {
    /// So many handles of a fresh schema, each with a state of its own from the beginning.
    pub(crate) fn fresh(count: usize) -> InTurns {
        let address = fresh_schema();
        let handles: Vec<PostgresStore> = (0..count).map(|_| open(&address)).collect();
        for handle in &handles {
            // It changes nothing, and has to look.
            block_on(handle.resume(Timestamp::UNIX_EPOCH, RunId(Uuid::nil()), None, None)).expect("the store answers");
        }
        InTurns { handles, turn: AtomicUsize::new(0) }
    }

    /// The one whose turn it is.
    fn next(&self) -> &PostgresStore {
        &self.handles[self.turn.fetch_add(1, Ordering::Relaxed) % self.handles.len()]
    }
}

#[async_trait]
impl Schedules for InTurns {
    async fn schedule(&self, id: ScheduleId) -> Result<Option<Schedule>> {
        self.next().schedule(id).await
    }
    async fn schedule_of_slot(&self, run: RunId) -> Result<Option<Schedule>> {
        self.next().schedule_of_slot(run).await
    }

    async fn schedules(&self, after: Option<ScheduleId>, limit: usize) -> Result<Vec<Arc<Schedule>>> {
        self.next().schedules(after, limit).await
    }
    async fn count_schedules(&self) -> Result<u64> {
        self.next().count_schedules().await
    }
    async fn find_schedules(&self, filter: &ScheduleFilter) -> Result<SchedulePage> {
        self.next().find_schedules(filter).await
    }
}

#[async_trait]
impl Plan for InTurns {
    async fn to_plan(&self, now: Timestamp, zone_data: &str, limit: usize) -> Result<Vec<PlanTask>> {
        self.next().to_plan(now, zone_data, limit).await
    }
    async fn next_plan_at(&self) -> Result<Option<Timestamp>> {
        self.next().next_plan_at().await
    }
    async fn subject(&self, id: ScheduleId, now: Timestamp) -> Result<Option<PlanSubject>> {
        self.next().subject(id, now).await
    }
    async fn plan(&self, now: Timestamp, writes: Vec<PlanWrite>) -> Result<Vec<Written>> {
        self.next().plan(now, writes).await
    }
    async fn zone_days(&self) -> Result<Vec<ZoneDay>> {
        self.next().zone_days().await
    }
    async fn begin_day(&self, now: Timestamp, zone: &str, date: Date) -> Result<bool> {
        self.next().begin_day(now, zone, date).await
    }
}

#[async_trait]
impl Runs for InTurns {
    async fn run(&self, id: RunId) -> Result<Option<Run>> {
        self.next().run(id).await
    }
    async fn live_counts(&self, now: Timestamp) -> Result<LiveCounts> {
        self.next().live_counts(now).await
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<Run>> {
        self.next().runs(filter).await
    }
    async fn ask(&self, now: Timestamp, run: Run, by: Option<By>) -> Result<bool> {
        self.next().ask(now, run, by).await
    }
    async fn cancel(&self, now: Timestamp, id: RunId, by: Option<By>) -> Result<Cancellation> {
        self.next().cancel(now, id, by).await
    }
    async fn resume(&self, now: Timestamp, id: RunId, epoch: Option<u64>, by: Option<By>) -> Result<RunWritten> {
        self.next().resume(now, id, epoch, by).await
    }
}

#[async_trait]
impl Claims for InTurns {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed> {
        self.next().claim(request).await
    }
    async fn start(&self, request: &StartRequest) -> Result<Started> {
        self.next().start(request).await
    }
    async fn settle(&self, now: Timestamp, settlements: Vec<Settlement>) -> Result<Vec<RunWritten>> {
        self.next().settle(now, settlements).await
    }
    async fn finish(&self, now: Timestamp, reports: Vec<AttemptReport>) -> Result<Vec<RunWritten>> {
        self.next().finish(now, reports).await
    }
}

#[async_trait]
impl Nodes for InTurns {
    fn is_exclusive(&self) -> bool {
        self.next().is_exclusive()
    }
    fn shared_time(&self) -> Option<SharedTime> {
        self.next().shared_time()
    }
    async fn join(&self, sign: &Sign) -> Result<Renewal> {
        self.next().join(sign).await
    }
    async fn renew(&self, sign: &Sign) -> Result<Renewal> {
        self.next().renew(sign).await
    }
    async fn leave(&self, now: Timestamp, node: NodeId) -> Result<()> {
        self.next().leave(now, node).await
    }
    async fn bury(&self, now: Timestamp, dead: Vec<NodeLease>) -> Result<usize> {
        self.next().bury(now, dead).await
    }
    async fn nodes(&self) -> Result<Vec<NodeRecord>> {
        self.next().nodes().await
    }
    async fn take_planner(&self, sign: &Sign) -> Result<PlannerLease> {
        self.next().take_planner(sign).await
    }
    async fn planned_until(&self) -> Result<Option<Timestamp>> {
        self.next().planned_until().await
    }
    async fn note_outage(&self, now: Timestamp, node: NodeId, from: Timestamp) -> Result<()> {
        self.next().note_outage(now, node, from).await
    }
}

#[async_trait]
impl Journal for InTurns {
    async fn entries(&self, after: u64, limit: usize) -> Result<Vec<Entry>> {
        self.next().entries(after, limit).await
    }
    async fn head(&self) -> Result<Head> {
        self.next().head().await
    }
    async fn about(&self, subjects: &[Uuid], each: usize) -> Result<Vec<Entry>> {
        self.next().about(subjects, each).await
    }
    async fn base(&self) -> Result<World> {
        self.next().base().await
    }
    async fn prune(&self, before: Timestamp) -> Result<u64> {
        self.next().prune(before).await
    }
    async fn verify(&self) -> Result<Vec<String>> {
        self.next().verify().await
    }
}

#[async_trait]
impl History for InTurns {
    async fn history(&self, filter: &HistoryFilter) -> Result<Vec<HistoryItem>> {
        self.next().history(filter).await
    }
    async fn count_history(&self, filter: &HistoryFilter) -> Result<u64> {
        self.next().count_history(filter).await
    }
    async fn totals(&self, filter: &HistoryFilter) -> Result<Vec<Totals>> {
        self.next().totals(filter).await
    }
}

#[async_trait]
impl Records for InTurns {
    async fn records(&self, filter: &RecordFilter) -> Result<RecordPage> {
        self.next().records(filter).await
    }
    async fn archive(&self, schedules: Option<&[ScheduleId]>, keep: Keep) -> Result<usize> {
        self.next().archive(schedules, keep).await
    }
}

#[async_trait]
impl Tokens for InTurns {
    async fn tokens(&self) -> Result<Vec<TokenRecord>> {
        self.next().tokens().await
    }

    async fn make_token(&self, now: Timestamp, token: Token, by: Option<By>) -> Result<()> {
        self.next().make_token(now, token, by).await
    }

    async fn revoke_token(&self, now: Timestamp, id: TokenId, by: Option<By>) -> Result<bool> {
        self.next().revoke_token(now, id, by).await
    }

    async fn note_used(&self, used: Vec<(TokenId, Timestamp)>) -> Result<()> {
        self.next().note_used(used).await
    }
}

#[async_trait]
impl Answers for InTurns {
    async fn forget_answers(&self, before: Timestamp) -> Result<usize> {
        self.next().forget_answers(before).await
    }
}

#[async_trait]
impl Output for InTurns {
    async fn print(&self, pieces: Vec<Piece>, keep: u64) -> Result<()> {
        self.next().print(pieces, keep).await
    }

    async fn printed(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<PrintedPiece>> {
        self.next().printed(run, after, limit).await
    }

    async fn forget_output(&self, before: Timestamp) -> Result<usize> {
        self.next().forget_output(before).await
    }
}
