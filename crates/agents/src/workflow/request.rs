//! The request to start a workflow, as it travels: Conductor's `StartWorkflowRequest`.

use std::collections::BTreeMap;

use punctual_core::ParseError;
use punctual_core::schedule::{IdempotencyStrategy, Workflow};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// The highest priority of a workflow.
const PRIORITY_MAX: u8 = 99;

/// A request to start a workflow, on the wire.
///
/// Read generously: unknown fields are ignored, and `null` is the same as an absent field. What is absent is not written.
/// Numbers and words are checked by [`into_workflow`](StartRequest::into_workflow), which names the field at fault.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StartRequest {
    /// The name of the workflow's definition. Required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The version of the definition; the latest when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// What the workflow is found by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// What the workflow is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Map<String, Value>>,
    /// Which workers take which of its tasks.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "without_nulls")]
    pub task_to_domain: Option<BTreeMap<String, String>>,
    /// A definition that is sent along.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_def: Option<Value>,
    /// Where an input lies that is too large to be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_input_payload_storage_path: Option<String>,
    /// How urgent it is: 0 to 99; 0 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// Who it is said to be started by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// What the same start is known by when it comes again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// What becomes of a start that comes again: `FAIL`, `RETURN_EXISTING` or `FAIL_ON_RUNNING`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_strategy: Option<String>,
}

impl From<&Workflow> for StartRequest {
    fn from(workflow: &Workflow) -> StartRequest {
        let workflow = workflow.clone();
        StartRequest {
            name: Some(workflow.name),
            version: workflow.version.map(i64::from),
            correlation_id: workflow.correlation_id,
            input: Some(workflow.input).filter(|input| !input.is_empty()),
            task_to_domain: Some(workflow.task_to_domain).filter(|domains| !domains.is_empty()),
            workflow_def: workflow.definition,
            external_input_payload_storage_path: workflow.external_input,
            priority: Some(i64::from(workflow.priority)).filter(|priority| *priority != 0),
            created_by: workflow.created_by,
            idempotency_key: workflow.idempotency_key,
            idempotency_strategy: workflow.idempotency_strategy.map(|strategy| word(strategy).to_owned()),
        }
    }
}

impl StartRequest {
    /// The workflow that is asked for. No schedule starts it, and it is not followed: neither is said on the wire.
    pub fn into_workflow(self) -> Result<Workflow, ParseError> {
        let name = self.name.filter(|name| !name.trim().is_empty());
        Ok(Workflow {
            name: name.ok_or_else(|| wrong("name", "there is none", "name the workflow to start"))?,
            version: self.version.map(version).transpose()?,
            started_by: None,
            correlation_id: self.correlation_id,
            input: self.input.unwrap_or_default(),
            task_to_domain: self.task_to_domain.unwrap_or_default(),
            definition: self.workflow_def,
            external_input: self.external_input_payload_storage_path,
            priority: priority(self.priority.unwrap_or(0))?,
            created_by: self.created_by,
            idempotency_key: self.idempotency_key,
            idempotency_strategy: self.idempotency_strategy.as_deref().map(strategy).transpose()?,
            is_followed: false,
        })
    }
}

fn version(version: i64) -> Result<i32, ParseError> {
    i32::try_from(version).map_err(|_| {
        wrong("version", format!("{version} is no version"), format!("use a whole number up to {}", i32::MAX))
    })
}

fn priority(priority: i64) -> Result<u8, ParseError> {
    let known = u8::try_from(priority).ok().filter(|priority| *priority <= PRIORITY_MAX);
    known.ok_or_else(|| {
        wrong("priority", format!("{priority} is not from 0 to {PRIORITY_MAX}"), "use 0 where it does not matter")
    })
}

fn strategy(text: &str) -> Result<IdempotencyStrategy, ParseError> {
    use IdempotencyStrategy as S;
    let known = [S::Fail, S::ReturnExisting, S::FailOnRunning].into_iter().find(|strategy| word(*strategy) == text);
    known.ok_or_else(|| {
        // As much as a person recognises it by.
        let shown: String = text.chars().take(40).collect();
        let problem = format!("{shown:?} is no strategy");
        wrong("idempotencyStrategy", problem, "use FAIL, RETURN_EXISTING or FAIL_ON_RUNNING")
    })
}

/// A strategy as Conductor writes it.
fn word(strategy: IdempotencyStrategy) -> &'static str {
    match strategy {
        IdempotencyStrategy::Fail => "FAIL",
        IdempotencyStrategy::ReturnExisting => "RETURN_EXISTING",
        IdempotencyStrategy::FailOnRunning => "FAIL_ON_RUNNING",
    }
}

fn wrong(field: &str, problem: impl Into<String>, fix: impl Into<String>) -> ParseError {
    ParseError { field: field.to_owned(), position: None, problem: problem.into(), fix: fix.into() }
}

/// A task without a domain is one that is not named.
fn without_nulls<'de, D: Deserializer<'de>>(from: D) -> Result<Option<BTreeMap<String, String>>, D::Error> {
    let domains = Option::<BTreeMap<String, Option<String>>>::deserialize(from)?;
    Ok(domains.map(|domains| domains.into_iter().filter_map(|(task, domain)| Some((task, domain?))).collect()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(json: Value) -> Result<Workflow, ParseError> {
        serde_json::from_value::<StartRequest>(json).unwrap().into_workflow()
    }

    fn full() -> Value {
        json!({
            "name": "report",
            "version": 3,
            "correlationId": "c-1",
            "input": {"region": "eu", "none": null},
            "taskToDomain": {"*": "blue"},
            "workflowDef": {"tasks": []},
            "externalInputPayloadStoragePath": "s3://x",
            "priority": 99,
            "createdBy": "ann",
            "idempotencyKey": "k",
            "idempotencyStrategy": "FAIL_ON_RUNNING",
        })
    }

    #[test]
    fn every_field_survives_the_way_there_and_back() {
        let workflow = read(full()).unwrap();
        assert_eq!(workflow.idempotency_strategy, Some(IdempotencyStrategy::FailOnRunning));
        assert_eq!((workflow.version, workflow.priority), (Some(3), 99));
        assert_eq!(serde_json::to_value(StartRequest::from(&workflow)).unwrap(), full());
    }

    #[test]
    fn what_only_we_know_is_not_sent() {
        let workflow = Workflow {
            name: "report".into(),
            started_by: Some("nightly".into()),
            is_followed: true,
            ..Workflow::default()
        };
        assert_eq!(serde_json::to_value(StartRequest::from(&workflow)).unwrap(), json!({"name": "report"}));
    }

    #[test]
    fn unknown_fields_and_nulls_are_nothing() {
        let Value::Object(fields) = full() else { unreachable!("it is an object") };
        let mut nulls: Map<String, Value> = fields.keys().map(|field| (field.clone(), Value::Null)).collect();
        nulls.insert("name".into(), "report".into());
        nulls.insert("event".into(), json!({"of": "the future"}));
        let workflow = read(Value::Object(nulls)).unwrap();
        assert_eq!(workflow, Workflow { name: "report".into(), ..Workflow::default() });
        let domains = read(json!({"name": "report", "taskToDomain": {"a": null, "b": "blue"}})).unwrap().task_to_domain;
        assert_eq!(domains, BTreeMap::from([("b".to_owned(), "blue".to_owned())]));
    }

    #[test]
    fn what_is_wrong_names_its_field() {
        for (field, value, problem) in [
            ("name", Value::Null, "there is none"),
            ("name", json!(" \t"), "there is none"),
            ("version", json!(3_000_000_000_i64), "3000000000 is no version"),
            ("priority", json!(100), "100 is not from 0 to 99"),
            ("priority", json!(-1), "-1 is not from 0 to 99"),
            ("idempotencyStrategy", json!("fail"), "\"fail\" is no strategy"),
        ] {
            let mut request = full();
            request[field] = value;
            let error = read(request).unwrap_err();
            assert_eq!((error.field.as_str(), error.problem.as_str()), (field, problem));
        }
    }
}
