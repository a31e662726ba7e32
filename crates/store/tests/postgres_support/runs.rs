//! Runs that need nothing else to be there.

use punctual_core::RunId;
use punctual_core::run::Run;
use punctual_core::time::SlotKey;
use punctual_store::conformance::Bench;
use punctual_store::conformance::bench::{asked_run, at};
use punctual_store::memory::MemoryStore;
use serde_json::json;
use uuid::Uuid;

/// A run that somebody asks for, without a schedule.
pub(crate) fn request(number: u128) -> Run {
    let mut bench = Bench::new(Box::new(MemoryStore::new()));
    let schedule = bench.draft(json!({}));
    let id = RunId(Uuid::from_u128(number));
    Run { schedule: None, ..asked_run(id, SlotKey::manual(id), &schedule, at("09:00:00")) }
}
