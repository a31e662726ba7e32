//! How statements are carried out: by an index, so that they cost the same however large the tables are.

use rusqlite::Connection;

use super::history::conditions;
use super::migrate::{MIGRATIONS, migrate};
use crate::requests::HistoryFilter;
use crate::sums;

fn plan(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("it is SQL");
    let nothing = std::iter::repeat_n(rusqlite::types::Null, statement.parameter_count());
    let steps = statement.query_map(rusqlite::params_from_iter(nothing), |row| row.get::<_, String>(3));
    steps.expect("it has a plan").map(|step| step.expect("it has a plan")).collect()
}

fn check(connection: &Connection, sql: &str) {
    for step in plan(connection, sql) {
        let is_walk = step.starts_with("SCAN") && !step.contains("USING");
        assert!(!is_walk, "{step}: {sql}");
        assert!(!step.contains("AUTOMATIC"), "{step}: {sql}");
    }
}

#[test]
fn no_statement_walks_along_a_table() {
    let mut connection = Connection::open_in_memory().expect("memory is there");
    migrate(&mut connection, MIGRATIONS).expect("the migrations work");
    for sql in [
        "SELECT seq FROM history WHERE run_id = ?1 ORDER BY seq DESC LIMIT ?2",
        "SELECT seq FROM history WHERE ?1 <= run_id AND run_id < ?2 AND is_final = 1 ORDER BY run_id LIMIT ?3",
        "SELECT seq FROM history WHERE true AND agent = ?1 AND shown_at > ?2 ORDER BY shown_at DESC, seq DESC LIMIT ?3",
        "SELECT seq FROM history WHERE true AND schedule_id = ?1 ORDER BY shown_at DESC, seq DESC LIMIT ?2",
        "SELECT seq FROM history WHERE true ORDER BY shown_at DESC, seq DESC LIMIT ?1",
        "SELECT seq FROM subjects WHERE subject = ?1 ORDER BY seq DESC LIMIT ?2",
        "SELECT * FROM journal WHERE first <= ?1 ORDER BY first DESC LIMIT 1",
        "SELECT * FROM base_runs WHERE schedule_id = ?1",
        "SELECT digest FROM answers WHERE key = ?1",
        "DELETE FROM journal WHERE first <= ?1",
        "DELETE FROM history WHERE seq <= ?1",
        "DELETE FROM subjects WHERE seq <= ?1",
        "DELETE FROM records WHERE seq <= ?1",
        "DELETE FROM answers WHERE at <= ?1",
    ] {
        check(&connection, sql);
    }
}

#[test]
fn what_the_sums_do_not_have_is_found_by_its_numbers() {
    let mut connection = Connection::open_in_memory().expect("memory is there");
    migrate(&mut connection, MIGRATIONS).expect("the migrations work");
    let (schedule, agent) = (Some(punctual_core::ScheduleId(uuid::Uuid::nil())), Some("a".to_owned()));
    for filter in [
        HistoryFilter::default(),
        HistoryFilter { agent, ..HistoryFilter::default() },
        HistoryFilter { schedule, ..HistoryFilter::default() },
    ] {
        let sql = sums::query(&filter, "agent, ", 1, |filter| conditions(filter, &mut vec![]));
        let steps = plan(&connection, &sql);
        let of_history: Vec<_> = steps.iter().filter(|step| step.contains(" history")).collect();
        assert_eq!(of_history, ["SEARCH history USING INTEGER PRIMARY KEY (rowid>?)"], "{steps:?}");
        let schedule = "SEARCH schedule_sums USING PRIMARY KEY (shown_at=? AND schedule_id=?)";
        assert!(filter.schedule.is_none() || steps.iter().any(|step| step == schedule), "{steps:?}");
    }
}
