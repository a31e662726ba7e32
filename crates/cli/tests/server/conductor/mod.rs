//! Conductor's scheduler API, as its clients use it, against the real binary.

mod examples;
mod face;
mod import;
mod javascript;
mod python;
mod races;
mod scenarios;
mod starts;
mod traps;

use punctual_lab::conductor::Conductor;
use punctual_lab::postgres::{Durability, Server as Postgres};
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::support::{Place, Server};

/// A server, with a Conductor beside it that starts its workflows.
pub(crate) struct Scene {
    pub(crate) place: Place,
    pub(crate) server: Server,
    pub(crate) api: Client,
    pub(crate) conductor: Conductor,
    /// Ends behind the server.
    _postgres: Option<Postgres>,
}

/// Which store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum On {
    Sqlite,
    Postgres,
}

/// An agent that stands in for the workflow `mapped`, and one for `broken` that fails.
const AGENTS: &str = r#"
[agents.stand-in]
runner = "process"
command = ["sh", "-c", "cat >> effects; echo >> effects"]

[agents.failing]
runner = "process"
command = ["sh", "-c", "exit 3"]

[conductor.workflows]
mapped = "stand-in"
broken = "failing"
"#;

impl Scene {
    pub(crate) fn new(test: &str, on: On) -> Scene {
        Scene::with(test, on, "")
    }

    /// With more settings of `[conductor]`.
    pub(crate) fn with(test: &str, on: On, settings: &str) -> Scene {
        let conductor = Conductor::start().expect("a port is free");
        let config = format!("[conductor]\nserver_url = \"{}\"\n{settings}\n{AGENTS}", conductor.url());
        let postgres = (on == On::Postgres).then(|| Postgres::start(Durability::Off).expect("PostgreSQL starts"));
        let test = format!("conductor-{test}{}", if on == On::Postgres { "-pg" } else { "" });
        let mut place = Place::new(&test, &config);
        if let Some(postgres) = &postgres {
            place = place.with_database(&postgres.address());
        }
        let server = place.up();
        let api = Client::of(&place);
        Scene { place, server, api, conductor, _postgres: postgres }
    }

    pub(crate) fn save(&self, schedule: Value) -> Answer {
        self.api.post("/api/scheduler/schedules", schedule)
    }

    pub(crate) fn show(&self, name: &str) -> Value {
        self.api.get(&format!("/api/scheduler/schedules/{name}")).json(200)
    }

    /// The records of a schedule, latest first.
    pub(crate) fn records(&self, name: &str) -> Vec<Value> {
        let found = self.api.get(&format!("/api/scheduler/schedules/{name}/executions?limit=1000")).json(200);
        found.as_array().expect("it is a list").clone()
    }

    /// Waits until a schedule has so many records that are over.
    pub(crate) fn until_ended(&self, name: &str, count: usize) -> Vec<Value> {
        let ended = |scene: &Scene| {
            let all = scene.records(name);
            all.into_iter().filter(|record| record["state"] != "POLLED").collect::<Vec<_>>()
        };
        self.place.until(&format!("{name} has {count} records"), |_| count <= ended(self).len());
        ended(self)
    }

    pub(crate) fn end(self) {
        let Scene { place, server, .. } = self;
        assert!(server.stop().success());
        place.verify();
    }
}

/// A schedule of a workflow, as a client sends it.
pub(crate) fn schedule(name: &str, workflow: &str, cron: &str) -> Value {
    json!({
        "name": name, "cronExpression": cron, "zoneId": "UTC",
        "startWorkflowRequest": {"name": workflow, "version": 1, "input": {"from": name}},
    })
}

/// Every claim on both stores.
macro_rules! on_both {
    ($($claim:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[test] fn $claim() { super::$claim(crate::conductor::On::Sqlite); })+
        }
        mod on_postgres {
            $(#[test] fn $claim() { super::$claim(crate::conductor::On::Postgres); })+
        }
    };
}
pub(crate) use on_both;

/// What the clock of the machine shows, which the server goes by.
#[expect(clippy::disallowed_methods, reason = "the server under test is another process, with the machine's own clock")]
pub(crate) fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}
