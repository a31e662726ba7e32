//! Effects: what the world outside sees of runs (I3, I4, and one effect per epoch).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use punctual_core::RunId;
use punctual_engine::runner::RunContext;

use super::ownership::Nodes;
use super::{Check, ensure};
use crate::lost::Stretch;
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
    /// Claims that were lost: until when work may go on because of them, and whether it does.
    lost: BTreeMap<(Group, RunId, u64), Lost>,
    /// How often each run has begun.
    pub(crate) starts: BTreeMap<RunId, u32>,
}

#[derive(Debug, Clone, Copy)]
struct Live {
    group: Group,
}

#[derive(Debug, Clone, Copy)]
struct Lost {
    ends_by: Duration,
    is_live: bool,
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
    /// Work begins. `is_excused` says which processes cannot know that their work is another's by now.
    pub(crate) fn start(&mut self, context: &RunContext, scene: Scene, is_excused: impl Fn(Group) -> bool) -> Check {
        let (run, epoch) = (context.run_id, context.epoch);
        if let Some(lost) = self.lost.get_mut(&(scene.group, run, epoch)) {
            lost.is_live = true;
            return ensure("I4", scene.boot <= lost.ends_by, || {
                format!("run {run} began in p{} by a claim that was lost long ago", scene.group)
            });
        }
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
            ensure("I4", is_excused(live.group), || {
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
        let lost = self.lost.get_mut(&(scene.group, run, epoch));
        let valid_until = match lost {
            Some(lost) => {
                lost.is_live = false;
                Some(lost.ends_by)
            }
            None => {
                self.live.remove(&(run, epoch));
                scene.valid_until
            }
        };
        let Some(valid_until) = valid_until else { return Ok(()) };
        // Work that was frozen with its process is told to stop when that goes on, within a slice of sleep.
        let latest = valid_until.max(scene.thawed_at + Duration::from_secs(5) + KILL_TIME);
        ensure("I4", scene.boot <= latest, || {
            let over = scene.boot.saturating_sub(latest);
            format!("run {run} was at work in p{} until {over:?} after the node's lease", scene.group)
        })
    }

    /// Claims were lost: their epochs may be given again, their work may be done once more, and nobody hears of it.
    pub(crate) fn forget(&mut self, stretch: &Stretch, nodes: &Nodes, ends_by: Duration) {
        for (owner, run, epoch) in &stretch.claims {
            let Some(group) = nodes.group(*owner) else { continue };
            self.seen.remove(&(*run, *epoch));
            let is_live = self.live.remove(&(*run, *epoch)).is_some();
            self.lost.insert((group, *run, *epoch), Lost { ends_by, is_live });
        }
        // A run that never was may have been planned for a slot that another run answers now.
        for run in &stretch.runs {
            if let Some(key) = self.keys.remove(run) {
                self.by_key.remove(&key);
            }
        }
    }

    /// Whether a process holds a run by a claim that was lost.
    pub(crate) fn is_lost(&self, group: Group, run: RunId, epoch: u64) -> bool {
        self.lost.contains_key(&(group, run, epoch))
    }

    /// How many runs are at work in a process.
    pub(crate) fn live_in(&self, group: Group) -> usize {
        let lost = self.lost.iter().filter(|((its, ..), lost)| *its == group && lost.is_live).count();
        lost + self.live.values().filter(|live| live.group == group).count()
    }

    /// A process is gone, and its work with it.
    pub(crate) fn died(&mut self, group: Group) {
        self.live.retain(|_, live| live.group != group);
        self.lost.retain(|(its, ..), _| *its != group);
    }
}
