//! Clients that do the same thing at the same moment.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Barrier;
use std::thread;

use serde_json::json;

use super::{On, Scene, now, on_both, schedule};
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
                // Who fails goes on to the barrier: the other would wait there for ever.
                let mut failed = None;
                for round in 0..rounds {
                    barrier.wait();
                    if failed.is_none() {
                        failed = catch_unwind(AssertUnwindSafe(|| one(round))).err();
                    }
                }
                if let Some(panic) = failed {
                    resume_unwind(panic);
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
    const AT_ONCE: usize = 25;
    let scene = Scene::new("deletes", on);
    for round in 0..ROUNDS / AT_ONCE {
        let name = |number: usize| format!("short-{round}-{number}");
        (0..AT_ONCE).for_each(|number| drop(scene.save(schedule(&name(number), "report", "* * * * * *")).json(200)));
        // All of them fire at the next second; each is deleted by two clients somewhere around that moment.
        rest_for(u64::from(1_000 - now().subsec_millisecond().unsigned_abs()) - 20);
        let delete = |number: usize| {
            assert_eq!(scene.api.delete(&format!("/api/scheduler/schedules/{}", name(number))).status, 200);
        };
        race(AT_ONCE, delete, delete);
        assert_eq!(scene.api.get("/api/scheduler/schedules").json(200), json!([]));
        scene.place.until("what had begun has ended", |_| {
            scene.api.get("/api/scheduler/search/executions?query=state%20IN%20(POLLED)").json(200)["totalHits"] == 0
        });
        let before = scene.conductor.starts().len();
        rest_for(1_100);
        assert_eq!(scene.conductor.starts().len(), before, "what is deleted fires no more");
    }
    assert!(!scene.conductor.starts().is_empty(), "some have fired");
    scene.end();
}
