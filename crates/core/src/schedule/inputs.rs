//! What the agent of a schedule reads: a window of time, so that nothing is read twice and nothing is missed.

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the agent is to read. The window is computed for each run; reading is the agent's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct InputsPolicy {
    /// Which kind of window.
    pub input_type: InputType,
    /// How long a window of the latest intake is, in minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_minutes: Option<u32>,
    /// Which threads, by lifecycle or tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_filter: Option<String>,
}

/// Which window an agent reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputType {
    /// What has come since the last run of the schedule that succeeded.
    ThreadsSinceLastRun,
    /// What has come in the last minutes.
    LatestIntakeWindow,
    /// Everything up to the slot.
    All,
    /// Nothing: the agent decides by itself.
    #[default]
    None,
}

/// From when to when an agent reads. The beginning belongs to the run before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Behind this instant; none is from the beginning.
    pub since: Option<Timestamp>,
    /// Up to this instant, which is the run's slot.
    pub until: Timestamp,
}

impl InputsPolicy {
    /// The window of a run for the slot `until`, when the windows of successful runs reach up to `read_until`.
    ///
    /// A run that comes late, behind one that has read its window too, gets an empty one.
    pub fn window(&self, until: Timestamp, read_until: Option<Timestamp>) -> Window {
        let since = match self.input_type {
            InputType::ThreadsSinceLastRun => read_until,
            InputType::LatestIntakeWindow => match self.window_minutes {
                Some(minutes) => until.checked_sub(SignedDuration::from_mins(minutes.into())).ok(),
                None => read_until,
            },
            InputType::All | InputType::None => None,
        };
        Window { since: since.map(|since| since.min(until)), until }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        format!("2026-03-09T{text}:00Z").parse().unwrap()
    }

    #[test]
    fn a_window_begins_where_the_last_successful_one_ended() {
        let policy = InputsPolicy { input_type: InputType::ThreadsSinceLastRun, ..InputsPolicy::default() };
        for (until, read_until, since) in [
            ("10:00", None, None),
            ("10:00", Some("08:00"), Some("08:00")),
            // The slot of 10:00 is tried again after that of 12:00 has read everything.
            ("10:00", Some("12:00"), Some("10:00")),
        ] {
            let window = policy.window(at(until), read_until.map(at));
            assert_eq!(window, Window { since: since.map(at), until: at(until) });
        }
    }

    #[test]
    fn the_latest_intake_is_so_many_minutes_and_everything_has_no_beginning() {
        let latest = InputsPolicy {
            input_type: InputType::LatestIntakeWindow,
            window_minutes: Some(30),
            ..InputsPolicy::default()
        };
        assert_eq!(latest.window(at("10:00"), Some(at("09:50"))).since, Some(at("09:30")));
        let all = InputsPolicy { input_type: InputType::All, ..InputsPolicy::default() };
        assert_eq!(all.window(at("10:00"), Some(at("09:50"))).since, None);
    }
}
