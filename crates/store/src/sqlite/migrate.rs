//! Migrations: numbered, applied once, each whole or not at all.

use punctual_core::journal::{Parts, checksum};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::fault::{Done, Fault};
use super::values::signed;
use crate::error::StoreError;

/// One step of the schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct Migration {
    pub(super) name: &'static str,
    pub(super) sql: &'static str,
}

/// Every step. The number of one is its place; what has been released is never changed again.
pub(super) const MIGRATIONS: &[Migration] =
    &[Migration { name: "0001_first", sql: include_str!("migrations/0001_first.sql") }];

/// What marks a file as ours: `Pnct`.
pub(super) const APPLICATION_ID: i32 = 0x506e_6374;

const CREATE: &str = "CREATE TABLE IF NOT EXISTS migrations (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum INTEGER NOT NULL) STRICT";

/// Brings the schema to what this binary knows.
pub(super) fn migrate(connection: &mut Connection, migrations: &[Migration]) -> Done<()> {
    let version = check_version(connection, migrations)?;
    for (index, migration) in migrations.iter().enumerate().skip(version) {
        // Whoever dies in the middle leaves the schema before it.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
        transaction.execute_batch(CREATE)?;
        transaction.execute_batch(migration.sql)?;
        let number = index as i64 + 1;
        let params = params![number, migration.name, digest(migration)];
        transaction.execute("INSERT INTO migrations VALUES (?1, ?2, ?3)", params)?;
        transaction.pragma_update(None, "user_version", number)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.commit()?;
    }
    Ok(())
}

/// How many migrations have been applied, if they are the first of those that this binary knows.
pub(super) fn check_version(connection: &Connection, migrations: &[Migration]) -> Done<usize> {
    let version: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let application: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables == 0 && version == 0 {
        return Ok(0);
    }
    if application != APPLICATION_ID {
        return Err(Fault::other("the file is a database, but not one of Punctual"));
    }
    let known = migrations.len();
    if known < version as usize {
        return Err(StoreError::NewerSchema { found: version, known: known as u32 }.into());
    }
    for (index, migration) in migrations.iter().enumerate().take(version as usize) {
        let sql = "SELECT name, checksum FROM migrations WHERE number = ?1";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?));
        let applied = connection.query_row(sql, [index as i64 + 1], read).optional()?;
        if applied != Some((migration.name.to_owned(), digest(migration))) {
            let text = format!("migration {} is not the one that the database was made with", migration.name);
            return Err(Fault::other(text));
        }
    }
    Ok(version as usize)
}

fn digest(migration: &Migration) -> i64 {
    signed(checksum(0, 0, jiff::Timestamp::UNIX_EPOCH, Parts { change: migration.sql, detail: "" }))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::sqlite::SqliteStore;
    use crate::sqlite::lock::beside;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let folder = std::env::temp_dir().join(format!("punctual-migrate-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&folder).expect("a folder can be made");
            Folder(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            drop(std::fs::remove_dir_all(&self.0));
        }
    }

    fn schema(connection: &Connection) -> String {
        let sql =
            "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY tbl_name, name";
        let mut statement = connection.prepare(sql).expect("there is a schema");
        let rows = statement.query_map([], |row| row.get::<_, String>(0)).expect("it can be read");
        rows.map(|sql| format!("{};\n", sql.expect("it can be read"))).collect()
    }

    fn in_memory(migrations: &[Migration]) -> Connection {
        let mut connection = Connection::open_in_memory().expect("memory is there");
        migrate(&mut connection, migrations).expect("the migrations work");
        connection
    }

    /// The schema that all migrations make is checked in, so that a change of it is seen. Written anew by running this test
    /// with `PUNCTUAL_BLESS=1`.
    #[test]
    fn the_schema_is_the_one_that_is_checked_in() {
        let schema = schema(&in_memory(MIGRATIONS));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sqlite/schema.sql");
        if std::env::var_os("PUNCTUAL_BLESS").is_some() {
            std::fs::write(&path, &schema).expect("it can be written");
        }
        let published = std::fs::read_to_string(&path).expect("it is checked in");
        assert!(published == schema, "schema.sql is out of date: run this test with PUNCTUAL_BLESS=1");
    }

    #[test]
    fn a_newer_schema_is_refused() {
        let connection = in_memory(&[MIGRATIONS, &[Migration { name: "9999_new", sql: "SELECT 1" }]].concat());
        let refused = check_version(&connection, MIGRATIONS);
        let known = MIGRATIONS.len() as u32;
        let is_newer = matches!(&refused, Err(Fault::Store(StoreError::NewerSchema { found, known: ours }))
            if (*found, *ours) == (known + 1, known));
        assert!(is_newer, "{refused:?}");
    }

    #[test]
    fn a_migration_that_was_edited_is_refused() {
        let connection = in_memory(&MIGRATIONS[..1]);
        let edited = Migration { name: MIGRATIONS[0].name, sql: "CREATE TABLE other (id INTEGER) STRICT" };
        let refused = check_version(&connection, &[edited]).expect_err("it is not the one that was applied");
        assert!(refused.to_string().contains("0001_first is not the one"), "{refused}");
        let renamed = Migration { name: "0001_other", sql: MIGRATIONS[0].sql };
        assert!(check_version(&connection, &[renamed]).is_err());
    }

    #[test]
    fn a_later_migration_keeps_what_is_there() {
        let first = &MIGRATIONS[..1];
        let mut connection = in_memory(first);
        connection.execute("INSERT INTO agents_seen VALUES ('reporter', 1)", []).expect("a row is written");
        let second = Migration { name: "0002_second", sql: "ALTER TABLE agents_seen ADD COLUMN note TEXT" };
        migrate(&mut connection, &[MIGRATIONS[0], second]).expect("it is applied");
        migrate(&mut connection, &[MIGRATIONS[0], second]).expect("there is nothing to do");
        let days: i64 =
            connection.query_row("SELECT count(note IS NULL) FROM agents_seen", [], |row| row.get(0)).expect("a row");
        assert_eq!(days, 1);
    }

    #[test]
    fn a_migration_that_fails_changes_nothing() {
        let first = &MIGRATIONS[..1];
        let mut connection = in_memory(first);
        let before = schema(&connection);
        let wrong =
            Migration { name: "0002_wrong", sql: "CREATE TABLE x (a INTEGER) STRICT; CREATE TABLE x (a INTEGER)" };
        assert!(migrate(&mut connection, &[MIGRATIONS[0], wrong]).is_err());
        assert_eq!(schema(&connection), before);
        assert_eq!(check_version(&connection, first).expect("it is as it was"), 1);
    }

    /// The files as they are in the middle of a migration are what a killed process, or a power cut, leaves behind.
    #[test]
    fn whoever_dies_in_the_middle_of_a_migration_leaves_a_file_that_the_next_start_completes() {
        let folder = Folder::new("middle");
        let statements: Vec<&str> = MIGRATIONS[0].sql.split_inclusive(";\n").collect();
        assert!(20 < statements.len());
        for count in 0..=statements.len() {
            let path = folder.0.join(format!("{count}.db"));
            let connection = Connection::open(&path).expect("it opens");
            // Without a cache, every page goes to the file as soon as it can.
            connection
                .execute_batch("PRAGMA journal_mode = WAL; PRAGMA cache_size = 1; BEGIN EXCLUSIVE")
                .expect("it works");
            for statement in &statements[..count] {
                connection.execute_batch(statement).expect("it is SQL");
            }
            let copy = folder.0.join(format!("{count}-copy.db"));
            for suffix in ["", "-wal", "-shm"] {
                std::fs::copy(beside(&path, suffix), beside(&copy, suffix)).expect("it can be copied");
            }
            drop(connection);
            drop(SqliteStore::open(&copy).expect("the next start completes it"));
            drop(SqliteStore::open(&path).expect("what is rolled back is begun again"));
        }
    }
}
