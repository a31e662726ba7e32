//! Punctual's own shape: what an agent that knows Punctual prints. Names are in camel case or in snake case.
//!
//! Unknown fields are ignored, as a program may print JSON for others too. What is known and of a wrong type, what is nearly known,
//! and whatever is not known in `llm`, which is for Punctual alone, is told: its author would want to know.

use jiff::Timestamp;
use punctual_core::run::figures::COST;
use serde_json::{Map, Value};

use super::names::{meant, snake};
use super::usage::{add_usage, is_usage_name};
use super::{AgentResult, WorkError, kind_of, shown};
use crate::text::cut;

/// The longest object of a result, in bytes: it becomes part of an entry of the journal.
const OBJECT_MAX: usize = 64 * 1024;
/// The longest name of a session or a model.
const NAME_MAX: usize = 200;
/// The longest code of an error, in bytes.
const ERROR_CODE_MAX: usize = 100;

/// What a result may have.
const FIELDS: [&str; 8] = ["summary", "refs", "llm", "tools", "facts", "nextRunAt", "error", "sessionId"];

/// Fields that make an object a result.
const MARKS: [&str; 9] =
    ["summary", "refs", "llm", "tools", "facts", "next_run_at", "error", "usage", "total_cost_usd"];

/// What `llm` may have, beside the figures of a usage.
const LLM_FIELDS: [&str; 15] = [
    "provider",
    "model",
    "models",
    "usage",
    "promptTokens",
    "completionTokens",
    "totalTokens",
    "cachedTokens",
    "cacheWriteTokens",
    "reasoningTokens",
    "llmCalls",
    "turns",
    "estimatedCostUsd",
    "totalCostUsd",
    "priceTable",
];

/// Whether an object is a result at all. A line of a log is none, though it may tell of an error.
pub(super) fn is_result(object: &Map<String, Value>) -> bool {
    let has =
        |names: &[&str]| object.iter().any(|(name, value)| !value.is_null() && names.contains(&snake(name).as_str()));
    let is_log = has(&["level", "severity", "lvl"]) && has(&["msg", "message", "event", "time", "timestamp", "ts"]);
    has(&MARKS) && (!is_log || has(&["summary", "llm", "next_run_at", "usage"]))
}

/// What in an object that is no result was probably meant to make it one.
pub(super) fn misspelt(object: &Map<String, Value>) -> Vec<String> {
    object.keys().filter_map(|name| Some(unknown("", name, meant(name, &FIELDS)?))).collect()
}

fn unknown(of: &str, name: &str, meant: &str) -> String {
    format!("result: unknown field {of}{}; did you mean {meant}?", shown(name))
}

/// Reads a result.
pub(super) fn read(object: Map<String, Value>) -> AgentResult {
    let mut result = AgentResult::default();
    let (mut usage, mut cost, mut model) = (None, None, None);
    for (name, value) in object {
        if value.is_null() {
            continue;
        }
        match snake(&name).as_str() {
            "summary" => result.summary = result.text("summary", value).map(AgentResult::cut_summary),
            "refs" => result.refs = result.object("refs", value),
            "tools" => result.tools = result.object("tools", value),
            "facts" => result.facts = result.object("facts", value),
            "llm" => read_llm(value, &mut result),
            "usage" => usage = value.as_object().cloned(),
            "total_cost_usd" | "cost_usd" => cost = Some(value),
            "model" => model = value.as_str().map(|model| cut(model.to_owned(), NAME_MAX)),
            "session_id" => result.session_id = result.text("sessionId", value).map(|id| cut(id, NAME_MAX)),
            "next_run_at" => result.next_run_at = next_run_at(value, &mut result),
            "error" => result.error = error(value, &mut result),
            _ => {
                if let Some(meant) = meant(&name, &FIELDS) {
                    result.warnings.push(unknown("", &name, meant));
                }
            }
        }
    }
    if let Some(usage) = usage {
        add_usage(&usage, &mut result.llm);
    }
    if let Some(cost) = cost {
        result.llm.entry(COST).or_insert(cost);
    }
    // A model alone says nothing of what was used.
    if let Some(model) = model
        && !result.llm.is_empty()
    {
        result.llm.entry("model").or_insert(Value::from(model));
    }
    result
}

/// What is said of the models.
fn read_llm(llm: Value, result: &mut AgentResult) {
    let llm = match llm {
        Value::String(model) if model.len() <= NAME_MAX && !model.contains('{') => {
            let said = "result: llm is a string, not an object: taken for the name of the model";
            result.warnings.push(said.to_owned());
            Map::from_iter([("model".to_owned(), Value::from(model))])
        }
        other => result.object("llm", other),
    };
    let mut usage = Map::new();
    for (name, value) in llm {
        let (known, value) = match snake(&name).as_str() {
            _ if value.is_null() => continue,
            it if is_usage_name(it) => {
                usage.insert(it.to_owned(), value);
                continue;
            }
            "usage" if value.is_object() => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    usage.entry(snake(name)).or_insert_with(|| value.clone());
                }
                continue;
            }
            "estimated_cost_usd" | "total_cost_usd" | "cost_usd" | "cost" => (COST, value),
            "llm_calls" | "calls" => ("llmCalls", value),
            "turns" | "num_turns" => ("turns", value),
            "price_table" => ("priceTable", value),
            "models" => ("models", value),
            "provider" => ("provider", value),
            "model" => match value {
                Value::String(model) => ("model", Value::from(cut(model, NAME_MAX))),
                other => {
                    result.ignore("llm.model", &other, "a string");
                    continue;
                }
            },
            // Kept as it is: whoever looks at the run sees it, and nothing counts it.
            _ => {
                result.warnings.push(match meant(&name, &LLM_FIELDS) {
                    Some(meant) => unknown("llm.", &name, meant),
                    None => format!("result: unknown field llm.{}", shown(&name)),
                });
                result.llm.insert(name, value);
                continue;
            }
        };
        result.llm.insert(known.to_owned(), value);
    }
    add_usage(&usage, &mut result.llm);
}

fn next_run_at(value: Value, result: &mut AgentResult) -> Option<Timestamp> {
    let text = result.text("nextRunAt", value)?;
    let at = text.parse().ok();
    if at.is_none() {
        let said =
            format!("result: nextRunAt is {:?}, not an instant like 2026-03-09T15:00:00Z: ignored", cut(text, 40));
        result.warnings.push(said);
    }
    at
}

/// Whatever is there and is neither `null` nor `false` is an error: taking a failure for a success is worse than the other way
/// round.
pub(super) fn error(error: Value, result: &mut AgentResult) -> Option<WorkError> {
    let mut found = WorkError::new("the work reports an error");
    match error {
        Value::Null | Value::Bool(false) => return None,
        Value::String(message) => found = WorkError::new(message),
        Value::Object(mut fields) => {
            // The APIs of models have the word for it in `type`, and a code only sometimes.
            let code =
                [fields.remove("code"), fields.remove("type")].into_iter().flatten().find(|code| !code.is_null());
            match code {
                None => {}
                Some(Value::String(code)) => found.code = cut(code, ERROR_CODE_MAX),
                Some(Value::Number(code)) => found.code = code.to_string(),
                Some(other) => result.ignore("error.code", &other, "a string"),
            }
            match fields.remove("message") {
                None | Some(Value::Null) => {}
                Some(Value::String(message)) => found = WorkError { code: found.code, ..WorkError::new(message) },
                Some(other) => result.ignore("error.message", &other, "a string"),
            }
            match fields.remove("retryable") {
                None | Some(Value::Null) => {}
                Some(Value::Bool(is_retryable)) => found.is_retryable = is_retryable,
                Some(other) => result.ignore("error.retryable", &other, "true or false"),
            }
        }
        other => result.ignore("error", &other, "an object"),
    }
    Some(found)
}

impl AgentResult {
    fn text(&mut self, name: &str, value: Value) -> Option<String> {
        match value {
            Value::String(text) => Some(text),
            other => {
                self.ignore(name, &other, "a string");
                None
            }
        }
    }

    fn object(&mut self, name: &str, value: Value) -> Map<String, Value> {
        match value {
            Value::Object(object) if OBJECT_MAX < Value::Object(object.clone()).to_string().len() => {
                self.warnings.push(format!("result: {name} is longer than {} KiB: ignored", OBJECT_MAX / 1024));
                Map::new()
            }
            Value::Object(object) => object,
            other => {
                self.ignore(name, &other, "an object");
                Map::new()
            }
        }
    }

    fn ignore(&mut self, name: &str, value: &Value, wanted: &str) {
        self.warnings.push(format!("result: {name} is {}, not {wanted}: ignored", kind_of(value)));
    }
}
