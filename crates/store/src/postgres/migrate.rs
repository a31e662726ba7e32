//! Migrations: numbered, applied once, each whole or not at all, by one node while the others wait.

use punctual_core::journal::{Parts, checksum};
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

use super::fault::{Done, Fault};
use crate::columns::signed;
use crate::error::StoreError;

/// One step of the schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct Migration {
    pub(super) name: &'static str,
    pub(super) sql: &'static str,
}

/// Every step. The number of one is its place; what has been released is never changed again.
pub(super) const MIGRATIONS: &[Migration] = &[
    Migration { name: "0001_first", sql: include_str!("migrations/0001_first.sql") },
    Migration { name: "0002_steps", sql: include_str!("migrations/0002_steps.sql") },
];

/// A lock that only migrations take, until their transaction ends: `Pnct`.
const LOCK: i64 = 0x506e_6374;

const CREATE: &str = "CREATE TABLE IF NOT EXISTS migrations (
    number int PRIMARY KEY, name text NOT NULL, checksum bigint NOT NULL)";

/// Brings the schema to what this binary knows.
pub(super) async fn migrate(client: &Client, migrations: &[Migration]) -> Done<()> {
    if applied(client, migrations).await? == migrations.len() {
        return Ok(());
    }
    // Whatever is usual on the server: who has waited sees what was made meanwhile.
    let begin = format!("BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock({LOCK})");
    client.batch_execute(&begin).await?;
    let migrated = migrate_alone(client, migrations).await;
    client.batch_execute(if migrated.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
    migrated
}

async fn migrate_alone(client: &Client, migrations: &[Migration]) -> Done<()> {
    // Somebody else may have been faster.
    let version = applied(client, migrations).await?;
    if 0 < version && version < migrations.len() {
        refuse_beside_others(client).await?;
    }
    for (index, migration) in migrations.iter().enumerate().skip(version) {
        client.batch_execute(CREATE).await?;
        client.batch_execute(migration.sql).await?;
        let sql = "INSERT INTO migrations VALUES ($1, $2, $3)";
        let (number, digest) = (index as i32 + 1, digest(migration));
        let params: [(&(dyn ToSql + Sync), Type); 3] =
            [(&number, Type::INT4), (&migration.name, Type::TEXT), (&digest, Type::INT8)];
        client.execute_typed(sql, &params).await?;
    }
    Ok(())
}

/// A node of an older release would go on writing as it knows: it has to stop first.
async fn refuse_beside_others(client: &Client) -> Done<()> {
    let sql = "SELECT name FROM nodes WHERE clock_timestamp() < lease_until ORDER BY name";
    let names: Vec<String> = client.query_typed(sql, &[]).await?.iter().map(|row| row.get(0)).collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(StoreError::OlderNodes { names: names.join(", ") }.into())
}

/// How many migrations have been applied, if they are the first of those that this binary knows.
pub(super) async fn applied(client: &Client, migrations: &[Migration]) -> Done<usize> {
    // Not `to_regclass`: within a transaction it goes by what it knew before, and a node that has waited for another would
    // not see what that one has made.
    let sql = "SELECT EXISTS (SELECT FROM pg_class WHERE relname = 'migrations' AND pg_table_is_visible(oid))";
    let exists: bool = client.query_typed_one(sql, &[]).await?.get(0);
    if !exists {
        return Ok(0);
    }
    let sql = "SELECT name, checksum FROM migrations ORDER BY number";
    let rows = client.query_typed(sql, &[]).await?;
    let known = migrations.len();
    if known < rows.len() {
        return Err(StoreError::NewerSchema { found: rows.len() as u32, known: known as u32 }.into());
    }
    for (migration, row) in migrations.iter().zip(&rows) {
        if row.get::<_, &str>(0) != migration.name || row.get::<_, i64>(1) != digest(migration) {
            let what = format!("migration {} is not the one that the database was made with", migration.name);
            return Err(Fault::Damaged(what));
        }
    }
    Ok(rows.len())
}

fn digest(migration: &Migration) -> i64 {
    signed(checksum(0, 0, jiff::Timestamp::UNIX_EPOCH, Parts { change: migration.sql, detail: "" }))
}
