//! Run: how the answer to a slot lives and ends.

mod outcome;
mod record;
mod report;
mod retry;
mod state;

pub use outcome::{FailureCode, Outcome, SkipReason};
pub use record::Run;
pub use report::{Report, ReportedError};
pub use retry::{Backoff, RetryPolicy};
pub use state::{AfterLoss, IllegalTransition, Rules, RunEvent, RunState, Tally, WaitFor};
