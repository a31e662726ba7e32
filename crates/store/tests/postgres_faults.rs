//! PostgreSQL when things go wrong: answers that are lost, servers that crash or are replaced, callers and nodes in each
//! other's way.
//!
//! What is left to chance is repeated a few times; `PUNCTUAL_FAULT_ROUNDS=200` repeats it so often.

mod postgres_support;

mod postgres_faults {
    mod batches;
    mod callers;
    mod crashes;
    mod damage;
    mod half_open;
    mod limits;
    mod lost_answers;
    mod migrations;
    mod nodes;
    mod older_copy;
    mod pen;
    mod retention;
    mod snapshot;
}
