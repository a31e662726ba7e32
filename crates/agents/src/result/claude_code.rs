//! Claude Code: `claude -p --output-format json`, and the last line of `--output-format stream-json`.
//!
//! Both print an object of type `result`. The stream begins with `{"type":"system","subtype":"init",…}`, which names the model.

use punctual_core::run::figures::{COST, number};
use serde_json::{Map, Value};

use super::usage::add_usage;
use super::{AgentResult, Taken, WorkError, shown};

/// The most names that a warning tells.
const NAMES_MAX: usize = 5;

/// What an output has said so far.
#[derive(Debug, Default)]
pub(super) struct ClaudeCode {
    model: Option<String>,
}

impl ClaudeCode {
    pub(super) fn take(&mut self, object: &Map<String, Value>) -> Taken {
        let text = |name: &str| object.get(name).and_then(Value::as_str);
        match (text("type"), text("subtype")) {
            (Some("result"), Some(subtype)) if object.contains_key("is_error") || object.contains_key("num_turns") => {
                Taken::result(self.read(object, subtype))
            }
            (Some("system"), Some("init")) => {
                self.model = text("model").map(str::to_owned);
                Taken::Event
            }
            (Some("system" | "assistant" | "user" | "stream_event"), _) if object.contains_key("session_id") => {
                Taken::Event
            }
            _ => Taken::No,
        }
    }

    fn read(&self, object: &Map<String, Value>, subtype: &str) -> AgentResult {
        let text = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
        let answer = text("result").filter(|answer| !answer.is_empty());
        let mut result = AgentResult { session_id: text("session_id"), ..AgentResult::default() };
        let is_error = object.get("is_error").and_then(Value::as_bool).unwrap_or(false) || subtype.starts_with("error");
        if is_error {
            let errors = object.get("errors").and_then(Value::as_array).into_iter().flatten();
            let errors: Vec<&str> = errors.filter_map(Value::as_str).collect();
            let said = answer.or_else(|| (!errors.is_empty()).then(|| errors.join("; ")));
            let error = WorkError::new(said.unwrap_or_else(|| format!("Claude Code ended with {subtype}")));
            let code = if subtype.starts_with("error") { subtype.to_owned() } else { error.code.clone() };
            // Another try would spend the same to come to the same bound.
            let is_bound = matches!(subtype, "error_max_turns" | "error_max_budget_usd");
            result.error = Some(WorkError { code, is_retryable: !is_bound, ..error });
        } else {
            result.summary = answer.map(AgentResult::cut_summary);
        }
        self.read_models(object, &mut result);
        tell_denials(object, &mut result);
        result
    }

    fn read_models(&self, object: &Map<String, Value>, result: &mut AgentResult) {
        let llm = &mut result.llm;
        if let Some(usage) = object.get("usage").and_then(Value::as_object) {
            add_usage(usage, llm);
        }
        // What it says of its cost covers all its models.
        if let Some(cost) = object.get("total_cost_usd").or_else(|| object.get("cost_usd")).filter(|it| !it.is_null()) {
            llm.insert(COST.to_owned(), cost.clone());
        }
        if let Some(turns) = object.get("num_turns") {
            llm.insert("turns".to_owned(), turns.clone());
        }
        let models = object.get("modelUsage").and_then(Value::as_object);
        let cost = |usage: &Value| usage.get("costUSD").and_then(number).unwrap_or(0.0);
        let most = models.into_iter().flatten().max_by(|a, b| cost(a.1).total_cmp(&cost(b.1))).map(|(model, _)| model);
        if let Some(model) = most.or(self.model.as_ref()) {
            llm.insert("model".to_owned(), Value::from(model.clone()));
        }
        if let Some(models) = models.filter(|models| 1 < models.len()) {
            llm.insert("models".to_owned(), models.keys().take(20).cloned().collect());
        }
        if !llm.is_empty() {
            llm.insert("provider".to_owned(), Value::from("anthropic"));
        }
    }
}

/// Calls that nobody was there to allow: the work may have ended well and done nothing.
fn tell_denials(object: &Map<String, Value>, result: &mut AgentResult) {
    let denied = object.get("permission_denials").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if denied.is_empty() {
        return;
    }
    let mut names: Vec<String> = denied.iter().filter_map(|it| it.get("tool_name")?.as_str()).map(shown).collect();
    names.sort();
    names.dedup();
    names.truncate(NAMES_MAX);
    let calls = if denied.len() == 1 { "call" } else { "calls" };
    let said = format!("Claude Code was denied {} tool {calls}: {}", denied.len(), names.join(", "));
    result.warnings.push(said);
    result.tools.insert("deniedCalls".to_owned(), Value::from(denied.len()));
}
