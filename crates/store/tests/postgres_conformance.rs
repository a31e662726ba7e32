//! PostgreSQL against the suite, each claim in a fresh schema.

mod postgres_support;

punctual_store::conformance::suite!(postgres_support::fresh_store());
