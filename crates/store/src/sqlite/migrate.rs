//! Migrations: numbered, applied once, each whole or not at all.

use punctual_core::journal::checksum;
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
    signed(checksum(0, 0, jiff::Timestamp::UNIX_EPOCH, migration.sql))
}
