//! What a journal tells: how often each thing happened to each run, and what was held at every commit.

use std::collections::{BTreeMap, BTreeSet};

use punctual_core::journal::{Body, Entry, World};
use punctual_core::run::Run;
use punctual_core::{NodeId, RunId};

/// How often something happened to runs, by what the entries say.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) asked: BTreeMap<RunId, usize>,
    pub(crate) claimed: BTreeMap<RunId, Vec<NodeId>>,
    pub(crate) started: BTreeMap<RunId, usize>,
    pub(crate) ended: BTreeMap<RunId, usize>,
    pub(crate) world: World,
}

impl Told {
    /// Folds a journal from its first entry on. After each entry, `look` sees the runs that nodes hold.
    pub(crate) fn by(entries: &[Entry], mut look: impl FnMut(&Entry, &[&Run])) -> Told {
        let mut told = Told::default();
        let mut held: BTreeSet<RunId> = BTreeSet::new();
        for entry in entries {
            told.world.apply(entry).unwrap_or_else(|error| panic!("entry {} cannot have happened: {error}", entry.seq));
            let concerned: Vec<RunId> = match &entry.body {
                Body::RunsClaimed { runs, .. } | Body::RunsStarted { runs } => runs.clone(),
                body => body.run().into_iter().collect(),
            };
            for id in concerned {
                told.note(&entry.body, id);
                let is_held = told.world.runs.get(&id).is_some_and(|run| run.owner().is_some());
                if is_held {
                    held.insert(id)
                } else {
                    held.remove(&id)
                };
            }
            let runs: Vec<&Run> = held.iter().map(|id| &*told.world.runs[id]).collect();
            look(entry, &runs);
        }
        told
    }

    fn note(&mut self, body: &Body, run: RunId) {
        match body {
            Body::RunAsked { .. } => *self.asked.entry(run).or_default() += 1,
            Body::RunsClaimed { owner, .. } => self.claimed.entry(run).or_default().push(*owner),
            Body::RunsStarted { .. } => *self.started.entry(run).or_default() += 1,
            Body::AttemptEnded(_) => *self.ended.entry(run).or_default() += 1,
            _ => {}
        }
    }

    /// Everything that happened to these runs happened to each of them once, and to no others.
    pub(crate) fn assert_once(&self, runs: &BTreeSet<RunId>) {
        let claimed: Vec<(&RunId, usize)> = self.claimed.iter().map(|(run, owners)| (run, owners.len())).collect();
        let counts = |counts: &BTreeMap<RunId, usize>| counts.clone().into_iter().collect::<Vec<_>>();
        let once: Vec<(RunId, usize)> = runs.iter().map(|run| (*run, 1)).collect();
        assert!(
            claimed.iter().map(|(run, count)| (**run, *count)).eq(once.iter().copied()),
            "claimed once: {claimed:?}"
        );
        assert!(counts(&self.started) == once, "started once: {:?}", self.started);
        assert!(counts(&self.ended) == once, "ended once: {:?}", self.ended);
    }
}
