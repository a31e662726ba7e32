//! The keeper: a node's lease, and what follows when it cannot be kept.
//!
//! In: what the node holds. Out: what it must let go of. A node that cannot renew its lease stops its work before
//! anybody else can take it, by a clock that nobody can set.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_core::NodeId;
use punctual_core::run::{Report, RunEvent};
use punctual_store::{AttemptReport, NodeLease, Renewal, Result, RunWritten, SharedTime, Sign, Store, StoreError};
use tracing::{error, warn};

use crate::batch;
use crate::clock::{ClockStep, ClockWatch};
use crate::holdings::{Attempt, Holdings, WhyStopped};
use crate::planner::later;
use crate::runner::StopLevel;
use crate::settings::Settings;

/// A lease that ended this long ago is taken to be over: clocks of nodes differ a little.
const BURY_AFTER: SignedDuration = SignedDuration::from_secs(1);

/// How long a failed renewal rests before the next try.
const RETRY_AFTER: SignedDuration = SignedDuration::from_secs(1);

/// Keeps one node's lease.
pub struct Keeper {
    store: Arc<dyn Store>,
    settings: Arc<Settings>,
    node: NodeId,
    holdings: Arc<Holdings>,
    /// When the node has to prove itself next.
    renew_at: Option<Timestamp>,
    watch: ClockWatch,
    /// Leases that were renewed before this are not believed: the clock was set then, or this node has come.
    believes_from: Option<Timestamp>,
    /// What the store's own clock showed in its last answer.
    stores_time: Option<SharedTime>,
    /// The leases of others, as they were seen last.
    seen: BTreeMap<NodeId, Seen>,
}

/// Another node's lease, as it was seen.
#[derive(Debug, Clone, Copy)]
struct Seen {
    until: Timestamp,
    /// Since when, by the boot clock, it has been like this. An answer may come late: what it tells counts from the next look.
    since: Option<Duration>,
    /// Whether its end says when the node is dead.
    is_believed: bool,
}

/// What a look at the lease brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upkeep {
    /// Whether runs were taken from dead nodes, so that there is something to claim.
    pub found_work: bool,
    /// When to look again.
    pub wake_at: Timestamp,
}

impl Keeper {
    /// A keeper for a node that is about to join.
    pub fn new(store: Arc<dyn Store>, settings: Arc<Settings>, node: NodeId, holdings: Arc<Holdings>) -> Keeper {
        let watch = ClockWatch::default();
        let (believes_from, stores_time, seen) = (None, None, BTreeMap::new());
        Keeper { store, settings, node, holdings, renew_at: None, watch, believes_from, stores_time, seen }
    }

    /// Brings the node to life.
    pub async fn join(&mut self, now: Timestamp, boot: Duration) -> Result<()> {
        let renewal = self.store.join(&self.sign(now)).await?;
        self.renewed(renewal, now, now, boot).await?;
        Ok(())
    }

    /// Renews the lease when it is time, compares what the node holds with what is its own, stops what is not or was called
    /// off, and buries the dead.
    ///
    /// Fails with [`StoreError::LeaseEnded`] when the node has been taken for dead: nothing of its work may go on.
    pub async fn tick(&mut self, now: Timestamp, boot: Duration) -> Result<Upkeep> {
        let step = self.watch.observe(now, boot);
        if step != ClockStep::None || self.believes_from.is_none() {
            // A clock that was set forwards ends every lease, and nobody is dead for that. Who has just come has not seen it.
            self.believes_from = Some(now);
            // Set back, it would keep the node from renewing until it comes there again.
            self.renew_at = None;
            self.seen.values_mut().for_each(|seen| seen.is_believed = false);
        }
        // A clock that was set back must not keep the node from renewing.
        let is_time = self.renew_at.is_none_or(|at| at <= now || later(now, self.settings.lease.duration()) < at);
        if !is_time {
            return Ok(Upkeep { found_work: false, wake_at: self.renew_at.unwrap_or(now) });
        }
        self.seen.values_mut().for_each(|seen| seen.since = seen.since.or(Some(boot)));
        let signed_at = self.signs_at(now, boot);
        let renewal = self.store.renew(&self.sign(signed_at)).await?;
        let renewal = self.renewed(renewal, signed_at, now, boot).await?;
        let owned: BTreeSet<Attempt> = renewal.owned.iter().copied().collect();
        self.holdings.owns(&owned);
        let held = self.holdings.held();
        for lost in held.difference(&owned) {
            self.holdings.stop(*lost, StopLevel::Now, WhyStopped::Lost);
        }
        for called_off in owned.iter().filter(|(id, _)| renewal.cancelling.contains(id)) {
            self.holdings.stop(*called_off, StopLevel::Ask, WhyStopped::Cancelled);
        }
        // A run whose older attempt still dies here is nobody else's to begin: it is handed back when that is over.
        let is_dying = |(run, _): &Attempt| held.range((*run, 0)..=(*run, u64::MAX)).next().is_some();
        let (dying, forgotten): (Vec<Attempt>, Vec<Attempt>) = owned.difference(&held).partition(|it| is_dying(it));
        if !dying.is_empty() {
            self.renew_at = Some(later(now, RETRY_AFTER));
        }
        self.hand_back(forgotten, now).await?;
        // Nobody dies by this node's clock alone, which may be ahead, nor by the store's, which may just have been set.
        let sure = now.min(renewal.at).min(signed_at);
        let found_work = self.bury(&renewal.others, sure, boot).await?;
        let believed =
            renewal.others.iter().filter(|lease| self.seen.get(&lease.node).is_some_and(|it| it.is_believed));
        let left = believed.map(|lease| later(lease.until, BURY_AFTER).duration_since(sure));
        let mut wake_at = self.renew_at.unwrap_or(now);
        if let Some(left) = left.filter(|left| !left.is_negative()).min() {
            wake_at = wake_at.min(later(now, left.saturating_add(SignedDuration::from_millis(1))));
            self.renew_at = Some(wake_at);
        }
        Ok(Upkeep { found_work, wake_at })
    }

    /// Buries the dead. Whether there were any, and their runs can be taken over.
    ///
    /// Dead is whose lease has ended, if it can be believed: it was renewed while this node looked, and nobody has set the clock
    /// since. Dead is also whoever has not renewed its lease for its length while this node looked, whatever the clocks say.
    async fn bury(&mut self, others: &[NodeLease], now: Timestamp, boot: Duration) -> Result<bool> {
        self.seen.retain(|node, _| others.iter().any(|lease| lease.node == *node));
        let mut dead = vec![];
        for lease in others {
            let is_believed =
                self.believes_from.is_some_and(|from| later(from, lease.length.duration()) <= lease.until)
                    && lease.until <= later(now, lease.length.duration());
            let new = Seen { until: lease.until, since: None, is_believed };
            let seen = self.seen.entry(lease.node).or_insert(new);
            if seen.until != lease.until {
                *seen = new;
            }
            let silence = seen.since.map_or(Duration::ZERO, |since| boot.saturating_sub(since));
            let is_silent = (lease.length.duration() + BURY_AFTER).unsigned_abs() < silence;
            if is_silent || seen.is_believed && later(lease.until, BURY_AFTER) < now {
                dead.push(*lease);
            }
        }
        if dead.is_empty() {
            return Ok(false);
        }
        // One whose runs cannot be taken away keeps nobody else from being buried.
        let store = &self.store;
        let bury = |dead| async move { Ok(vec![store.bury(now, dead).await?]) };
        let mut buried = 0;
        for (written, lease) in batch::write(&dead, bury).await?.into_iter().zip(&dead) {
            match written {
                Ok(count) => buried += count,
                Err(error) => {
                    let why = batch::in_words(&error);
                    error!(node.id = %lease.node, "node {} is dead and cannot be removed: {why}", lease.node);
                }
            }
        }
        if 0 < buried {
            warn!("{buried} nodes are dead: their runs can be taken over");
        }
        Ok(0 < buried)
    }

    /// When a lease begins that is signed now: by the store's own clock, as far as the node knows it. By a node's that is behind,
    /// it would end before the one that it already believes in.
    fn signs_at(&self, now: Timestamp, boot: Duration) -> Timestamp {
        self.stores_time.map_or(now, |time| time.when_running_for(boot))
    }

    fn sign(&self, now: Timestamp) -> Sign {
        self.settings.sign(self.node, now, self.holdings.held().len())
    }

    fn lease(&self) -> Duration {
        Duration::try_from(self.settings.lease.duration()).unwrap_or_default()
    }

    /// Runs that are the node's own but that it does not hold: their claim was written and the answer got lost.
    async fn hand_back(&self, forgotten: Vec<Attempt>, now: Timestamp) -> Result<()> {
        if forgotten.is_empty() {
            return Ok(());
        }
        warn!("{} runs were claimed and never begun here: handed back", forgotten.len());
        let report = |event| {
            move |(run, epoch): &Attempt| AttemptReport { run: *run, epoch: *epoch, event, report: Report::default() }
        };
        let unbegun: Vec<AttemptReport> =
            forgotten.iter().map(report(RunEvent::HandedBack { due_at: now, parks: false })).collect();
        let written = self.finish(&unbegun, now).await?;
        // What is written as running cannot be handed back as if nothing had happened.
        let begun = forgotten.iter().zip(written).filter(|(_, written)| *written == Some(RunWritten::Stale));
        let begun: Vec<AttemptReport> = begun.map(|(run, _)| report(RunEvent::OwnerLost { at: now })(run)).collect();
        if !begun.is_empty() {
            self.finish(&begun, now).await?;
        }
        Ok(())
    }

    /// Writes what became of runs. One that cannot be written stays the node's own, and is looked at again with the next renewal.
    async fn finish(&self, reports: &[AttemptReport], now: Timestamp) -> Result<Vec<Option<RunWritten>>> {
        let written = batch::write(reports, |reports| self.store.finish(now, reports)).await?;
        let told = |(written, report): (Result<RunWritten>, &AttemptReport)| {
            let refused = |error| {
                error!(run.id = %report.run, "run {} cannot be handed back: {}", report.run, batch::in_words(&error));
            };
            written.map_err(refused).ok()
        };
        Ok(written.into_iter().zip(reports).map(told).collect())
    }

    /// Takes in the answer to a lease that was signed. If the store's clock says that it ends before the node would believe, it
    /// is signed once more, by that clock.
    async fn renewed(
        &mut self,
        answer: Renewal,
        signed_at: Timestamp,
        sent_at: Timestamp,
        sent_boot: Duration,
    ) -> Result<Renewal> {
        // A store without a clock of its own shows the node's.
        let has_clock = answer.at != sent_at;
        self.stores_time = has_clock.then_some(SharedTime { at: answer.at, boot: sent_boot });
        let is_short = BURY_AFTER < answer.at.duration_since(signed_at);
        let renewal = if is_short { self.store.renew(&self.sign(answer.at)).await? } else { answer };
        self.holdings.renewed(sent_boot, self.lease());
        self.renew_at = Some(later(sent_at, self.settings.lease.duration() / 3));
        debug_assert!(signed_at <= renewal.lease_until, "a lease ends after it begins");
        Ok(renewal)
    }

    /// Somebody has called runs off: the next tick asks which of the node's own they are.
    pub fn look_soon(&mut self) {
        self.renew_at = None;
    }

    /// When to look again after a failure.
    pub fn retry_at(&self, now: Timestamp, error: &StoreError) -> Timestamp {
        warn!(%error, "the lease could not be renewed");
        later(now, RETRY_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicI64, Ordering};

    use punctual_core::time::Zones;
    use punctual_store::Nodes;
    use punctual_store::conformance::block_on;
    use punctual_store::memory::MemoryStore;
    use uuid::Uuid;

    use super::*;

    /// A node at a place of both clocks, in seconds.
    struct Bench {
        store: Arc<MemoryStore>,
        start: Timestamp,
    }

    impl Bench {
        fn new() -> Bench {
            Bench { store: Arc::default(), start: "2026-01-05T09:00:00Z".parse().unwrap() }
        }

        /// A store whose own clock is set by the second.
        fn with_clock() -> (Bench, Arc<AtomicI64>) {
            let (bench, second) = (Bench::new(), Arc::new(AtomicI64::new(0)));
            let (start, shown) = (bench.start, Arc::clone(&second));
            let clock = move || start + SignedDuration::from_secs(shown.load(Ordering::Relaxed));
            (Bench { store: Arc::new(MemoryStore::with_clock(clock)), ..bench }, second)
        }

        fn keeper(&self, number: u128) -> Keeper {
            let settings = Arc::new(Settings::new("node", BTreeSet::new(), Zones::bundled()));
            let holdings = Arc::new(Holdings::new(Some(Duration::from_secs(30))));
            Keeper::new(self.store.clone(), settings, NodeId(Uuid::from_u128(number)), holdings)
        }

        fn join(&self, keeper: &mut Keeper, wall: i64, boot: u64) {
            let now = self.start + SignedDuration::from_secs(wall);
            block_on(keeper.join(now, Duration::from_secs(boot))).unwrap();
        }

        fn tick(&self, keeper: &mut Keeper, wall: i64, boot: u64) {
            let now = self.start + SignedDuration::from_secs(wall);
            block_on(keeper.tick(now, Duration::from_secs(boot))).unwrap();
        }

        fn alive(&self) -> usize {
            block_on(self.store.nodes()).unwrap().len()
        }
    }

    #[test]
    fn a_node_that_is_silent_for_its_lease_is_dead() {
        let bench = Bench::new();
        let (mut watcher, mut silent) = (bench.keeper(1), bench.keeper(2));
        bench.join(&mut watcher, 0, 0);
        bench.join(&mut silent, 0, 0);
        for second in [0, 10, 20, 30] {
            bench.tick(&mut watcher, second, second.unsigned_abs());
        }
        assert_eq!(bench.alive(), 2);
        bench.tick(&mut watcher, 32, 32);
        assert_eq!(bench.alive(), 1);
    }

    #[test]
    fn a_stores_clock_that_leaps_kills_nobody_for_a_node_that_is_ahead_of_it() {
        let (bench, store_second) = Bench::with_clock();
        let (mut ahead, mut living) = (bench.keeper(1), bench.keeper(2));
        bench.join(&mut ahead, 3, 0);
        bench.join(&mut living, 0, 0);
        for second in [0, 10, 20, 30] {
            store_second.store(second, Ordering::Relaxed);
            if second <= 10 {
                bench.tick(&mut living, second, second.unsigned_abs());
            }
            bench.tick(&mut ahead, second + 3, second.unsigned_abs());
        }
        // The lease ends at second 40, a second later nobody doubts it: the node that is ahead shows 42 before.
        store_second.store(1_000, Ordering::Relaxed);
        bench.tick(&mut ahead, 42, 39);
        assert_eq!(bench.alive(), 2);
    }

    #[test]
    fn a_clock_that_leaps_forwards_kills_nobody_who_lives() {
        let bench = Bench::new();
        let (mut watcher, mut living, mut dead) = (bench.keeper(1), bench.keeper(2), bench.keeper(3));
        for keeper in [&mut watcher, &mut living, &mut dead] {
            bench.join(keeper, 0, 0);
        }
        for second in [0, 10, 20] {
            bench.tick(&mut watcher, second, second.unsigned_abs());
            bench.tick(&mut living, second, second.unsigned_abs());
        }
        // An hour is gone from one second to the next, and the watcher notices first.
        bench.tick(&mut watcher, 3_621, 21);
        assert_eq!(bench.alive(), 3);
        bench.tick(&mut living, 3_622, 22);
        for second in [31, 41] {
            bench.tick(&mut watcher, second + 3_600, second.unsigned_abs());
            bench.tick(&mut living, second + 3_600, second.unsigned_abs());
        }
        assert_eq!(bench.alive(), 3);
        bench.tick(&mut watcher, 3_652, 52);
        assert_eq!(bench.alive(), 2, "by now whoever lives has renewed");
    }

    #[test]
    fn a_lease_that_a_clock_ahead_of_its_time_has_given_does_not_keep_a_dead_node_alive() {
        let bench = Bench::new();
        let (mut watcher, mut dead) = (bench.keeper(1), bench.keeper(2));
        bench.join(&mut watcher, 0, 0);
        // It joins while the clock is wrong by a month, and dies when somebody has repaired it.
        bench.join(&mut dead, 30 * 86_400, 5);
        for second in [10, 20, 30, 40, 50] {
            bench.tick(&mut watcher, second, second.unsigned_abs());
        }
        assert_eq!(bench.alive(), 2, "it was seen for 30 seconds");
        bench.tick(&mut watcher, 60, 60);
        assert_eq!(bench.alive(), 1);
    }

    #[test]
    fn a_node_whose_clock_is_ahead_kills_nobody_who_lives() {
        let (bench, second) = Bench::with_clock();
        let (mut ahead, mut living) = (bench.keeper(1), bench.keeper(2));
        for keeper in [&mut ahead, &mut living] {
            bench.join(keeper, 0, 0);
            bench.tick(keeper, 0, 0);
            second.store(90, Ordering::Relaxed);
            bench.tick(keeper, 90, 90);
        }
        // The store's clock goes back by half a minute, and only the one has heard of it.
        second.store(70, Ordering::Relaxed);
        bench.tick(&mut living, 70, 100);
        second.store(72, Ordering::Relaxed);
        bench.tick(&mut ahead, 102, 102);
        assert_eq!(bench.alive(), 2, "its lease has just begun");
    }

    #[test]
    fn a_node_whose_clock_is_behind_has_the_lease_that_it_believes_in() {
        let (bench, second) = Bench::with_clock();
        let mut behind = bench.keeper(1);
        let lease_until = || block_on(bench.store.nodes()).unwrap()[0].lease_until;
        second.store(5, Ordering::Relaxed);
        bench.join(&mut behind, 0, 0);
        assert_eq!(lease_until(), bench.start + SignedDuration::from_secs(35));
        second.store(15, Ordering::Relaxed);
        bench.tick(&mut behind, 10, 10);
        assert_eq!(lease_until(), bench.start + SignedDuration::from_secs(45));
        // Also while the store's answer is on its way: what it signs next makes its lease no shorter.
        let signs_at = behind.signs_at(bench.start + SignedDuration::from_secs(11), Duration::from_secs(11));
        assert_eq!(signs_at, bench.start + SignedDuration::from_secs(16));
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_keep_a_node_from_renewing() {
        let bench = Bench::new();
        let mut keeper = bench.keeper(1);
        bench.join(&mut keeper, 0, 0);
        bench.tick(&mut keeper, 1, 1);
        // The next renewal would be at 11; the clock goes back by 15 seconds at 5.
        bench.tick(&mut keeper, -10, 5);
        assert_eq!(keeper.holdings.fence(Duration::from_secs(24)), StopLevel::GoOn);
    }
}
