//! Processes: each is a real node of the engine, and can be killed, frozen, stopped and started.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use punctual_core::time::Zones;
use punctual_engine::clock::{Clock, SteadyClock};
use punctual_engine::edit::Editor;
use punctual_engine::node::{self, NodeError, Nudges, Parts};
use punctual_engine::runner::{Runner, Runners};
use punctual_engine::settings::Settings;
use punctual_store::Store;
use tokio_util::sync::CancellationToken;

use crate::clock::{SimClock, SimSpawn};
use crate::invariants::effects::Scene;
use crate::invariants::ensure;
use crate::random::Random;
use crate::runners::SimRunner;
use crate::setup::{AGENTS, Setup};
use crate::sim::Sim;
use crate::store::FaultyStore;
use crate::timeline::{Group, WORLD};

/// The processes that live, and where new ones go.
pub(crate) struct Cluster {
    pub(crate) processes: BTreeMap<Group, Process>,
    /// Whether nobody is to be started.
    pub(crate) is_down: bool,
    /// Whether the clock shows what nobody believes: nobody asks for anything meanwhile, and nothing is started.
    pub(crate) is_clock_wrong: bool,
    /// Which zone data a new process has.
    pub(crate) zone_data: usize,
    last_group: Group,
    slots: usize,
    random: Random,
}

/// One process.
#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) slot: usize,
    pub(crate) is_frozen: bool,
    thawed_at: Duration,
    pub(crate) settings: Arc<Settings>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) editor: Arc<Editor>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) nudges: Arc<Nudges>,
    stop: CancellationToken,
}

impl Cluster {
    pub(crate) fn new(seed: u64, setup: &Setup) -> Cluster {
        Cluster {
            processes: BTreeMap::new(),
            is_down: false,
            is_clock_wrong: false,
            zone_data: 0,
            last_group: WORLD,
            slots: setup.slots,
            random: Random::new(seed, "cluster"),
        }
    }

    /// The zone data of a process.
    pub(crate) fn zones(&self, group: Group, setup: &Setup) -> Arc<Zones> {
        let own = self.processes.get(&group).map(|process| &process.settings.zones);
        Arc::clone(own.unwrap_or(&setup.zones[self.zone_data]))
    }

    /// Processes that answer.
    pub(crate) fn awake(&self) -> Vec<Group> {
        self.processes.iter().filter(|(_, process)| !process.is_frozen).map(|(group, _)| *group).collect()
    }

    /// Processes that do not.
    pub(crate) fn frozen(&self) -> Vec<Group> {
        self.processes.iter().filter(|(_, process)| process.is_frozen).map(|(group, _)| *group).collect()
    }

    fn is_taken(&self, slot: usize) -> bool {
        self.processes.values().any(|process| process.slot == slot)
    }
}

/// Starts a process in every slot that has none.
pub(crate) fn start_all(sim: &Arc<Sim>) {
    for slot in 0..sim.setup.slots {
        start(sim, slot);
    }
}

/// Starts a process in a slot, if it has none and may have one.
pub(crate) fn start(sim: &Arc<Sim>, slot: usize) {
    let mut cluster = sim.cluster();
    // A process that starts under a wrong clock believes it, as does everything else in its life: nobody can help that.
    if cluster.is_down || cluster.is_clock_wrong || cluster.slots <= slot || cluster.is_taken(slot) {
        return;
    }
    cluster.last_group += 1;
    let group = cluster.last_group;
    let settings = Arc::new(sim.setup.settings(slot, &sim.setup.zones[cluster.zone_data]));
    let store: Arc<dyn Store> = Arc::new(FaultyStore::open(sim, group));
    let runner: Arc<dyn Runner> = Arc::new(SimRunner { sim: Arc::clone(sim), group });
    let runners = AGENTS.iter().map(|agent| (agent.to_string(), Arc::clone(&runner))).collect();
    let ids = Arc::clone(&sim.ids);
    let clock = SimClock { timeline: Arc::clone(&sim.timeline), group, store: Arc::clone(&store) };
    let clock: Arc<dyn Clock> = Arc::new(SteadyClock::new(clock));
    let parts = Parts {
        store: Arc::clone(&store),
        clock: Arc::clone(&clock),
        ids: ids.clone(),
        settings: Arc::clone(&settings),
        runners: Arc::new(Runners::new(runners)),
        nudges: Arc::default(),
        spawn: Arc::new(SimSpawn { timeline: Arc::clone(&sim.timeline), group }),
        meters: Default::default(),
    };
    let process = Process {
        slot,
        is_frozen: false,
        thawed_at: Duration::ZERO,
        clock,
        editor: Arc::new(Editor::new(Arc::clone(&store), ids, Arc::clone(&settings))),
        settings,
        store,
        nudges: Arc::clone(&parts.nudges),
        stop: CancellationToken::new(),
    };
    let stop = process.stop.clone();
    cluster.processes.insert(group, process);
    drop(cluster);
    sim.tell(format_args!("p{group} starts in slot {slot}"));
    let shared = Arc::clone(sim);
    let life = async move {
        let ended = node::run(parts, stop).await;
        exited(&shared, group, &ended);
    };
    sim.timeline.spawn(group, Box::pin(life));
}

/// A process is gone from one instant to the next, with everything in it. Another one follows.
pub(crate) fn crash(sim: &Arc<Sim>, group: Group) {
    sim.tell(format_args!("p{group} dies"));
    remove(sim, group);
}

fn exited(sim: &Arc<Sim>, group: Group, ended: &Result<(), NodeError>) {
    sim.tell(format_args!("p{group} exits: {ended:?}"));
    if let Err(panicked @ NodeError::Panicked { .. }) = ended {
        panic!("p{group}: {panicked}");
    }
    let live = sim.ledger().effects.live_in(group);
    sim.check(ensure("I4", live == 0, || format!("p{group} has left and {live} runs are at work in it")));
    remove(sim, group);
}

fn remove(sim: &Arc<Sim>, group: Group) {
    sim.timeline.end(group);
    let mut cluster = sim.cluster();
    let Some(process) = cluster.processes.remove(&group) else { return };
    let wait = cluster.random.stretch(Duration::from_secs(1), Duration::from_secs(1_800));
    drop(cluster);
    let mut ledger = sim.ledger();
    ledger.nodes.died(group);
    ledger.effects.died(group);
    drop(ledger);
    let (shared, slot) = (Arc::clone(sim), process.slot);
    let restart = async move {
        shared.wait(wait).await;
        start(&shared, slot);
    };
    sim.timeline.spawn(WORLD, Box::pin(restart));
}

/// Asks a process to stop: it drains and leaves.
pub(crate) fn stop(sim: &Arc<Sim>, group: Group) {
    if let Some(process) = sim.cluster().processes.get(&group) {
        process.stop.cancel();
    }
}

/// Freezes a process, machine and all: its work stands still too.
pub(crate) fn freeze(sim: &Arc<Sim>, group: Group) {
    if let Some(process) = sim.cluster().processes.get_mut(&group) {
        process.is_frozen = true;
        sim.timeline.freeze(group);
    }
}

/// Lets a process go on.
pub(crate) fn thaw(sim: &Arc<Sim>, group: Group) {
    if let Some(process) = sim.cluster().processes.get_mut(&group)
        && process.is_frozen
    {
        process.is_frozen = false;
        process.thawed_at = sim.timeline.boot();
        sim.timeline.thaw(group);
    }
}

/// Where work begins or ends now; `None` if its process is gone.
pub(crate) fn scene(sim: &Sim, group: Group) -> Option<Scene> {
    let thawed_at = sim.cluster().processes.get(&group)?.thawed_at;
    let valid_until = (!sim.setup.is_exclusive).then(|| sim.ledger().nodes.valid_until(group));
    Some(Scene { group, boot: sim.timeline.boot(), valid_until, thawed_at })
}
