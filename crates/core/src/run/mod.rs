//! Run: how the answer to a slot lives and ends.

pub mod figures;
mod outcome;
mod record;
mod report;
mod retry;
mod state;
mod terms;

pub use outcome::{FailureCode, Outcome, SkipReason};
pub use record::{AttemptEnd, Run};
pub use report::{Report, ReportedError, WARNINGS_MAX};
pub use retry::{Backoff, RetryPolicy};
pub use state::{AfterLoss, IllegalTransition, Rules, RunEvent, RunState, STOPS_MAX, Tally, WaitFor};
pub use terms::Terms;
