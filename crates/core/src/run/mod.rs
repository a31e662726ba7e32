//! Run: how the answer to a slot lives and ends.

mod outcome;
mod retry;
mod state;

pub use outcome::{FailureCode, Outcome, SkipReason};
pub use retry::{Backoff, RetryPolicy};
pub use state::{AfterLoss, IllegalTransition, Rules, RunEvent, RunState, Tally, WaitFor};
