//! Who may write about a run (I1, I2), and how long a node may believe that it does (I3).

use std::collections::BTreeMap;
use std::time::Duration;

use punctual_core::journal::{Body, Entry, World};
use punctual_core::run::Run;
use punctual_core::{NodeId, RunId};
use punctual_store::Planner;
use punctual_store::memory::State;
use punctual_store::{PlannerLease, RunWritten, Sign};

use super::{Check, ensure};
use crate::ledger::Moment;
use crate::log::Log;
use crate::timeline::Group;

/// The incarnations of nodes, as the world outside the store knows them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Nodes {
    known: BTreeMap<NodeId, Incarnation>,
}

#[derive(Debug, Clone, Copy)]
struct Incarnation {
    group: Group,
    /// Until when, by the boot clock, its node may believe that its runs are its own.
    valid_until: Duration,
    /// Until when, by the boot clock, the store has it for alive.
    leased_until: Duration,
    /// Until when its work may go on beside that of others although its lease has ended: it does not know that, since the
    /// last renewal was lost.
    set_back_until: Option<Duration>,
    has_left: bool,
}

impl Nodes {
    pub(crate) fn knows(&mut self, node: NodeId, group: Group) {
        let (valid_until, leased_until) = (Duration::ZERO, Duration::ZERO);
        let new = Incarnation { group, valid_until, leased_until, set_back_until: None, has_left: false };
        self.known.insert(node, new);
    }

    /// The store has taken in a renewal that lasts until an instant.
    pub(crate) fn leased(&mut self, node: NodeId, until: Duration) {
        if let Some(incarnation) = self.known.get_mut(&node) {
            incarnation.leased_until = incarnation.leased_until.max(until);
            incarnation.set_back_until = None;
        }
    }

    /// The store has lost every renewal since.
    pub(crate) fn go_back(&mut self, kept: &Nodes, until: Duration) {
        for (node, incarnation) in &mut self.known {
            let leased_until = kept.known.get(node).map_or(Duration::ZERO, |it| it.leased_until);
            if leased_until < incarnation.leased_until {
                (incarnation.leased_until, incarnation.set_back_until) = (leased_until, Some(until));
            }
        }
    }

    /// The process that a node is, or was, in.
    pub(crate) fn group(&self, node: NodeId) -> Option<Group> {
        self.known.get(&node).map(|it| it.group)
    }

    /// Whether a process does not know that its lease has ended, because the last renewal was lost.
    pub(crate) fn is_set_back(&self, group: Group, boot: Duration) -> bool {
        let is_over =
            |it: &Incarnation| it.leased_until <= boot && it.set_back_until.is_some_and(|until| boot <= until);
        self.known.values().any(|it| it.group == group && is_over(it))
    }

    /// A renewal that was sent so that it lasts until an instant has been answered.
    pub(crate) fn renewed(&mut self, node: NodeId, valid_until: Duration) {
        if let Some(incarnation) = self.known.get_mut(&node) {
            incarnation.valid_until = incarnation.valid_until.max(valid_until);
        }
    }

    pub(crate) fn leaves(&mut self, node: NodeId) {
        if let Some(incarnation) = self.known.get_mut(&node) {
            incarnation.has_left = true;
        }
    }

    /// A process is gone, and every incarnation in it.
    pub(crate) fn died(&mut self, group: Group) {
        for incarnation in self.known.values_mut().filter(|it| it.group == group) {
            incarnation.has_left = true;
        }
    }

    /// Until when a process may believe that its runs are its own.
    pub(crate) fn valid_until(&self, group: Group) -> Duration {
        let own = self.known.values().filter(|it| it.group == group);
        own.map(|it| it.valid_until).max().unwrap_or_default()
    }

    /// Looks at what an entry does to owners, before it does.
    pub(crate) fn check(&self, entry: &Entry, before: &World, state: &State, moment: &Moment, shared: bool) -> Check {
        match &entry.body {
            Body::RunsClaimed { owner, runs } => {
                let lease = state.nodes.get(owner).map(|node| node.lease_until);
                ensure("I1", lease.is_some_and(|until| entry.at <= until), || {
                    format!("{owner} claimed {} runs at {} with its lease at {lease:?}", runs.len(), entry.at)
                })?;
                runs.iter().filter_map(|id| before.runs.get(id)).try_for_each(|run| {
                    ensure("I1", run.owner().is_none(), || format!("run {} was claimed from its owner", run.id))
                })
            }
            // Nobody is taken for dead who may still believe to be alive.
            Body::NodeLeft { node, is_lost: true } if shared => {
                let Some(it) = self.known.get(node) else { return Ok(()) };
                ensure("I3", it.has_left || it.group == moment.group || it.leased_until <= moment.boot, || {
                    let left = it.leased_until.saturating_sub(moment.boot);
                    format!("the node of p{} was buried {left:?} before its lease can have ended", it.group)
                })
            }
            _ => Ok(()),
        }
    }
}

/// The runs that a write names, as they are before it.
pub(crate) fn before_write(log: &Log, named: &[(RunId, u64)]) -> Vec<Option<Run>> {
    log.look(|state| named.iter().map(|(id, _)| state.world.runs.get(id).map(|run| Run::clone(run))).collect())
}

/// What names an old epoch or a lost one, or is answered as stale, has changed nothing.
pub(crate) fn after_write(
    log: &Log,
    named: &[(RunId, u64)],
    before: &[Option<Run>],
    answers: &[RunWritten],
    is_lost: impl Fn((RunId, u64)) -> bool,
) -> Check {
    log.look(|state| {
        ensure("I2", answers.len() == named.len(), || "not every write was answered".to_owned())?;
        for (index, (id, epoch)) in named.iter().enumerate() {
            let is_only = named.iter().filter(|(other, _)| other == id).count() == 1;
            let before = before[index].as_ref();
            let is_old = before.is_none_or(|run| run.epoch() != *epoch);
            let is_stale = answers[index] == RunWritten::Stale;
            if is_only && (is_old || is_stale || is_lost((*id, *epoch))) {
                ensure("I2", state.world.runs.get(id).map(|run| &**run) == before, || {
                    format!("a write under epoch {epoch} changed run {id}, which was {before:?}")
                })?;
            }
        }
        Ok(())
    })
}

/// Who is answered about a run that was over says what was said before, and gets the same answer.
pub(crate) fn said_again(
    named: &[(RunId, u64)],
    before: &[Option<Run>],
    answers: &[RunWritten],
    ends: &BTreeMap<RunId, Run>,
) -> Check {
    for (((id, epoch), before), answer) in named.iter().zip(before).zip(answers) {
        let RunWritten::Done(state) = answer else { continue };
        // Of two reports in one call the first may have ended it.
        let is_second = 1 < named.iter().filter(|(other, _)| other == id).count();
        if before.is_none() && !is_second {
            let last_end = ends.get(id).and_then(|run| run.last_end);
            let is_known = last_end.is_some_and(|end| end.epoch == *epoch && end.state == *state);
            ensure("I2", is_known, || format!("run {id} was over, and epoch {epoch} is told {state:?}: {last_end:?}"))?;
        }
    }
    Ok(())
}

/// Taking the planner's lease: from no node that has it, and a time without a planner is an outage.
pub(crate) fn planner_taken(before: Option<Planner>, sign: &Sign, lease: &PlannerLease, state: &State) -> Check {
    let Some(before) = before else { return Ok(()) };
    let has_ended = before.until < sign.now;
    if before.node != sign.node && !has_ended && state.nodes.contains_key(&before.node) {
        return ensure("I13", !lease.is_held, || "two nodes plan at once".to_owned());
    }
    if !has_ended {
        return Ok(());
    }
    let outage = lease.outage.filter(|outage| outage.from == before.until && outage.until == sign.now);
    ensure("I13", lease.is_held && outage.is_some(), || {
        format!("nobody planned from {} to {}, and that is no outage", before.until, sign.now)
    })
}
