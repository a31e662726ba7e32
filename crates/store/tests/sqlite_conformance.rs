//! SQLite against the suite, each claim in a fresh file.

use punctual_store::sqlite::SqliteStore;

punctual_store::conformance::suite!(SqliteStore::in_memory().expect("a fresh database can be made"));
