//! The scenarios of the seed by number, with the real binary; those in which time decides are in `server/tests/seed/conductor.rs`, and 7, 9
//! and 10 are `starts::…_told_its_times`, `races::two_clients_…` and `races::two_resumes_…`. `docs/conductor.md` lists all of them.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use punctual_lab::conductor::Conductor;
use punctual_lab::postgres::{Durability, Server as Postgres};
use serde_json::{Value, json};

use super::{On, Scene, now, on_both, schedule};
use crate::client::Client;
use crate::support::{Place, rest_for};

on_both![
    scenario_5_a_workflow_that_fails_is_started_all_the_same,
    scenario_11_fifty_schedules_on_one_tick_fire_once_each,
    scenario_17_every_second_fires_and_the_records_stay_bounded,
    scenario_18_pruning_keeps_exactly_as_many_as_it_says,
];

/// How often each slot of each schedule was started.
fn counts(conductor: &Conductor) -> BTreeMap<(String, i64), usize> {
    let mut counts = BTreeMap::new();
    for start in conductor.starts() {
        let input = &start.body["input"];
        let name = input["_startedByScheduler"].as_str().expect("a schedule has started it").to_owned();
        *counts.entry((name, input["_scheduledTime"].as_i64().expect("it is told"))).or_default() += 1;
    }
    counts
}

/// A cron that fires once, so many seconds from now.
fn once_in(seconds: i64) -> (String, i64) {
    let at = jiff::Timestamp::from_second(now().as_second() + seconds).unwrap();
    let shown = at.to_zoned(jiff::tz::TimeZone::UTC);
    let cron = format!("{} {} {} {} {} *", shown.second(), shown.minute(), shown.hour(), shown.day(), shown.month());
    (cron, at.as_millisecond())
}

#[test]
fn scenarios_4_and_8_what_a_workflow_is_made_of_is_its_own_business() {
    let scene = Scene::new("shapes", On::Sqlite);
    let fork =
        json!({"name": "fan-out", "tasks": [{"type": "FORK_JOIN", "forkTasks": [[{"name": "a"}], [{"name": "b"}]]}]});
    let loops = json!({"name": "polls", "tasks": [{"type": "DO_WHILE", "loopCondition": "$.n < 3", "loopOver": []}]});
    for (name, definition) in [("fork", fork), ("loop", loops)] {
        let mut wanted = schedule(name, "report", "* * * * * *");
        wanted["startWorkflowRequest"]["workflowDef"] = definition.clone();
        wanted["startWorkflowRequest"]["taskToDomain"] = json!({"a": "blue"});
        scene.save(wanted).json(200);
        assert_eq!(scene.until_ended(name, 1)[0]["state"], "EXECUTED");
        let starts = scene.conductor.starts();
        let start = starts.iter().find(|it| it.body["input"]["_startedByScheduler"] == name).unwrap();
        assert_eq!((&start.body["workflowDef"], &start.body["taskToDomain"]), (&definition, &json!({"a": "blue"})));
    }
    scene.end();
}

fn scenario_5_a_workflow_that_fails_is_started_all_the_same(on: On) {
    let scene = Scene::new("fails", on);
    scene.save(schedule("sad", "report", "* * * * * *")).json(200);
    for count in 1..=3 {
        scene.place.until("it is started", |_| count <= scene.conductor.starts().len());
        scene.conductor.finish(&scene.conductor.starts()[count - 1].id, "FAILED");
    }
    let records = scene.until_ended("sad", 3);
    assert!(records.iter().all(|record| record["state"] == "EXECUTED"), "the record is about the start");
    scene.end();
}

#[test]
fn scenario_6_long_work_stacks_up() {
    let scene = Scene::new("stacks", On::Sqlite);
    let config =
        scene.place.read("punctual.toml").replace("cat >> effects; echo >> effects", "sleep 3; echo done >> effects");
    scene.place.write("punctual.toml", &config);
    scene.place.until("it is read again", |place| place.read("log").contains("the configuration was read again"));
    scene.save(schedule("stacks", "mapped", "* * * * * *")).json(200);
    scene.place.until("two are at work", |_| {
        2 <= scene.records("stacks").iter().filter(|record| record["state"] == "POLLED").count()
    });
    scene.api.delete("/api/scheduler/schedules/stacks");
    scene.place.until("some are done", |place| 2 <= place.effects().len());
    scene.end();
}

fn scenario_11_fifty_schedules_on_one_tick_fire_once_each(on: On) {
    herd("herd50", on, 50);
}

#[test]
fn scenario_11_ten_thousand_schedules_on_one_tick_fire_once_each() {
    herd("herd10000", On::Sqlite, 10_000);
}

/// So many schedules that are all due at the same second.
fn herd(test: &str, on: On, count: usize) {
    let scene = Scene::new(test, on);
    let save_with = |numbers: std::ops::Range<usize>, cron: &str| {
        for number in numbers {
            scene.save(schedule(&format!("one-{number}"), "report", cron)).json(200);
        }
    };
    // How long it takes to save all of them depends on the machine, and on what else it does.
    let (sample, began) = (count.min(100), now());
    save_with(0..sample, "0 0 0 1 1 *");
    let estimated = now().duration_since(began).as_secs_f64() * (count / sample) as f64;
    let (cron, slot) = once_in(5 + (estimated * 1.5) as i64);
    let save = |numbers| save_with(numbers, &cron);
    let half = count / 2;
    thread::scope(|scope| {
        scope.spawn(|| save(0..half));
        scope.spawn(|| save(half..count));
    });
    assert!(now().as_millisecond() < slot, "all of them are saved before they are due");
    // As long as there is progress there is hope.
    let mut last = 0;
    loop {
        scene.place.until("more are started", |_| {
            let starts = scene.conductor.starts().len();
            last < starts || starts == count
        });
        last = scene.conductor.starts().len();
        if last == count {
            break;
        }
    }
    rest_for(2_000);
    let counts = counts(&scene.conductor);
    assert_eq!((counts.len(), scene.conductor.starts().len()), (count, count), "each once, and none twice");
    assert!(counts.keys().all(|(_, at)| *at == slot), "all of them for the one tick");
    scene.end();
}

#[test]
fn scenario_12_a_thousand_starts_at_once_work() {
    let scene = Scene::with("blast", On::Sqlite, "max_running = 1000");
    let failures: Vec<String> = thread::scope(|scope| {
        let start = |number: usize| {
            let answer = scene.api.post("/api/workflow", json!({"name": "report", "input": {"number": number}}));
            (answer.status != 200).then(|| format!("{}: {}", answer.status, answer.text))
        };
        let workers: Vec<_> = (0..1_000)
            .map(|number| {
                thread::Builder::new().stack_size(256 * 1024).spawn_scoped(scope, move || start(number)).unwrap()
            })
            .collect();
        workers.into_iter().filter_map(|worker| worker.join().unwrap()).collect()
    });
    assert_eq!(failures, Vec::<String>::new());
    let starts = scene.conductor.starts();
    let numbers: std::collections::BTreeSet<i64> =
        starts.iter().map(|start| start.body["input"]["number"].as_i64().unwrap()).collect();
    assert_eq!((starts.len(), numbers.len()), (1_000, 1_000), "each once");
    scene.end();
}

/// Two servers of one database, with one Conductor.
struct Pair {
    places: [Place; 2],
    conductor: Conductor,
    postgres: Postgres,
}

impl Pair {
    fn new(test: &str) -> Pair {
        let postgres = Postgres::start(Durability::Off).expect("PostgreSQL starts");
        let conductor = Conductor::start().expect("a port is free");
        let config =
            format!("[engine]\nlease_duration_seconds = 3\n[conductor]\nserver_url = \"{}\"\n", conductor.url());
        let places = ["a", "b"]
            .map(|node| Place::new(&format!("conductor-{test}-{node}"), &config).with_database(&postgres.address()));
        Pair { places, conductor, postgres }
    }

    /// A client of the first; its token is good for both.
    fn api(&self) -> Client {
        Client::of(&self.places[0])
    }
}

#[test]
fn scenario_13_two_servers_of_one_database_start_each_slot_once() {
    let pair = Pair::new("two");
    let first = pair.places[0].up_with(&["--name", "a"]);
    // The first that comes up makes the token, and has it.
    let api = pair.api();
    let servers = [first, pair.places[1].up_with(&["--name", "b"])];
    for number in 0..5 {
        api.post("/api/scheduler/schedules", schedule(&format!("s-{number}"), "report", "* * * * * *")).json(200);
    }
    pair.places[0].until("there are many starts", |_| 40 <= pair.conductor.starts().len());
    for number in 0..5 {
        api.delete(&format!("/api/scheduler/schedules/s-{number}"));
    }
    let counts = counts(&pair.conductor);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    for server in servers {
        assert!(server.stop().success());
    }
    pair.places[0].verify();
    drop(pair.postgres);
}

#[test]
fn scenario_14_a_server_that_dies_in_the_middle_of_a_start_is_followed_by_another_and_starts_once() {
    let pair = Pair::new("dies");
    let first = pair.places[0].up_with(&["--name", "a"]);
    let api = pair.api();
    let (cron, slot) = once_in(4);
    let mut wanted = schedule("once", "report", &cron);
    wanted["runCatchupScheduleInstances"] = json!(true);
    api.post("/api/scheduler/schedules", wanted).json(200);
    // The answer does not come before the server dies: whether it was started, it will never know.
    pair.conductor.delay(Duration::from_secs(8));
    pair.places[0].until("it is being started", |_| {
        api.get("/api/scheduler/search/executions?query=state%20IN%20(POLLED)").json(200)["totalHits"] == 1
            && 1 <= pair.conductor.requests()
    });
    first.kill();
    pair.conductor.delay(Duration::ZERO);
    let second = pair.places[1].up_with(&["--name", "b"]);
    // The first server's token is in its folder; the database knows it.
    let api = Client::of(&pair.places[1]).with_token(api.token());
    let mut record = Value::Null;
    pair.places[1].until("it has ended", |_| {
        let found = api.get("/api/scheduler/search/executions").json(200);
        record = found["results"][0].clone();
        record["state"] == "EXECUTED"
    });
    rest_for(1_000);
    let starts = pair.conductor.starts();
    assert_eq!(starts.len(), 1, "one start, whoever asked for it: {starts:?}");
    assert_eq!((&record["workflowId"], record["scheduledTime"].as_i64()), (&json!(starts[0].id), Some(slot)));
    assert!(2 <= pair.conductor.requests(), "it was asked for again");
    assert!(second.stop().success());
    pair.places[1].verify();
}

fn scenario_17_every_second_fires_and_the_records_stay_bounded(on: On) {
    let scene = Scene::new("each-second", on);
    scene.save(schedule("fast", "report", "* * * * * *")).json(200);
    scene.place.until("it has fired often", |_| 20 <= scene.conductor.starts().len());
    let counts = counts(&scene.conductor);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    let slots: Vec<i64> = counts.keys().map(|(_, slot)| *slot).collect();
    assert!(slots.windows(2).all(|pair| pair[1] - pair[0] == 1_000), "no second is left out: {slots:?}");
    // The threshold, and what comes between two looks.
    assert!(scene.records("fast").len() <= 10 + 6, "{}", scene.records("fast").len());
    scene.end();
}

fn scenario_18_pruning_keeps_exactly_as_many_as_it_says(on: On) {
    let scene = Scene::with("prunes", on, "archival_max_records = 3\narchival_max_record_threshold = 6");
    scene.save(schedule("fast", "report", "* * * * * *")).json(200);
    let seen = |scene: &Scene| scene.conductor.starts().len();
    scene.place.until("there were more than the threshold", |_| 8 <= seen(&scene));
    scene.api.put("/api/scheduler/schedules/fast/pause", json!(null));
    scene.place.until("old ones are gone", |_| scene.records("fast").len() <= 6);
    let kept = scene.records("fast");
    assert!(3 <= kept.len() && kept.len() <= 6, "{}", kept.len());
    let newest: Vec<i64> = kept.iter().map(|record| record["scheduledTime"].as_i64().unwrap()).collect();
    let mut all: Vec<i64> = counts(&scene.conductor).keys().map(|(_, slot)| *slot).collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(newest, all[..newest.len()], "the newest are kept");
    // The history still has all of them.
    let past = scene.api.get("/api/executions/past?size=1000").json(200);
    assert_eq!(past["totalElements"].as_u64().unwrap() as usize, all.len());
    scene.end();
}

#[test]
fn jitter_is_a_delay_within_its_maximum_and_holds_up_nothing() {
    let scene = Scene::with("jitter", On::Sqlite, "jitter-max-ms = 700");
    for number in 0..10 {
        scene.save(schedule(&format!("j-{number}"), "report", "* * * * * *")).json(200);
    }
    scene.place.until("they have fired", |_| 40 <= scene.conductor.starts().len());
    let inputs: Vec<Value> = scene.conductor.starts().iter().map(|start| start.body["input"].clone()).collect();
    let late = |input: &Value| input["_executedTime"].as_i64().unwrap() - input["_scheduledTime"].as_i64().unwrap();
    assert!(inputs.iter().all(|input| 0 <= late(input)), "never early");
    assert!(inputs.iter().any(|input| 100 < late(input)), "some are late on purpose");
    let seconds: std::collections::BTreeSet<i64> =
        inputs.iter().map(|it| it["_scheduledTime"].as_i64().unwrap()).collect();
    assert!(inputs.iter().all(|it| it["_scheduledTime"].as_i64().unwrap() % 1_000 == 0), "slots are on their second");
    assert!(3 <= seconds.len());
    scene.end();
}
