//! The claimer: ready runs become claimed ones, and admission lets them start.
//!
//! In: free places. Out: [`StartedRun`]s, written as running before anything of their work begins.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use punctual_core::NodeId;
use punctual_core::run::{Run, RunState};
use punctual_core::time::SlotKey;
use punctual_kernel::admission::{self, Admitted};
pub use punctual_kernel::types::StartedRun;
use punctual_store::{
    ClaimRequest, Claimed, ClaimedRun, Decision, Result, RunFilter, RunWritten, Settlement, StartRequest, Started,
    Store,
};
use tracing::{error, info, warn};

use crate::batch;
use crate::holdings::Hands;
use crate::planner::later;
use crate::roster::{Agents, Class};
use crate::settings::Settings;

/// The most runs that one claim takes.
pub const BATCH_MAX: usize = 500;

/// The most runs at work that one run replaces.
const REPLACED_MAX: usize = 100;

/// How long a run rests whose start cannot be written.
const REFUSED_REST: jiff::SignedDuration = jiff::SignedDuration::from_mins(10);

/// How many runs the first of several claims takes: the first run of a thousand must not wait for the last.
const BATCH_MIN: usize = 16;

/// Claims for one node.
pub struct Claimer {
    store: Arc<dyn Store>,
    settings: Arc<Settings>,
    node: NodeId,
    /// How many runs the next claim takes at most, and of how many schedules it decides due slots: more each time, while there are
    /// more.
    batch: AtomicUsize,
    due_batch: AtomicUsize,
}

/// What a look at the ready runs brought.
#[derive(Debug, Clone)]
pub struct Round {
    /// Runs whose work begins now.
    pub started: Vec<StartedRun>,
    /// How many runs were claimed, also those that do not begin now.
    pub claimed: usize,
    /// Whether the claim got as many as it asked for, so that there may be more.
    pub may_have_more: bool,
    /// Whether more slots are due than were decided.
    pub has_more_due: bool,
    /// Whether runs at work were called off for others, so that their nodes have to be told.
    pub has_replaced: bool,
    /// Whether planning comes first, here or on another node.
    pub awaits_planning: bool,
    /// When to look again, unless something changes before.
    pub wake_at: Timestamp,
}

/// How many runs may begin, by what kind of place they take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Free {
    /// Processes of this machine.
    pub process: usize,
    /// Calls of other servers.
    pub remote: usize,
}

impl Free {
    /// So many of each.
    pub fn each(places: usize) -> Free {
        Free { process: places, remote: places }
    }

    fn of(self, class: Class) -> usize {
        match class {
            Class::Process => self.process,
            Class::Remote => self.remote,
        }
    }
}

/// Which agents to claim for, and how many runs at most: all of them at once while every class has a place, else each class for
/// itself, so that one that is full does not keep the other waiting.
fn shares(agents: &Agents, free: Free) -> Vec<(Arc<BTreeSet<String>>, usize)> {
    let named = |class| {
        let names = agents.names.iter().filter(|name| agents.class_of(name) == class).cloned().collect();
        (Arc::<BTreeSet<String>>::new(names), free.of(class))
    };
    let parts: Vec<_> =
        [Class::Process, Class::Remote].map(named).into_iter().filter(|(names, _)| !names.is_empty()).collect();
    let least = parts.iter().map(|(_, free)| *free).min().unwrap_or(0);
    if parts.len() == 1 || 0 < least { vec![(Arc::clone(&agents.names), least)] } else { parts }
}

impl Round {
    /// What two looks brought.
    fn and(mut self, other: Round) -> Round {
        self.started.extend(other.started);
        Round {
            claimed: self.claimed + other.claimed,
            may_have_more: self.may_have_more || other.may_have_more,
            has_more_due: self.has_more_due || other.has_more_due,
            has_replaced: self.has_replaced || other.has_replaced,
            awaits_planning: self.awaits_planning || other.awaits_planning,
            wake_at: self.wake_at.min(other.wake_at),
            ..self
        }
    }
}

impl Claimer {
    /// A claimer for a node.
    pub fn new(store: Arc<dyn Store>, settings: Arc<Settings>, node: NodeId) -> Claimer {
        let [batch, due_batch] = [BATCH_MIN, BATCH_MIN].map(AtomicUsize::new);
        Claimer { store, settings, node, batch, due_batch }
    }

    /// Claims as many runs as there are free places, decides about each, and writes what was decided. With no free place, it
    /// still answers the runs whose time is over.
    ///
    /// A run of which an older attempt still dies in the node's hands is not begun beside it.
    pub async fn tick(&self, now: Timestamp, free: Free, hands: &Hands) -> Result<Round> {
        let agents = self.settings.roster.now();
        let mut hands = hands.clone();
        let mut parts = shares(&agents, free).into_iter();
        let (first, limit) = parts.next().unwrap_or_default();
        let mut round = self.start_of(now, first, limit, &agents, &mut hands).await?;
        for (names, limit) in parts {
            round = round.and(self.start_of(now, names, limit, &agents, &mut hands).await?);
        }
        Ok(round)
    }

    /// Starts up to `limit` runs of some agents. If the store refuses that for a lasting reason, slots that are due are left to the
    /// planner, which records them one by one; then each agent has a call of its own, and the runs of the one that is refused again
    /// are begun one by one: a run that cannot be begun holds up no other.
    async fn start_of(
        &self,
        now: Timestamp,
        names: Arc<BTreeSet<String>>,
        limit: usize,
        agents: &Agents,
        hands: &mut Hands,
    ) -> Result<Round> {
        let refused = match self.start(now, Arc::clone(&names), limit, agents, hands, true).await {
            Err(error) if error.is_lasting() => error,
            started => return started,
        };
        error!("slots that are due cannot be recorded together: {}", batch::in_words(&refused));
        let refused = match self.start(now, Arc::clone(&names), limit, agents, hands, false).await {
            Err(error) if error.is_lasting() => error,
            started => return started,
        };
        let (mut all, mut left, mut last) = (None, limit, refused);
        for name in names.iter().filter(|_| 0 < limit) {
            let own = Arc::new(BTreeSet::from([name.clone()]));
            let started = match self.start(now, Arc::clone(&own), left, agents, hands, false).await {
                Err(error) if error.is_lasting() => self.start_one_by_one(now, own, left, agents, hands).await,
                started => started,
            };
            match started {
                Ok(round) => {
                    left -= round.claimed.min(left);
                    all = Some(match all {
                        None => round,
                        Some(before) => Round::and(before, round),
                    });
                }
                Err(error) if error.is_lasting() => {
                    error!(agent = %name, "no run of agent {name} can be claimed: {}", batch::in_words(&error));
                    last = error;
                }
                Err(error) => return Err(error),
            }
        }
        all.ok_or(last)
    }

    /// Starts up to `limit` runs of some agents, with one call.
    async fn start(
        &self,
        now: Timestamp,
        names: Arc<BTreeSet<String>>,
        limit: usize,
        agents: &Agents,
        hands: &mut Hands,
        decides_due: bool,
    ) -> Result<Round> {
        let request = self.request(now, names, limit, agents, hands);
        let request = if decides_due { request } else { StartRequest { due_max: 0, ..request } };
        let started = self.store.start(&request).await?;
        // What was given out now is not given out again by the next call.
        hands
            .begun
            .iter_mut()
            .for_each(|begun| begun.extend(started.runs.iter().map(|it| (it.run.id, it.run.epoch()))));
        Ok(self.round(&request, started))
    }

    /// The same in several calls, so that a run that cannot be begun holds up none of the others.
    async fn start_one_by_one(
        &self,
        now: Timestamp,
        names: Arc<BTreeSet<String>>,
        limit: usize,
        agents: &Agents,
        hands: &mut Hands,
    ) -> Result<Round> {
        let request = self.request(now, names, limit, agents, hands);
        let mut claimed = self.store.claim(&request.claim).await?;
        let runs = std::mem::take(&mut claimed.runs);
        let count = runs.len();
        let decisions: Vec<Admitted> = runs.iter().map(|claimed| admission::decide(claimed, &request, now)).collect();
        // First the others are called off: if that fails, what was claimed goes back, and nothing has begun.
        claimed.has_replaced |= self.replace(&runs, &decisions, now).await?;
        let settlements = runs.iter().zip(&decisions).map(|(claimed, admitted)| {
            let run = &claimed.run;
            Settlement { run: run.id, epoch: run.epoch(), decision: admitted.decision }
        });
        let written = self.settle(settlements.collect(), now).await?;
        let begun = runs.into_iter().zip(written).filter_map(|(claimed, written)| match written {
            Some(RunWritten::Done(state @ RunState::Running { .. })) => {
                let claimed_run = Arc::unwrap_or_clone(claimed.run);
                let run = Run { state, has_started: true, started_at: Some(now), ..claimed_run };
                Some(StartedRun { run: Arc::new(run), schedule: claimed.schedule })
            }
            Some(RunWritten::Done(_)) | None => None,
            Some(RunWritten::Stale) => {
                warn!(run.id = %claimed.run.id, "run {} was taken away before it began", claimed.run.id);
                None
            }
        });
        let runs: Vec<StartedRun> = begun.collect();
        hands.begun.iter_mut().for_each(|begun| begun.extend(runs.iter().map(|it| (it.run.id, it.run.epoch()))));
        Ok(self.round(&request, Started { claimed, count, runs }))
    }

    fn request(
        &self,
        now: Timestamp,
        names: Arc<BTreeSet<String>>,
        limit: usize,
        agents: &Agents,
        hands: &Hands,
    ) -> StartRequest {
        let limits = Arc::clone(&agents.limits);
        StartRequest {
            claim: ClaimRequest {
                node: self.node,
                now,
                limit: limit.min(self.batch.load(Ordering::Relaxed)),
                agents: names,
                limits,
            },
            held: Arc::new(hands.held.clone()),
            begun: hands.begun.clone().map(Arc::new),
            agents: Arc::clone(&agents.facts),
            due_max: self.due_batch.load(Ordering::Relaxed),
            timetables: Arc::clone(self.settings.timetables()),
            approval_wait: self.settings.approval_wait,
        }
    }

    fn round(&self, request: &StartRequest, started: Started) -> Round {
        let Started { claimed, count, runs } = started;
        let Claimed { at, swept, has_replaced, awaits_planning, has_more_due, next_at, .. } = claimed;
        let now = request.claim.now;
        let is_full = 0 < request.claim.limit && count == request.claim.limit;
        let after = |is_full: bool, before: usize| if is_full { (before * 4).min(BATCH_MAX) } else { BATCH_MIN };
        self.batch.store(after(is_full, request.claim.limit.max(BATCH_MIN)), Ordering::Relaxed);
        if 0 < request.due_max {
            self.due_batch.store(after(has_more_due, request.due_max), Ordering::Relaxed);
        }
        if 0 < swept {
            info!("{swept} runs were answered without a place: their time was over, or they found another at work");
        }
        // What is over at this very instant may still begin in it: it is answered in the next, not by looking again and again.
        let soon = later(now, jiff::SignedDuration::from_millis(1));
        let poll_at = later(now, self.settings.poll.duration());
        // A clock that is ahead of the store's shows every instant too soon.
        let next_at = next_at.map(|next_at| later(next_at, now.duration_since(at)));
        Round {
            started: runs,
            claimed: count,
            may_have_more: is_full,
            has_more_due,
            has_replaced,
            awaits_planning,
            wake_at: next_at.map_or(poll_at, |next_at| next_at.max(soon).min(poll_at)),
        }
    }

    /// Writes what was decided about claimed runs. One for which that is refused goes back and rests: it does not begin, and holds
    /// up none of the others. If it cannot even go back, the keeper sees to it.
    async fn settle(&self, settlements: Vec<Settlement>, now: Timestamp) -> Result<Vec<Option<RunWritten>>> {
        let written = batch::write(&settlements, |settlements| self.store.settle(now, settlements)).await?;
        let mut answers = Vec::with_capacity(written.len());
        for (settlement, written) in settlements.into_iter().zip(written) {
            let Err(error) = &written else {
                answers.push(written.ok());
                continue;
            };
            let run = settlement.run;
            error!(run.id = %run, "run {run} cannot be begun and rests for {REFUSED_REST:#}: {}", batch::in_words(error));
            let decision = Decision::HandBack { due_at: later(now, REFUSED_REST), parks: false };
            match self.store.settle(now, vec![Settlement { decision, ..settlement }]).await {
                Err(error) if !error.is_lasting() => return Err(error),
                Ok(_) | Err(_) => answers.push(None),
            }
        }
        Ok(answers)
    }

    /// Calls off the runs that others replace: those before them that are at work, or wait to replace others themselves.
    /// Whether there were any.
    async fn replace(&self, runs: &[ClaimedRun], decisions: &[Admitted], now: Timestamp) -> Result<bool> {
        let mut has_replaced = false;
        let replacing = runs.iter().zip(decisions).filter(|(_, admitted)| admitted.replaces);
        for (claimed, _) in replacing {
            let filter = RunFilter {
                schedule: claimed.run.schedule,
                only_live: true,
                limit: REPLACED_MAX,
                ..RunFilter::default()
            };
            let siblings = self.store.runs(&filter).await?;
            for sibling in siblings.iter().filter(|sibling| sibling.is_replaced_by(&claimed.run)) {
                info!(run.id = %sibling.id, "run {} is replaced by run {}", sibling.id, claimed.run.id);
                match self.store.cancel(now, sibling.id, None).await {
                    Ok(_) => has_replaced = true,
                    // What replaces it waits for its end; the others have nothing to do with it.
                    Err(error) if error.is_lasting() => {
                        error!(run.id = %sibling.id, "run {} cannot be replaced: {}", sibling.id, batch::in_words(&error));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(has_replaced)
    }
}

/// The key that a target may know a run by: the same for every attempt.
pub fn idempotency_key(run: &Run) -> String {
    let key: &SlotKey = &run.key;
    match run.schedule {
        Some(schedule) => format!("{schedule}/{key}"),
        None => key.to_string(),
    }
}
