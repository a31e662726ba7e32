//! How much work several nodes get done that share one PostgreSQL, next to the usual way to share work there.
//!
//! `cargo bench -p punctual-store --bench nodes`, on a server of its own whose commits wait for the disk. A cycle is a claim,
//! a start and an end, as in the benchmark of claims. The usual way is a table of jobs from which each worker takes what is
//! free with `FOR UPDATE SKIP LOCKED`, three statements and three lines of a log for a cycle: it knows no limits, no turns, no
//! order of events, no dead owners. Then the same with an old snapshot in the way, and what the mirror takes of memory.

#![expect(clippy::disallowed_methods, reason = "a benchmark measures time")]

mod support;

use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use punctual_lab::postgres::{Durability, Server};
use punctual_store::postgres::PostgresStore;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls, Statement};

use support::Worker;

/// How long each figure is measured.
const MEASURED: Duration = Duration::from_secs(3);

/// More than are taken meanwhile.
const RUNS: usize = 60_000;

/// Schedules among which the runs are spread.
const SCHEDULES: usize = 60;

/// Claims that are measured beside an old snapshot, after as many without one.
const CLAIMS: usize = 5_000;

/// What the program is asked when it is to be another node.
const JOIN: &str = "--join";

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let [_, asked, address] = args.as_slice()
        && asked == JOIN
    {
        return join_and_tell(address);
    }
    let server = Server::start(Durability::On).expect("a server can be started");
    for batch in [1, 16] {
        for nodes in [1, 2, 4] {
            let database = Database::new(&server, &format!("n{nodes}_{batch}"));
            let pen = measure_nodes(&database, nodes, batch);
            let usual = measure_usual(&database, nodes, batch);
            let name = format!("{nodes} nodes, {batch} at a time");
            println!("{name:>28}: {pen:.0} runs/s, the usual way {usual:.0}, ratio {:.2}", pen / usual);
        }
    }
    measure_old_snapshot(&Database::new(&server, "snapshot"));
    measure_memory(&Database::new(&server, "memory"));
}

/// A schema of its own.
struct Database {
    address: String,
}

impl Database {
    fn new(server: &Server, name: &str) -> Database {
        let address = server.address();
        Session::open(&address).run(&format!("CREATE SCHEMA {name}"));
        Database { address: format!("{address}?options=-c%20search_path%3D{name}") }
    }

    fn worker(&self, number: u64) -> Worker {
        let store = PostgresStore::open(&self.address).expect("a store can be opened");
        Worker::join(Box::new(store), number, ["a".to_owned()])
    }
}

/// Has everybody work at once for a while. How many runs a second get done.
fn measure<T: Send>(mut workers: Vec<T>, cycle: impl Fn(&mut T) -> usize + Sync) -> f64 {
    // The first reads everything.
    workers.iter_mut().for_each(|worker| assert_ne!(cycle(worker), 0));
    let (begin, is_over, done) = (Barrier::new(workers.len() + 1), AtomicBool::new(false), AtomicU64::new(0));
    let took = std::thread::scope(|scope| {
        for mut worker in workers {
            let (begin, is_over, done, cycle) = (&begin, &is_over, &done, &cycle);
            scope.spawn(move || {
                begin.wait();
                while !is_over.load(Ordering::Relaxed) {
                    done.fetch_add(cycle(&mut worker) as u64, Ordering::Relaxed);
                }
            });
        }
        begin.wait();
        let start = Instant::now();
        std::thread::sleep(MEASURED);
        is_over.store(true, Ordering::Relaxed);
        start.elapsed()
    });
    done.into_inner() as f64 / took.as_secs_f64()
}

fn measure_nodes(database: &Database, nodes: u64, batch: usize) -> f64 {
    let mut workers: Vec<Worker> = (1..=nodes).map(|number| database.worker(number)).collect();
    add_runs(&mut workers[0], RUNS);
    measure(workers, |worker| {
        let claimed = worker.claim(batch);
        assert_eq!(claimed.runs.len(), batch, "there are always enough");
        worker.start(&claimed);
        worker.finish(&claimed);
        batch
    })
}

fn add_runs(worker: &mut Worker, runs: usize) {
    for _ in 0..SCHEDULES {
        let write = worker.write("a", "allow", 1_000_000, runs / SCHEDULES);
        worker.plan(vec![write]);
    }
}

const JOBS: &str = "
    CREATE TABLE jobs (id bigint PRIMARY KEY, due_at timestamptz NOT NULL, state text NOT NULL, owner bigint, epoch bigint
        NOT NULL DEFAULT 0, prompt text NOT NULL, summary text);
    CREATE INDEX ON jobs (due_at, id) WHERE state = 'planned';
    CREATE TABLE log (seq bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), kind text NOT NULL, jobs bigint[]);
    INSERT INTO jobs SELECT id, now() - id * interval '1 second', 'planned', NULL, 0, 'What changed since yesterday?'
        FROM generate_series(1, 60000) AS id;
    ANALYZE jobs";

const CLAIM: &str = "
    WITH free AS (SELECT id FROM jobs WHERE state = 'planned' AND due_at <= now() ORDER BY due_at, id LIMIT $1
        FOR UPDATE SKIP LOCKED),
    taken AS (UPDATE jobs SET state = 'claimed', owner = $2, epoch = epoch + 1 FROM free WHERE jobs.id = free.id
        RETURNING jobs.id)
    INSERT INTO log (kind, jobs) SELECT 'claimed', array_agg(id) FROM taken RETURNING jobs";

const START: &str = "
    WITH started AS (UPDATE jobs SET state = 'running' WHERE id = ANY ($1) AND owner = $2 RETURNING id)
    INSERT INTO log (kind, jobs) SELECT 'started', array_agg(id) FROM started";

const FINISH: &str = "
    WITH finished AS (UPDATE jobs SET state = 'finished', summary = 'Nothing changed.' WHERE id = ANY ($1) AND owner = $2
        RETURNING id)
    INSERT INTO log (kind, jobs) SELECT 'finished', array_agg(id) FROM finished";

fn measure_usual(database: &Database, nodes: u64, batch: usize) -> f64 {
    Session::open(&database.address).run(JOBS);
    let worker = |number| {
        let session = Session::open(&database.address);
        let statements = [CLAIM, START, FINISH].map(|sql| session.prepare(sql));
        (number, session, statements)
    };
    measure((1..=nodes as i64).map(worker).collect(), |(number, session, [claim, start, finish])| {
        let Session { client, runtime } = session;
        runtime.block_on(async {
            let claimed = client.query_one(claim, &[&(batch as i64), number]).await.expect("jobs are claimed");
            let jobs: Vec<i64> = claimed.get(0);
            assert_eq!(jobs.len(), batch, "there are always enough");
            client.execute(start, &[&jobs, number]).await.expect("jobs are started");
            client.execute(finish, &[&jobs, number]).await.expect("jobs are finished");
        });
        batch
    })
}

/// F24: rows that are dead, and that nobody may remove as long as somebody could still look at them.
fn measure_old_snapshot(database: &Database) {
    let mut worker = database.worker(1);
    add_runs(&mut worker, 3 * CLAIMS);
    let claims = |count: usize| {
        let mut times: Vec<Duration> = vec![];
        for _ in 0..count {
            let start = Instant::now();
            let claimed = worker.claim(1);
            times.push(start.elapsed());
            worker.start(&claimed);
            worker.finish(&claimed);
        }
        times.sort_unstable();
        times[count * 99 / 100]
    };
    claims(CLAIMS / 10);
    let before = claims(CLAIMS);
    let session = Session::open(&database.address);
    session.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM runs");
    claims(CLAIMS);
    let beside = claims(CLAIMS / 2);
    let ratio = beside.as_secs_f64() / before.as_secs_f64();
    println!("{:>28}: p99 of a claim {before:?}, with an old snapshot {beside:?}, ratio {ratio:.2}", "F24");
}

/// What a node needs to know a million runs, and a hundred thousand schedules.
fn measure_memory(database: &Database) {
    let mut worker = database.worker(1);
    let add = |worker: &mut Worker, schedules: usize, runs: usize| {
        for _ in 0..schedules / 10 {
            let writes = (0..10).map(|_| worker.write("a", "allow", 1, runs)).collect();
            worker.plan(writes);
        }
    };
    let mut before = fresh_node(database).0;
    for (what, schedules, runs) in [("schedule", 50_000, 0), ("run", 500, 1_000)] {
        add(&mut worker, schedules, runs);
        let (resident, took) = fresh_node(database);
        let all = schedules * runs.max(1);
        let each = (resident - before) / all as f64;
        println!("{:>28}: {each:.0} bytes of memory; all is read in {took:.1?}", format!("each {what} of {all}"));
        before = resident;
    }
}

/// A node that has read everything: its process's memory in bytes, and how long that took.
fn fresh_node(database: &Database) -> (f64, Duration) {
    let program = std::env::current_exe().expect("a program knows where it is");
    let said = Command::new(program).args([JOIN, &database.address]).output().expect("it can be started");
    let said = String::from_utf8(said.stdout).expect("it is text");
    let numbers: Vec<f64> = said.split_whitespace().map(|number| number.parse().expect("it is a number")).collect();
    (numbers[0] * 1_024.0, Duration::from_secs_f64(numbers[1]))
}

/// The other process: joins, which reads everything, and says how much memory it has, and how long it took.
fn join_and_tell(address: &str) {
    let start = Instant::now();
    let _worker = Database { address: address.to_owned() }.worker(9);
    let took = start.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status").expect("it is Linux");
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has a size");
    println!("{} {took}", resident.trim().trim_end_matches(" kB"));
}

/// A connection that is used from one thread.
struct Session {
    client: Client,
    runtime: Runtime,
}

impl Session {
    fn open(address: &str) -> Session {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(address, NoTls).await.expect("the server answers");
            tokio::spawn(connection);
            client
        });
        Session { client, runtime }
    }

    fn prepare(&self, sql: &str) -> Statement {
        self.runtime.block_on(self.client.prepare(sql)).expect("the server understands it")
    }

    fn run(&self, sql: &str) {
        self.runtime.block_on(self.client.batch_execute(sql)).expect("the server does it");
    }
}
