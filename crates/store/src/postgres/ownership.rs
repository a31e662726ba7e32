//! Who owns which runs, as far as it is committed: what a node that renews its lease asks, without waiting for who writes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use punctual_core::{NodeId, RunId};

use punctual_kernel::state::State;

/// The runs of nodes, each with its epoch and whether somebody has called it off.
#[derive(Debug, Clone, Default)]
pub(super) struct Ownership(Arc<Mutex<Owned>>);

#[derive(Debug, Default)]
struct Owned {
    runs: HashMap<NodeId, BTreeMap<RunId, (u64, bool)>>,
    owners: HashMap<RunId, NodeId>,
}

impl Ownership {
    /// Everything as a state has it, which was read anew.
    pub(super) fn replace(&self, state: &State) {
        let mut owned = self.lock();
        *owned = Owned::default();
        state.all_owned().for_each(|run| owned.put(run.id, run.owner(), run.epoch(), run.is_cancelling));
    }

    /// What has changed in a state since it was followed last, now that it is committed.
    pub(super) fn follow(&self, state: &mut State) {
        let mut owned = self.lock();
        for id in state.take_touched() {
            match state.run(id) {
                Some(run) => owned.put(id, run.owner(), run.epoch(), run.is_cancelling),
                None => owned.put(id, None, 0, false),
            }
        }
    }

    /// The runs of a node, by id.
    pub(super) fn of(&self, node: NodeId) -> Vec<(RunId, u64, bool)> {
        let owned = self.lock();
        let runs = owned.runs.get(&node).into_iter().flatten();
        runs.map(|(id, (epoch, is_cancelling))| (*id, *epoch, *is_cancelling)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Owned> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Owned {
    fn put(&mut self, id: RunId, owner: Option<NodeId>, epoch: u64, is_cancelling: bool) {
        if let Some(before) = self.owners.remove(&id)
            && let Some(runs) = self.runs.get_mut(&before)
        {
            runs.remove(&id);
            if runs.is_empty() {
                self.runs.remove(&before);
            }
        }
        if let Some(owner) = owner {
            self.owners.insert(id, owner);
            self.runs.entry(owner).or_default().insert(id, (epoch, is_cancelling));
        }
    }
}
