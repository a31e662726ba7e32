//! The engine in a world of its own: what it does with schedules, runs, nodes, clocks and failures, step by step.

mod approvals;
mod cancel;
mod caps;
mod clock;
mod edits;
mod fatal;
mod limits;
mod midnight;
mod node;
mod older_copy;
mod outage;
mod overlap;
mod pauses;
mod pauses_that_end;
mod recovery;
mod refusals;
mod restart;
mod retries;
mod stop;
mod support;
