//! A standby: a copy of the store that stays behind, until it takes its place. What was written since is lost.
//!
//! A process that has seen something of it notices with its next write, as it does on PostgreSQL: the entry that it read
//! last is not there any more. Who has seen nothing of it goes on as if nothing had happened.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use punctual_store::Result;
use punctual_store::memory::State;

use crate::faults::Fault;
use crate::ledger::Kept;
use crate::sim::{Sim, locked};
use crate::timeline::WORLD;

/// How often somebody looks how much a standby has missed.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What was lost so far.
#[derive(Debug, Default)]
pub(crate) struct Standby {
    /// Whether there is a copy that lags.
    lags: bool,
    /// The last entry that was kept, for each time that something was lost.
    losses: Vec<u64>,
}

/// A copy is made and gets nothing more for a while, until it has missed so many entries or it takes too long; then it takes
/// the place of the store.
pub(crate) async fn lag_and_promote(sim: Arc<Sim>, lag: Duration, entries: u64) {
    if std::mem::replace(&mut sim.standby().lags, true) {
        return;
    }
    sim.observe(WORLD);
    let state = sim.store.look(State::clone);
    let kept = sim.ledger().keep();
    sim.wait(lag).await;
    let latest = sim.timeline.boot() + sim.setup.lease;
    while sim.timeline.boot() < latest && missed(&sim, &state) < entries {
        sim.wait(LOOK_EVERY).await;
    }
    sim.observe(WORLD);
    sim.standby().lags = false;
    promote(&sim, state, kept);
}

/// How many entries a copy has missed.
fn missed(sim: &Sim, copy: &State) -> u64 {
    sim.store.look(|state| state.world.seq - copy.world.seq)
}

fn promote(sim: &Sim, state: State, kept: Kept) {
    let missed = missed(sim, &state);
    if !sim.faults().is_on() || missed == 0 {
        return sim.ledger().keeps_all();
    }
    sim.strike(Fault::Promotion, format_args!("{missed} entries after #{} are lost", state.world.seq));
    sim.standby().losses.push(state.world.seq);
    sim.store.put_back(state);
    sim.ledger().go_back(kept, sim.timeline.boot() + sim.setup.lease);
}

/// What a process has seen of the journal.
#[derive(Debug, Default)]
pub(crate) struct Seen(Mutex<Option<Sight>>);

#[derive(Debug, Clone, Copy)]
struct Sight {
    seq: u64,
    epoch_floor: u64,
    /// How often something had been lost by then.
    losses: usize,
}

impl Seen {
    /// The process is about to write: if something is gone that it has seen, it raises the epochs, unless somebody has since.
    pub(crate) fn notice(&self, sim: &Sim) -> Result<()> {
        let Some(sight) = *locked(&self.0) else { return Ok(()) };
        let has_lost = sim.standby().losses[sight.losses..].iter().any(|kept| *kept < sight.seq);
        let epoch_floor = sim.store.look(|state| state.world.epoch_floor);
        if has_lost && epoch_floor <= sight.epoch_floor {
            sim.store.begin_anew(sim.timeline.now(), sight.epoch_floor)?;
        }
        Ok(())
    }

    /// It has caught up with the journal.
    pub(crate) fn catch_up(&self, sim: &Sim) {
        let losses = sim.standby().losses.len();
        let sight = sim.store.look(|state| {
            let (seq, epoch_floor) = (state.world.seq, state.world.epoch_floor);
            Sight { seq, epoch_floor, losses }
        });
        *locked(&self.0) = Some(sight);
    }
}
