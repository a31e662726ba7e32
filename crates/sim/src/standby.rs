//! A standby: a copy of the store that stays behind, until it takes its place. What was written since is lost.
//!
//! A process that has seen something of it notices with its next write, as it does on PostgreSQL: the entry that it read
//! last is not there any more. Who has seen nothing of it goes on as if nothing had happened.

use std::sync::Arc;
use std::time::Duration;

use crate::faults::Fault;
use crate::ledger::Kept;
use crate::log::Copy;
use crate::sim::Sim;
use crate::timeline::WORLD;

/// How often somebody looks how much a standby has missed.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Whether there is one.
#[derive(Debug, Default)]
pub(crate) struct Standby {
    /// Whether there is a copy that lags.
    lags: bool,
}

/// A copy is made and gets nothing more for a while, until it has missed so many entries or it takes too long; then it takes
/// the place of the store.
pub(crate) async fn lag_and_promote(sim: Arc<Sim>, lag: Duration, entries: u64) {
    if std::mem::replace(&mut sim.standby().lags, true) {
        return;
    }
    sim.observe(WORLD);
    let copy = sim.log.copy();
    let kept = sim.ledger().keep();
    sim.wait(lag).await;
    let latest = sim.timeline.boot() + sim.setup.lease;
    while sim.timeline.boot() < latest && missed(&sim, &copy) < entries {
        sim.wait(LOOK_EVERY).await;
    }
    sim.observe(WORLD);
    sim.standby().lags = false;
    promote(&sim, copy, kept);
}

/// How many entries a copy has missed.
fn missed(sim: &Sim, copy: &Copy) -> u64 {
    sim.log.head().seq - copy.rows.world.seq
}

fn promote(sim: &Sim, copy: Copy, kept: Kept) {
    let missed = missed(sim, &copy);
    if !sim.faults().is_on() || missed == 0 {
        return sim.ledger().keeps_all();
    }
    sim.strike(Fault::Promotion, format_args!("{missed} entries after #{} are lost", copy.rows.world.seq));
    sim.log.put_back(copy);
    sim.ledger().go_back(kept, sim.timeline.boot() + sim.setup.lease);
}
