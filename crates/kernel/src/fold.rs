//! Folding a long journal: each entry is shown only the rows that it concerns.
//!
//! [`World::apply`] looks at every run that it has. That is right, and with a million runs and many entries it takes for
//! ever: so an entry is applied to a piece of the world, as a store's changes are, and the piece is put back.

use std::collections::{BTreeSet, HashMap};

use punctual_core::journal::{Body, Entry, JournalError, World};
use punctual_core::run::Run;
use punctual_core::{RunId, ScheduleId};

/// A world that is being folded.
pub struct Fold {
    world: World,
    runs_of: RunsOf,
    /// Whether the checkpoint at the beginning is still being taken in.
    rebuilds: bool,
}

impl Fold {
    /// A journal that begins with entry `seq`.
    pub fn beginning_at(seq: u64) -> Fold {
        Fold { world: World::beginning_at(seq), runs_of: HashMap::new(), rebuilds: 1 < seq }
    }

    /// Takes in the next entry.
    pub fn apply(&mut self, entry: &Entry) -> Result<(), JournalError> {
        match self.concerned(&entry.body).filter(|_| !self.rebuilds) {
            Some(runs) => self.apply_to(runs, entry),
            None => self.apply_to_all(entry),
        }
    }

    /// What the entries come to.
    pub fn into_world(self) -> World {
        self.world
    }

    /// The runs that an entry concerns; `None` if that is everything.
    fn concerned(&self, body: &Body) -> Option<BTreeSet<RunId>> {
        let of = |schedule: &ScheduleId| self.runs_of.get(schedule).cloned().unwrap_or_default();
        Some(match body {
            Body::ScheduleChanged { schedule, .. } => of(&schedule.id),
            Body::Planned(plan) => {
                let mut runs = of(&plan.schedule);
                runs.extend(plan.withdrawn.iter().copied());
                runs.extend(plan.moved.iter().chain(&plan.runs).map(|run| run.id));
                runs
            }
            Body::RunAsked { run, .. } => {
                let mut runs = run.schedule.as_ref().map(of).unwrap_or_default();
                runs.insert(run.id);
                runs
            }
            Body::RunsClaimed { runs, .. } | Body::RunsStarted { runs } => runs.iter().copied().collect(),
            Body::RunChanged(change) => [change.run].into(),
            Body::AttemptEnded(attempt) => [attempt.run].into(),
            Body::ScheduleDeleted { .. }
            | Body::Skipped(_)
            | Body::DayStarted { .. }
            | Body::TokenMade { .. }
            | Body::TokenRevoked { .. }
            | Body::NodeJoined { .. }
            | Body::NodeLeft { .. } => BTreeSet::new(),
            Body::RunsForgotten { .. } | Body::PlannerTaken { .. } | Body::Restored { .. } | Body::Checkpoint(_) => {
                return None;
            }
        })
    }

    fn apply_to(&mut self, runs: BTreeSet<RunId>, entry: &Entry) -> Result<(), JournalError> {
        let whole = &mut self.world;
        let mut piece = World::beginning_at(1);
        (piece.seq, piece.epoch_floor, piece.days) = (whole.seq, whole.epoch_floor, std::mem::take(&mut whole.days));
        piece.tokens = std::mem::take(&mut whole.tokens);
        piece.runs = runs.iter().filter_map(|id| whole.runs.remove_entry(id)).collect();
        let mut schedules: BTreeSet<ScheduleId> = piece.runs.values().filter_map(|run| run.schedule).collect();
        schedules.extend(entry.body.schedule());
        piece.schedules = schedules.iter().filter_map(|id| whole.schedules.remove_entry(id)).collect();
        for run in piece.runs.values() {
            forget(&mut self.runs_of, run);
        }
        let applied = piece.apply(entry);
        for run in piece.runs.values() {
            note(&mut self.runs_of, run);
        }
        (whole.seq, whole.days, whole.tokens) = (piece.seq, piece.days, piece.tokens);
        whole.runs.extend(piece.runs);
        whole.schedules.extend(piece.schedules);
        applied
    }

    fn apply_to_all(&mut self, entry: &Entry) -> Result<(), JournalError> {
        self.world.apply(entry)?;
        if let Body::Checkpoint(checkpoint) = &entry.body {
            self.rebuilds &= checkpoint.part != checkpoint.parts;
        }
        if matches!(entry.body, Body::RunsForgotten { .. } | Body::Checkpoint(_)) {
            self.runs_of.clear();
            for run in self.world.runs.values() {
                note(&mut self.runs_of, run);
            }
        }
        Ok(())
    }
}

type RunsOf = HashMap<ScheduleId, BTreeSet<RunId>>;

fn note(runs_of: &mut RunsOf, run: &Run) {
    if let Some(schedule) = run.schedule {
        runs_of.entry(schedule).or_default().insert(run.id);
    }
}

fn forget(runs_of: &mut RunsOf, run: &Run) {
    if let Some(runs) = run.schedule.and_then(|schedule| runs_of.get_mut(&schedule)) {
        runs.remove(&run.id);
    }
}
