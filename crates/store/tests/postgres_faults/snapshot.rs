//! The snapshot follows the journal beside the writers, and whoever starts from it knows what everybody else does.

use std::time::Duration;

use punctual_core::NodeId;
use punctual_core::run::RunEvent;
use punctual_store::conformance::bench::ALL;
use punctual_store::conformance::{Bench, block_on};
use punctual_store::postgres::PostgresStore;
use punctual_store::{PlanWrite, RunFilter, Runs, ScheduleChange, Schedules, Written};
use serde_json::json;
use uuid::Uuid;

use crate::postgres_support::dice::Dice;
use crate::postgres_support::patience::{rest_for, wait_until};
use crate::postgres_support::session::Session;
use crate::postgres_support::{assert_clean, fresh_schema, open, rounds};

fn wait_for_snapshot(session: &Session, bench: &Bench) {
    wait_until("the snapshot has everything", || session.count("SELECT seq FROM snapshot") == bench.seq());
}

#[test]
fn the_snapshot_follows_and_a_node_that_starts_from_it_knows_everything() {
    let address = fresh_schema();
    let mut bench = Bench::new(Box::new(open(&address)));
    let session = Session::open(&address);
    let node = bench.join("a");
    let schedule = bench.add(json!({"name": "daily"}));
    bench.plan(schedule, &["08:00:00", "08:01:00", "08:02:00"]);
    wait_for_snapshot(&session, &bench);
    assert_eq!(session.ask("SELECT name FROM schedules"), ["daily"]);
    assert_eq!(session.ask("SELECT state FROM runs"), ["planned"; 3]);
    assert_clean(&*bench.store);
    let run = bench.start_one(node);
    bench.finish(&run, RunEvent::Succeeded);
    bench.claim_one(node);
    wait_for_snapshot(&session, &bench);
    assert_eq!(session.ask("SELECT state FROM runs ORDER BY state"), ["claimed", "planned"]);
    assert_clean(&*bench.store);
    let fresh = Bench::new(Box::new(open(&address)));
    assert_eq!(fresh.all_runs(), bench.all_runs());
    assert_eq!(fresh.schedule(schedule), bench.schedule(schedule));
}

#[test]
fn runs_keep_their_terms_when_their_schedule_has_others_or_is_gone() {
    let address = fresh_schema();
    let mut bench = Bench::new(Box::new(open(&address)));
    let session = Session::open(&address);
    let node = bench.join("a");
    let schedule = bench.add(json!({"agent": "a"}));
    bench.plan(schedule, &["08:00:00", "08:01:00"]);
    bench.start_one(node);
    wait_for_snapshot(&session, &bench);
    assert_eq!(session.count("SELECT count(*) FROM runs WHERE terms IS NULL"), 2);
    let mut edited = bench.schedule(schedule);
    (edited.version, edited.description) = (edited.version + 1, Some("another".to_owned()).into());
    let edit = PlanWrite { change: ScheduleChange::Put(Box::new(edited)), plan: None, ..bench.write_for(schedule) };
    assert_eq!(bench.write(edit), Written::Done);
    wait_for_snapshot(&session, &bench);
    assert_eq!(Bench::new(Box::new(open(&address))).all_runs(), bench.all_runs());
    assert_clean(&*bench.store);
    bench.pass(60);
    block_on(bench.store.prune(bench.now)).expect("the store answers");
    let delete = ScheduleChange::Delete { withdrawn: vec![], next_gone: None };
    assert_eq!(bench.write(PlanWrite { change: delete, plan: None, ..bench.write_for(schedule) }), Written::Done);
    wait_for_snapshot(&session, &bench);
    assert_eq!(Bench::new(Box::new(open(&address))).all_runs(), bench.all_runs());
    assert_clean(&*bench.store);
    bench.pass(60);
    block_on(bench.store.prune(bench.now)).expect("the store answers");
    assert_clean(&*bench.store);
}

#[test]
fn nodes_that_all_write_it_leave_nothing_behind_that_is_over() {
    let address = fresh_schema();
    let session = Session::open(&address);
    let benches: Vec<Bench> = (0..3).map(|_| Bench::new(Box::new(open(&address)))).collect();
    let nodes: Vec<NodeId> = (1..=3).map(|number| NodeId(Uuid::from_u128(number))).collect();
    for (bench, node) in benches.iter().zip(&nodes) {
        bench.joined(&bench.sign(*node, "a")).expect("a node can join");
    }
    let mut dice = Dice::new(1);
    let mut asking = Bench::new(Box::new(open(&address)));
    for round in 0..rounds(3) * 12 {
        // Some live as long as a piece, some longer, some not as long.
        for _ in 0..dice.below(4) {
            asking.due_run(json!({}));
        }
        let index = dice.below(3) as usize;
        let (bench, node) = (&benches[index], nodes[index]);
        for run in bench.claim(node, dice.below(4) as usize) {
            bench.settle(&run, punctual_store::Decision::Start);
            bench.finish(&run, RunEvent::Succeeded);
        }
        // Whoever is asked has followed.
        benches.iter().for_each(|bench| drop(bench.all_runs()));
        rest_for(Duration::from_millis(dice.below(400)));
        if round % 4 == 0 {
            assert_clean(&*bench.store);
            let fresh = Bench::new(Box::new(open(&address)));
            assert_eq!(fresh.all_runs(), bench.all_runs());
        }
    }
    wait_for_snapshot(&session, &asking);
    assert_clean(&*asking.store);
}

#[test]
fn many_are_read_in_pages_and_written_in_pieces() {
    let address = fresh_schema();
    let mut bench = Bench::new(Box::new(open(&address)));
    let schedule = bench.add(json!({}));
    for hour in 0..6 {
        let time = |second: i64| {
            (punctual_store::conformance::bench::at("10:00:00")
                + jiff::SignedDuration::from_secs(hour * 3_600 + second))
            .to_string()
        };
        let times: Vec<String> = (0..2_000).map(time).collect();
        bench.plan(schedule, &times.iter().map(String::as_str).collect::<Vec<_>>());
    }
    wait_for_snapshot(&Session::open(&address), &bench);
    assert_clean(&*bench.store);
    let fresh = open(&address);
    let all = RunFilter { limit: ALL, ..RunFilter::default() };
    assert_eq!(block_on(fresh.runs(&all)).expect("the store answers").len(), 12_000);
}

#[test]
fn who_only_reads_folds_what_the_snapshot_lacks_and_writes_nothing() {
    let address = fresh_schema();
    let mut bench = Bench::new(Box::new(open(&address)));
    let session = Session::open(&address);
    bench.add(json!({}));
    wait_for_snapshot(&session, &bench);
    // Nobody brings the snapshot further while this is held.
    let holder = Session::open(&address);
    holder.run("BEGIN; SELECT seq FROM snapshot FOR UPDATE");
    let (seq, schedule) = (bench.seq(), bench.add(json!({})));
    bench.plan(schedule, &["08:00:00"]);
    let reader = PostgresStore::open_to_read(&address).expect("it opens");
    assert_eq!(block_on(reader.count_schedules()).expect("it looks"), 2);
    let run = bench.due_run(json!({}));
    assert!(block_on(reader.run(run)).expect("it looks again").is_some());
    assert_eq!(session.count("SELECT seq FROM snapshot"), seq);
    drop(bench);
    holder.run("COMMIT");
    rest_for(Duration::from_secs(3));
    assert_eq!(block_on(reader.count_schedules()).expect("it looks"), 3);
    assert_clean(&reader);
}

#[test]
fn the_last_handle_leaves_a_snapshot_that_is_as_far_as_the_journal() {
    let address = fresh_schema();
    let session = Session::open(&address);
    let mut bench = Bench::new(Box::new(open(&address)));
    for number in 0..20 {
        bench.add(json!({"name": format!("daily {number}")}));
    }
    let seq = bench.seq();
    drop(bench);
    assert_eq!(session.count("SELECT seq FROM snapshot"), seq);
    assert_eq!(session.count("SELECT count(*) FROM schedules"), 20);
    // It is not waited for for ever.
    let mut bench = Bench::new(Box::new(open(&address)));
    session.run("BEGIN; SELECT seq FROM snapshot FOR UPDATE");
    bench.join("one more");
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        drop(bench);
        tell.send(()).ok();
    });
    told.recv_timeout(Duration::from_secs(60)).expect("a stop does not wait for a lock on the snapshot");
    session.run("ROLLBACK");
    assert_clean(&open(&address));
}
