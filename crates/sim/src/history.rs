//! One history: from a seed to what became of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use punctual_store::Journal;

use crate::chaos::chaos;
use crate::clients::{clients, pause_all};
use crate::cluster::{start_all, thaw};
use crate::faults::FaultCounts;
use crate::invariants::{Check, Violation, ending, ensure};
use crate::sim::Sim;
use crate::timeline::{Executor, Group, WORLD};

/// The most wake-ups of one history: more is a loop that goes round in circles.
const STEPS_MAX: u64 = 5_000_000;

/// How long the last runs may take to end.
const DRAIN_MAX: Duration = Duration::from_secs(4 * 86_400);

/// Within so long a slot that is due is decided when nothing goes wrong: clocks differ by some seconds.
const DECIDED_WITHIN: SignedDuration = SignedDuration::from_secs(15);

/// What became of one seed.
#[derive(Debug, Clone)]
pub struct History {
    /// The seed.
    pub seed: u64,
    /// How often each fault struck.
    pub faults: FaultCounts,
    /// How many runs there were.
    pub runs: u64,
    /// How often work began.
    pub starts: u64,
    /// How many requests of clients were answered with yes.
    pub acks: u64,
    /// How long it took, in simulated time.
    pub lasted: Duration,
    /// The same for the same history, and hardly ever for another.
    pub trace_hash: u64,
    /// What was wrong, if anything.
    pub violation: Option<Violation>,
    /// The last lines of the trace.
    pub last_lines: Vec<String>,
}

impl History {
    /// The command that makes this history again.
    pub fn replay(&self) -> String {
        format!("cargo xtask sim --seed {}", self.seed)
    }
}

/// Makes the history of a seed. Its trace is printed if `is_printed`.
pub fn simulate(seed: u64, is_printed: bool) -> History {
    let sim = Sim::new(seed, is_printed);
    let mut executor = Executor::new(Arc::clone(&sim.timeline));
    let started_at = sim.timeline.boot();
    let made = catch_unwind(AssertUnwindSafe(|| make(&sim, &mut executor)));
    let violation = match made {
        Ok(Ok(())) => None,
        Ok(Err(violation)) => Some(violation),
        Err(panic) => Some(Violation { rule: "panic", what: panic_text(&*panic) }),
    };
    let (ledger, trace) = (sim.ledger(), sim.trace());
    let history = History {
        seed,
        faults: sim.faults().counts.clone(),
        runs: ledger.lives.len() as u64,
        starts: ledger.effects.starts.values().map(|starts| u64::from(*starts)).sum(),
        acks: ledger.acks.count,
        lasted: sim.timeline.boot() - started_at,
        trace_hash: trace.hash(),
        last_lines: trace.last().map(str::to_owned).collect(),
        violation,
    };
    drop((ledger, trace));
    // Tasks and processes hold the simulation, which must not hold them.
    sim.timeline.clear();
    let processes = std::mem::take(&mut sim.cluster().processes);
    drop(processes);
    history
}

fn make(sim: &Arc<Sim>, executor: &mut Executor) -> Check {
    start_all(sim);
    sim.timeline.spawn(WORLD, Box::pin(chaos(Arc::clone(sim))));
    sim.timeline.spawn(WORLD, Box::pin(clients(Arc::clone(sim))));
    run_for(sim, executor, sim.setup.lasts)?;
    heal(sim);
    run_for(sim, executor, ending::bound(&sim.setup) * 4)?;
    let now = sim.timeline.now();
    let left = sim.log.look(|state| ending::left_waiting(state, now, &sim.setup));
    // What stood in the way of a run may have gone a moment ago.
    run_for(sim, executor, ending::bound(&sim.setup))?;
    let now = sim.timeline.now();
    sim.log.look(|state| ending::is_healthy(state, now, &sim.setup, &left))?;
    let ledger = sim.ledger();
    ledger.slots.are_in_place(&ledger.world)?;
    ledger.slots.are_complete(now - DECIDED_WITHIN, &ledger.world)?;
    drop(ledger);
    sim.timeline.spawn(WORLD, Box::pin(end(Arc::clone(sim))));
    let deadline = sim.timeline.boot() + DRAIN_MAX;
    while sim.timeline.boot() < deadline && sim.log.look(|state| ending::is_over(state, sim.timeline.now())).is_err() {
        run_for(sim, executor, Duration::from_secs(3_600))?;
    }
    sim.log.look(|state| ending::is_over(state, sim.timeline.now()))?;
    let ledger = sim.ledger();
    sim.log.look(|state| ledger.compare_all(state))?;
    ledger.acks.hold(&ledger.world)?;
    drop(ledger);
    verify(sim, executor)
}

fn run_for(sim: &Arc<Sim>, executor: &mut Executor, time: Duration) -> Check {
    let until = sim.timeline.boot() + time;
    // Something to go on to, whatever else sleeps.
    let alarm = sim.timeline.sleep(time);
    sim.timeline.spawn(WORLD, Box::pin(alarm));
    for _ in 0..STEPS_MAX {
        if until <= sim.timeline.boot() {
            return Ok(());
        }
        executor.step();
        if let Some(violation) = sim.violation() {
            return Err(violation);
        }
    }
    ensure("L5", false, || format!("{STEPS_MAX} wake-ups were not enough"))
}

/// From here on nothing goes wrong.
fn heal(sim: &Arc<Sim>) {
    sim.tell(format_args!("everything is repaired"));
    sim.faults().end();
    sim.cluster().is_down = false;
    let frozen: Vec<Group> = sim.cluster().frozen();
    frozen.into_iter().for_each(|group| thaw(sim, group));
    start_all(sim);
}

/// Pauses every schedule, as often as it takes.
async fn end(sim: Arc<Sim>) {
    loop {
        let process = sim.cluster().processes.values().next().cloned();
        if let Some(process) = process {
            match pause_all(&sim, &process).await {
                Ok(()) => return process.nudges.schedules_changed(),
                Err(error) => sim.tell(format_args!("not everything can be paused: {error}")),
            }
        }
        sim.wait(Duration::from_secs(1)).await;
    }
}

/// The store's own comparison of its rows with its journal finds nothing.
fn verify(sim: &Arc<Sim>, executor: &mut Executor) -> Check {
    let shared = Arc::clone(sim);
    let verify = async move {
        let found = shared.log.rows.verify().await;
        let is_clean = found.as_ref().is_ok_and(Vec::is_empty);
        shared.check(ensure("I19", is_clean, || format!("verify says {found:?}")));
    };
    sim.timeline.spawn(WORLD, Box::pin(verify));
    run_for(sim, executor, Duration::from_millis(1))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a word".to_owned())
}
