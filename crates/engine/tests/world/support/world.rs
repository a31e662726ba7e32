//! The world itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_core::journal::{Body, Entry, ScheduleRecord, SkipEntry};
use punctual_core::plan::{Limits, SlotsAhead, run_ahead};
use punctual_core::run::{Outcome, Run, RunEvent, RunState, WaitFor};
use punctual_core::schedule::{Pause, PauseKind, Schedule};
use punctual_core::time::Zones;
use punctual_core::{NodeId, RunId, ScheduleId};
use punctual_engine::edit::{EditError, Editor};
use punctual_engine::ids::Ids;
use punctual_engine::roster::Agents;
use punctual_engine::settings::Settings;
use punctual_store::memory::{MemoryStore, State};
use punctual_store::{Cancellation, Nodes, Result, RunFilter, Runs, Store, StoreError};
use serde_json::{Value, json};
use uuid::Uuid;

use super::slots;
use super::{Door, Node, Way, at, clock_time, now_or_never};

/// The most looks at one instant before a test is told that the world does not come to rest.
const LOOKS_MAX: usize = 3_000;

pub(crate) struct World {
    store: Arc<MemoryStore>,
    pub(crate) door: Arc<Door>,
    ids: Arc<CountedIds>,
    /// What the next node is built with.
    pub(crate) settings: Settings,
    pub(crate) now: Timestamp,
    boot: Duration,
    nodes: BTreeMap<&'static str, Node>,
    ways: BTreeMap<String, Way>,
}

impl World {
    /// An empty world at an instant, whose nodes have the agents `reporter`, `quick` and `slow`, and places for 100 runs.
    pub(crate) fn at(text: &str) -> World {
        World::on(MemoryStore::new(), text)
    }

    /// The same on a store that one server has for itself.
    pub(crate) fn exclusive_at(text: &str) -> World {
        World::on(MemoryStore::exclusive(), text)
    }

    /// The same at an instant at which the store's own clock shows another one, and stays there.
    pub(crate) fn with_store_at(text: &str, store: &str) -> World {
        let shown = at(store);
        World::on(MemoryStore::with_clock(move || shown), text)
    }

    fn on(store: MemoryStore, text: &str) -> World {
        let store = Arc::new(store);
        let agents: BTreeSet<String> = ["reporter", "quick", "slow"].map(str::to_owned).into();
        let mut settings = Settings::new("", agents, Zones::bundled());
        settings.places = 100;
        World {
            door: Arc::new(Door::new(Arc::clone(&store))),
            store,
            ids: Arc::default(),
            settings,
            now: at(text),
            boot: Duration::from_secs(1_000),
            nodes: BTreeMap::new(),
            ways: BTreeMap::new(),
        }
    }

    /// The runs that may be at work.
    pub(crate) fn limit(&mut self, limits: Limits) {
        let agents = Agents { limits: Arc::new(limits), ..self.settings.roster.now() };
        self.settings.roster.exchange(agents);
    }

    // What the work does.

    /// From now on the work of an agent goes like this. By default everything succeeds at once.
    pub(crate) fn work(&mut self, agent: &str, way: Way) {
        self.ways.insert(agent.to_owned(), way);
    }

    /// Lets the one run that is at work end well, and everything that follows from it happen.
    pub(crate) fn finish(&mut self, run: RunId) {
        self.end(run, RunEvent::Succeeded);
    }

    /// Lets a run that is at work end.
    pub(crate) fn end(&mut self, run: RunId, event: RunEvent) {
        let now = self.now;
        let node = self.nodes.values_mut().find(|node| node.held.contains_key(&run));
        node.unwrap_or_else(|| panic!("run {run} is not at work")).end(run, now, event);
        self.settle();
    }

    /// Puts a run that is at work to wait for something.
    pub(crate) fn put_to_wait(&mut self, run: RunId, on: WaitFor, time: SignedDuration) {
        let wait_until = self.now + time;
        self.end(run, RunEvent::Waits { on, wait_until });
    }

    // Nodes.

    /// A node by name; it joins when it is first named.
    pub(crate) fn node(&mut self, name: &'static str) -> &mut Node {
        if !self.nodes.contains_key(name) {
            let settings = Settings { name: name.to_owned(), ..self.settings.clone() };
            let id = NodeId(self.ids.next(self.now));
            let mut node = Node::new(id, settings, self.shared(), Arc::<CountedIds>::clone(&self.ids));
            node.join(self.now, self.boot).unwrap();
            self.nodes.insert(name, node);
        }
        self.nodes.get_mut(name).unwrap()
    }

    /// A node is gone, and nobody was told.
    pub(crate) fn kill(&mut self, name: &'static str) {
        self.nodes.remove(name).unwrap_or_else(|| panic!("there is no node {name}"));
    }

    /// A node stops, and says so.
    pub(crate) fn stop(&mut self, name: &'static str) {
        let node = self.nodes.remove(name).unwrap_or_else(|| panic!("there is no node {name}"));
        now_or_never(self.store.leave(self.now, node.id)).unwrap();
    }

    /// Takes a node out of the world with all that it holds: its time stands still.
    pub(crate) fn freeze(&mut self, name: &'static str) -> Node {
        self.nodes.remove(name).unwrap_or_else(|| panic!("there is no node {name}"))
    }

    /// Nobody is there for so long. Then a new node comes.
    pub(crate) fn outage(&mut self, time: SignedDuration) {
        for name in self.nodes.keys().copied().collect::<Vec<_>>() {
            self.stop(name);
        }
        self.sleep(time);
        self.node("after the outage");
        self.settle();
    }

    // Time.

    /// Time passes, and every node does what it has to do, when it has to.
    pub(crate) fn advance(&mut self, time: SignedDuration) {
        let end = self.now + time;
        loop {
            let wake_at = self.settle();
            if end <= self.now {
                return;
            }
            let next = wake_at.min(self.next_event()).max(self.now + SignedDuration::from_millis(1)).min(end);
            self.sleep(next.duration_since(self.now));
        }
    }

    /// When something becomes due, late or over next; at every quarter of an hour at the latest, where days begin.
    fn next_event(&self) -> Timestamp {
        let now = self.now;
        let quarter = Timestamp::from_second((now.as_second() / 900 + 1) * 900).unwrap();
        self.look(|state| {
            let runs = state.world.live_runs().flat_map(|run| {
                let wait_until = match run.state {
                    RunState::Waiting { wait_until, .. } => Some(wait_until),
                    _ => None,
                };
                let expires_at = run.expires_at.map(|at| at + SignedDuration::from_millis(1));
                [run.planned_for(), expires_at, wait_until].into_iter().flatten()
            });
            let plans = state.world.schedules.values().filter_map(|record| record.plan_at);
            runs.chain(plans).filter(|at| now < *at).chain([quarter]).min().unwrap()
        })
    }

    pub(crate) fn advance_to(&mut self, text: &str) {
        let end = at(text);
        assert!(self.now <= end, "{text} is past: it is {}", self.now);
        self.advance(end.duration_since(self.now));
    }

    /// Time passes, and nobody does anything.
    pub(crate) fn sleep(&mut self, time: SignedDuration) {
        self.now += time;
        self.boot += Duration::try_from(time).expect("time passes forwards");
    }

    /// Somebody sets the clock. No time passes.
    pub(crate) fn set_clock(&mut self, by: SignedDuration) {
        self.now += by;
    }

    pub(crate) fn boot(&self) -> Duration {
        self.boot
    }

    /// Every node does what there is to do at this instant. When the first of them wants to look again.
    pub(crate) fn settle(&mut self) -> Timestamp {
        for _ in 0..LOOKS_MAX {
            let (mut did, mut wake_at) = (false, Timestamp::MAX);
            for name in self.nodes.keys().copied().collect::<Vec<_>>() {
                let rounded = self.round(name).unwrap_or_else(|error| panic!("node {name} failed: {error:?}"));
                did |= rounded.did || rounded.wake_at <= self.now;
                wake_at = wake_at.min(rounded.wake_at);
            }
            if !did {
                return wake_at;
            }
        }
        panic!("the world does not come to rest at {}", self.now);
    }

    /// One round of one node.
    pub(crate) fn round(&mut self, name: &'static str) -> Result<super::node::Rounded> {
        let ways = self.ways.clone();
        let (now, boot) = (self.now, self.boot);
        let way = move |agent: &str| ways.get(agent).copied().unwrap_or(Way::Succeeds);
        self.node(name).round(now, boot, way)
    }

    /// A node claims what is ready, and begins nothing of it.
    pub(crate) fn claim(&mut self, name: &'static str) {
        let now = self.now;
        self.node(name).claim(now);
    }

    /// An older copy comes in the place of the store, and somebody notices.
    pub(crate) fn put_back(&mut self, copy: State) {
        self.store.put_back(copy);
        self.store.begin_anew(self.now, 0).unwrap();
    }

    // What people do.

    pub(crate) fn editor(&self) -> Editor {
        Editor::new(self.shared(), Arc::<CountedIds>::clone(&self.ids), Arc::new(self.settings.clone()))
    }

    /// Creates a schedule: the plainest there is, every hour in UTC, with some fields of its own.
    pub(crate) fn create(&mut self, fields: Value) -> ScheduleId {
        self.try_create(fields).unwrap()
    }

    pub(crate) fn try_create(&mut self, fields: Value) -> Result<ScheduleId, EditError> {
        let created = now_or_never(self.editor().create(schedule(fields), self.now));
        created.map(|schedule| schedule.id)
    }

    /// Changes fields of a schedule.
    pub(crate) fn edit(&mut self, id: ScheduleId, fields: Value) {
        self.try_edit(id, None, fields).unwrap();
    }

    pub(crate) fn try_edit(&mut self, id: ScheduleId, version: Option<u64>, fields: Value) -> Result<u64, EditError> {
        let change = |schedule: &Schedule| with_fields(serde_json::to_value(schedule).unwrap(), &fields);
        let edited = now_or_never(self.editor().edit(id, version, self.now, change));
        edited.map(|schedule| schedule.version)
    }

    pub(crate) fn pause(&mut self, id: ScheduleId) {
        self.pause_as(id, PauseKind::Paused);
    }

    pub(crate) fn disable(&mut self, id: ScheduleId) {
        self.pause_as(id, PauseKind::Disabled);
    }

    /// Pauses a schedule until a time of today.
    pub(crate) fn pause_until(&mut self, id: ScheduleId, until: Timestamp) {
        let (kind, source, until) = (PauseKind::Paused, "test".to_owned(), Some(until));
        let pause = Pause { kind, at: self.now, source, reason: None, until };
        now_or_never(self.editor().pause(id, pause, self.now)).unwrap();
    }

    fn pause_as(&mut self, id: ScheduleId, kind: PauseKind) {
        let pause = Pause { kind, at: self.now, source: "test".to_owned(), reason: None, until: None };
        now_or_never(self.editor().pause(id, pause, self.now)).unwrap();
    }

    /// Resumes a paused schedule, or enables a disabled one.
    pub(crate) fn resume(&mut self, id: ScheduleId) {
        now_or_never(self.editor().resume(id, self.now)).unwrap();
    }

    pub(crate) fn delete(&mut self, id: ScheduleId) {
        now_or_never(self.editor().delete(id, self.now)).unwrap();
    }

    /// Asks for a run now.
    pub(crate) fn trigger(&mut self, id: ScheduleId) -> RunId {
        now_or_never(self.editor().trigger(id, self.now)).unwrap()
    }

    pub(crate) fn cancel(&mut self, run: RunId) -> Cancellation {
        now_or_never(self.editor().cancel(run, self.now)).unwrap()
    }

    /// What a run waits for has come.
    pub(crate) fn let_go_on(&mut self, run: RunId) {
        now_or_never(self.store.resume(self.now, run, None, None)).unwrap();
    }

    // What there is to see.

    pub(crate) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        self.store.look(look)
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.look(|state| state.entries.clone())
    }

    pub(crate) fn record(&self, id: ScheduleId) -> ScheduleRecord {
        self.look(|state| {
            let mut record = state.world.schedules[&id].clone();
            state.world.outages.settle(&mut record);
            record
        })
    }

    pub(crate) fn schedule(&self, id: ScheduleId) -> Schedule {
        (*self.record(id).schedule).clone()
    }

    /// The runs of a schedule that are recorded, over or not, by slot.
    pub(crate) fn recorded(&self, id: ScheduleId) -> Vec<Run> {
        let filter = RunFilter { schedule: Some(id), limit: usize::MAX, ..RunFilter::default() };
        now_or_never(self.store.runs(&filter)).unwrap()
    }

    /// The runs of a schedule as people see them, by slot: those that are recorded, and those ahead up to a quarter of an hour
    /// after the end of its day.
    pub(crate) fn runs(&self, id: ScheduleId) -> Vec<Run> {
        let mut runs = self.recorded(id);
        let record = self.look(|state| state.world.schedules.get(&id).cloned());
        let (zones, calendars) = (&self.settings.zones, &self.settings.calendars);
        if let Some(schedule) = record.map(|record| record.schedule)
            && let Ok(timetable) = schedule.timetable(zones, calendars)
        {
            let zone = timetable.zone();
            let until =
                zone.day_end(zone.day_of(self.now)) + SignedDuration::from_mins(15) + SignedDuration::from_nanos(1);
            let ahead = SlotsAhead::new(&schedule, &timetable, (Timestamp::MIN, until)).take(1_000);
            runs.extend(ahead.map(|slot| run_ahead(&schedule, &timetable, &slot)));
        }
        runs.sort_by_key(|run| (run.scheduled_at, run.id));
        runs
    }

    pub(crate) fn run(&self, id: RunId) -> Run {
        self.find_run(id).unwrap_or_else(|| panic!("run {id} is gone"))
    }

    /// A run that is recorded, or the one that an undecided slot will have.
    pub(crate) fn find_run(&self, id: RunId) -> Option<Run> {
        let recorded = now_or_never(self.store.run(id)).unwrap();
        let schedules = || self.look(|state| state.world.schedules.keys().copied().collect::<Vec<_>>());
        recorded.or_else(|| schedules().into_iter().flat_map(|it| self.runs(it)).find(|run| run.id == id))
    }

    /// The run of a schedule's slot.
    pub(crate) fn run_at(&self, id: ScheduleId, slot: &str) -> Run {
        let run = self.runs(id).into_iter().find(|run| run.scheduled_at == at(slot) && run.key.is_slot());
        run.unwrap_or_else(|| panic!("no run at {slot}: {:?}", self.story(id)))
    }

    /// The one run of a schedule that is at work.
    pub(crate) fn at_work(&self, id: ScheduleId) -> RunId {
        let runs = self.runs(id);
        let mut running = runs.iter().filter(|run| matches!(run.state, RunState::Running { .. }));
        let run = running.next().unwrap_or_else(|| panic!("nothing is at work: {:?}", self.story(id)));
        assert!(running.next().is_none(), "more than one is at work: {:?}", self.story(id));
        run.id
    }

    /// How many runs are claimed or at work.
    pub(crate) fn count_held(&self) -> usize {
        self.look(|state| state.world.live_runs().filter(|run| run.owner().is_some()).count())
    }

    /// Every run of a schedule in a few words: its slot and its state; `m` for one that a person asked for.
    pub(crate) fn story(&self, id: ScheduleId) -> Vec<String> {
        let one = |run: &Run| {
            let mark = if run.key.is_slot() { "" } else { "m " };
            format!("{mark}{} {}", clock_time(run.scheduled_at), words(&run.state))
        };
        self.runs(id).iter().map(one).collect()
    }

    /// One run in the same words.
    pub(crate) fn state(&self, id: RunId) -> String {
        words(&self.run(id).state)
    }

    /// The skipped ranges of a schedule: reason, count, first and last slot.
    pub(crate) fn skips(&self, id: ScheduleId) -> Vec<String> {
        let one = |skip: &SkipEntry| {
            let (first, last) = (clock_time(skip.first_at), clock_time(skip.last_at));
            format!("{}×{} {first}..{last}", skip.reason, skip.count)
        };
        let entries = self.entries();
        let skips = entries.iter().filter_map(|entry| match &entry.body {
            Body::Skipped(skip) if skip.schedule == id => Some(one(skip)),
            _ => None,
        });
        skips.collect()
    }

    /// When the runs of a schedule began, in the order in which they did.
    pub(crate) fn starts(&self, id: ScheduleId) -> Vec<String> {
        let ids: BTreeMap<RunId, Run> = self.runs(id).into_iter().map(|run| (run.id, run)).collect();
        let mut starts = vec![];
        for entry in self.entries() {
            if let Body::RunsStarted { runs } = &entry.body {
                let own = runs.iter().filter_map(|run| ids.get(run));
                starts.extend(own.map(|run| format!("{} at {}", clock_time(run.scheduled_at), clock_time(entry.at))));
            }
        }
        starts
    }

    /// Compares the journal with the timetable: every slot up to now has one answer. How many slots that were.
    pub(crate) fn every_slot_has_one_answer(&self, id: ScheduleId) -> usize {
        slots::check(&self.entries(), id, &self.settings, self.now)
    }

    /// What is wrong with the rows, if they are not what the journal adds up to.
    pub(crate) fn is_sound(&self) -> Result<Vec<String>, StoreError> {
        now_or_never(punctual_store::Journal::verify(&*self.store))
    }

    pub(crate) fn shared(&self) -> Arc<dyn Store> {
        Arc::<Door>::clone(&self.door)
    }
}

/// Every world ends with rows that are what its journal adds up to.
impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.is_sound().unwrap(), Vec::<String>::new(), "the rows are not what the journal says");
        }
    }
}

/// The plainest schedule there is, with some fields of its own. `policy` is put over the defaults.
fn schedule(fields: Value) -> Schedule {
    let plain = json!({
        "id": Uuid::nil(),
        "version": 1,
        "work": {"agent": {"agent": "reporter"}},
        "trigger": {"cron": [{"expression": "0 * * * *"}]},
        "zone": "UTC",
        "cursor": {"at": "2026-01-05T00:00:00Z"},
    });
    with_fields(plain, &fields)
}

fn with_fields(mut schedule: Value, fields: &Value) -> Schedule {
    for (name, value) in fields.as_object().unwrap() {
        let merges = name == "policy" && schedule["policy"].is_object();
        if merges {
            value.as_object().unwrap().iter().for_each(|(name, value)| schedule["policy"][name] = value.clone());
        } else {
            schedule[name] = value.clone();
        }
    }
    serde_json::from_value(schedule).unwrap()
}

fn words(state: &RunState) -> String {
    match state {
        RunState::Finished { outcome: Outcome::Failed(code), .. } => {
            format!("failed({})", serde_json::to_value(code).unwrap().as_str().unwrap())
        }
        RunState::Finished { outcome: Outcome::Skipped(reason), .. } => format!("skipped({reason})"),
        RunState::Planned { resumes: true, .. } => "planned to go on".to_owned(),
        RunState::Planned { due_at, tally, .. } if 0 < tally.attempt => {
            format!("retry at {}", clock_time(*due_at))
        }
        state => state.name().to_owned(),
    }
}

/// Ids that sort by time and, within an instant, by the order in which they were made.
#[derive(Debug, Default)]
struct CountedIds(AtomicU64);

impl Ids for CountedIds {
    fn next(&self, now: Timestamp) -> Uuid {
        let count = self.0.fetch_add(1, Ordering::Relaxed);
        let milliseconds = now.as_millisecond().unsigned_abs();
        Uuid::from_u128(u128::from(milliseconds) << 80 | u128::from(count))
    }
}
