//! When a failed run is tried again.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stable_hash::StableHash;
use crate::{Elapsed, RunId};

/// How often a run is tried, and how long it rests in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetryPolicy {
    /// Tries in all, the first included; counted when a run is claimed, never when it fails.
    pub max_attempts: NonZeroU32,
    /// How the rest grows from try to try.
    pub backoff: Backoff,
    /// The rest before the second try.
    pub delay: Elapsed,
    /// No rest is longer, jitter and a target's `Retry-After` aside.
    pub delay_max: Elapsed,
    /// At most so much is added to each rest, so that what failed together does not come back together.
    pub jitter: Elapsed,
}

/// How the rest between tries grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// The same rest each time.
    Fixed,
    /// Twice the rest each time.
    Exponential,
}

impl RetryPolicy {
    /// The rest before the next try, after try number `attempt` (1 is the first) of `run` has failed; `None` to give
    /// up.
    ///
    /// `retry_after` is what the target asked for; it is honoured even where it is longer than `delay_max`. The jitter
    /// is always added, never taken away, and follows from run and attempt alone.
    pub fn next(&self, run: RunId, attempt: u32, retry_after: Option<Elapsed>) -> Option<Elapsed> {
        if self.max_attempts.get() <= attempt {
            return None;
        }
        let doublings = match self.backoff {
            Backoff::Fixed => 0,
            Backoff::Exponential => attempt.saturating_sub(1).min(62),
        };
        let grown = self.delay.milliseconds().saturating_mul(1 << doublings);
        let rest = grown.min(self.delay_max.milliseconds()).max(retry_after.unwrap_or_default().milliseconds());
        let hash = StableHash::new().bytes(run.0.as_bytes()).bytes(&attempt.to_be_bytes()).finish();
        let jitter = hash % (self.jitter.milliseconds().unsigned_abs() + 1);
        Some(Elapsed::from_milliseconds(rest.saturating_add(jitter as i64)).unwrap_or(Elapsed::MAX))
    }
}

impl Default for RetryPolicy {
    /// The executions face: three tries, a minute apart.
    fn default() -> RetryPolicy {
        RetryPolicy {
            max_attempts: NonZeroU32::new(3).expect("3 is not 0"),
            backoff: Backoff::Fixed,
            delay: Elapsed::from_seconds(60),
            delay_max: Elapsed::from_seconds(3_600),
            jitter: Elapsed::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(policy: &RetryPolicy, attempt: u32) -> Option<i64> {
        policy.next(RunId(uuid::Uuid::nil()), attempt, None).map(|rest| rest.milliseconds() / 1_000)
    }

    #[test]
    fn attempts_are_total_tries() {
        let policy = RetryPolicy::default();
        assert_eq!([1, 2, 3, 4].map(|attempt| seconds(&policy, attempt)), [Some(60), Some(60), None, None]);
        let once = RetryPolicy { max_attempts: NonZeroU32::MIN, ..policy };
        assert_eq!(seconds(&once, 1), None);
    }

    #[test]
    fn exponential_rests_double_up_to_the_cap() {
        let policy = RetryPolicy {
            max_attempts: NonZeroU32::new(100).unwrap(),
            backoff: Backoff::Exponential,
            ..RetryPolicy::default()
        };
        let rests: Vec<i64> = (1..=8).filter_map(|attempt| seconds(&policy, attempt)).collect();
        assert_eq!(rests, [60, 120, 240, 480, 960, 1_920, 3_600, 3_600]);
        assert_eq!(seconds(&policy, 99), Some(3_600));
    }

    #[test]
    fn what_the_target_asks_for_is_honoured() {
        let policy = RetryPolicy::default();
        let next = |asked| policy.next(RunId(uuid::Uuid::nil()), 1, Some(Elapsed::from_seconds(asked))).unwrap();
        assert_eq!(next(5), Elapsed::from_seconds(60));
        assert_eq!(next(7_200), Elapsed::from_seconds(7_200));
    }

    #[test]
    fn jitter_only_adds_and_differs_between_runs() {
        let policy = RetryPolicy { jitter: Elapsed::from_seconds(30), ..RetryPolicy::default() };
        let rests: std::collections::BTreeSet<i64> =
            (0..100).map(|n| policy.next(RunId(uuid::Uuid::from_u128(n)), 1, None).unwrap().milliseconds()).collect();
        assert!(rests.iter().all(|rest| (60_000..=90_000).contains(rest)), "{rests:?}");
        assert!(90 < rests.len(), "{} different rests of 100", rests.len());
    }
}
