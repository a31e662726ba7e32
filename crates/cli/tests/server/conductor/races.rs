//! Clients that do the same thing at the same moment.

use std::sync::Barrier;
use std::thread;

use serde_json::{Value, json};

use super::{On, Scene, on_both, schedule};
use crate::support::rest_for;

/// How often each race is run.
const ROUNDS: usize = 200;

on_both![
    two_clients_that_save_one_name_make_one_schedule,
    two_resumes_at_once_fire_nothing_twice,
    a_schedule_that_is_deleted_while_it_fires_leaves_nothing_behind,
];

/// Has two clients do something at once, again and again.
fn race(rounds: usize, first: impl Fn(usize) + Sync, second: impl Fn(usize) + Sync) {
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        for one in [&first as &(dyn Fn(usize) + Sync), &second] {
            let barrier = &barrier;
            scope.spawn(move || {
                for round in 0..rounds {
                    barrier.wait();
                    one(round);
                }
            });
        }
    });
}

fn two_clients_that_save_one_name_make_one_schedule(on: On) {
    let scene = Scene::new("upserts", on);
    let save = |who: &'static str| {
        let scene = &scene;
        move |round: usize| {
            let mut wanted = schedule(&format!("shared-{}", round / 2), "mapped", "0 0 0 1 1 *");
            wanted["description"] = json!(who);
            assert_eq!(scene.save(wanted).json(200)["description"], who);
        }
    };
    race(ROUNDS, save("one"), save("two"));
    let all = scene.api.get("/api/scheduler/schedules").json(200);
    assert_eq!(all.as_array().unwrap().len(), ROUNDS / 2, "one schedule for each name");
    scene.end();
}

fn two_resumes_at_once_fire_nothing_twice(on: On) {
    let scene = Scene::with("resumes", on, "archival_max_records = 100000\narchival_max_record_threshold = 100000");
    let mut wanted = schedule("shared", "report", "* * * * * *");
    wanted["runCatchupScheduleInstances"] = json!(true);
    scene.save(wanted).json(200);
    let resume = |_: usize| {
        assert_eq!(scene.api.put("/api/scheduler/schedules/shared/resume", json!(null)).status, 200);
    };
    for _ in 0..ROUNDS / 10 {
        assert_eq!(scene.api.put("/api/scheduler/schedules/shared/pause", json!(null)).status, 200);
        race(10, resume, resume);
    }
    scene.api.put("/api/scheduler/schedules/shared/pause", json!(null));
    scene.place.until("nothing is being started", |_| {
        scene.records("shared").iter().all(|record| record["state"] != "POLLED")
    });
    let mut slots: Vec<i64> =
        scene.conductor.starts().iter().map(|it| it.body["input"]["scheduledTime"].as_i64().unwrap()).collect();
    slots.sort_unstable();
    assert!(slots.windows(2).all(|pair| pair[0] < pair[1]), "a slot was started twice: {slots:?}");
    scene.end();
}

fn a_schedule_that_is_deleted_while_it_fires_leaves_nothing_behind(on: On) {
    let scene = Scene::new("deletes", on);
    let ends = |record: &Value| record["state"] != "POLLED";
    for round in 0..10 {
        let name = format!("short-{round}");
        scene.save(schedule(&name, "report", "* * * * * *")).json(200);
        // Somewhere around the moment at which it fires.
        rest_for(900 + 20 * round);
        let delete = |_: usize| {
            assert_eq!(scene.api.delete(&format!("/api/scheduler/schedules/{name}")).status, 200);
        };
        race(2, delete, delete);
        assert_eq!(scene.api.get(&format!("/api/scheduler/schedules/{name}")).status, 404);
        let query = format!("/api/scheduler/search/executions?query={name}");
        scene.place.until("what had begun has ended", |_| {
            scene.api.get(&query).json(200)["results"].as_array().unwrap().iter().all(ends)
        });
        let started = |scene: &Scene| {
            scene
                .conductor
                .starts()
                .iter()
                .filter(|it| it.body["input"]["_startedByScheduler"] == name.as_str())
                .count()
        };
        let before = started(&scene);
        rest_for(1_100);
        assert_eq!(started(&scene), before, "what is deleted fires no more");
    }
    scene.end();
}
