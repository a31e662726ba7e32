//! F80: an edit races with a fire. Whoever comes first, a slot has one answer, and it belongs to one version.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Barrier};

use jiff::{SignedDuration, Timestamp};
use punctual_core::journal::Body;
use punctual_core::run::{Report, RunEvent};
use punctual_core::schedule::Schedule;
use punctual_core::{NodeId, RunId, ScheduleId};
use punctual_engine::claimer::{Claimer, Free, Round};
use punctual_engine::edit::{EditError, Editor};
use punctual_engine::holdings::Hands;
use punctual_engine::ids::RandomIds;
use punctual_store::{AttemptReport, Store, StoreError};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Base, MINUTE, SECOND, Stepped, World, at, on_both_stores};

/// How many steps of the two are put into every order; what is left of them follows.
const ORDERED: u32 = 5;

/// Rounds on two threads, where chance decides.
const ROUNDS: usize = 60;

/// What an edit does with the time that fires: it stays, it goes, or it comes half a minute later.
const EDITS: [Edit; 3] = [Edit::Keeps, Edit::Drops, Edit::Moves];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    Keeps,
    Drops,
    Moves,
}

/// When the edit happens, beside a slot whose run is claimed a moment after its time.
const BESIDE: [SignedDuration; 3] =
    [SignedDuration::from_millis(-100), SignedDuration::ZERO, SignedDuration::from_millis(50)];

/// A node that fires and an editor, in two processes as far as the store can tell.
struct Race {
    world: World,
    node: NodeId,
    claimer: Claimer,
    editor: Editor,
}

/// One round: a schedule, its slot that fires, and the edit.
struct Heat {
    id: ScheduleId,
    slot: Timestamp,
    edit: Edit,
    edited_at: Timestamp,
    /// The last entry before it.
    since: u64,
}

impl Race {
    async fn new(base: Base) -> Race {
        let world = World::at(base, "09:00").await;
        let node = NodeId(Uuid::from_u128(1));
        world.store.join(&world.settings.sign(node, world.now(), 0)).await.unwrap();
        let claimer = Claimer::new(Arc::<dyn Store>::clone(&world.store), Arc::clone(&world.settings), node);
        let editor = Editor::new(world.open_again(), Arc::new(RandomIds), Arc::clone(&world.settings));
        Race { world, node, claimer, editor }
    }

    /// A schedule that fires now.
    async fn line_up(&self, number: usize, edit: Edit, beside: SignedDuration) -> Heat {
        self.world.advance(MINUTE).await;
        let sign = self.world.settings.sign(self.node, self.world.now(), 0);
        self.world.store.renew(&sign).await.unwrap();
        self.world.store.take_planner(&sign).await.unwrap();
        let (slot, since) = (self.world.now() + MINUTE, self.world.store.head().await.unwrap().seq);
        let schedule = json!({"agentId": "reminder", "name": format!("race-{number}"), "prompt": "version 1",
            "scheduleType": "CRON", "cronExpr": cron(slot), "dialect": "spring",
            "executorPolicy": {"maxConcurrent": 1_000}});
        let id = self.world.create(schedule).await;
        self.world.advance(MINUTE).await;
        Heat { id, slot, edit, edited_at: slot + beside, since }
    }

    fn fire(&self, heat: &Heat) -> Stepped<'_, Result<Round, StoreError>> {
        let now = heat.slot + SignedDuration::from_millis(20);
        Stepped::new(async move { self.claimer.tick(now, Free::each(8), &Hands::default()).await })
    }

    fn edit(&self, heat: &Heat) -> Stepped<'_, Result<Schedule, EditError>> {
        let Heat { id, slot, edit, edited_at, .. } = *heat;
        let change = move |schedule: &Schedule| {
            let mut changed = serde_json::to_value(schedule).unwrap();
            changed["work"]["agent"]["prompt"] = json!("version 2");
            let time = match edit {
                Edit::Keeps => slot,
                Edit::Drops => slot + SignedDuration::from_hours(12),
                Edit::Moves => slot + SECOND * 30,
            };
            changed["trigger"]["cron"][0]["expression"] = json!(cron(time));
            serde_json::from_value(changed).unwrap()
        };
        Stepped::new(async move { self.editor.edit(id, None, edited_at, change).await })
    }

    /// Lets everything that a round has left behind end, and looks at what became of its slots.
    async fn look(&self, heat: &Heat, fired: &Round, order: &str) {
        let Heat { id, slot, edit, edited_at, since } = *heat;
        let order = format!("{edit:?} at {edited_at}, {order}");
        self.end_all(slot).await;
        self.world.advance(SECOND * 45).await;
        let later = self.world.now();
        let round = Stepped::new(self.claimer.tick(later, Free::each(8), &Hands::default())).finish().unwrap();
        for started in fired.started.iter().chain(&round.started) {
            let run = &started.run;
            // What its agent is told is what its version says.
            assert_eq!((run.schedule, prompt(run)), (Some(id), format!("version {}", run.version)), "{order}");
        }
        self.end_all(later).await;

        let entries = self.world.entries_after(since).await;
        let mut standing: BTreeMap<String, BTreeSet<RunId>> = BTreeMap::new();
        for entry in &entries {
            let Body::Planned(plan) = &entry.body else { continue };
            standing.values_mut().for_each(|runs| runs.retain(|run| !plan.withdrawn.contains(run)));
            plan.runs.iter().filter(|_| plan.schedule == id).for_each(|run| {
                standing.entry(run.key.to_string()).or_default().insert(run.id);
            });
            assert!(standing.values().all(|runs| runs.len() <= 1), "{order}: at entry {}: {standing:?}", entry.seq);
        }
        // An edit that is older than the fire but comes behind it does not know of the slot: it was the old version's.
        if slot <= edited_at {
            self.world.check_slots(&entries, id, later);
        }
        let runs = self.world.runs(id).await;
        let mut started: BTreeMap<Timestamp, Vec<u64>> = BTreeMap::new();
        for entry in &entries {
            let Body::RunsStarted { runs: ids } = &entry.body else { continue };
            // What has begun is not taken away from under its agent.
            assert!(
                ids.iter().all(|id| runs.iter().any(|run| run.id == *id)),
                "{order}: of {ids:?} there are {runs:?}"
            );
            for run in runs.iter().filter(|run| ids.contains(&run.id)) {
                started.entry(run.scheduled_at).or_default().push(run.version);
            }
        }
        assert!(started.values().all(|versions| versions.len() == 1), "{order}: started {started:?}");
        let at_slot = started.get(&slot).map(|versions| versions[0]);
        let moved = started.get(&(slot + SECOND * 30)).map(|versions| versions[0]);
        match edit {
            // It is wanted by both: one of them has it.
            Edit::Keeps => assert!(matches!((at_slot, moved), (Some(1 | 2), None)), "{order}: {started:?}"),
            // The old version has it, or nobody.
            Edit::Drops => assert!(matches!((at_slot, moved), (Some(1) | None, None)), "{order}: {started:?}"),
            // Two slots, each of its own version.
            Edit::Moves => assert!(matches!((at_slot, moved), (Some(1) | None, Some(2))), "{order}: {started:?}"),
        }
        assert_eq!(self.world.store.schedule(id).await.unwrap().map(|it| it.version), Some(2), "{order}");
    }

    async fn end_all(&self, now: Timestamp) {
        let owned =
            self.world.store.renew(&self.world.settings.sign(self.node, self.world.now(), 0)).await.unwrap().owned;
        let report = |(run, epoch): (RunId, u64)| AttemptReport {
            run,
            epoch,
            event: RunEvent::Succeeded,
            report: Report::default(),
        };
        self.world.store.finish(now, owned.into_iter().map(report).collect()).await.unwrap();
    }
}

fn prompt(run: &punctual_core::run::Run) -> String {
    let work = serde_json::to_value(&run.terms.work).unwrap();
    work["agent"]["prompt"].as_str().expect("it has a prompt").to_owned()
}

/// Once a day, at this second.
fn cron(at: Timestamp) -> String {
    let text = at.to_string();
    let number = |range: std::ops::Range<usize>| text[range].parse::<u8>().expect("it is a number");
    format!("{} {} {} * * *", number(17..19), number(14..16), number(11..13))
}

on_both_stores!(
    an_edit_and_a_fire_in_every_order_leave_each_slot_one_answer_on_sqlite,
    an_edit_and_a_fire_in_every_order_leave_each_slot_one_answer_on_postgres,
    every_order
);

async fn every_order(base: Base) {
    let race = Race::new(base).await;
    let (mut number, mut orders) = (0, BTreeSet::new());
    for edit in EDITS {
        for beside in BESIDE {
            for pattern in 0..2_u32.pow(ORDERED) {
                number += 1;
                let heat = race.line_up(number, edit, beside).await;
                let (mut fire, mut change) = (race.fire(&heat), race.edit(&heat));
                let mut order = String::new();
                for bit in 0..ORDERED {
                    let is_fires_turn = pattern & (1 << bit) != 0;
                    if fire.is_done() || !is_fires_turn && !change.is_done() {
                        change.step();
                        order.push('e');
                    } else {
                        fire.step();
                        order.push('f');
                    }
                }
                change.finish().unwrap();
                race.look(&heat, &fire.finish().unwrap(), &order).await;
                orders.insert(order);
            }
        }
    }
    // A fire is one call of the store, an edit a few: these are all the ways in which their steps can follow each other.
    assert!(10 <= orders.len(), "the orders differ: {orders:?}");
    race.world.end().await;
}

on_both_stores!(
    an_edit_and_a_fire_at_once_leave_each_slot_one_answer_on_sqlite,
    an_edit_and_a_fire_at_once_leave_each_slot_one_answer_on_postgres,
    at_once
);

async fn at_once(base: Base) {
    let race = Race::new(base).await;
    for number in 0..ROUNDS {
        let heat = race.line_up(number, EDITS[number % 3], BESIDE[number / 3 % 3]).await;
        let barrier = Barrier::new(2);
        let fired = std::thread::scope(|scope| {
            let fired = scope.spawn(|| {
                barrier.wait();
                race.fire(&heat).finish().unwrap()
            });
            scope.spawn(|| {
                barrier.wait();
                race.edit(&heat).finish().unwrap()
            });
            fired.join().unwrap()
        });
        race.look(&heat, &fired, &format!("round {number}")).await;
    }
    race.world.end().await;
}

on_both_stores!(
    an_edit_over_http_at_the_instant_of_a_fire_leaves_each_slot_one_answer_on_sqlite,
    an_edit_over_http_at_the_instant_of_a_fire_leaves_each_slot_one_answer_on_postgres,
    over_http
);

/// The same with a whole node, whose loops go on while the edit comes in.
async fn over_http(base: Base) {
    let mut world = World::at(base, "09:00").await;
    world.start("a").await;
    let every_minute =
        json!({"agentId": "reminder", "scheduleType": "CRON", "cronExpr": "0 * * * * *", "prompt": "version 1"});
    let id = world.create(every_minute).await;
    for round in 0..ROUNDS {
        let path = format!("/api/schedules/{id}");
        // Every second edit leaves out the odd minutes, every other one has them again.
        let expression = if round % 2 == 0 { "0 0/2 * * * *" } else { "0 * * * * *" };
        let change: Value = json!({"cronExpr": expression, "prompt": format!("version {}", round + 2)});
        let (_, edited) = tokio::join!(world.advance(MINUTE), world.put(&path, change));
        assert_eq!(edited["version"], round + 2);
        world.settle().await;
    }
    let calls = world.agents.calls();
    let mut slots = BTreeSet::new();
    for call in &calls {
        assert!(slots.insert(call.context.scheduled_at), "{} was run twice", call.context.scheduled_at);
        let run = world.store.run(call.context.run_id).await.unwrap().expect("it is there");
        assert_eq!(call.context.prompt, format!("version {}", run.version));
    }
    // What every version wants has run, whoever came first.
    let wanted: BTreeSet<Timestamp> = (1..=30).map(|count| at("09:00") + MINUTE * 2 * count).collect();
    assert_eq!(wanted.difference(&slots).collect::<Vec<_>>(), Vec::<&Timestamp>::new());
    world.end().await;
}
