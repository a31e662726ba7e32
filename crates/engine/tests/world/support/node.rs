//! A node of the world: the ticks of the engine, in the order in which a real node has them, without the waiting.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_core::run::{FailureCode, Report, Run, RunEvent};
use punctual_core::{Elapsed, NodeId, RunId};
use punctual_engine::claimer::{Claimer, Free};
use punctual_engine::holdings::Holdings;
use punctual_engine::keeper::Keeper;
use punctual_engine::planner::Planner;
use punctual_engine::runner::{Stop, StopLevel};
use punctual_engine::settings::Settings;
use punctual_store::{AttemptReport, ClaimRequest, Result, RunWritten, Store};

use super::now_or_never;

/// The net under the timers, as the settings have it.
const POLL: jiff::SignedDuration = jiff::SignedDuration::from_secs(5);

/// How the work of an agent goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// It is done at once.
    Succeeds,
    /// It fails at once.
    Fails,
    /// It fails at once, and asks us to stay away for so long.
    AsksToWait(Elapsed),
    /// It fails at once, and no other try will help.
    FailsForGood,
    /// It is done after so long.
    Takes(SignedDuration),
    /// It goes on until it is stopped, or until the test ends it.
    Stays,
}

pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) settings: Arc<Settings>,
    store: Arc<dyn Store>,
    pub(crate) planner: Planner,
    pub(crate) claimer: Claimer,
    pub(crate) keeper: Keeper,
    pub(crate) holdings: Arc<Holdings>,
    pub(crate) held: BTreeMap<RunId, Held>,
    /// What it was told to stop, and how hard, in order.
    pub(crate) stopped: Vec<(RunId, StopLevel)>,
    /// Whether it plans at all; a node without a planner only works.
    pub(crate) plans: bool,
    /// Whether it claims at all.
    pub(crate) claims: bool,
}

/// Work that goes on here.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) run: Run,
    stop: Stop,
    ends: Option<(Timestamp, RunEvent)>,
}

/// What one round of a node brought.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rounded {
    /// Whether something happened, so that there may be more to do at the same instant.
    pub(crate) did: bool,
    pub(crate) wake_at: Timestamp,
}

/// A loop polls as a net under its timers. In a world where no timer is late, that only costs time: the world stops where
/// something is to happen instead ([`super::World::advance`]).
fn unless_poll(wake_at: Timestamp, now: Timestamp) -> Timestamp {
    if wake_at < now + POLL { wake_at } else { Timestamp::MAX }
}

impl Node {
    pub(crate) fn new(
        id: NodeId,
        settings: Settings,
        store: Arc<dyn Store>,
        ids: Arc<dyn punctual_engine::ids::Ids>,
    ) -> Node {
        let settings = Arc::new(settings);
        let lease = Duration::try_from(settings.lease.duration()).unwrap();
        let holdings = Arc::new(Holdings::new((!store.is_exclusive()).then_some(lease)));
        Node {
            id,
            planner: Planner::new(Arc::clone(&store), ids, Arc::clone(&settings), id),
            claimer: Claimer::new(Arc::clone(&store), Arc::clone(&settings), id),
            keeper: Keeper::new(Arc::clone(&store), Arc::clone(&settings), id, Arc::clone(&holdings)),
            holdings,
            settings,
            store,
            held: BTreeMap::new(),
            stopped: vec![],
            plans: true,
            claims: true,
        }
    }

    pub(crate) fn join(&mut self, now: Timestamp, boot: Duration) -> Result<()> {
        now_or_never(self.keeper.join(now, boot))
    }

    /// One look at everything: the lease, what has ended, what is to be planned, what can be claimed.
    pub(crate) fn round(&mut self, now: Timestamp, boot: Duration, way: impl Fn(&str) -> Way) -> Result<Rounded> {
        let mut did = false;
        let mut wake_at = now + SignedDuration::from_hours(24);
        let kept = self.keep(now, boot)?;
        wake_at = wake_at.min(kept);
        if self.plans {
            let planned = now_or_never(self.planner.tick(now))?;
            did |= planned.wrote;
            wake_at = wake_at.min(unless_poll(planned.wake_at, now));
        }
        did |= self.write_ends(now)?;
        if self.claims {
            let free = self.settings.places.saturating_sub(self.held.len());
            let round = now_or_never(self.claimer.tick(now, Free::each(free), &self.holdings.hands()))?;
            wake_at = wake_at.min(unless_poll(round.wake_at, now));
            did |= !round.started.is_empty() || round.has_more_due;
            for started in round.started {
                self.begin(Run::clone(&started.run), now, boot, &way);
            }
        }
        let ends = self.held.values().filter_map(|held| held.ends.as_ref().map(|(at, _)| *at)).min();
        did |= ends.is_some_and(|ends_at| ends_at <= now);
        Ok(Rounded { did, wake_at: ends.map_or(wake_at, |ends_at| wake_at.min(ends_at)) })
    }

    /// Claims what is ready and begins nothing of it, as a node does whose admission needs to read more.
    pub(crate) fn claim(&mut self, now: Timestamp) {
        let agents = self.settings.roster.now();
        let hands = self.holdings.hands();
        now_or_never(self.claimer.tick(now, Free::each(0), &hands)).expect("slots that are due are recorded");
        let request = ClaimRequest { node: self.id, now, limit: 100, agents: agents.names, limits: agents.limits };
        now_or_never(self.store.claim(&request)).expect("it has a lease");
    }

    /// Renews the lease if it is time, and does as it is told.
    pub(crate) fn keep(&mut self, now: Timestamp, boot: Duration) -> Result<Timestamp> {
        let upkeep = now_or_never(self.keeper.tick(now, boot))?;
        let told = self.held.iter().map(|(id, held)| (*id, held.stop.level()));
        let told: Vec<(RunId, StopLevel)> = told.filter(|(_, level)| *level != StopLevel::GoOn).collect();
        for (id, level) in told.into_iter().filter(|it| !self.stopped.contains(it)).collect::<Vec<_>>() {
            self.stopped.push((id, level));
            match level {
                StopLevel::Now => self.let_go(id),
                _ => self.end(id, now, RunEvent::Cancelled),
            }
        }
        Ok(upkeep.wake_at)
    }

    fn let_go(&mut self, id: RunId) {
        if let Some(held) = self.held.remove(&id) {
            self.holdings.end((id, held.run.epoch()));
        }
    }

    fn begin(&mut self, run: Run, now: Timestamp, boot: Duration, way: impl Fn(&str) -> Way) {
        let Some(stop) = self.holdings.begin((run.id, run.epoch()), boot) else { return };
        let failed = |is_retryable, retry_after| RunEvent::Failed {
            at: now,
            code: FailureCode::Error,
            is_retryable,
            retry_after,
        };
        let ends = match way(run.terms.work.agent()) {
            Way::Succeeds => Some((now, RunEvent::Succeeded)),
            Way::Fails => Some((now, failed(true, None))),
            Way::AsksToWait(rest) => Some((now, failed(true, Some(rest)))),
            Way::FailsForGood => Some((now, failed(false, None))),
            Way::Takes(time) => Some((now + time, RunEvent::Succeeded)),
            Way::Stays => None,
        };
        self.held.insert(run.id, Held { run, stop, ends });
    }

    /// Lets the work of a run end.
    pub(crate) fn end(&mut self, id: RunId, now: Timestamp, event: RunEvent) {
        let held = self.held.get_mut(&id).unwrap_or_else(|| panic!("run {id} is not at work here"));
        held.ends = Some((now, event));
    }

    /// Writes what has ended. Whether there was something.
    pub(crate) fn write_ends(&mut self, now: Timestamp) -> Result<bool> {
        let ended = self.held.iter().filter_map(|(id, held)| match &held.ends {
            Some((at, event)) if *at <= now => {
                Some(AttemptReport { run: *id, epoch: held.run.epoch(), event: *event, report: Report::default() })
            }
            _ => None,
        });
        let ended: Vec<AttemptReport> = ended.collect();
        if ended.is_empty() {
            return Ok(false);
        }
        let written: Vec<RunWritten> = now_or_never(self.store.finish(now, ended.clone()))?;
        assert_eq!(written.len(), ended.len(), "one answer for each report");
        for report in ended {
            self.let_go(report.run);
        }
        Ok(true)
    }
}
