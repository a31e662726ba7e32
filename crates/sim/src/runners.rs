//! Runners: work that succeeds, fails, hangs, runs long, resists being stopped, or takes its process with it.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use punctual_core::run::{FailureCode, Report};
use punctual_core::{Elapsed, RunId};
use punctual_engine::runner::{Assignment, Ending, Finish, Runner, Stop, StopLevel};

use crate::cluster::{self, crash, scene};
use crate::faults::Fault;
use crate::invariants::effects::KILL_TIME;
use crate::ledger::{Ledger, short};
use crate::sim::Sim;
use crate::timeline::Group;

/// Carries out runs of one process.
pub(crate) struct SimRunner {
    pub(crate) sim: Arc<Sim>,
    pub(crate) group: Group,
}

#[derive(Debug, Clone, Copy)]
enum Character {
    Succeeds,
    Fails { is_retryable: bool },
    Hangs,
    Kills,
}

#[async_trait]
impl Runner for SimRunner {
    async fn run(&self, assignment: Assignment, mut stop: Stop) -> Finish {
        let sim = &self.sim;
        let context = &assignment.context;
        let _work = AtWork::begin(self, &assignment);
        let timeout = Duration::try_from(assignment.timeout.duration()).unwrap_or_default();
        let (character, lasts, obeys_after, dies_after, retry_after) = {
            let mut random = sim.runners();
            let character = random.weighted(&[
                (60, Character::Succeeds),
                (14, Character::Fails { is_retryable: true }),
                (5, Character::Fails { is_retryable: false }),
                (6, Character::Hangs),
                (1, Character::Kills),
            ]);
            let longest = *random.pick(&[60, 600, 7_200]);
            (
                character,
                random.stretch(Duration::from_millis(10), Duration::from_secs(longest)),
                // Some are stopped by a kind word, some only by force.
                random.chance(70).then(|| Duration::from_millis(random.below(5_000))),
                Duration::from_millis(random.below(KILL_TIME.as_millis() as u64 / 2)),
                random.chance(20).then(|| Elapsed::from_seconds(random.between(1, 300) as u32)),
            )
        };
        let lasts = if matches!(character, Character::Hangs) { timeout } else { lasts.min(timeout) };
        if self.lasts(lasts, &mut stop, obeys_after, dies_after).await {
            return finish(Ending::Stopped);
        }
        match character {
            _ if lasts == timeout => finish(failed(FailureCode::TimedOut, true, None)),
            Character::Succeeds | Character::Hangs => finish(Ending::Succeeded),
            Character::Fails { is_retryable } => finish(failed(FailureCode::Error, is_retryable, retry_after)),
            Character::Kills if !sim.faults().is_on() => finish(Ending::Succeeded),
            Character::Kills => {
                sim.strike(Fault::Poison, format_args!("run {} in p{}", short(context.run_id.0), self.group));
                crash(sim, self.group);
                std::future::pending().await
            }
        }
    }
}

impl SimRunner {
    /// Works for a while. Whether it was stopped before.
    async fn lasts(
        &self,
        lasts: Duration,
        stop: &mut Stop,
        obeys_after: Option<Duration>,
        dies_after: Duration,
    ) -> bool {
        let timeline = &self.sim.timeline;
        let ends_at = timeline.boot() + lasts;
        let left = |boot: Duration| ends_at.saturating_sub(boot);
        if let Some(obeys_after) = obeys_after {
            if !self.is_stopped(left(timeline.boot()), stop, StopLevel::Ask).await {
                return false;
            }
            if !self.is_stopped(obeys_after, stop, StopLevel::Now).await {
                return true;
            }
        } else if !self.is_stopped(left(timeline.boot()), stop, StopLevel::Now).await {
            return false;
        }
        timeline.sleep(dies_after).await;
        true
    }

    /// Waits for a stop of this level, or for a time. Whether the stop came.
    async fn is_stopped(&self, time: Duration, stop: &mut Stop, level: StopLevel) -> bool {
        let mut over = pin!(self.sim.timeline.sleep(time));
        let mut stopped = pin!(stop.reached(level));
        poll_fn(|context| {
            if stopped.as_mut().poll(context).is_ready() {
                return Poll::Ready(true);
            }
            over.as_mut().poll(context).map(|()| false)
        })
        .await
    }
}

fn failed(code: FailureCode, is_retryable: bool, retry_after: Option<Elapsed>) -> Ending {
    Ending::Failed { code, is_retryable, retry_after }
}

fn finish(ending: Ending) -> Finish {
    Finish { ending, report: Report::default() }
}

/// Work that goes on. It ends when it is dropped, however that comes.
struct AtWork<'a> {
    runner: &'a SimRunner,
    run: RunId,
    epoch: u64,
}

impl AtWork<'_> {
    fn begin<'a>(runner: &'a SimRunner, assignment: &Assignment) -> AtWork<'a> {
        let SimRunner { sim, group } = runner;
        let context = &assignment.context;
        sim.tell(format_args!("p{group} begins run {} e{}", short(context.run_id.0), context.epoch));
        if let Some(scene) = scene(sim, *group) {
            let frozen = sim.cluster().frozen();
            let Ledger { effects, nodes, .. } = &mut *sim.ledger();
            let is_excused = |group| frozen.contains(&group) || nodes.is_set_back(group, scene.boot);
            sim.check(effects.start(context, scene, is_excused));
        }
        AtWork { runner, run: context.run_id, epoch: context.epoch }
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        let SimRunner { sim, group } = self.runner;
        // What dies with its process has been struck off already.
        if let Some(scene) = cluster::scene(sim, *group) {
            sim.tell(format_args!("p{group} ends run {} e{}", short(self.run.0), self.epoch));
            sim.check(sim.ledger().effects.end(self.run, self.epoch, scene));
        }
    }
}
