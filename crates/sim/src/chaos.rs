//! Chaos: what goes wrong outside the store. Processes die, freeze and stop, clocks are set, disks fill up, lines are cut.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;

use crate::cluster::{crash, freeze, start_all, stop, thaw};
use crate::faults::Fault;
use crate::random::Random;
use crate::sim::Sim;
use crate::standby;
use crate::timeline::{Group, WORLD};

/// No loop sleeps longer without a look at the clock.
pub(crate) const SLICE: Duration = Duration::from_secs(5);

/// Lets things go wrong until it is over.
pub(crate) async fn chaos(sim: Arc<Sim>) {
    let mut random = Random::new(sim.seed, "chaos");
    let calm = *random.pick(&[1, 2, 4]);
    let mut updates = u64::from(random.chance(30));
    let ends_at = sim.timeline.boot() + sim.setup.lasts;
    loop {
        sim.wait(random.stretch(Duration::from_secs(300), Duration::from_secs(calm * 4 * 3_600))).await;
        if ends_at <= sim.timeline.boot() {
            return;
        }
        let fault = random.weighted(&[
            (6, Fault::Kill),
            (6, Fault::Freeze),
            (4, Fault::Stop),
            (3, Fault::Outage),
            (3, Fault::DiskFull),
            (4, Fault::Cut),
            (3, Fault::ClockForwards),
            (3, Fault::ClockBackwards),
            (1, Fault::ClockHeld),
            (if sim.setup.is_exclusive { 0 } else { 8 }, Fault::Promotion),
            (updates, Fault::ZoneData),
        ]);
        if fault == Fault::ZoneData {
            updates = 0;
        }
        strike(&sim, &mut random, fault).await;
    }
}

async fn strike(sim: &Arc<Sim>, random: &mut Random, fault: Fault) {
    let awake = sim.cluster().awake();
    let victim = if awake.is_empty() { None } else { Some(*random.pick(&awake)) };
    let lease = sim.setup.lease;
    let boot = sim.timeline.boot();
    match (fault, victim) {
        (Fault::Kill, Some(group)) => {
            sim.strike(fault, format_args!("p{group}"));
            crash(sim, group);
        }
        (Fault::Freeze, Some(group)) => {
            let time = random.stretch(Duration::from_secs(1), lease * 4);
            sim.strike(fault, format_args!("p{group} for {time:?}"));
            freeze(sim, group);
            later(sim, time, move |sim| thaw(sim, group));
        }
        (Fault::Stop, Some(group)) => {
            sim.strike(fault, format_args!("p{group}"));
            stop(sim, group);
        }
        (Fault::Cut, Some(group)) => {
            let time = random.stretch(Duration::from_secs(10), lease * 3);
            sim.tell(format_args!("FAULT {fault:?} p{group} for {time:?}"));
            sim.faults().cut(group, boot + time);
        }
        (Fault::DiskFull, _) => {
            let time = random.stretch(Duration::from_secs(10), lease * 2);
            sim.tell(format_args!("FAULT {fault:?} for {time:?}"));
            sim.faults().fill_disk(boot + time);
        }
        (Fault::Outage, _) => {
            let time = random.stretch(Duration::from_secs(60), Duration::from_secs(2 * 86_400));
            sim.strike(fault, format_args!("for {time:?}"));
            outage(sim, time, 0);
        }
        (Fault::ZoneData, _) => {
            let time = random.stretch(Duration::from_secs(1), Duration::from_secs(3_600));
            sim.strike(fault, format_args!("for {time:?}"));
            outage(sim, time, 1);
        }
        (Fault::ClockForwards, _) => set_clock(sim, fault, random.stretch(SLICE, Duration::from_secs(20 * 3_600)), 1),
        (Fault::ClockBackwards, _) => set_clock(sim, fault, random.stretch(SLICE, Duration::from_secs(2 * 3_600)), -1),
        (Fault::ClockHeld, _) => held(sim, random).await,
        (Fault::Promotion, _) => {
            let (lag, entries) = (random.stretch(Duration::from_millis(10), lease), *random.pick(&[1, 2, 5, 20]));
            sim.timeline.spawn(WORLD, Box::pin(standby::lag_and_promote(Arc::clone(sim), lag, entries)));
        }
        _ => {}
    }
}

/// Every process dies, and none comes back for a while.
fn outage(sim: &Arc<Sim>, time: Duration, zone_data: usize) {
    let groups: Vec<Group> = sim.cluster().processes.keys().copied().collect();
    sim.cluster().is_down = true;
    groups.into_iter().for_each(|group| crash(sim, group));
    if zone_data != 0 {
        sim.cluster().zone_data = zone_data;
    }
    later(sim, time, |sim| {
        sim.cluster().is_down = false;
        start_all(sim);
    });
}

fn set_clock(sim: &Arc<Sim>, fault: Fault, by: Duration, sign: i32) {
    sim.strike(fault, format_args!("by {by:?}"));
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::ZERO) * sign;
    sim.timeline.set_clock(by);
    // Where the store has a clock of its own it is that one, and processes hear of it when they renew their leases.
    if sim.setup.is_exclusive {
        let groups: Vec<Group> = sim.cluster().processes.keys().copied().collect();
        groups.into_iter().for_each(|group| sim.timeline.clock_is_set(group, SLICE));
    }
}

/// The clock leaps into another month; somebody repairs it before it is believed, or not.
async fn held(sim: &Arc<Sim>, random: &mut Random) {
    let day = Duration::from_secs(86_400);
    let is_repaired = random.chance(75);
    let by = random.stretch(day + day / 12, if is_repaired { day * 40 } else { day * 3 });
    sim.cluster().is_clock_wrong = true;
    set_clock(sim, Fault::ClockHeld, by, 1);
    if is_repaired {
        sim.wait(random.stretch(Duration::from_secs(5), Duration::from_secs(500))).await;
        set_clock(sim, Fault::ClockBackwards, by, -1);
    }
    sim.cluster().is_clock_wrong = false;
    start_all(sim);
}

fn later(sim: &Arc<Sim>, time: Duration, then: impl FnOnce(&Arc<Sim>) + Send + 'static) {
    let shared = Arc::clone(sim);
    let task = async move {
        shared.wait(time).await;
        then(&shared);
    };
    sim.timeline.spawn(WORLD, Box::pin(task));
}
