//! Commands of the kernel, as every store carries them out: what each has to read, and what it does.

use jiff::Timestamp;
use jiff::civil::Date;
use punctual_core::run::Run;
use punctual_core::{By, NodeId, RunId, Token, TokenId};
use punctual_kernel::transaction::{Needs, Transaction, needs_of_ask};

use crate::error::Result;
use crate::kept::Kept;
use crate::requests::{
    AttemptReport, Cancellation, ClaimRequest, Claimed, NodeLease, PlanWrite, PlannerLease, Renewal, RunWritten,
    Settlement, Sign, StartRequest, Started, Written,
};

/// Nodes come or go: no lease may be renewed meanwhile.
fn locking_nodes() -> Needs {
    Needs { locks_nodes: true, ..Needs::default() }
}

/// A lease must not end while its renewal waits for other commands.
fn urgent() -> Needs {
    Needs { is_urgent: true, ..Needs::default() }
}

fn of_runs(runs: impl Iterator<Item = RunId>) -> Needs {
    Needs { runs: runs.collect(), ..Needs::default() }
}

pub(crate) async fn plan(store: &impl Kept, now: Timestamp, writes: Vec<PlanWrite>) -> Result<Vec<Written>> {
    let needs = writes.iter().fold(Needs::default(), |needs, write| needs.asked_by(write.by.as_ref()));
    store.commit("writing the plan", needs, move |transaction| transaction.plan_all(now, &writes)).await
}

pub(crate) async fn begin_day(store: &impl Kept, now: Timestamp, zone: &str, date: Date) -> Result<bool> {
    let zone = zone.to_owned();
    let begin = move |transaction: &mut Transaction<'_>| Ok(transaction.begin_day(now, &zone, date));
    store.commit("beginning a day", Needs::default(), begin).await
}

pub(crate) async fn ask(store: &impl Kept, now: Timestamp, run: Run, by: Option<By>) -> Result<bool> {
    let needs = needs_of_ask(&run, by.as_ref());
    store.commit("adding a run", needs, move |transaction| transaction.ask(now, run.clone(), by.clone())).await
}

pub(crate) async fn cancel(store: &impl Kept, now: Timestamp, id: RunId, by: Option<By>) -> Result<Cancellation> {
    let needs = of_runs([id].into_iter()).asked_by(by.as_ref());
    store.commit("cancelling a run", needs, move |transaction| transaction.cancel(now, id, by.clone())).await
}

pub(crate) async fn resume(
    store: &impl Kept,
    now: Timestamp,
    id: RunId,
    epoch: Option<u64>,
    by: Option<By>,
) -> Result<RunWritten> {
    let needs = Needs::default().asked_by(by.as_ref());
    store.commit("resuming a run", needs, move |transaction| transaction.resume(now, id, epoch, by.clone())).await
}

pub(crate) async fn claim(store: &impl Kept, request: &ClaimRequest) -> Result<Claimed> {
    let request = request.clone();
    store.commit("claiming runs", Needs::default(), move |transaction| transaction.claim(&request)).await
}

pub(crate) async fn start(store: &impl Kept, request: &StartRequest) -> Result<Started> {
    let request = request.clone();
    store.commit("starting runs", Needs::default(), move |transaction| transaction.start(&request)).await
}

pub(crate) async fn settle(store: &impl Kept, now: Timestamp, settlements: Vec<Settlement>) -> Result<Vec<RunWritten>> {
    store.commit("settling runs", Needs::default(), move |transaction| Ok(transaction.settle(now, &settlements))).await
}

pub(crate) async fn finish(store: &impl Kept, now: Timestamp, reports: Vec<AttemptReport>) -> Result<Vec<RunWritten>> {
    let needs = of_runs(reports.iter().map(|report| report.run));
    store.commit("finishing attempts", needs, move |transaction| Ok(transaction.finish(now, reports.clone()))).await
}

pub(crate) async fn join(store: &impl Kept, sign: &Sign) -> Result<Renewal> {
    let sign = sign.clone();
    store.commit("joining", locking_nodes(), move |transaction| transaction.join(&sign)).await
}

pub(crate) async fn join_alone(store: &impl Kept, sign: &Sign) -> Result<Renewal> {
    let sign = sign.clone();
    store.commit("joining", locking_nodes(), move |transaction| transaction.join_alone(&sign)).await
}

pub(crate) async fn renew(store: &impl Kept, sign: &Sign) -> Result<Renewal> {
    let sign = sign.clone();
    store.commit("renewing a lease", urgent(), move |transaction| transaction.renew(&sign)).await
}

pub(crate) async fn leave(store: &impl Kept, now: Timestamp, node: NodeId) -> Result<()> {
    let leave = move |transaction: &mut Transaction<'_>| {
        transaction.leave(now, node);
        Ok(())
    };
    store.commit("leaving", locking_nodes(), leave).await
}

pub(crate) async fn bury(store: &impl Kept, now: Timestamp, dead: Vec<NodeLease>) -> Result<usize> {
    let bury = move |transaction: &mut Transaction<'_>| Ok(transaction.bury(now, &dead));
    store.commit("taking runs from dead nodes", locking_nodes(), bury).await
}

/// Until when the planner's lease lasts or has lasted.
pub(crate) async fn planned_until(store: &impl Kept) -> Result<Option<Timestamp>> {
    let read = |transaction: &mut Transaction<'_>| Ok(transaction.cluster.planner.map(|planner| planner.until));
    store.commit("reading the planner's lease", Needs::default(), read).await
}

pub(crate) async fn take_planner(store: &impl Kept, sign: &Sign) -> Result<PlannerLease> {
    let sign = sign.clone();
    let take = move |transaction: &mut Transaction<'_>| transaction.take_planner(&sign);
    store.commit("taking over the planning", urgent(), take).await
}

pub(crate) async fn note_outage(store: &impl Kept, now: Timestamp, node: NodeId, from: Timestamp) -> Result<()> {
    let note = move |transaction: &mut Transaction<'_>| transaction.note_outage(now, node, from);
    store.commit("noting an outage", Needs::default(), note).await
}

pub(crate) async fn make_token(store: &impl Kept, now: Timestamp, token: Token, by: Option<By>) -> Result<()> {
    let needs = Needs::default().asked_by(by.as_ref());
    let make = move |transaction: &mut Transaction<'_>| transaction.make_token(now, token.clone(), by.clone());
    store.commit("making a token", needs, make).await
}

pub(crate) async fn revoke_token(store: &impl Kept, now: Timestamp, id: TokenId, by: Option<By>) -> Result<bool> {
    let revoke = move |transaction: &mut Transaction<'_>| Ok(transaction.revoke_token(now, id, by.clone()));
    store.commit("revoking a token", Needs::default(), revoke).await
}
