//! Gemini CLI: `gemini --output-format json`, one object; and `--output-format stream-json`, events, one a line.
//!
//! The tokens that it thought with are billed as written ones, and are counted beside those of the answer; the tokens of what
//! tools gave back are read ones, and are counted beside the prompt.

use punctual_core::run::figures::count;
use serde_json::{Map, Value};

use super::own;
use super::{AgentResult, SUMMARY_MAX, Taken};

/// What a stream has said so far.
#[derive(Debug, Default)]
pub(super) struct Gemini {
    session: Option<String>,
    model: Option<String>,
    answer: String,
}

impl Gemini {
    pub(super) fn take(&mut self, object: &Map<String, Value>) -> Taken {
        let text = |name: &str| object.get(name).and_then(Value::as_str);
        let has = |name: &str| object.contains_key(name);
        match text("type") {
            None if has("response") && (has("stats") || has("session_id")) || has("stats") && has("error") => {
                Taken::result(read(object))
            }
            Some("init") if has("model") && has("session_id") => {
                (self.session, self.model) = (text("session_id").map(str::to_owned), text("model").map(str::to_owned));
                self.answer.clear();
                Taken::Event
            }
            Some("message") if has("content") && has("timestamp") => {
                self.take_message(text("role"), text("content").unwrap_or_default(), object.get("delta"));
                Taken::Event
            }
            // The answer is what follows the last of them.
            Some("tool_use" | "tool_result") if has("tool_id") => {
                self.answer.clear();
                Taken::Event
            }
            Some("error") if has("severity") => Taken::Event,
            Some("result") if has("status") && (has("stats") || has("timestamp")) => Taken::result(self.ended(object)),
            _ => Taken::No,
        }
    }

    fn take_message(&mut self, role: Option<&str>, content: &str, delta: Option<&Value>) {
        if role != Some("assistant") || delta != Some(&Value::Bool(true)) {
            self.answer.clear();
        }
        // The summary is cut where it is too long: more of it is not needed.
        if role == Some("assistant") && self.answer.len() <= SUMMARY_MAX {
            self.answer += content;
        }
    }

    fn ended(&self, object: &Map<String, Value>) -> AgentResult {
        let mut result = AgentResult { session_id: self.session.clone(), ..AgentResult::default() };
        let has_failed = object.get("status").and_then(Value::as_str) == Some("error");
        let error = object.get("error").cloned().unwrap_or(Value::Bool(has_failed));
        result.error = own::error(error, &mut result);
        if result.error.is_none() && !self.answer.is_empty() {
            result.summary = Some(AgentResult::cut_summary(self.answer.clone()));
        }
        if let Some(stats) = object.get("stats").and_then(Value::as_object) {
            let models = stats.get("models").and_then(Value::as_object);
            let names = models.map(|models| models.keys().cloned().collect()).unwrap_or_default();
            let figure = |name: &str| stats.get(name).and_then(count).unwrap_or(0);
            let (prompt, total) = (figure("input_tokens"), figure("total_tokens"));
            // The stream has no count of thoughts: they are what is missing to the total.
            let tokens = Tokens {
                prompt,
                completion: figure("output_tokens").max(total.saturating_sub(prompt)),
                total,
                cached: figure("cached"),
            };
            tokens.write(&mut result.llm, names, self.model.as_deref());
            result.tools.extend(stats.get("tool_calls").map(|calls| ("totalCalls".to_owned(), calls.clone())));
        }
        result
    }
}

fn read(object: &Map<String, Value>) -> AgentResult {
    let text = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
    let mut result = AgentResult { session_id: text("session_id"), ..AgentResult::default() };
    result.error = own::error(object.get("error").cloned().unwrap_or_default(), &mut result);
    if result.error.is_none() {
        result.summary = text("response").filter(|answer| !answer.is_empty()).map(AgentResult::cut_summary);
    }
    let Some(stats) = object.get("stats").and_then(Value::as_object) else { return result };
    let (mut tokens, mut calls, mut names) = (Tokens::default(), 0_u64, vec![]);
    for (model, metrics) in stats.get("models").and_then(Value::as_object).into_iter().flatten() {
        let figure = |name: &str| metrics.get("tokens").and_then(|it| count(it.get(name)?)).unwrap_or(0);
        tokens.prompt += figure("prompt") + figure("tool");
        tokens.completion += figure("candidates") + figure("thoughts");
        tokens.total += figure("total");
        tokens.cached += figure("cached");
        calls += metrics.get("api").and_then(|api| count(api.get("totalRequests")?)).unwrap_or(0);
        names.push((figure("total"), model.clone()));
    }
    // The one that did most of the work first.
    names.sort_by(|a, b| b.cmp(a));
    tokens.write(&mut result.llm, names.into_iter().map(|(_, name)| name).collect(), None);
    if 0 < calls {
        result.llm.insert("llmCalls".to_owned(), Value::from(calls));
    }
    for (name, of) in [("totalCalls", "totalCalls"), ("failedCalls", "totalFail")] {
        let calls = stats.get("tools").and_then(|tools| tools.get(of));
        result.tools.extend(calls.map(|calls| (name.to_owned(), calls.clone())));
    }
    result
}

/// What was used, of all models together.
#[derive(Debug, Default)]
struct Tokens {
    prompt: u64,
    completion: u64,
    total: u64,
    cached: u64,
}

impl Tokens {
    fn write(&self, llm: &mut Map<String, Value>, names: Vec<String>, model: Option<&str>) {
        for (name, count) in [
            ("promptTokens", self.prompt),
            ("completionTokens", self.completion),
            ("totalTokens", self.total),
            ("cachedTokens", self.cached),
        ] {
            llm.insert(name.to_owned(), Value::from(count));
        }
        if let Some(model) = names.first().map(String::as_str).or(model) {
            llm.insert("model".to_owned(), Value::from(model));
        }
        if 1 < names.len() {
            llm.insert("models".to_owned(), names.into_iter().take(20).collect());
        }
        llm.insert("provider".to_owned(), Value::from("google"));
    }
}
