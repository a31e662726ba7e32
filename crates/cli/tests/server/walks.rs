//! What requests make the server do, it does apart from its schedules: they go on, however much that is.

use std::time::Duration;

use punctual_lab::postgres::{Durability, Server as Postgres};
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::support::{Place, rest_for};

/// A schedule that fires each second, and a calendar that is closed on Saturdays.
const CONFIG: &str = r#"
[engine]
min_interval_seconds = 1
[agents.quick]
runner = "process"
command = ["sh", "-c", "echo x >> effects"]
[calendars.weekdays]
zone = "UTC"
[calendars.weekdays.weekly]
mon = ["00:00-24:00"]
tue = ["00:00-24:00"]
wed = ["00:00-24:00"]
thu = ["00:00-24:00"]
fri = ["00:00-24:00"]
[[schedules]]
name = "each-second"
agent = "quick"
every = "1s"
"#;

/// Waits until the schedule has fired so many times more.
fn fires_on(place: &Place, times: usize) {
    let before = place.effects().len();
    place.until("the schedule goes on", |place| before + times <= place.effects().len());
}

fn closed_on_all_its_days() -> Value {
    json!({"agentId": "quick", "name": "never", "scheduleType": "CRON", "cronExpr": "* * * * * SAT", "timezone": "UTC",
        "calendar": "weekdays"})
}

#[test]
fn a_preview_of_what_never_runs_is_answered_and_the_schedules_go_on() {
    let place = Place::new("walks-preview", CONFIG);
    let server = place.up();
    let admin = Client::of(&place);
    let made = admin.post("/api/tokens", json!({"name": "ada", "role": "viewer"})).json(201);
    let viewer = admin.with_token(made["secret"].as_str());
    fires_on(&place, 1);
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let asked: Vec<_> =
            (0..20).map(|_| scope.spawn(|| viewer.post("/api/schedules/preview", closed_on_all_its_days()))).collect();
        fires_on(&place, 3);
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    for answer in answers {
        // On a machine that has very much else to do, some may not find a place in time.
        if answer.status == 503 {
            assert_eq!((answer.problem(503).as_str(), answer.header("retry-after")), ("overloaded", Some("5")));
            continue;
        }
        let preview = answer.json(200);
        assert_eq!(preview["runsPerDay"], 0);
        assert!(preview["warnings"][0].as_str().unwrap().starts_with("it does not run before "), "{preview}");
        let next = preview["next"].as_array().unwrap();
        assert!(!next.is_empty() && next.iter().all(|slot| slot["skipped"] == "calendar"), "{preview}");
    }
    // The same for what is made, changed and asked about.
    let dry = admin.post("/api/schedules?dryRun=true", closed_on_all_its_days()).json(200);
    assert_eq!((&dry["added"], &dry["more"]), (&json!([]), &json!(false)));
    let made = admin.post("/api/schedules", closed_on_all_its_days()).json(201);
    let path = format!("/api/schedules/{}", made["scheduleId"].as_str().unwrap());
    assert_eq!(admin.get(&path).json(200)["nextExecutionAt"], json!(null));
    assert!(admin.get(&path).json(200)["warnings"][0].as_str().unwrap().contains("later ones were not looked at"));
    let why = admin.get(&format!("{path}/why")).json(200);
    assert!(why.to_string().contains("later ones were not looked at"), "{why}");
    admin.put(&path, json!({"prompt": "again"})).json(200);
    fires_on(&place, 2);
    assert!(server.stop().success());
    place.verify();
}

/// Somebody else's session, which holds a table.
struct Session {
    client: tokio_postgres::Client,
    runtime: tokio::runtime::Runtime,
}

impl Session {
    fn open(postgres: &Postgres) -> Session {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let (client, connection) =
                tokio_postgres::connect(&postgres.address(), tokio_postgres::NoTls).await.unwrap();
            tokio::spawn(connection);
            client
        });
        Session { client, runtime }
    }

    fn run(&self, sql: &str) {
        self.runtime.block_on(self.client.batch_execute(sql)).unwrap();
    }

    /// How many searches wait for the table of records. The server shows the beginning of a statement only.
    fn waiting(&self) -> i64 {
        let sql = "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
            WHERE NOT granted AND relation = 'records'::regclass AND query LIKE 'SELECT count(*) FROM records%'";
        // In a transaction, what others do is seen as it was at the first look, unless it is forgotten.
        self.run("SELECT pg_stat_clear_snapshot()");
        self.runtime.block_on(self.client.query_one(sql, &[])).unwrap().get(0)
    }
}

#[test]
fn reads_that_do_not_end_are_ended_and_take_nothing_from_the_scheduler() {
    let postgres = Postgres::start(Durability::Off).expect("a server can be started");
    let place = Place::new("walks-reads", CONFIG).with_database(&postgres.address());
    let server = place.up_with(&["--read-timeout", "4"]);
    let api = Client::of(&place);
    fires_on(&place, 1);
    // Whoever reads this table waits, as for a query over very many rows.
    let session = Session::open(&postgres);
    session.run("BEGIN; LOCK TABLE records IN ACCESS EXCLUSIVE MODE");
    std::thread::scope(|scope| {
        let search = || scope.spawn(|| api.get("/api/scheduler/search/executions"));
        let asked: Vec<_> = (0..30).map(|_| search()).collect();
        place.until("searches wait", |_| session.waiting() == 2);
        // Meanwhile everything else goes on: schedules, what is quickly read, and what is written.
        fires_on(&place, 2);
        api.get("/api/schedules").json(200);
        api.post("/api/executions/trigger", json!({"agentId": "quick"})).json(202);
        for answer in asked.into_iter().map(|asked| asked.join().unwrap()) {
            let told = answer.json(503);
            assert_eq!((&told["code"], &told["retryable"]), (&json!("overloaded"), &json!(true)));
            assert_eq!(answer.header("retry-after"), Some("5"));
        }
    });
    place.until("the statements themselves have ended", |_| session.waiting() == 0);
    fires_on(&place, 2);
    session.run("COMMIT");
    api.get("/api/scheduler/search/executions").json(200);
    assert!(server.stop().success());
    assert!(!place.read("log").contains("nobody planned"), "{}", place.read("log"));
    place.verify();
}

#[test]
fn whoever_hangs_up_is_not_worked_for() {
    use std::io::Write;
    let postgres = Postgres::start(Durability::Off).expect("a server can be started");
    let place = Place::new("walks-hang-up", CONFIG).with_database(&postgres.address());
    // So long that only the end of its caller ends a read while it is looked at.
    let server = place.up_with(&["--read-timeout", "25"]);
    let api = Client::of(&place);
    fires_on(&place, 1);
    let session = Session::open(&postgres);
    session.run("BEGIN; LOCK TABLE records IN ACCESS EXCLUSIVE MODE");
    let url = api.url();
    let mut caller = std::net::TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    caller.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
    let host = url.trim_start_matches("http://").to_owned();
    let token = api.token().unwrap();
    write!(
        caller,
        "GET /api/scheduler/search/executions HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n"
    )
    .unwrap();
    place.until("it reads", |_| session.waiting() == 1);
    rest_for(500);
    assert_eq!(session.waiting(), 1, "it goes on as long as its caller waits");
    drop(caller);
    place.until("it is cancelled", |_| session.waiting() == 0);
    session.run("COMMIT");
    assert!(server.stop().success());
}
