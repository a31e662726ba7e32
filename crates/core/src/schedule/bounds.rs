//! Bounds: from when, until when, how often at most.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ParseError;
use crate::storable;

/// The bounds of a schedule. Both instants are inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "BoundsText", into = "BoundsText")]
#[schemars(with = "BoundsText")]
pub struct Bounds {
    start_at: Option<Timestamp>,
    end_at: Option<Timestamp>,
    max_runs: Option<u64>,
}

impl Bounds {
    /// Checks that there is something between the bounds. They are kept to the microsecond.
    pub fn new(
        start_at: Option<Timestamp>,
        end_at: Option<Timestamp>,
        max_runs: Option<u64>,
    ) -> Result<Bounds, ParseError> {
        if let (Some(start_at), Some(end_at)) = (start_at, end_at)
            && end_at < start_at
        {
            let problem = format!("the end {end_at} lies before the start {start_at}");
            return Err(ParseError::value("end_at", problem, "use an end at or after the start"));
        }
        for (field, at) in [("start_at", start_at), ("end_at", end_at)] {
            if let Some(at) = at.filter(|at| !storable::is_kept(*at)) {
                let problem = format!("{at} lies before the year 1");
                return Err(ParseError::value(field, problem, "use a year from 1 to 9999"));
            }
        }
        if max_runs == Some(0) {
            let problem = "a schedule with no runs never does anything";
            return Err(ParseError::value("max_runs", problem, "use 1 or more"));
        }
        let (start_at, end_at) = (start_at.map(storable::instant), end_at.map(storable::instant));
        Ok(Bounds { start_at, end_at, max_runs })
    }

    /// The first instant at which a slot may lie.
    pub fn start_at(&self) -> Option<Timestamp> {
        self.start_at
    }

    /// The last instant at which a slot may lie.
    pub fn end_at(&self) -> Option<Timestamp> {
        self.end_at
    }

    /// How many runs may start.
    pub fn max_runs(&self) -> Option<u64> {
        self.max_runs
    }

    /// Whether an instant lies before the start.
    pub(crate) fn is_before(&self, at: Timestamp) -> bool {
        self.start_at.is_some_and(|start_at| at < start_at)
    }

    /// Whether an instant lies behind the end.
    pub(crate) fn is_behind(&self, at: Timestamp) -> bool {
        self.end_at.is_some_and(|end_at| end_at < at)
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Bounds")]
#[derive(Default)]
struct BoundsText {
    /// The first instant at which a slot may lie.
    #[serde(skip_serializing_if = "Option::is_none")]
    start_at: Option<Timestamp>,
    /// The last instant at which a slot may lie.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_at: Option<Timestamp>,
    /// How many runs may start.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    max_runs: Option<u64>,
}

impl TryFrom<BoundsText> for Bounds {
    type Error = ParseError;

    fn try_from(text: BoundsText) -> Result<Bounds, ParseError> {
        Bounds::new(text.start_at, text.end_at, text.max_runs)
    }
}

impl From<Bounds> for BoundsText {
    fn from(bounds: Bounds) -> BoundsText {
        BoundsText { start_at: bounds.start_at, end_at: bounds.end_at, max_runs: bounds.max_runs }
    }
}
