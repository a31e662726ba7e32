//! What a database keeps, read without the commands under test.

use std::collections::BTreeMap;
use std::sync::Arc;

use punctual_core::ScheduleId;
use punctual_core::run::Run;
use punctual_store::postgres::PostgresStore;
use punctual_store::sqlite::SqliteStore;
use punctual_store::{HistoryFilter, HistoryItem, HistoryWhat, Result, RunFilter, Store};
use serde_json::{Value, json};

/// More than any test makes.
const ALL: usize = 100_000;

/// All history of a database, oldest first.
pub(crate) fn history(address: &str) -> Result<Vec<Value>> {
    let store = open(address)?;
    wait(async {
        let names = names(&*store).await?;
        let filter = HistoryFilter { limit: ALL, ..HistoryFilter::default() };
        Ok(store.history(&filter).await?.iter().rev().map(|item| past(item, &names)).collect())
    })
}

/// All runs of a database, by time.
pub(crate) fn runs(address: &str) -> Result<Vec<Value>> {
    let store = open(address)?;
    wait(async {
        let names = names(&*store).await?;
        let filter = RunFilter { limit: ALL, ..RunFilter::default() };
        Ok(store.runs(&filter).await?.iter().map(|run| shown(run, &names)).collect())
    })
}

fn open(address: &str) -> Result<Arc<dyn Store>> {
    Ok(match address.strip_prefix("sqlite:") {
        Some(path) => Arc::new(SqliteStore::open_read_only(path)?),
        None => Arc::new(PostgresStore::open_to_read(address)?),
    })
}

fn wait<T>(asked: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(asked)
}

type Names = BTreeMap<ScheduleId, Option<String>>;

async fn names(store: &dyn Store) -> Result<Names> {
    Ok(store.schedules(None, ALL).await?.into_iter().map(|schedule| (schedule.id, schedule.name.clone())).collect())
}

fn past(item: &HistoryItem, names: &Names) -> Value {
    let (schedule, result, attempt) = match &item.what {
        HistoryWhat::Attempt(attempt) => (attempt.schedule, attempt.event.name(), json!(attempt)),
        HistoryWhat::RunEnded(change) => (change.schedule, change.event.name(), Value::Null),
        HistoryWhat::Skipped(skip) => (Some(skip.schedule), "skipped", Value::Null),
    };
    let name = schedule.and_then(|id| names.get(&id));
    json!({ "at": item.at, "result": result, "schedule_name": name, "attempt": attempt })
}

fn shown(run: &Run, names: &Names) -> Value {
    json!({
        "run": run.id,
        "schedule_name": run.schedule.and_then(|id| names.get(&id)),
        "scheduled_at": run.scheduled_at,
        "state": run.state.name(),
        "is_over": run.state.is_final(),
        "attempt": run.state.tally().attempt,
    })
}
