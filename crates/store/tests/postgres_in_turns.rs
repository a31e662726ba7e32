//! PostgreSQL from three nodes in turn against the suite: each reads in the journal what the others have written.

mod postgres_support;

punctual_store::conformance::suite!(postgres_support::in_turns::InTurns::fresh(3));
