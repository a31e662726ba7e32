//! A whole node on a runtime, whose clock stands still while anybody has something to do: it starts, works, is told to stop,
//! and loses nothing.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use punctual_core::ScheduleId;
use punctual_core::run::Report;
use punctual_engine::clock::{Clock, SteadyClock};
use punctual_engine::ids::RandomIds;
use punctual_engine::node::{self, NodeError, Nudges, Parts};
use punctual_engine::roster::{Agents, Roster};
use punctual_engine::runner::{Assignment, Ending, Finish, Runner, Runners, Stop, StopLevel};
use punctual_engine::spawn::{Spawn, Task};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::{Fault, World, at, hours, seconds};

/// The runtime's time, to which somebody may add something.
struct RuntimeClock {
    started: Instant,
    from: Timestamp,
    set_by: Mutex<SignedDuration>,
}

#[async_trait]
impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.started.elapsed()).unwrap();
        self.from + passed + *self.set_by.lock().unwrap()
    }

    fn boot(&self) -> Duration {
        self.started.elapsed()
    }

    async fn sleep_until(&self, at: Timestamp) {
        let left = Duration::try_from(at.duration_since(self.now())).unwrap_or(Duration::ZERO);
        // As the machine's clock does: nobody hears that it was set.
        tokio::time::sleep(left.min(Duration::from_secs(5))).await;
    }
}

/// What the work of an agent is like.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work {
    Succeeds,
    /// Succeeds, and reports this.
    Reports(fn() -> Report),
    Takes(u64),
    Panics,
    /// Goes on until it is asked to stop.
    Obeys,
    /// Goes on until it is ended.
    Stubborn,
    /// Goes on whatever it is told.
    Deaf,
}

/// What runners have seen: when, and how hard they were told to stop.
type Seen = Arc<Mutex<Vec<(Duration, StopLevel)>>>;

struct TestRunner {
    work: Work,
    clock: Arc<RuntimeClock>,
    seen: Seen,
}

#[async_trait]
impl Runner for TestRunner {
    async fn run(&self, _: Assignment, mut stop: Stop) -> Finish {
        let ending = match self.work {
            Work::Succeeds | Work::Reports(_) => Ending::Succeeded,
            Work::Panics => panic!("the test wants it so"),
            Work::Takes(time) => tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(time)) => Ending::Succeeded,
                () = stop.reached(StopLevel::Ask) => Ending::Stopped,
            },
            Work::Obeys => {
                stop.reached(StopLevel::Ask).await;
                Ending::Stopped
            }
            Work::Stubborn => {
                stop.reached(StopLevel::Now).await;
                Ending::Stopped
            }
            Work::Deaf => std::future::pending().await,
        };
        self.seen.lock().unwrap().push((self.clock.boot(), stop.level()));
        let report = if let Work::Reports(report) = self.work { report() } else { Report::default() };
        Finish { ending, report }
    }
}

/// Everything runs in the runtime of the test, whose time is virtual: threads of their own would live in real time.
struct OneRuntime;

impl Spawn for OneRuntime {
    fn spawn(&self, task: Task) {
        drop(tokio::spawn(task));
    }
}

/// A world with one node that runs by itself.
pub(crate) struct Live {
    pub(crate) world: World,
    clock: Arc<RuntimeClock>,
    nudges: Arc<Nudges>,
    seen: Seen,
    stop: CancellationToken,
    pub(crate) node: JoinHandle<Result<(), NodeError>>,
}

impl Live {
    /// Starts a node at 08:59; `slow` works like this, and `quick` succeeds.
    pub(crate) fn start(mut world: World, work: Work) -> Live {
        let clock = Arc::new(RuntimeClock { started: Instant::now(), from: world.now, set_by: Mutex::default() });
        let seen = Seen::default();
        let runner = |work| -> Arc<dyn Runner> {
            Arc::new(TestRunner { work, clock: Arc::clone(&clock), seen: Arc::clone(&seen) })
        };
        let runners = [("slow", runner(work)), ("quick", runner(Work::Succeeds))];
        world.settings.roster = Arc::new(Roster::new(Agents::named(["slow".to_owned(), "quick".to_owned()])));
        let nudges = Arc::new(Nudges::default());
        let parts = Parts {
            store: world.shared(),
            clock: Arc::new(SteadyClock::new(Arc::clone(&clock))),
            ids: Arc::new(RandomIds),
            settings: Arc::new(world.settings.clone()),
            runners: Arc::new(Runners::new(runners.map(|(name, runner)| (name.to_owned(), runner)).into())),
            nudges: Arc::clone(&nudges),
            spawn: Arc::new(OneRuntime),
            meters: Default::default(),
        };
        let stop = CancellationToken::new();
        let node = tokio::spawn(node::run(parts, stop.clone()));
        Live { world, clock, nudges, seen, stop, node }
    }

    /// Time passes, and the node does what it has to do.
    pub(crate) async fn pass(&mut self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        self.world.now = self.clock.now();
    }

    fn set_clock(&mut self, by: SignedDuration) {
        *self.clock.set_by.lock().unwrap() += by;
        self.world.now = self.clock.now();
    }

    /// Tells the node to stop.
    pub(crate) fn shut_down(&self) {
        self.stop.cancel();
    }

    /// Tells the node to stop, and says how long that took.
    pub(crate) async fn stop(&mut self) -> u64 {
        let told = Instant::now();
        self.stop.cancel();
        let ended = tokio::time::timeout(Duration::from_secs(3_600), &mut self.node).await;
        ended.expect("a node that is told to stop stops").unwrap().unwrap();
        self.world.now = self.clock.now();
        told.elapsed().as_secs()
    }

    pub(crate) fn levels(&self) -> Vec<StopLevel> {
        self.seen.lock().unwrap().iter().map(|(_, level)| *level).collect()
    }
}

pub(crate) fn once(world: &mut World, agent: &str) -> ScheduleId {
    world.create(json!({"trigger": {"at": "2026-01-05T09:00:00Z"}, "work": {"agent": {"agent": agent}}}))
}

#[tokio::test(start_paused = true)]
async fn it_runs_what_is_due_when_it_is_due_and_leaves_nothing_behind() {
    let mut world = World::at("08:59:30");
    let id = world.create(json!({
        "trigger": {"cron": [{"expression": "* * * * *"}]}, "work": {"agent": {"agent": "quick"}},
    }));
    let mut live = Live::start(world, Work::Succeeds);
    live.pass(600).await;
    assert!(live.stop().await <= 1);
    assert_eq!(live.world.every_slot_has_one_answer(id), 10);
    let starts = live.world.starts(id);
    assert_eq!(starts.len(), 10);
    for start in starts {
        let (slot, began) = start.split_once(" at ").unwrap();
        assert!(began.starts_with(slot), "{start}: on time, to the tenth of a second");
    }
    assert_eq!(
        live.world
            .look(|state| (state.nodes.len(), state.world.live_runs().filter(|run| run.owner().is_some()).count())),
        (0, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_called_off_run_is_stopped_and_ends_as_cancelled() {
    let mut world = World::at("08:59:59");
    let id = once(&mut world, "slow");
    let mut live = Live::start(world, Work::Obeys);
    live.pass(30).await;
    let run = live.world.at_work(id);
    live.world.cancel(run);
    live.nudges.runs_changed();
    live.pass(10).await;
    assert_eq!((live.world.story(id), live.levels()), (vec!["09:00 cancelled".to_owned()], vec![StopLevel::Ask]));
    live.pass(600).await;
    assert_eq!(live.world.starts(id).len(), 1);
    live.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_told_to_stop_lets_what_is_at_work_end() {
    let mut world = World::at("08:59:59");
    let id = once(&mut world, "slow");
    let later = world.create(json!({"trigger": {"at": "2026-01-05T09:00:10Z"}, "work": {"agent": {"agent": "quick"}}}));
    let mut live = Live::start(world, Work::Takes(25));
    live.pass(5).await;
    let took = live.stop().await;
    assert!((20..=22).contains(&took), "as long as the work takes: {took} s");
    assert_eq!(live.world.story(id), ["09:00 succeeded"]);
    assert_eq!(live.world.story(later), ["09:00:10 planned"], "and nothing new is begun");
}

#[tokio::test(start_paused = true)]
async fn what_takes_too_long_is_asked_to_stop_and_tried_again_elsewhere() {
    for (work, levels) in [(Work::Takes(3_600), StopLevel::Ask), (Work::Stubborn, StopLevel::Now)] {
        let mut world = World::at("08:59:59");
        let id = once(&mut world, "slow");
        let mut live = Live::start(world, work);
        live.pass(5).await;
        let took = live.stop().await;
        assert!((30..=50).contains(&took), "{work:?}: {took} s");
        assert_eq!((live.levels(), live.world.story(id)), (vec![levels], vec!["09:00 planned".to_owned()]), "{work:?}");
        let mut next = Live::start(std::mem::replace(&mut live.world, World::at("00:00")), Work::Succeeds);
        next.pass(5).await;
        assert_eq!(next.world.story(id), ["09:00 succeeded"], "{work:?}");
        let tally = next.world.runs(id)[0].state.tally();
        assert_eq!((tally.attempt, tally.losses), (1, 1), "{work:?}: a stop costs no attempt");
        next.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_ignores_every_stop_is_not_waited_for_without_end() {
    let mut world = World::at("08:59:59");
    let id = once(&mut world, "slow");
    let mut live = Live::start(world, Work::Deaf);
    live.pass(5).await;
    let took = live.stop().await;
    assert!(took <= 90, "{took} s");
    assert_eq!(live.world.look(|state| state.nodes.len()), 0, "it has left");
    assert_eq!(live.world.story(id), ["09:00 planned"]);
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_panics_is_a_failed_attempt_not_a_dead_node() {
    let mut world = World::at("08:59:59");
    let id = once(&mut world, "slow");
    let other = world.create(json!({
        "trigger": {"cron": [{"expression": "* * * * *"}]}, "work": {"agent": {"agent": "quick"}},
    }));
    let mut live = Live::start(world, Work::Panics);
    live.pass(300).await;
    assert_eq!(live.world.story(id), ["09:00 failed(error)"]);
    assert_eq!(live.world.starts(id).len(), 3);
    assert_eq!(live.world.every_slot_has_one_answer(other), 5);
    assert_eq!(live.world.starts(other).len(), 5);
    live.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_renew_ends_its_work_before_its_lease_ends_and_joins_again() {
    for stops in [false, true] {
        let mut world = World::at("08:59:59");
        world.settings.drain = punctual_core::Elapsed::from_seconds(600);
        let id = once(&mut world, "slow");
        let mut live = Live::start(world, Work::Stubborn);
        live.pass(5).await;
        let lease_ends = live.clock.boot() + Duration::from_secs(30);
        live.world.door.break_all("renew", Fault::Refused);
        if stops {
            // A node that waits for its work to end has to keep to its lease as well.
            live.stop.cancel();
        }
        live.pass(40).await;
        let seen = live.seen.lock().unwrap().clone();
        assert_eq!(seen.len(), 1, "stops: {stops}");
        assert!(seen[0].1 == StopLevel::Now && seen[0].0 <= lease_ends, "stops: {stops}, {seen:?}");
        live.world.door.repair();
        if !stops {
            let buried = crate::support::now_or_never(punctual_store::conformance::bench::bury_the_dead(
                &*live.world.shared(),
                live.world.now,
            ))
            .unwrap();
            assert_eq!(buried, 1);
            live.pass(10).await;
            assert_eq!(live.world.look(|state| state.nodes.len()), 1, "it has joined as another one");
            assert_eq!(live.world.starts(id).len(), 2, "and has begun again");
        }
        live.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_for_a_while_costs_that_while() {
    for verb in ["start", "finish", "plan", "to_plan", "take_planner", "renew"] {
        for fault in [Fault::Refused, Fault::ReplyLost] {
            let mut world = World::at("08:59:30");
            let id = world.create(json!({
                "trigger": {"every": {"interval": "10s", "anchor": "2026-01-05T00:00:00Z"}},
                "work": {"agent": {"agent": "quick"}},
                "policy": {"max_concurrent": 10, "retry": {"max_attempts": 100}},
            }));
            let mut live = Live::start(world, Work::Succeeds);
            live.pass(35).await;
            live.world.door.break_all(verb, fault);
            live.pass(15).await;
            live.world.door.repair();
            live.pass(125).await;
            live.stop().await;
            assert_eq!(live.world.every_slot_has_one_answer(id), 17, "{verb} {fault:?}");
            let runs = live.world.runs(id);
            let over = runs.iter().filter(|run| run.scheduled_at <= live.world.now && run.state.is_final()).count();
            assert_eq!(over, 17, "{verb} {fault:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_old_is_let_go_and_where_that_fails_nothing_else_does() {
    let mut world = World::at("08:59:30");
    world.settings.journal_kept = punctual_core::Elapsed::from_seconds(600);
    let id = world.create(json!({
        "trigger": {"cron": [{"expression": "* * * * *"}]}, "work": {"agent": {"agent": "quick"}},
    }));
    let mut live = Live::start(world, Work::Succeeds);
    let gone = |live: &Live| live.world.look(|state| state.base.seq);
    let started = |live: &Live| live.world.schedule(id).runs_started;
    live.world.door.break_all("prune", Fault::Refused);
    live.pass(1_200).await;
    assert_eq!((gone(&live), started(&live)), (0, 20));
    assert_eq!(live.world.every_slot_has_one_answer(id), 20);
    // It is tried again soon, and what else fails does not keep it from being done.
    live.world.door.break_all("forget_answers", Fault::Lasting);
    live.pass(90).await;
    let oldest = live.world.entries()[0].at;
    assert!(live.world.now - seconds(690) <= oldest && oldest <= live.world.now - seconds(540), "{oldest}");
    let seq = live.world.look(|state| state.world.seq);
    live.pass(3_600).await;
    assert!(seq < gone(&live), "it goes on");
    assert_eq!(started(&live), 81);
    live.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_leap_of_the_clock_by_years_is_doubted_and_fires_nothing_when_it_is_repaired() {
    let mut world = World::at("08:59:30");
    let id = world.create(json!({
        "trigger": {"cron": [{"expression": "* * * * *"}]}, "work": {"agent": {"agent": "quick"}},
    }));
    let mut live = Live::start(world, Work::Succeeds);
    live.pass(60).await;
    live.set_clock(hours(24 * 365 * 900));
    live.pass(540).await;
    assert_eq!(live.world.starts(id).len(), 10, "it goes on by its own time");
    live.set_clock(hours(-24 * 365 * 900));
    live.pass(120).await;
    live.stop().await;
    assert_eq!(live.world.now, at("09:11:30"));
    assert_eq!(live.world.every_slot_has_one_answer(id), 12);
}

#[tokio::test(start_paused = true)]
async fn a_leap_that_nobody_repairs_is_believed_after_ten_minutes_and_is_an_outage() {
    let mut world = World::at("08:59:30");
    let id = world.create(json!({
        "trigger": {"cron": [{"expression": "0 * * * *"}]}, "work": {"agent": {"agent": "quick"}},
    }));
    let mut live = Live::start(world, Work::Succeeds);
    live.pass(60).await;
    live.set_clock(hours(48));
    live.pass(590).await;
    assert_eq!(live.world.starts(id).len(), 1);
    live.pass(30).await;
    assert_eq!(live.world.starts(id).len(), 2, "latest");
    live.stop().await;
    assert_eq!(live.world.every_slot_has_one_answer(id), 49);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_comes_after_an_outage_catches_up_before_it_claims() {
    for (mode, starts) in [("none", 0), ("first", 1), ("latest", 1), ("all", 4)] {
        let mut world = World::at("08:59:30");
        let id = world.create(json!({
            "trigger": {"cron": [{"expression": "0-3 9 * * *"}]},
            "work": {"agent": {"agent": "quick"}},
            "policy": {"catch_up": {"mode": mode}, "overlap": "allow", "max_concurrent": 10},
        }));
        let mut live = Live::start(world, Work::Succeeds);
        live.pass(10).await;
        live.stop().await;
        let mut world = std::mem::replace(&mut live.world, World::at("00:00"));
        world.sleep(seconds(600));
        let mut live = Live::start(world, Work::Succeeds);
        live.pass(10).await;
        live.stop().await;
        assert_eq!(live.world.starts(id).len(), starts, "{mode}: {:?}", live.world.story(id));
        assert_eq!(live.world.every_slot_has_one_answer(id), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn a_small_step_forwards_is_an_outage_too() {
    for (mode, starts) in [("none", 0), ("latest", 1), ("all", 4)] {
        let mut world = World::at("08:59:51");
        let id = world.create(json!({
            "trigger": {"every": {"interval": "5s", "anchor": "2026-01-05T00:00:00Z"}},
            "work": {"agent": {"agent": "quick"}},
            "bounds": {"start_at": "2026-01-05T09:00:00Z", "end_at": "2026-01-05T09:00:15Z"},
            "policy": {"catch_up": {"mode": mode}},
        }));
        let mut live = Live::start(world, Work::Succeeds);
        live.pass(1).await;
        live.set_clock(seconds(25));
        live.pass(10).await;
        live.stop().await;
        assert_eq!(live.world.starts(id).len(), starts, "{mode}: {:?}", live.world.story(id));
        live.world.every_slot_has_one_answer(id);
    }
}
