//! Three nodes on a durable PostgreSQL, all of them killed, stopped, cut off and crashed at random.
//!
//! A minute in the tests; `PUNCTUAL_CHAOS_SECONDS=600` is the long form, and `PUNCTUAL_CHAOS_SEED` another course of events.

use std::collections::{BTreeMap, BTreeSet};

use punctual_core::journal::{Body, World};
use punctual_lab::postgres::{Durability, Server as Postgres};
use punctual_lab::proxy::Proxy;
use punctual_store::Journal;
use punctual_store::postgres::PostgresStore;
use serde_json::Value;

use crate::support::{Place, Server, rest_for};

/// How many runs of the agent may be at work, over all nodes.
const CAP: usize = 6;

/// Schedules that fire every second or two.
const SCHEDULES: [(&str, &str, i64); 3] = [("a", "allow", 1), ("b", "queue", 1), ("c", "allow", 2)];

const AGENT: &str = r#"
echo "$PUNCTUAL_RUN_ID $PUNCTUAL_RUN_ATTEMPT" >> effects
sleep 0.2
"#;

fn config() -> String {
    let engine = "[engine]\nlease_duration_seconds = 3\nexecutor_pool_size = 8\ndrain_seconds = 1\n";
    let agent =
        format!("[agents.note]\nrunner = \"process\"\ncommand = [\"sh\", \"agent.sh\"]\nmax_concurrent = {CAP}\n");
    let schedule = |(name, overlap, every): (&str, &str, i64)| {
        format!(
            r#"
            [[schedules]]
            name = "{name}"
            agent = "note"
            every = "{every}s"
            overlap = "{overlap}"
            max_concurrent = 16
            catch_up = "all"
            catch_up_max = 10000
            max_delay = "none"
            max_attempts = 50
            retry_delay = "1s"
            "#
        )
    };
    engine.to_owned() + &agent + &SCHEDULES.map(schedule).join("")
}

/// Numbers that look random and are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A node, and its way to the database.
struct Node {
    name: String,
    place: Place,
    proxy: Proxy,
    server: Option<Server>,
    is_stopped: bool,
}

impl Node {
    fn new(name: &str, postgres: &Postgres) -> Node {
        let proxy = Proxy::to(postgres.port()).unwrap();
        let address = format!("postgres://postgres@127.0.0.1:{}/postgres", proxy.port());
        let place = Place::new(&format!("chaos-{name}"), &config()).with_database(&address);
        place.write("agent.sh", AGENT);
        Node { name: name.to_owned(), place, proxy, server: None, is_stopped: false }
    }

    fn is_up(&mut self) -> bool {
        self.server.as_mut().is_some_and(|server| server.is_running())
    }

    fn start(&mut self) {
        if !self.is_up() {
            self.server = Some(self.place.up_with(&["--name", &self.name]));
        }
    }

    fn wake(&mut self) {
        if let Some(server) = self.server.as_ref().filter(|_| self.is_stopped) {
            server.signal("CONT");
        }
        self.is_stopped = false;
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn whatever_happens_to_nodes_and_database_every_slot_has_one_answer() {
    let seconds = number("PUNCTUAL_CHAOS_SECONDS").unwrap_or(60);
    let seed = number("PUNCTUAL_CHAOS_SEED").unwrap_or(1);
    let mut dice = Dice(seed);
    let mut postgres = Postgres::start(Durability::On).expect("a server can be started");
    let mut nodes = ["one", "two", "three"].map(|name| Node::new(name, &postgres));
    nodes.iter_mut().for_each(Node::start);
    let watcher = Place::new("chaos-watcher", "").with_database(&postgres.address());
    watcher.until("something has happened", |place| place.try_runs().is_ok() && 3 < place.history().len());
    let mut happened: BTreeMap<&str, usize> = BTreeMap::new();
    let mut left = seconds * 1_000;
    while 0 < left {
        let rest = (200 + dice.below(1_800)).min(left);
        left -= rest;
        rest_for(rest);
        let node = &mut nodes[dice.below(3) as usize];
        let what = match dice.below(12) {
            0..=2 => {
                node.wake();
                if let Some(server) = node.server.take() {
                    server.kill();
                }
                "killed"
            }
            3 | 4 if node.is_up() && !node.is_stopped => {
                node.server.as_ref().unwrap().signal("STOP");
                node.is_stopped = true;
                "stopped"
            }
            5 | 6 => {
                node.proxy.cut();
                "cut off"
            }
            7 => {
                postgres.crash().unwrap();
                rest_for(dice.below(500));
                postgres.start_again().unwrap();
                "database crashed"
            }
            8 => {
                node.wake();
                if let Some(server) = node.server.take() {
                    server.signal("TERM");
                    drop(server);
                }
                "told to stop"
            }
            _ => {
                node.proxy.heal();
                node.wake();
                node.start();
                "healed"
            }
        };
        *happened.entry(what).or_default() += 1;
    }
    for node in &mut nodes {
        node.proxy.heal();
        node.wake();
        node.start();
    }
    // However much it is, it has to become less.
    let mut left = u64::MAX;
    while 0 < left {
        let before = left;
        watcher.until("less is left to be made up for", |place| {
            left = left_over(place).unwrap_or(before);
            left < before
        });
    }
    // What becomes due while the nodes stop, one after another, is not this test's.
    let last = now_second() - 4;
    for node in &mut nodes {
        assert!(node.server.take().unwrap().stop().success(), "{}", node.place.read("log"));
    }
    watcher.verify();
    let effects: Vec<String> = nodes.iter().flat_map(|node| node.place.effects()).collect();
    let slots = check_slots(&watcher, &effects, last);
    let (entries, most) = check_journal(&postgres.address());
    println!(
        "seed {seed}, {seconds} s: {happened:?}; {slots} slots, {entries} entries, at most {most} of {CAP} at work"
    );
}

/// How many runs that were due are left, once there are any at all.
fn left_over(place: &Place) -> Option<u64> {
    let mut runs = place.try_runs().ok()?;
    runs.retain(|run| run["is_over"] == false);
    let is_left =
        |run: &&Value| 1 < run["attempt"].as_u64().unwrap() || second(&run["scheduled_at"]) < now_second() - 3;
    (!runs.is_empty()).then(|| runs.iter().filter(is_left).count() as u64)
}

/// Every slot of each schedule up to an instant has one run, which has succeeded once; and no attempt ran twice. How many slots.
fn check_slots(place: &Place, effects: &[String], last: i64) -> usize {
    let mut attempts = BTreeSet::new();
    for effect in effects {
        assert!(attempts.insert(effect), "{effect}: an attempt ran twice");
    }
    let runs = place.runs();
    let mut slots = 0;
    for (name, _, every) in SCHEDULES {
        let is_over = |run: &&Value| run["schedule_name"] == name && run["state"] == "succeeded";
        let over: Vec<i64> = runs.iter().filter(is_over).map(|run| second(&run["scheduled_at"])).collect();
        let seconds: BTreeSet<i64> = over.iter().copied().collect();
        assert_eq!(seconds.len(), over.len(), "{name}: a slot has two runs");
        let first = *seconds.first().unwrap();
        let missing: Vec<i64> =
            (first..=last).step_by(every as usize).filter(|second| !seconds.contains(second)).collect();
        assert!(missing.is_empty(), "{name}: {} slots have no run that succeeded: {missing:?}", missing.len());
        slots += seconds.len();
    }
    slots
}

/// Caps are held at every commit, and no run is answered twice. How many entries there are, and the most that was at work.
fn check_journal(address: &str) -> (usize, usize) {
    let store = PostgresStore::open_to_read(address).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let entries = runtime.block_on(store.entries(0, 1_000_000)).unwrap();
    let mut world = World::default();
    let mut ends: BTreeMap<punctual_core::RunId, usize> = BTreeMap::new();
    let mut most = 0;
    for entry in &entries {
        let owned = |world: &World| world.runs.values().filter(|run| run.owner().is_some()).count();
        world.apply(entry).unwrap_or_else(|error| panic!("entry {}: {error}", entry.seq));
        if matches!(entry.body, Body::RunsClaimed { .. }) {
            most = most.max(owned(&world));
            assert!(owned(&world) <= CAP, "entry {}: {} runs hold a place", entry.seq, owned(&world));
        }
        if let Some((run, _)) = entry.body.ended() {
            *ends.entry(run).or_default() += 1;
        }
    }
    assert!(ends.values().all(|count| *count == 1), "a run has ended twice");
    (entries.len(), most)
}

fn second(at: &Value) -> i64 {
    at.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_second()
}

#[expect(clippy::disallowed_methods, reason = "the servers under test go by the real clock")]
fn now_second() -> i64 {
    jiff::Timestamp::now().as_second()
}
