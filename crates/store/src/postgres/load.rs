//! Loading: the mirror, and rows that it does not have.

use jiff::Timestamp;
use punctual_core::journal::World;
use punctual_core::{RunId, ScheduleId, Token};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::fault::{Done, Fault};
use super::rows::{self, RUN_COLUMNS, SCHEDULE_COLUMNS, read_runs};
use super::values::At;
use crate::columns::{count, from_json, signed};
use crate::requests::{Answered, Head};
use punctual_kernel::state::State as Mirror;
use punctual_kernel::transaction::{Found, Needs};

/// A mirror, and how far the journal went when it was read.
pub(super) struct Loaded {
    pub(super) mirror: Mirror,
    pub(super) head: Head,
    pub(super) day: Option<i32>,
    /// The first entry that counts.
    pub(super) first_seq: u64,
}

const LAST: &str = "SELECT seq, checksum, day - date '1970-01-01' FROM journal ORDER BY day DESC, seq DESC LIMIT 1";
const PEN: &str = "SELECT epoch_floor, first_seq, checksum_before FROM pen";

/// Reads schedules and the runs that are not over, in one state.
pub(super) async fn load(client: &Client) -> Done<Loaded> {
    let runs = format!("SELECT {RUN_COLUMNS} FROM runs JOIN terms ON terms.id = terms_id WHERE ended_at IS NULL");
    let schedules = format!("SELECT {SCHEDULE_COLUMNS} FROM schedules");
    let (_, pen, last, days, tokens, schedules, runs, _) = tokio::try_join!(biased;
        client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
        client.query_typed_one(PEN, &[]),
        client.query_typed_opt(LAST, &[]),
        client.query_typed("SELECT zone, date FROM days", &[]),
        client.query_typed("SELECT body::text FROM tokens", &[]),
        client.query_typed(&schedules, &[]),
        client.query_typed(&runs, &[]),
        client.batch_execute("COMMIT"),
    )?;
    let world = world(&pen, last.as_ref(), &days, &tokens, &schedules, &runs)?;
    let day = last.as_ref().map(|last| last.get(2));
    let first_seq = count(pen.get(1));
    Ok(Loaded { mirror: Mirror::new(world), head: head(&pen, last.as_ref()), day, first_seq })
}

/// Everything there is, in the transaction that the client is in.
pub(super) async fn everything(client: &Client) -> Done<World> {
    let runs = format!("SELECT {RUN_COLUMNS} FROM runs JOIN terms ON terms.id = terms_id");
    let schedules = format!("SELECT {SCHEDULE_COLUMNS} FROM schedules");
    let (pen, last, days, tokens, schedules, runs) = tokio::try_join!(biased;
        client.query_typed_one(PEN, &[]),
        client.query_typed_opt(LAST, &[]),
        client.query_typed("SELECT zone, date FROM days", &[]),
        client.query_typed("SELECT body::text FROM tokens", &[]),
        client.query_typed(&schedules, &[]),
        client.query_typed(&runs, &[]),
    )?;
    world(&pen, last.as_ref(), &days, &tokens, &schedules, &runs)
}

fn world(pen: &Row, last: Option<&Row>, days: &[Row], tokens: &[Row], schedules: &[Row], runs: &[Row]) -> Done<World> {
    let mut world = World::beginning_at(1);
    (world.seq, world.epoch_floor) = (head(pen, last).seq, count(pen.get(0)));
    for row in days {
        let date = row.get::<_, &str>(1).parse();
        let date = date.map_err(|error| Fault::Damaged(format!("a day cannot be read: {error}")))?;
        world.days.insert(row.get(0), date);
    }
    for row in tokens {
        let token: Token = from_json(row.get(0), "a token")?;
        std::sync::Arc::make_mut(&mut world.tokens).insert(token.id, token);
    }
    for row in schedules {
        let record = rows::read_schedule(row)?;
        world.schedules.insert(record.schedule.id, record);
    }
    world.runs = read_runs(runs)?.into_iter().map(|run| (run.id, run)).collect();
    Ok(world)
}

fn head(pen: &Row, last: Option<&Row>) -> Head {
    let of = |seq: i64, checksum: i64| Head { seq: count(seq), checksum: checksum.cast_unsigned() };
    last.map_or_else(|| of(pen.get::<_, i64>(1) - 1, pen.get(2)), |last| of(last.get(0), last.get(1)))
}

/// The last entry.
pub(super) async fn read_head(client: &Client) -> Done<Head> {
    let (pen, last) = tokio::try_join!(biased; client.query_typed_one(PEN, &[]), client.query_typed_opt(LAST, &[]))?;
    Ok(head(&pen, last.as_ref()))
}

/// The checksum of an entry.
async fn checksum_of(client: &Client, seq: u64) -> Done<Option<u64>> {
    let sql = "SELECT checksum FROM journal
        WHERE day = (SELECT max(day) FROM journal_days WHERE first_seq <= $1) AND seq = $1";
    let row = client.query_typed_opt(sql, &[(&signed(seq), Type::INT8)]).await?;
    Ok(row.map(|row| row.get::<_, i64>(0).cast_unsigned()))
}

/// Whether an entry was written.
pub(super) async fn has_entry(client: &Client, entry: Head) -> Done<bool> {
    Ok(checksum_of(client, entry.seq).await? == Some(entry.checksum))
}

/// Reads what commands need and the mirror does not have. `first` is the first entry that counts.
pub(super) async fn find(client: &Client, mirror: &Mirror, needs: &Needs, first: Head) -> Done<Found> {
    let mut found = Found { first, ..Found::default() };
    let missing: Vec<Uuid> = needs.wants.runs.iter().filter(|id| mirror.run(**id).is_none()).map(|id| id.0).collect();
    if !missing.is_empty() {
        let sql = format!("SELECT {RUN_COLUMNS} FROM runs JOIN terms ON terms.id = terms_id WHERE runs.id = ANY($1)");
        let runs = client.query_typed(&sql, &[(&missing, Type::UUID_ARRAY)]).await?;
        found.runs.extend(read_runs(&runs)?.into_iter().map(|run| (run.id, run)));
    }
    if !needs.wants.slots.is_empty() {
        find_slots(client, mirror, &needs.wants.slots, &mut found).await?;
    }
    if !needs.keys.is_empty() {
        let sql = "SELECT key, digest, subject, at FROM answers WHERE key = ANY($1)";
        for row in client.query_typed(sql, &[(&needs.keys, Type::TEXT_ARRAY)]).await? {
            let (digest, at) = (row.get::<_, i64>(1).cast_unsigned(), row.get::<_, At>(3).0);
            found.answers.insert(row.get(0), Answered { digest, subject: row.get(2), at });
        }
    }
    if let Some(before) = needs.old_before {
        let sql = include_str!("sql/old_runs.sql");
        let old = client.query_typed(sql, &[(&At::before(before), Type::TIMESTAMPTZ)]).await?;
        found.old = old.iter().map(|row| RunId(row.get(0))).collect();
    }
    if let Some(until) = needs.checkpoint_until {
        found.everything = Some(everything(client).await?);
        found.start = find_start(client, until, first).await?;
    }
    Ok(found)
}

async fn find_slots(
    client: &Client,
    mirror: &Mirror,
    slots: &[(ScheduleId, punctual_core::time::SlotKey)],
    found: &mut Found,
) -> Done<()> {
    let schedules: Vec<Uuid> = slots.iter().map(|(schedule, _)| schedule.0).collect();
    let keys: Vec<&str> = slots.iter().map(|(_, key)| key.as_str()).collect();
    let sql = format!(
        "SELECT {RUN_COLUMNS} FROM unnest($1::uuid[], $2::text[]) AS asked (of_schedule, key)
        JOIN runs ON schedule_id = of_schedule AND slot_key = key JOIN terms ON terms.id = terms_id"
    );
    let runs = client.query_typed(&sql, &[(&schedules, Type::UUID_ARRAY), (&keys, Type::TEXT_ARRAY)]).await?;
    for run in read_runs(&runs)? {
        found.slots.extend(run.schedule.map(|schedule| ((schedule, run.key.clone()), run.id)));
        if mirror.run(run.id).is_none() {
            found.runs.insert(run.id, run);
        }
    }
    Ok(())
}

/// The last checkpoint that is old enough, by its first part: with the checksum of the entry before it.
async fn find_start(client: &Client, until: Timestamp, first: Head) -> Done<Option<Head>> {
    let sql = include_str!("sql/journal_start.sql");
    let params = [(&At::up_to(until) as &(dyn tokio_postgres::types::ToSql + Sync), Type::TIMESTAMPTZ)];
    let Some(row) = client.query_typed_opt(sql, &params).await? else { return Ok(None) };
    let seq = count(row.get(0));
    if seq <= first.seq {
        return Ok(None);
    }
    let checksum = checksum_of(client, seq - 1).await?;
    let checksum = checksum.ok_or_else(|| Fault::Damaged(format!("entry {} of the journal is missing", seq - 1)))?;
    Ok(Some(Head { seq, checksum }))
}
