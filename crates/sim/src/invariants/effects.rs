//! Effects: what the world outside sees of runs (I3, I4, and one effect per epoch).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use punctual_core::RunId;
use punctual_engine::runner::RunContext;

use super::{Check, ensure};
use crate::timeline::Group;

/// How long work may take to die once it is told to, or once its process goes on after a freeze.
pub(crate) const KILL_TIME: Duration = Duration::from_secs(1);

/// Every start of work and every end.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    live: BTreeMap<(RunId, u64), Live>,
    seen: BTreeSet<(RunId, u64)>,
    keys: BTreeMap<RunId, String>,
    by_key: BTreeMap<String, RunId>,
    /// How often each run has begun.
    pub(crate) starts: BTreeMap<RunId, u32>,
}

#[derive(Debug, Clone, Copy)]
struct Live {
    group: Group,
}

/// Where and when work begins or ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene {
    pub(crate) group: Group,
    pub(crate) boot: Duration,
    /// Until when the process may believe that its runs are its own; none on a store that nobody else can have.
    pub(crate) valid_until: Option<Duration>,
    /// When it last went on after a freeze.
    pub(crate) thawed_at: Duration,
}

impl Effects {
    pub(crate) fn start(&mut self, context: &RunContext, scene: Scene, is_frozen: impl Fn(Group) -> bool) -> Check {
        let (run, epoch) = (context.run_id, context.epoch);
        ensure("I4", self.seen.insert((run, epoch)), || format!("run {run} began twice under epoch {epoch}"))?;
        ensure("I3", scene.valid_until.is_none_or(|until| scene.boot < until), || {
            format!("run {run} began in p{} after the node's lease", scene.group)
        })?;
        let key = &context.idempotency_key;
        let known = self.keys.entry(run).or_insert_with(|| key.clone());
        ensure("I16", known == key, || format!("run {run} was {known} and is {key}"))?;
        let of_key = self.by_key.entry(key.clone()).or_insert(run);
        ensure("I16", *of_key == run, || format!("runs {of_key} and {run} are both {key}"))?;
        let others = self.live.range((run, 0)..=(run, u64::MAX));
        for ((_, other), live) in others {
            ensure("I4", is_frozen(live.group), || {
                format!(
                    "run {run} began under epoch {epoch} in p{} while epoch {other} is at work in p{}",
                    scene.group, live.group
                )
            })?;
        }
        self.live.insert((run, epoch), Live { group: scene.group });
        *self.starts.entry(run).or_default() += 1;
        Ok(())
    }

    /// Work ends; by itself, or because its process told it to.
    pub(crate) fn end(&mut self, run: RunId, epoch: u64, scene: Scene) -> Check {
        self.live.remove(&(run, epoch));
        let Some(valid_until) = scene.valid_until else { return Ok(()) };
        // Work that was frozen with its process is told to stop when that goes on, within a slice of sleep.
        let latest = valid_until.max(scene.thawed_at + Duration::from_secs(5) + KILL_TIME);
        ensure("I4", scene.boot <= latest, || {
            let over = scene.boot.saturating_sub(latest);
            format!("run {run} was at work in p{} until {over:?} after the node's lease", scene.group)
        })
    }

    /// How many runs are at work in a process.
    pub(crate) fn live_in(&self, group: Group) -> usize {
        self.live.values().filter(|live| live.group == group).count()
    }

    /// A process is gone, and its work with it.
    pub(crate) fn died(&mut self, group: Group) {
        self.live.retain(|_, live| live.group != group);
    }
}
