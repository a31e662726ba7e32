//! The door of the store: every call goes through it, is counted, and can be made to fail.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;
use punctual_core::journal::{Entry, World};
use punctual_core::run::Run;
use punctual_core::schedule::Schedule;
use punctual_core::{By, NodeId, RunId, ScheduleId, Token, TokenId};
use punctual_store::memory::MemoryStore;
use punctual_store::{
    Answers, AttemptReport, Cancellation, ClaimRequest, Claimed, Claims, Decision, Head, History, HistoryFilter,
    HistoryItem, Journal, Keep, LiveCounts, NodeLease, NodeRecord, Nodes, Output, Piece, Plan, PlanSubject, PlanTask,
    PlanWrite, PlannerLease, PrintedPiece, RecordFilter, RecordPage, Records, Renewal, Result, RunFilter, RunWritten,
    Runs, ScheduleFilter, SchedulePage, Schedules, Settlement, Sign, StartRequest, Started, StoreError, TokenRecord,
    Tokens, Totals, Written, ZoneDay,
};
use uuid::Uuid;

/// A store in memory behind a door.
#[derive(Debug, Default)]
pub(crate) struct Door {
    store: Arc<MemoryStore>,
    calls: AtomicUsize,
    fault: Mutex<Option<(When, Fault)>>,
    refused: Mutex<Vec<Refused>>,
}

/// What the store refuses for ever, with whatever comes in the same call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Refused {
    /// A report with this summary.
    Summary(&'static str),
    /// Every report about a run.
    Reports(RunId),
    /// That a run of this agent begins.
    Start(&'static str),
    /// A claim of this agent's runs.
    Claim(&'static str),
    /// A plan of this schedule that has runs.
    Plan(ScheduleId),
    /// Whatever is written about the plan of this schedule.
    AllPlans(ScheduleId),
    /// The burial of this node.
    Burial(NodeId),
}

/// How a call goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It never reaches the store.
    Refused,
    /// It is carried out, and nobody hears of it.
    ReplyLost,
    /// The store refuses it, and will again.
    Lasting,
    /// The disk has failed for good.
    Broken,
    /// Whoever calls it panics.
    Panics,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// At this call, counted from 1.
    Call(usize),
    /// At every call of this name.
    Named(&'static str),
}

impl Door {
    pub(crate) fn new(store: Arc<MemoryStore>) -> Door {
        Door { store, ..Door::default() }
    }

    /// How many calls came through.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// Makes one call go wrong: the `number`-th from now on.
    pub(crate) fn break_call(&self, number: usize, fault: Fault) {
        *self.fault.lock().unwrap() = Some((When::Call(self.calls() + number), fault));
    }

    /// Makes every call of a name go wrong, until [`Door::repair`].
    pub(crate) fn break_all(&self, name: &'static str, fault: Fault) {
        *self.fault.lock().unwrap() = Some((When::Named(name), fault));
    }

    pub(crate) fn repair(&self) {
        *self.fault.lock().unwrap() = None;
    }

    /// Has the store refuse something for ever.
    pub(crate) fn refuse(&self, what: Refused) {
        self.refused.lock().unwrap().push(what);
    }

    /// Nothing is refused any more.
    pub(crate) fn accept_all(&self) {
        self.refused.lock().unwrap().clear();
    }

    fn check(&self, is_hit: impl Fn(&Refused) -> bool) -> Result<()> {
        match self.refused.lock().unwrap().iter().find(|refused| is_hit(refused)) {
            None => Ok(()),
            Some(refused) => Err(StoreError::Database { doing: "refusing", source: format!("{refused:?}").into() }),
        }
    }

    fn is_due(&self, id: ScheduleId, now: Timestamp) -> bool {
        let plan_at = self.store.look(|state| state.world.schedules.get(&id).and_then(|record| record.plan_at));
        plan_at.is_some_and(|plan_at| plan_at <= now)
    }

    async fn agent_of(&self, run: RunId) -> String {
        let run = self.store.run(run).await.unwrap();
        run.map(|run| run.terms.work.agent().to_owned()).unwrap_or_default()
    }

    async fn pass<T>(&self, name: &'static str, call: impl Future<Output = Result<T>> + Send) -> Result<T> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let fault = *self.fault.lock().unwrap();
        let is_hit = |when| when == When::Call(number) || when == When::Named(name);
        let broken = || StoreError::Unavailable { doing: name, source: "the test wants it so".into() };
        match fault.filter(|(when, _)| is_hit(*when)) {
            None => call.await,
            Some((_, Fault::Refused)) => Err(broken()),
            Some((_, Fault::Lasting)) => {
                Err(StoreError::Database { doing: name, source: "the test wants it so".into() })
            }
            Some((_, Fault::Broken)) => Err(StoreError::Broken { doing: name }),
            Some((_, Fault::Panics)) => panic!("the test wants {name} to panic"),
            Some((_, Fault::ReplyLost)) => {
                call.await?;
                Err(broken())
            }
        }
    }
}

#[async_trait]
impl Schedules for Door {
    async fn schedule(&self, id: ScheduleId) -> Result<Option<Schedule>> {
        self.pass("schedule", self.store.schedule(id)).await
    }

    async fn schedule_of_slot(&self, run: RunId) -> Result<Option<Schedule>> {
        self.pass("schedule_of_slot", self.store.schedule_of_slot(run)).await
    }

    async fn schedules(&self, after: Option<ScheduleId>, limit: usize) -> Result<Vec<Arc<Schedule>>> {
        self.pass("schedules", self.store.schedules(after, limit)).await
    }

    async fn count_schedules(&self) -> Result<u64> {
        self.pass("count_schedules", self.store.count_schedules()).await
    }

    async fn find_schedules(&self, filter: &ScheduleFilter) -> Result<SchedulePage> {
        self.pass("find_schedules", self.store.find_schedules(filter)).await
    }
}

#[async_trait]
impl Records for Door {
    async fn records(&self, filter: &RecordFilter) -> Result<RecordPage> {
        self.pass("records", self.store.records(filter)).await
    }

    async fn archive(&self, schedules: Option<&[ScheduleId]>, keep: Keep) -> Result<usize> {
        self.pass("archive", self.store.archive(schedules, keep)).await
    }
}

#[async_trait]
impl Plan for Door {
    async fn to_plan(&self, now: Timestamp, zone_data: &str, limit: usize) -> Result<Vec<PlanTask>> {
        self.pass("to_plan", self.store.to_plan(now, zone_data, limit)).await
    }

    async fn next_plan_at(&self) -> Result<Option<Timestamp>> {
        self.pass("next_plan_at", self.store.next_plan_at()).await
    }

    async fn subject(&self, id: ScheduleId, now: Timestamp) -> Result<Option<PlanSubject>> {
        self.pass("subject", self.store.subject(id, now)).await
    }

    async fn plan(&self, now: Timestamp, writes: Vec<PlanWrite>) -> Result<Vec<Written>> {
        let has_runs = |write: &PlanWrite| write.plan.as_ref().is_some_and(|plan| !plan.runs.is_empty());
        self.check(|refused| match refused {
            Refused::Plan(id) => writes.iter().any(|write| write.schedule() == *id && has_runs(write)),
            Refused::AllPlans(id) => writes.iter().any(|write| write.schedule() == *id),
            _ => false,
        })?;
        self.pass("plan", self.store.plan(now, writes)).await
    }

    async fn zone_days(&self) -> Result<Vec<ZoneDay>> {
        self.pass("zone_days", self.store.zone_days()).await
    }

    async fn begin_day(&self, now: Timestamp, zone: &str, date: Date) -> Result<bool> {
        self.pass("begin_day", self.store.begin_day(now, zone, date)).await
    }
}

#[async_trait]
impl Runs for Door {
    async fn run(&self, id: RunId) -> Result<Option<Run>> {
        self.pass("run", self.store.run(id)).await
    }

    async fn live_counts(&self, now: Timestamp) -> Result<LiveCounts> {
        self.pass("live_counts", self.store.live_counts(now)).await
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<Run>> {
        self.pass("runs", self.store.runs(filter)).await
    }

    async fn ask(&self, now: Timestamp, run: Run, by: Option<By>) -> Result<bool> {
        self.pass("ask", self.store.ask(now, run, by)).await
    }

    async fn cancel(&self, now: Timestamp, id: RunId, by: Option<By>) -> Result<Cancellation> {
        self.pass("cancel", self.store.cancel(now, id, by)).await
    }

    async fn resume(&self, now: Timestamp, id: RunId, epoch: Option<u64>, by: Option<By>) -> Result<RunWritten> {
        self.pass("resume", self.store.resume(now, id, epoch, by)).await
    }
}

#[async_trait]
impl Claims for Door {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed> {
        self.check(|refused| matches!(refused, Refused::Claim(agent) if request.agents.contains(*agent)))?;
        self.pass("claim", self.store.claim(request)).await
    }

    async fn start(&self, request: &StartRequest) -> Result<Started> {
        self.check(|refused| match refused {
            Refused::Claim(agent) | Refused::Start(agent) => request.claim.agents.contains(*agent),
            Refused::Plan(id) | Refused::AllPlans(id) => 0 < request.due_max && self.is_due(*id, request.claim.now),
            _ => false,
        })?;
        self.pass("start", self.store.start(request)).await
    }

    async fn settle(&self, now: Timestamp, settlements: Vec<Settlement>) -> Result<Vec<RunWritten>> {
        for settlement in settlements.iter().filter(|it| it.decision == Decision::Start) {
            let agent = self.agent_of(settlement.run).await;
            self.check(|refused| matches!(refused, Refused::Start(it) if *it == agent))?;
        }
        self.pass("settle", self.store.settle(now, settlements)).await
    }

    async fn finish(&self, now: Timestamp, reports: Vec<AttemptReport>) -> Result<Vec<RunWritten>> {
        self.check(|refused| match refused {
            Refused::Summary(text) => reports.iter().any(|it| it.report.summary.as_deref() == Some(text)),
            Refused::Reports(run) => reports.iter().any(|it| it.run == *run),
            _ => false,
        })?;
        self.pass("finish", self.store.finish(now, reports)).await
    }
}

#[async_trait]
impl Nodes for Door {
    fn is_exclusive(&self) -> bool {
        self.store.is_exclusive()
    }

    async fn join(&self, sign: &Sign) -> Result<Renewal> {
        self.pass("join", self.store.join(sign)).await
    }

    async fn renew(&self, sign: &Sign) -> Result<Renewal> {
        self.pass("renew", self.store.renew(sign)).await
    }

    async fn leave(&self, now: Timestamp, node: NodeId) -> Result<()> {
        self.pass("leave", self.store.leave(now, node)).await
    }

    async fn bury(&self, now: Timestamp, dead: Vec<NodeLease>) -> Result<usize> {
        self.check(|refused| matches!(refused, Refused::Burial(id) if dead.iter().any(|it| it.node == *id)))?;
        self.pass("bury", self.store.bury(now, dead)).await
    }

    async fn nodes(&self) -> Result<Vec<NodeRecord>> {
        self.pass("nodes", self.store.nodes()).await
    }

    async fn take_planner(&self, sign: &Sign) -> Result<PlannerLease> {
        self.pass("take_planner", self.store.take_planner(sign)).await
    }

    async fn planned_until(&self) -> Result<Option<Timestamp>> {
        self.pass("planned_until", self.store.planned_until()).await
    }

    async fn note_outage(&self, now: Timestamp, node: NodeId, from: Timestamp) -> Result<()> {
        self.pass("note_outage", self.store.note_outage(now, node, from)).await
    }
}

#[async_trait]
impl Journal for Door {
    async fn entries(&self, after: u64, limit: usize) -> Result<Vec<Entry>> {
        self.pass("entries", self.store.entries(after, limit)).await
    }

    async fn head(&self) -> Result<Head> {
        self.pass("head", self.store.head()).await
    }

    async fn about(&self, subjects: &[Uuid], each: usize) -> Result<Vec<Entry>> {
        self.pass("about", self.store.about(subjects, each)).await
    }

    async fn base(&self) -> Result<World> {
        self.pass("base", self.store.base()).await
    }

    async fn prune(&self, before: Timestamp) -> Result<u64> {
        self.pass("prune", self.store.prune(before)).await
    }

    async fn verify(&self) -> Result<Vec<String>> {
        self.pass("verify", self.store.verify()).await
    }
}

#[async_trait]
impl History for Door {
    async fn history(&self, filter: &HistoryFilter) -> Result<Vec<HistoryItem>> {
        self.pass("history", self.store.history(filter)).await
    }

    async fn count_history(&self, filter: &HistoryFilter) -> Result<u64> {
        self.pass("count_history", self.store.count_history(filter)).await
    }

    async fn totals(&self, filter: &HistoryFilter) -> Result<Vec<Totals>> {
        self.pass("totals", self.store.totals(filter)).await
    }
}

#[async_trait]
impl Tokens for Door {
    async fn tokens(&self) -> Result<Vec<TokenRecord>> {
        self.pass("tokens", self.store.tokens()).await
    }

    async fn make_token(&self, now: Timestamp, token: Token, by: Option<By>) -> Result<()> {
        self.pass("make_token", self.store.make_token(now, token, by)).await
    }

    async fn revoke_token(&self, now: Timestamp, id: TokenId, by: Option<By>) -> Result<bool> {
        self.pass("revoke_token", self.store.revoke_token(now, id, by)).await
    }

    async fn note_used(&self, used: Vec<(TokenId, Timestamp)>) -> Result<()> {
        self.pass("note_used", self.store.note_used(used)).await
    }
}

#[async_trait]
impl Answers for Door {
    async fn forget_answers(&self, before: Timestamp) -> Result<usize> {
        self.pass("forget_answers", self.store.forget_answers(before)).await
    }
}

#[async_trait]
impl Output for Door {
    async fn print(&self, pieces: Vec<Piece>, keep: u64) -> Result<()> {
        self.pass("print", self.store.print(pieces, keep)).await
    }

    async fn printed(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<PrintedPiece>> {
        self.pass("printed", self.store.printed(run, after, limit)).await
    }

    async fn forget_output(&self, before: Timestamp) -> Result<usize> {
        self.pass("forget_output", self.store.forget_output(before)).await
    }
}
