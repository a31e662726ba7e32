//! How statements are carried out: by an index, so that they cost the same however large the tables are.

use std::path::Path;

use rusqlite::Connection;

use super::migrate::{MIGRATIONS, migrate};

/// What may be walked along: what a statement has found itself, and tables of which a server has few rows.
const SMALL: &[&str] = &["SCAN found", "SCAN head", "SCAN zones", "SCAN CONSTANT ROW"];

/// What concerns every row, or is looked at through conditions that are added to it.
const WHOLE: &[&str] = &["records.sql"];

fn check(connection: &Connection, sql: &str) {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("it is SQL");
    let nothing = std::iter::repeat_n(rusqlite::types::Null, statement.parameter_count());
    let steps = statement.query_map(rusqlite::params_from_iter(nothing), |row| row.get::<_, String>(3));
    for step in steps.expect("it has a plan") {
        let step = step.expect("it has a plan");
        let is_walk = step.starts_with("SCAN") && !step.contains("USING");
        assert!(!is_walk || SMALL.contains(&step.as_str()), "{step}: {sql}");
        assert!(!step.contains("AUTOMATIC"), "{step}: {sql}");
    }
}

#[test]
fn no_statement_walks_along_a_table() {
    let mut connection = Connection::open_in_memory().expect("memory is there");
    migrate(&mut connection, MIGRATIONS).expect("the migrations work");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sqlite/sql");
    let mut count = 0;
    for file in std::fs::read_dir(folder).expect("it is there") {
        let path = file.expect("it can be listed").path();
        if !WHOLE.iter().any(|name| path.ends_with(name)) {
            check(&connection, &std::fs::read_to_string(&path).expect("it can be read"));
            count += 1;
        }
    }
    assert!(10 < count);
    for sql in [
        "SELECT * FROM runs WHERE schedule_id = ?1 AND slot_key = ?2",
        "SELECT * FROM runs WHERE id = ?1",
        "DELETE FROM runs WHERE id = ?1",
        "UPDATE schedules SET name = NULL WHERE id = ?1",
    ] {
        check(&connection, sql);
    }
}
