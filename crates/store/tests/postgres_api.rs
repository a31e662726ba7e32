//! Requests of the API on PostgreSQL: their reads have connections of their own, and the server ends them in time.
//!
//! A table that another session has locked makes a read of it as slow as a test wants.

mod postgres_support;

use std::time::Duration;

use punctual_core::RunId;
use punctual_store::postgres::PostgresStore;
use punctual_store::{History, HistoryFilter, Output, Result, Schedules, StoreError};
use tokio::runtime::Runtime;

use postgres_support::patience::wait_until;
use postgres_support::session::Session;
use postgres_support::{fresh_schema, open};

/// More than there are places for anything.
const MANY: usize = 12;

/// A store, its handle for the API, and a history and output that nobody can read until the session lets go of them.
struct Scene {
    store: PostgresStore,
    api: PostgresStore,
    session: Session,
    runtime: Runtime,
    all: HistoryFilter,
}

impl Scene {
    fn new(time_max: Duration) -> Scene {
        let address = fresh_schema();
        let store = open(&address);
        let api = store.for_api(time_max).expect("it opens");
        let session = Session::open(&address);
        session.run("BEGIN; LOCK TABLE history, output IN ACCESS EXCLUSIVE MODE");
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime can be made");
        Scene { store, api, session, runtime, all: HistoryFilter::default() }
    }

    /// How many statements wait for them, as the server says.
    fn waiting(&self) -> u64 {
        self.session.count(
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation IN ('history'::regclass, 'output'::regclass)",
        )
    }

    fn reads_on(&self) {
        let (of_engine, of_api) =
            self.runtime.block_on(async { tokio::join!(self.store.count_schedules(), self.api.count_schedules()) });
        assert_eq!(of_engine.expect("the engine reads"), 0);
        assert_eq!(of_api.expect("the API reads what is quickly read"), 0);
    }
}

fn is_overloaded<T>(answer: &Result<T>) -> bool {
    matches!(answer, Err(StoreError::Overloaded { .. }))
}

#[test]
fn long_reads_take_no_place_of_others_and_the_server_ends_them() {
    let scene = Scene::new(Duration::from_secs(4));
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let reads = (0..MANY).map(|_| scene.api.count_history(&scene.all));
            scene.runtime.block_on(futures_util::future::join_all(reads))
        });
        wait_until("long reads wait for the history", || scene.waiting() == 2);
        scene.reads_on();
        let answers = asking.join().expect("it does not panic");
        assert!(answers.iter().all(is_overloaded), "{answers:?}");
    });
    wait_until("the statements themselves have ended", || scene.waiting() == 0);
    scene.session.run("COMMIT");
    assert_eq!(scene.runtime.block_on(scene.api.count_history(&scene.all)).expect("there are places again"), 0);
}

#[test]
fn the_engine_reads_on_when_the_api_has_no_connection_left() {
    let scene = Scene::new(Duration::from_secs(4));
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let reads = (0..MANY).map(|_| scene.api.printed(RunId(uuid::Uuid::nil()), 0, 1));
            scene.runtime.block_on(futures_util::future::join_all(reads))
        });
        wait_until("every connection of the API waits", || scene.waiting() == 4);
        let schedules = scene.runtime.block_on(scene.store.count_schedules());
        assert_eq!(schedules.expect("the engine reads"), 0);
        let answers = asking.join().expect("it does not panic");
        assert!(answers.iter().all(is_overloaded), "{answers:?}");
    });
    scene.session.run("COMMIT");
}

#[test]
fn a_caller_that_stops_waiting_is_not_worked_for() {
    // So long a deadline that only the end of its caller can end a read within this test.
    let scene = Scene::new(Duration::from_secs(3_600));
    for _ in 0..2 {
        std::thread::scope(|scope| {
            let (goes, has_gone) = tokio::sync::oneshot::channel::<()>();
            let asking = scope.spawn(|| {
                let reads = futures_util::future::join_all((0..MANY).map(|_| scene.api.count_history(&scene.all)));
                scene.runtime.block_on(async {
                    tokio::select! {
                        answers = reads => panic!("nothing lets go of the history: {answers:?}"),
                        _ = has_gone => {}
                    }
                });
            });
            wait_until("long reads wait for the history", || scene.waiting() == 2);
            goes.send(()).expect("it listens");
            asking.join().expect("it does not panic");
        });
        wait_until("the statements are cancelled", || scene.waiting() == 0);
    }
    scene.reads_on();
    scene.session.run("COMMIT");
}

#[test]
fn looks_at_a_state_that_cannot_be_followed_are_given_up_in_time() {
    let scene = Scene::new(Duration::from_secs(2));
    scene.reads_on();
    scene.session.run("LOCK TABLE journal IN ACCESS EXCLUSIVE MODE");
    let looks = (0..MANY).map(|_| scene.api.count_schedules());
    let answers = scene.runtime.block_on(futures_util::future::join_all(looks));
    assert!(answers.iter().all(is_overloaded), "{answers:?}");
    scene.session.run("COMMIT");
    wait_until("the state can be looked at again", || {
        scene.runtime.block_on(scene.api.count_schedules()).is_ok_and(|count| count == 0)
    });
}
