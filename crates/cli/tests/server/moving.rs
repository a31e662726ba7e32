//! A live system moves from a file to PostgreSQL and back: nothing is lost, nothing runs twice.

use std::collections::BTreeSet;

use punctual_lab::postgres::{Durability, Server as Postgres};

use crate::support::Place;

const AGENT: &str = r#"
echo "$PUNCTUAL_RUN_ID $PUNCTUAL_RUN_ATTEMPT $PUNCTUAL_RUN_SCHEDULED_AT" >> effects
"#;

const CONFIG: &str = r#"
[agents.note]
runner = "process"
command = ["sh", "agent.sh"]

[[schedules]]
name = "tick"
agent = "note"
every = "1s"
catch_up = "all"
catch_up_max = 10000
max_delay = "none"
"#;

#[test]
fn a_live_system_moves_to_postgres_and_back() {
    let postgres = Postgres::start(Durability::Off).expect("a server can be started");
    let address = postgres.address();
    let place = Place::new("moving", CONFIG);
    place.write("agent.sh", AGENT);
    let mut databases = vec!["sqlite:one.db".to_owned(), address, "sqlite:two.db".to_owned()].into_iter();
    let mut here = databases.next().unwrap();
    let run_for_a_while = |database: &str| {
        let before = place.effects().len();
        let server = place.up_with(&["--database", database]);
        place.until("it goes on", |place| before + 4 < place.effects().len());
        assert!(server.stop().success());
    };
    run_for_a_while(&here);
    for (number, there) in databases.enumerate() {
        let file = format!("moving-{number}.jsonl");
        let exported = place.json(&["export", &file, "--database", &here, "--json"]);
        let imported = place.json(&["import", &file, "--database", &there, "--json"]);
        assert_eq!(exported["entries"], imported["entries"]);
        here = there;
        run_for_a_while(&here);
        assert!(place.punctual(&["verify", "--database", &here]).status.success());
    }
    // Every second from the first to the last has begun once, across all three houses.
    let effects = place.effects();
    let seconds: Vec<i64> = effects
        .iter()
        .map(|line| line.split(' ').nth(2).unwrap().parse::<jiff::Timestamp>().unwrap().as_second())
        .collect();
    let different: BTreeSet<i64> = seconds.iter().copied().collect();
    assert_eq!(different.len(), seconds.len(), "a slot ran twice: {effects:?}");
    let (first, last) = (different.first().unwrap(), different.last().unwrap());
    let missing: Vec<i64> = (*first..=*last).filter(|second| !different.contains(second)).collect();
    assert!(missing.is_empty(), "slots are missing: {missing:?} of {effects:?}");
    // All of it is in the last house.
    let history = place.history_in(&here);
    let done = history.iter().filter(|item| item["result"] == "succeeded").count();
    assert_eq!(done, effects.len());
}
