//! A workflow that is started elsewhere, or by an agent that stands in for it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::RunId;

/// A request to start a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Workflow {
    /// The name of its definition.
    pub name: String,
    /// The version of its definition; the latest when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i32>,
    /// The schedule that starts it, by name: told to the workflow, and kept when the schedule is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_by: Option<String>,
    /// What it is found by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// What it is given.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub input: Map<String, Value>,
    /// Which workers take which of its tasks.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub task_to_domain: BTreeMap<String, String>,
    /// A definition that is sent along.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<Value>,
    /// Where an input lies that is too large to be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_input: Option<String>,
    /// How urgent it is: 0 to 99.
    #[serde(skip_serializing_if = "is_zero")]
    pub priority: u8,
    /// Who it is said to be started by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// What the same start is known by when it comes again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// What becomes of a start that comes again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_strategy: Option<IdempotencyStrategy>,
    /// Whether the run ends with the workflow, and not when it is accepted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_followed: bool,
}

fn is_zero(number: &u8) -> bool {
    *number == 0
}

/// What becomes of a start whose key is known already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum IdempotencyStrategy {
    /// It is refused.
    Fail,
    /// It gets the workflow that was started.
    ReturnExisting,
    /// It is refused while that one runs.
    FailOnRunning,
}

/// Which workflow a record is about, and which schedule had it started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowStart {
    /// The name of the workflow's definition.
    pub workflow: String,
    /// The name of the schedule.
    pub schedule: String,
}

/// What a run tells the workflow that it starts.
#[derive(Debug, Clone, Copy)]
pub struct Occasion<'a> {
    /// The run.
    pub run: RunId,
    /// When its slot was scheduled.
    pub scheduled_at: Timestamp,
    /// When it is started.
    pub started_at: Timestamp,
    /// The cron that fired, with its zone.
    pub cron: Option<&'a str>,
    /// What a start that comes again is known by, unless the request says otherwise.
    pub idempotency_key: &'a str,
}

impl Workflow {
    /// What a record of its start says about it, if a schedule has it started.
    pub fn start(&self) -> Option<WorkflowStart> {
        Some(WorkflowStart { workflow: self.name.clone(), schedule: self.started_by.clone()? })
    }

    /// The request of one run: places for its times are filled in, and a schedule tells the workflow about itself. What the input
    /// says already stays.
    #[must_use]
    pub fn on(&self, occasion: &Occasion<'_>) -> Workflow {
        let told = self.told(occasion);
        let mut input = self.input.clone();
        input.values_mut().for_each(|value| fill(value, &told));
        if self.started_by.is_some() {
            for (name, value) in &told {
                input.entry(*name).or_insert_with(|| value.clone());
            }
        }
        let text = |text: &Option<String>| text.as_ref().map(|text| filled(text, &told));
        let key = text(&self.idempotency_key).unwrap_or_else(|| occasion.idempotency_key.to_owned());
        Workflow {
            input,
            correlation_id: text(&self.correlation_id),
            idempotency_key: Some(key),
            // A start whose answer is lost is asked for again: it must not be a second one.
            idempotency_strategy: self.idempotency_strategy.or(Some(IdempotencyStrategy::ReturnExisting)),
            ..self.clone()
        }
    }

    /// Every word that a workflow is told, under the names of both of the dialects that it may have been written for.
    fn told(&self, occasion: &Occasion<'_>) -> Vec<(&'static str, Value)> {
        let scheduled = Value::from(occasion.scheduled_at.as_millisecond());
        let started = Value::from(occasion.started_at.as_millisecond());
        let mut told = vec![
            ("scheduledTime", scheduled.clone()),
            ("executionTime", started.clone()),
            ("_scheduledTime", scheduled),
            ("_executedTime", started),
            ("_executionId", Value::from(occasion.run.to_string())),
        ];
        if let Some(schedule) = &self.started_by {
            told.push(("_startedByScheduler", Value::from(schedule.as_str())));
        }
        if let Some(cron) = occasion.cron {
            told.push(("_schedulerCron", Value::from(cron)));
        }
        told
    }
}

/// Fills the places in every text of a value.
fn fill(value: &mut Value, told: &[(&'static str, Value)]) {
    match value {
        Value::String(text) => *text = filled(text, told),
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, told)),
        Value::Object(fields) => fields.values_mut().for_each(|field| fill(field, told)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A text whose places like `${scheduledTime}` are filled. Others are the workflow's own business, and left.
fn filled(text: &str, told: &[(&'static str, Value)]) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, place) = rest.split_at(start);
        filled += before;
        let end = place.find('}');
        let name = end.map(|end| place[2..end].trim());
        let value = name.and_then(|name| told.iter().find(|(known, _)| *known == name));
        match (end, value) {
            (Some(end), Some((_, value))) => {
                filled += &value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                rest = &place[end + 1..];
            }
            _ => {
                filled += "${";
                rest = &place[2..];
            }
        }
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn occasion() -> Occasion<'static> {
        Occasion {
            run: RunId(uuid::Uuid::from_u128(7)),
            scheduled_at: Timestamp::from_millisecond(1_773_061_200_000).unwrap(),
            started_at: Timestamp::from_millisecond(1_773_061_200_004).unwrap(),
            cron: Some("0 0 9 * * * UTC"),
            idempotency_key: "schedule/slot",
        }
    }

    fn workflow(input: Value) -> Workflow {
        let Value::Object(input) = input else { panic!("an input is an object") };
        Workflow { name: "report".into(), started_by: Some("nightly".into()), input, ..Workflow::default() }
    }

    #[test]
    fn a_workflow_is_told_what_started_it_and_keeps_what_it_was_given() {
        let sent = workflow(json!({"region": "eu", "executionTime": "mine"})).on(&occasion());
        let expected = json!({
            "region": "eu",
            "executionTime": "mine",
            "scheduledTime": 1_773_061_200_000_i64,
            "_scheduledTime": 1_773_061_200_000_i64,
            "_executedTime": 1_773_061_200_004_i64,
            "_executionId": "00000000-0000-0000-0000-000000000007",
            "_startedByScheduler": "nightly",
            "_schedulerCron": "0 0 9 * * * UTC",
        });
        assert_eq!(Value::Object(sent.input), expected);
        assert_eq!(sent.idempotency_key.as_deref(), Some("schedule/slot"));
        assert_eq!(sent.idempotency_strategy, Some(IdempotencyStrategy::ReturnExisting));
    }

    #[test]
    fn places_are_filled_wherever_a_text_is() {
        let asked = Workflow {
            correlation_id: Some("demo-${scheduledTime}".into()),
            idempotency_key: Some("${_startedByScheduler}@${ scheduledTime }".into()),
            ..workflow(json!({"a": ["${executionTime}", {"b": "x${_executionId}y"}], "c": "${workflow.input.d} ${"}))
        };
        let sent = asked.on(&occasion());
        assert_eq!(sent.correlation_id.as_deref(), Some("demo-1773061200000"));
        assert_eq!(sent.idempotency_key.as_deref(), Some("nightly@1773061200000"));
        assert_eq!(sent.input["a"], json!(["1773061200004", {"b": "x00000000-0000-0000-0000-000000000007y"}]));
        assert_eq!(sent.input["c"], "${workflow.input.d} ${");
    }

    #[test]
    fn a_start_by_hand_is_told_nothing() {
        let asked = Workflow { started_by: None, ..workflow(json!({"a": 1})) };
        assert_eq!(Value::Object(asked.on(&occasion()).input), json!({"a": 1}));
        assert_eq!(asked.start(), None);
    }
}
