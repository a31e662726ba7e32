//! What everything in one simulation shares.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use punctual_store::memory::MemoryStore;

use crate::clock::SimIds;
use crate::cluster::Cluster;
use crate::faults::{Fault, StoreFaults};
use crate::invariants::Violation;
use crate::ledger::{Ledger, Moment};
use crate::log::Log;
use crate::random::Random;
use crate::setup::Setup;
use crate::standby::Standby;
use crate::timeline::{Group, Timeline};
use crate::trace::Trace;

/// One history in the making.
pub(crate) struct Sim {
    pub(crate) seed: u64,
    pub(crate) setup: Setup,
    pub(crate) timeline: Arc<Timeline>,
    pub(crate) ids: Arc<SimIds>,
    /// What is durable. The processes reach it through [`crate::store::FaultyStore`].
    pub(crate) log: Log,
    faults: Mutex<StoreFaults>,
    ledger: Mutex<Ledger>,
    cluster: Mutex<Cluster>,
    standby: Mutex<Standby>,
    runners: Mutex<Random>,
    trace: Mutex<Trace>,
    violation: Mutex<Option<Violation>>,
}

impl Sim {
    pub(crate) fn new(seed: u64, is_printed: bool) -> Arc<Sim> {
        let setup = Setup::of(seed);
        let timeline = Timeline::new(seed, setup.start);
        Arc::new(Sim {
            seed,
            timeline,
            ids: Arc::new(SimIds::new(seed)),
            log: Log::new(MemoryStore::new()),
            faults: Mutex::new(StoreFaults::new(seed, setup.lease)),
            ledger: Mutex::new(Ledger::new(&setup)),
            cluster: Mutex::new(Cluster::new(seed, &setup)),
            standby: Mutex::default(),
            runners: Mutex::new(Random::new(seed, "runners")),
            trace: Mutex::new(Trace::new(is_printed)),
            violation: Mutex::default(),
            setup,
        })
    }

    pub(crate) fn faults(&self) -> MutexGuard<'_, StoreFaults> {
        locked(&self.faults)
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        locked(&self.ledger)
    }

    pub(crate) fn cluster(&self) -> MutexGuard<'_, Cluster> {
        locked(&self.cluster)
    }

    pub(crate) fn standby(&self) -> MutexGuard<'_, Standby> {
        locked(&self.standby)
    }

    pub(crate) fn runners(&self) -> MutexGuard<'_, Random> {
        locked(&self.runners)
    }

    pub(crate) fn trace(&self) -> MutexGuard<'_, Trace> {
        locked(&self.trace)
    }

    /// Writes a line of the trace.
    pub(crate) fn tell(&self, line: fmt::Arguments<'_>) {
        let now = self.timeline.now();
        self.trace().line(format_args!("{now} {line}"));
    }

    /// Counts a fault and tells of it.
    pub(crate) fn strike(&self, fault: Fault, line: fmt::Arguments<'_>) {
        self.faults().counts.add(fault);
        self.tell(format_args!("FAULT {fault:?} {line}"));
    }

    /// Something is not as it must be. The first one ends the history.
    pub(crate) fn check(&self, result: Result<(), Violation>) {
        if let Err(violation) = result {
            locked(&self.violation).get_or_insert(violation);
        }
    }

    pub(crate) fn violation(&self) -> Option<Violation> {
        locked(&self.violation).clone()
    }

    /// Waits, if there is something to wait for.
    pub(crate) async fn wait(&self, time: Duration) {
        if !time.is_zero() {
            self.timeline.sleep(time).await;
        }
    }

    /// Looks at what a call of a process has written, if anything.
    pub(crate) fn observe(&self, group: Group) {
        self.observe_call(group, "");
    }

    /// The same, of a call by its name.
    pub(crate) fn observe_call(&self, group: Group, name: &str) {
        let moment = self.moment(group, name);
        let mut ledger = self.ledger();
        let looked = self.log.look(|state| ledger.observe(state, &moment, |line| self.tell(line)));
        drop(ledger);
        self.check(looked);
    }

    fn moment(&self, group: Group, name: &str) -> Moment {
        let zones = self.cluster().zones(group, &self.setup);
        Moment { group, zones, now: self.store_time(), boot: self.timeline.boot(), is_start: name == "start" }
    }

    /// What the store's clock shows, where it has one of its own.
    pub(crate) fn store_time(&self) -> Option<Timestamp> {
        (!self.setup.is_exclusive).then(|| self.timeline.now())
    }
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
