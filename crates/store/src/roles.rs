//! The roles of a store. A loop asks for the one that it uses, never for everything.
//!
//! Every method that writes is one transaction: when it returns, its effect and the journal entries that explain it are
//! durable; when it fails, nothing of it is there. Ids and `now` are given by the caller, and every order ends with the
//! id: the same calls give the same answers on every store. Times are whole microseconds ([`crate::MOMENT`]).

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;
use punctual_core::journal::{Entry, World};
use punctual_core::run::Run;
use punctual_core::schedule::Schedule;
use punctual_core::{By, NodeId, RunId, ScheduleId, Token, TokenId};
use uuid::Uuid;

use crate::error::Result;
use crate::requests::{
    AttemptReport, Cancellation, ClaimRequest, Claimed, Head, Hint, HistoryFilter, HistoryItem, Keep, LiveCounts,
    NodeLease, NodeRecord, Piece, PlanSubject, PlanTask, PlanWrite, PlannerLease, PrintedPiece, RecordFilter,
    RecordPage, Renewal, RunFilter, RunWritten, ScheduleFilter, SchedulePage, Settlement, SharedTime, Sign,
    StartRequest, Started, TokenRecord, Totals, Written, ZoneDay,
};

/// Reading schedules.
#[async_trait]
pub trait Schedules: Send + Sync {
    /// One schedule.
    async fn schedule(&self, id: ScheduleId) -> Result<Option<Schedule>>;

    /// The schedule that the id of a slot's run names ([`RunId::of`]), whether the run is there or not.
    async fn schedule_of_slot(&self, run: RunId) -> Result<Option<Schedule>>;

    /// Schedules after `after`, by id.
    async fn schedules(&self, after: Option<ScheduleId>, limit: usize) -> Result<Vec<Arc<Schedule>>>;

    /// How many there are.
    async fn count_schedules(&self) -> Result<u64>;

    /// Schedules that a filter finds, those of its page, and how many there are in all.
    async fn find_schedules(&self, filter: &ScheduleFilter) -> Result<SchedulePage>;
}

/// The plan: what is written when slots are answered.
#[async_trait]
pub trait Plan: Send + Sync {
    /// Schedules that planning has something to do for, earliest first: its time has come, an outage is to be made up
    /// for, or the plan was made with other zone data.
    async fn to_plan(&self, now: Timestamp, zone_data: &str, limit: usize) -> Result<Vec<PlanTask>>;

    /// The earliest time at which a schedule wants to be planned; it may have come already. What is to be planned for
    /// another reason than its time, an outage or other zone data, is not counted.
    async fn next_plan_at(&self) -> Result<Option<Timestamp>>;

    /// One schedule, with the runs that a change of its plan concerns: planned ones, and those of slots behind `now` or
    /// behind its cursor, or up to [`crate::ZONE_SHIFT_MAX`] before that.
    async fn subject(&self, id: ScheduleId, now: Timestamp) -> Result<Option<PlanSubject>>;

    /// Carries out planning decisions, each whole or not at all, all of them in one transaction. One answer each, in order.
    ///
    /// A write is a conflict, and changes nothing, if the schedule is no longer as expected, if a run that it moves,
    /// withdraws or lets go is no longer planned or not the schedule's, or if a slot has its run already. A later write
    /// sees what the earlier ones have done.
    ///
    /// An edit gives its terms to the runs of slots that nobody has touched. A schedule that is deleted leaves behind
    /// what it does not withdraw: such runs are carried out under their own terms, retries and requests included.
    async fn plan(&self, now: Timestamp, writes: Vec<PlanWrite>) -> Result<Vec<Written>>;

    /// The zones of the schedules, each with its last day that was begun, by name.
    async fn zone_days(&self) -> Result<Vec<ZoneDay>>;

    /// Notes that a day has begun in a zone. Whether it was the first to say so.
    async fn begin_day(&self, now: Timestamp, zone: &str, date: Date) -> Result<bool>;
}

/// Runs, as people see and touch them.
#[async_trait]
pub trait Runs: Send + Sync {
    /// One run.
    async fn run(&self, id: RunId) -> Result<Option<Run>>;

    /// How many there are that are not over, by where they are in their life.
    async fn live_counts(&self, now: Timestamp) -> Result<LiveCounts>;

    /// Runs by scheduled time and id.
    async fn runs(&self, filter: &RunFilter) -> Result<Vec<Run>>;

    /// Adds a run that an event or a person asks for. Whether it is new: the same key again adds nothing.
    ///
    /// Keys are told apart within a schedule; a run without one is new unless its id is known. It is an error if the
    /// schedule does not exist, or if the id belongs to another key.
    async fn ask(&self, now: Timestamp, run: Run, by: Option<By>) -> Result<bool>;

    /// Calls a run off. One that is at work is asked to stop, and ends when its node reports; whatever has not begun ends
    /// at once. [`crate::StoreError::NotFound`] if it does not exist.
    async fn cancel(&self, now: Timestamp, id: RunId, by: Option<By>) -> Result<Cancellation>;

    /// Lets a run that waits go on. Stale if it does not wait, under this epoch if one is named, or does not exist.
    async fn resume(&self, now: Timestamp, id: RunId, epoch: Option<u64>, by: Option<By>) -> Result<RunWritten>;
}

/// Handing ready runs to nodes: the one place where nodes compete.
#[async_trait]
pub trait Claims: Send + Sync {
    /// Answers the runs whose time is over, then claims up to `request.limit` ready runs, each under a new epoch.
    ///
    /// Over is the time of a run that is too late to be begun, that has waited long enough for something else, or whose
    /// agent nobody has had for a while. One claim answers [`crate::change::SWEEP_MAX`] of them at most; if there were as
    /// many, it claims nothing and comes again at once.
    ///
    /// Runs are taken lane by lane ([`punctual_core::plan::Lane::rank`]), within a lane by due time and id, and never
    /// beyond a limit. When this returns, the claims are durable and no other node holds these runs.
    /// [`crate::StoreError::LeaseEnded`] if the node's lease has ended, taken for dead or not: it has to renew it first.
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed>;

    /// Gives each slot that is due its run or its skip ([`punctual_kernel::due`]), claims ready runs, decides about each
    /// ([`punctual_kernel::admission`]), and begins those that may start: in one transaction. Slots wait while no node plans.
    async fn start(&self, request: &StartRequest) -> Result<Started>;

    /// Writes what admission decided about claimed runs. One answer each, in order. A run that was let in does not begin if its
    /// schedule has been paused since: it is skipped.
    async fn settle(&self, now: Timestamp, settlements: Vec<Settlement>) -> Result<Vec<RunWritten>>;

    /// Writes how attempts ended: succeeded, failed, cancelled, or lost by their own node, which does not know how far
    /// they came; or that they did not end, and the run goes back or waits. One answer each, in order.
    ///
    /// The same end of the same epoch again gets the same answer and changes nothing; another one is stale, and so is a
    /// second hand-back. A target that calls back reports under the epoch with which the run began to wait.
    async fn finish(&self, now: Timestamp, reports: Vec<AttemptReport>) -> Result<Vec<RunWritten>>;
}

/// Nodes and their leases.
#[async_trait]
pub trait Nodes: Send + Sync {
    /// Whether only one server can have this store open, so that a new one proves every earlier one dead.
    fn is_exclusive(&self) -> bool;

    /// The last reading of the clock that all nodes of this store share, if it has one. Without one, each node has its own.
    fn shared_time(&self) -> Option<SharedTime> {
        None
    }

    /// Has somebody told when another process may have changed something. A store that has none tells nothing.
    fn tell(&self, told: Arc<dyn Fn(Hint) + Send + Sync>) {
        drop(told);
    }

    /// A node comes to life, with a lease. On an exclusive store, the runs of all earlier ones are lost to them at once.
    /// An id that lives already renews its lease, and keeps its runs.
    async fn join(&self, sign: &Sign) -> Result<Renewal>;

    /// Renews a node's lease. [`crate::StoreError::LeaseEnded`] if it has been taken for dead.
    async fn renew(&self, sign: &Sign) -> Result<Renewal>;

    /// A node stops: the runs that it has not begun go back at once, those at work are lost to it.
    async fn leave(&self, now: Timestamp, node: NodeId) -> Result<()>;

    /// Takes their runs from nodes that are dead, each if its lease is still the one that was seen: if it has renewed it, it
    /// lives. How many were dead.
    async fn bury(&self, now: Timestamp, dead: Vec<NodeLease>) -> Result<usize>;

    /// The nodes that are alive as far as their leases say, by id.
    async fn nodes(&self) -> Result<Vec<NodeRecord>>;

    /// Takes or renews the planner's lease, if it is free or the node's own. It is free when it has ended, and when its
    /// holder is gone.
    ///
    /// Taking it after it had ended notes the outage, in the same transaction.
    /// [`crate::StoreError::LeaseEnded`] if the node's own lease has ended.
    async fn take_planner(&self, sign: &Sign) -> Result<PlannerLease>;

    /// Until when the planner's lease lasts or has lasted; `None` if nobody has had it yet.
    async fn planned_until(&self) -> Result<Option<Timestamp>>;

    /// Notes an outage that no lease shows: the clock has jumped, or the machine slept.
    async fn note_outage(&self, now: Timestamp, node: NodeId, from: Timestamp) -> Result<()>;
}

/// What happened, in order.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Entries behind a number, in order.
    async fn entries(&self, after: u64, limit: usize) -> Result<Vec<Entry>>;

    /// The last entry.
    async fn head(&self) -> Result<Head>;

    /// The last entries about each of these schedules and runs, so many for each, latest first: changes and deletions of schedules,
    /// requests for runs, and what happened to runs besides their starts and ends.
    async fn about(&self, subjects: &[Uuid], each: usize) -> Result<Vec<Entry>>;

    /// Everything as it was before the first entry that is kept: what the journal stands on.
    async fn base(&self) -> Result<World>;

    /// Lets go of the entries before the first that was written at an instant or later, those of one commit only together, and of
    /// the history that they are. What they come to is kept as the base on which the rest stands. How many entries went.
    ///
    /// It goes on in pieces, each a transaction of its own, and nothing waits for it longer than for one of them.
    async fn prune(&self, before: Timestamp) -> Result<u64>;

    /// Folds the journal and compares it with the snapshot and with history: every difference, in words.
    async fn verify(&self) -> Result<Vec<String>>;
}

/// What became of runs and slots, for people.
#[async_trait]
pub trait History: Send + Sync {
    /// Ended attempts and other answers, latest first.
    async fn history(&self, filter: &HistoryFilter) -> Result<Vec<HistoryItem>>;

    /// How many a filter finds, from the first to the last.
    async fn count_history(&self, filter: &HistoryFilter) -> Result<u64>;

    /// What the attempts that a filter finds and that had begun come to, by agent and verdict.
    async fn totals(&self, filter: &HistoryFilter) -> Result<Vec<Totals>>;
}

/// What became of workflows that schedules had started. It follows from the runs that are at work and from the journal.
#[async_trait]
pub trait Records: Send + Sync {
    /// Records that a filter finds, those of its page, and how many there are in all.
    async fn records(&self, filter: &RecordFilter) -> Result<RecordPage>;

    /// Lets go of the older records of schedules that have more than so many; of all schedules, if none are named. The journal keeps
    /// what they were made from. How many went.
    async fn archive(&self, schedules: Option<&[ScheduleId]>, keep: Keep) -> Result<usize>;
}

/// Who may come over the API.
#[async_trait]
pub trait Tokens: Send + Sync {
    /// The tokens, by id.
    async fn tokens(&self) -> Result<Vec<TokenRecord>>;

    /// Makes a token. Its id must be new.
    async fn make_token(&self, now: Timestamp, token: Token, by: Option<By>) -> Result<()>;

    /// Takes a token back. Whether it was there.
    async fn revoke_token(&self, now: Timestamp, id: TokenId, by: Option<By>) -> Result<bool>;

    /// Notes when tokens were used. Nothing is decided by it, and the journal knows nothing of it.
    async fn note_used(&self, used: Vec<(TokenId, Timestamp)>) -> Result<()>;
}

/// Answers to requests that may come again. Whatever takes a [`By`] with a key ([`punctual_core::Once`]) is carried out once:
/// the second time it changes nothing, and is [`crate::StoreError::Answered`]. The key is written in the same transaction.
#[async_trait]
pub trait Answers: Send + Sync {
    /// Forgets answers that were given before an instant. How many.
    async fn forget_answers(&self, before: Timestamp) -> Result<usize>;
}

/// What runs print, as it comes. It is kept for a while, and the journal knows nothing of it.
#[async_trait]
pub trait Output: Send + Sync {
    /// Adds pieces, those of a run in their order. Of each attempt, the end stays: what ends in its last `keep` bytes. A piece that
    /// is there already is left alone.
    async fn print(&self, pieces: Vec<Piece>, keep: u64) -> Result<()>;

    /// What a run has printed behind a piece, by number, so many at most.
    async fn printed(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<PrintedPiece>>;

    /// Forgets what was printed before an instant. How many pieces.
    async fn forget_output(&self, before: Timestamp) -> Result<usize>;
}

/// All roles at once: what a node is built with, and what a loop never asks for.
pub trait Store:
    Schedules + Plan + Runs + Claims + Nodes + Journal + History + Records + Tokens + Answers + Output
{
}
impl<T: Schedules + Plan + Runs + Claims + Nodes + Journal + History + Records + Tokens + Answers + Output> Store
    for T
{
}
