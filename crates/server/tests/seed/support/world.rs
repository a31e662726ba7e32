//! The world itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use punctual_core::journal::Entry;
use punctual_core::plan::{SlotsAhead, run_ahead};
use punctual_core::run::Run;
use punctual_core::time::Zones;
use punctual_core::{Elapsed, Role, RunId, ScheduleId, Token, TokenId};
use punctual_engine::clock::Clock;
use punctual_engine::edit::Editor;
use punctual_engine::ids::{Ids, RandomIds};
use punctual_engine::meters::Meters;
use punctual_engine::node::{Nudges, Parts};
use punctual_engine::roster::{Roster, Workflows};
use punctual_engine::runner::{Runner, Runners};
use punctual_engine::settings::Settings;
use punctual_server::auth::{Doors, Secret};
use punctual_server::{App, ConductorRules, HouseRules, Pulse, router};
use punctual_store::{RunFilter, Store};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::agents::Agents;
use super::base::{Base, Opened};
use super::clock::VirtualClock;
use super::node::{Hall, Node};
use super::{at, slots};

/// The agents of every node: those that the seed names.
const AGENTS: [&str; 5] = ["planner", "reconciler", "thread-extractor", "distiller", "reminder"];

/// How often everything has to be at rest, one look after another, before time goes on: whoever was woken is asked by then.
const LOOKS: usize = 4;

/// Nothing that works takes as long. It is here so that a test that waits in vain says so.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct World {
    opened: Opened,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<VirtualClock>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) agents: Arc<Agents>,
    pub(super) router: Router,
    pub(super) secret: Secret,
    /// The nudges of the node that has the API.
    nudges: Arc<Nudges>,
    nodes: BTreeMap<&'static str, Node>,
    has_ended: bool,
}

impl World {
    /// A world at an instant, without a node. Its nodes go by their timers and by nudges alone: nobody polls, and leases are
    /// long, so that a day has few steps.
    pub(crate) async fn at(base: Base, start: &str) -> World {
        let slow = Elapsed::from_seconds(3_600);
        World::with(base, start, |settings| (settings.lease, settings.poll) = (slow, slow)).await
    }

    /// A world whose nodes have the leases and the polls that they have in production.
    pub(crate) async fn as_in_production(base: Base, start: &str) -> World {
        World::with(base, start, |_| {}).await
    }

    async fn with(base: Base, start: &str, change: impl FnOnce(&mut Settings)) -> World {
        let start = at(start);
        let opened = base.open(start).await;
        let store = Arc::clone(&opened.store);
        let clock = Arc::new(VirtualClock::at(start));
        let mut settings = Settings::new("server", AGENTS.map(str::to_owned).into(), Zones::bundled());
        let agents = punctual_engine::roster::Agents::named(AGENTS.map(str::to_owned));
        let workflows = Workflows { agents: [("report".to_owned(), "reminder".to_owned())].into(), has_server: false };
        let agents = punctual_engine::roster::Agents { workflows: Arc::new(workflows), ..agents };
        settings.roster = Arc::new(Roster::new(agents));
        change(&mut settings);
        let settings = Arc::new(settings);
        let ids: Arc<dyn Ids> = Arc::new(RandomIds);
        let nudges = Arc::<Nudges>::default();
        let secret = Secret::random();
        let token = Token {
            id: TokenId(ids.next(start)),
            name: "editor".to_owned(),
            role: Role::Admin,
            projects: None,
            agents: Default::default(),
            hash: secret.hash(),
            created_at: start,
            expires_at: None,
        };
        store.make_token(start, token, None).await.expect("a token can be made");
        let rules = HouseRules {
            default_zone: settings.zones.get("UTC").expect("all zone data has UTC"),
            min_interval: Elapsed::from_seconds(60),
            runs_per_day_warning: 1_000,
            conductor: ConductorRules::new(settings.zones.get("UTC").expect("all zone data has UTC")),
        };
        let app = App {
            store: Arc::clone(&store),
            editor: Editor::new(Arc::clone(&store), Arc::clone(&ids), Arc::clone(&settings)),
            clock: Arc::<VirtualClock>::clone(&clock),
            ids,
            settings: Arc::clone(&settings),
            rules: Arc::new(rules),
            nudges: Arc::clone(&nudges),
            meters: Arc::default(),
            doors: Arc::new(Doors::new(vec![])),
            pulse: Pulse::new(CancellationToken::new()),
            calculations: Default::default(),
        };
        let agents = Arc::new(Agents::new(Arc::clone(&clock), Arc::clone(&store)));
        let (router, nodes) = (router(app), BTreeMap::new());
        World { opened, store, clock, settings, agents, router, secret, nudges, nodes, has_ended: false }
    }

    // Nodes.

    /// Starts the node that has the API.
    pub(crate) async fn start(&mut self, name: &'static str) {
        let (store, nudges) = (Arc::clone(&self.store), Arc::clone(&self.nudges));
        self.start_with(name, store, nudges).await;
    }

    /// Starts a node of another process: it hears of nothing that is asked for here.
    pub(crate) async fn start_elsewhere(&mut self, name: &'static str) {
        let store = self.opened.open_again();
        self.start_with(name, store, Arc::default()).await;
    }

    /// The store of another process; of this one, where one server has the store for itself.
    pub(crate) fn open_again(&self) -> Arc<dyn Store> {
        self.opened.open_again()
    }

    async fn start_with(&mut self, name: &'static str, store: Arc<dyn Store>, nudges: Arc<Nudges>) {
        let hall = Hall::new(Arc::clone(&self.clock));
        let runner: Arc<dyn Runner> = Arc::<Agents>::clone(&self.agents);
        let parts = Parts {
            store,
            clock: Arc::<VirtualClock>::clone(&self.clock),
            ids: Arc::new(RandomIds),
            settings: Arc::new(Settings { name: name.to_owned(), ..(*self.settings).clone() }),
            runners: Arc::new(Runners::new(AGENTS.map(|agent| (agent.to_owned(), Arc::clone(&runner))).into())),
            nudges,
            spawn: Arc::<Hall>::clone(&hall),
            meters: Arc::<Meters>::default(),
        };
        self.nodes.insert(name, Node::start(parts, hall));
        self.settle().await;
    }

    /// A node is gone, and nobody was told.
    pub(crate) async fn kill(&mut self, name: &'static str) {
        self.nodes.remove(name).expect("there is such a node").kill().await;
    }

    /// A node stops, lets what is at work end, and says so.
    pub(crate) async fn stop(&mut self, name: &'static str) {
        self.nodes[name].stop();
        self.settle().await;
        while 0 < self.nodes[name].alive() {
            let next = self.clock.next_wake_at().expect("a node that stops waits for something");
            self.move_to(next).await;
        }
        self.nodes.remove(name);
    }

    // Time.

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Time passes up to an instant, and everybody does what they have to do when they have to.
    pub(crate) async fn advance_to(&self, text: &str) {
        let end = at(text);
        assert!(self.now() <= end, "{text} is past: it is {}", self.now());
        self.settle().await;
        while self.now() < end {
            let next = self.clock.next_wake_at().unwrap_or(end).min(end);
            self.move_to(next).await;
        }
    }

    pub(crate) async fn advance(&self, time: SignedDuration) {
        self.advance_to(&(self.now() + time).to_string()).await;
    }

    /// Goes on to an instant at which somebody may have something to do, and lets them.
    async fn move_to(&self, at: Timestamp) {
        self.opened.set_time(at).await;
        self.clock.move_to(at);
        self.settle().await;
    }

    /// Waits until nobody has anything to do at this instant: every task waits for the clock.
    pub(crate) async fn settle(&self) {
        let waited = tokio::time::timeout(PATIENCE, self.come_to_rest()).await;
        waited.unwrap_or_else(|_| panic!("the world does not come to rest at {}", self.now()));
    }

    async fn come_to_rest(&self) {
        let (mut looks, mut lain_down) = (0, 0);
        while looks < LOOKS {
            tokio::task::yield_now().await;
            let (resting, count) = self.clock.resting();
            let idle: usize = self.nodes.values().map(Node::resting_when_idle).sum();
            looks = if count == lain_down { looks + 1 } else { 0 };
            lain_down = count;
            if resting < idle {
                looks = 0;
                self.clock.changed.notified().await;
            }
        }
    }

    // What people ask for.

    /// Creates a schedule.
    pub(crate) async fn create(&self, fields: Value) -> ScheduleId {
        let created = self.post("/api/schedules", fields, StatusCode::CREATED).await;
        self.settle().await;
        ScheduleId(id_of(&created["scheduleId"]))
    }

    /// Changes fields of a schedule.
    pub(crate) async fn edit(&self, id: ScheduleId, fields: Value) -> Value {
        let edited = self.put(&format!("/api/schedules/{id}"), fields).await;
        self.settle().await;
        edited
    }

    // What there is to see.

    /// The runs of a schedule that are recorded, by slot.
    pub(crate) async fn recorded(&self, schedule: ScheduleId) -> Vec<Run> {
        let filter = RunFilter { schedule: Some(schedule), limit: 10_000, ..RunFilter::default() };
        self.store.runs(&filter).await.expect("the store answers")
    }

    /// The runs of a schedule as people see them, by slot: those that are recorded, and those ahead up to a quarter of an hour
    /// after the end of its day.
    pub(crate) async fn runs(&self, id: ScheduleId) -> Vec<Run> {
        let mut runs = self.recorded(id).await;
        if let Some(schedule) = self.store.schedule(id).await.expect("the store answers") {
            let timetable = schedule.timetable(&self.settings.zones, &self.settings.calendars).expect("it compiles");
            let zone = timetable.zone();
            let until = zone.day_end(zone.day_of(self.now())) + super::MINUTE * 15 + SignedDuration::from_nanos(1);
            let ahead = SlotsAhead::new(&schedule, &timetable, (Timestamp::MIN, until));
            runs.extend(ahead.map(|slot| run_ahead(&schedule, &timetable, &slot)));
        }
        runs.sort_by_key(|run| (run.scheduled_at, run.id));
        runs
    }

    /// When the slots of a schedule are, of those that have a run.
    pub(crate) async fn slots(&self, schedule: ScheduleId) -> Vec<String> {
        self.runs(schedule).await.iter().map(|run| run.scheduled_at.to_string()).collect()
    }

    /// The run of a slot.
    pub(crate) async fn run_at(&self, schedule: ScheduleId, slot: &str) -> Run {
        let runs = self.runs(schedule).await;
        let run = runs.iter().find(|run| run.scheduled_at == at(slot) && run.key.is_slot());
        run.cloned().unwrap_or_else(|| panic!("no run at {slot}: {runs:?}"))
    }

    /// A run that is recorded, or the one that a slot ahead will have.
    async fn found(&self, id: RunId) -> Run {
        if let Some(run) = self.store.run(id).await.expect("the store answers") {
            return run;
        }
        let schedule = self.store.schedule_of_slot(id).await.expect("the store answers").expect("it has a schedule");
        let ahead = self.runs(schedule.id).await;
        ahead.into_iter().find(|run| run.id == id).expect("there is such a run")
    }

    /// A run, as the API shows it.
    pub(crate) async fn shown(&self, run: RunId) -> Value {
        let run = self.found(run).await;
        let (id, mut found) = (run.id.to_string(), vec![]);
        // Its day is its own zone's, which may be a day behind.
        for day in [run.scheduled_at - super::HOUR * 24, run.scheduled_at] {
            let list = self.get(&format!("/api/executions/future?dateKey={}", &day.to_string()[..10])).await;
            let list = list.as_array().expect("it is a list").clone();
            found.extend(list.into_iter().filter(|it| it["executionId"] == id));
        }
        assert_eq!(found.len(), 1, "run {} is shown once: {found:?}", run.id);
        found.remove(0)
    }

    /// What became of a schedule's runs, the oldest first, as the API shows it.
    pub(crate) async fn past(&self, schedule: ScheduleId) -> Vec<Value> {
        let page = self.get(&format!("/api/executions/past?scheduleId={schedule}&size=1000")).await;
        let mut items = page["content"].as_array().expect("it is a list").clone();
        items.reverse();
        items
    }

    /// Everything that has happened.
    pub(crate) async fn entries(&self) -> Vec<Entry> {
        self.entries_after(0).await
    }

    /// What has happened since an entry.
    pub(crate) async fn entries_after(&self, seq: u64) -> Vec<Entry> {
        let mut entries: Vec<Entry> = vec![];
        loop {
            let after = entries.last().map_or(seq, |entry| entry.seq);
            let page = self.store.entries(after, 1_000).await.expect("the store answers");
            if page.is_empty() {
                return entries;
            }
            entries.extend(page);
        }
    }

    /// Every slot of a schedule up to now has one answer, by its timetable. How many slots that were.
    pub(crate) async fn every_slot_has_one_answer(&self, schedule: ScheduleId) -> usize {
        self.check_slots(&self.entries().await, schedule, self.now())
    }

    /// The same by these entries, up to an instant.
    pub(crate) fn check_slots(&self, entries: &[Entry], schedule: ScheduleId, until: Timestamp) -> usize {
        slots::check(entries, schedule, &self.settings, until)
    }

    /// The end of the world: its rows are what its journal adds up to.
    pub(crate) async fn end(mut self) {
        for (_, node) in std::mem::take(&mut self.nodes) {
            node.kill().await;
        }
        let found = self.store.verify().await.expect("it can be verified");
        assert_eq!(found, Vec::<String>::new(), "the rows are not what the journal says");
        self.has_ended = true;
    }
}

/// A world that is not ended has not been verified.
impl Drop for World {
    fn drop(&mut self) {
        assert!(self.has_ended || std::thread::panicking(), "end the world, so that it is verified");
    }
}

pub(crate) fn id_of(value: &Value) -> uuid::Uuid {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{value} is no id"))
}
