//! The stores against the model: the same steps get the same answers and leave the same journal.
//!
//! Steps are random, and fixed by a seed. A list that fails is shrunk and printed. By default a sample of some seconds is
//! played; `PUNCTUAL_DIFFERENTIAL_OPS=1000000` plays so many, and `PUNCTUAL_DIFFERENTIAL_SEED` begins elsewhere.

mod postgres_support;

mod differential {
    pub(crate) mod dice;
    pub(crate) mod game;
    pub(crate) mod generate;
    pub(crate) mod invariants;
    pub(crate) mod label;
    pub(crate) mod names;
    pub(crate) mod play;
    pub(crate) mod shape;
    pub(crate) mod shrink;
    pub(crate) mod step;
    pub(crate) mod together;
    pub(crate) mod writes;
}

use differential::game::{Table, compare};
use differential::label::{REACHED, SHARED};
use differential::together::compare_together;
use punctual_store::Store;
use punctual_store::memory::MemoryStore;
use punctual_store::sqlite::SqliteStore;

#[test]
fn a_shared_model_keeps_every_invariant_and_the_sample_reaches_everything() {
    let table = Table { model: MemoryStore::new, other: || Box::new(MemoryStore::new()) };
    let reached = compare("shared model", &table, 40_000);
    let missing: Vec<&&str> = REACHED.iter().chain(SHARED).filter(|label| !reached.contains_key(**label)).collect();
    assert!(missing.is_empty(), "the sample does not reach {missing:?}; it reaches {reached:#?}");
}

#[test]
fn an_exclusive_model_keeps_every_invariant_and_the_sample_reaches_everything() {
    let table = Table { model: MemoryStore::exclusive, other: || Box::new(MemoryStore::exclusive()) };
    let reached = compare("exclusive model", &table, 40_000);
    let missing: Vec<&&str> = REACHED.iter().filter(|label| !reached.contains_key(**label)).collect();
    assert!(missing.is_empty(), "the sample does not reach {missing:?}; it reaches {reached:#?}");
}

#[test]
fn sqlite_is_like_the_model() {
    let other = || Box::new(SqliteStore::in_memory().expect("a fresh database can be made")) as Box<dyn Store>;
    compare("sqlite", &Table { model: MemoryStore::exclusive, other }, 3_000);
}

#[test]
fn postgres_is_like_the_model() {
    let other = || Box::new(postgres_support::fresh_store()) as Box<dyn Store>;
    compare("postgres", &Table { model: MemoryStore::new, other }, 3_000);
}

#[test]
fn postgres_nodes_in_turn_are_like_the_model() {
    let other = || Box::new(postgres_support::in_turns::InTurns::fresh(3)) as Box<dyn Store>;
    compare("postgres in turns", &Table { model: MemoryStore::new, other }, 1_500);
}

#[test]
fn postgres_calls_that_come_together_are_like_the_model() {
    let other = || Box::new(postgres_support::fresh_store()) as Box<dyn Store>;
    compare_together("postgres together", &Table { model: MemoryStore::new, other }, 3_000);
}
