//! OpenAI's chat and responses APIs, and those that are like them: the body of an answer, as `curl` prints it.
//!
//! Their errors have no mark of their own: `{"error": {"message", "type", "code"}}` is read as Punctual's own shape.

use serde_json::{Map, Value};

use super::usage::add_usage;
use super::{AgentResult, Taken, own};

pub(super) fn take(object: &Map<String, Value>) -> Taken {
    match object.get("object").and_then(Value::as_str) {
        Some("chat.completion") => Taken::result(chat(object)),
        Some("response") => Taken::result(response(object)),
        _ => Taken::No,
    }
}

fn chat(object: &Map<String, Value>) -> AgentResult {
    let mut result = models(object);
    let choice = object.get("choices").and_then(|choices| choices.get(0)).unwrap_or(&Value::Null);
    let answer = choice.get("message").and_then(|message| message.get("content")?.as_str());
    result.summary = answer.map(|answer| AgentResult::cut_summary(answer.to_owned()));
    if choice.get("finish_reason").and_then(Value::as_str) == Some("length") {
        result.warnings.push("the model's answer ends at its limit of tokens (length)".to_owned());
    }
    result
}

fn response(object: &Map<String, Value>) -> AgentResult {
    let mut result = models(object);
    let items = object.get("output").and_then(Value::as_array).into_iter().flatten();
    let contents = items.filter_map(|item| item.get("content")?.as_array()).flatten();
    let texts: Vec<&str> = contents.filter_map(|content| content.get("text")?.as_str()).collect();
    if !texts.is_empty() {
        result.summary = Some(AgentResult::cut_summary(texts.join("\n")));
    }
    let status = object.get("status").and_then(Value::as_str);
    let error = object.get("error").filter(|error| !error.is_null()).cloned();
    result.error = own::error(error.unwrap_or(Value::Bool(status == Some("failed"))), &mut result);
    if status == Some("incomplete") {
        let reason = object.get("incomplete_details").and_then(|details| details.get("reason")?.as_str());
        result.warnings.push(format!(
            "the model's answer is incomplete ({})",
            reason.map_or("no reason".to_owned(), super::shown)
        ));
    }
    result
}

fn models(object: &Map<String, Value>) -> AgentResult {
    let mut result = AgentResult::default();
    if let Some(usage) = object.get("usage").and_then(Value::as_object) {
        add_usage(usage, &mut result.llm);
        result.llm.extend(object.get("model").map(|model| ("model".to_owned(), model.clone())));
        result.llm.insert("provider".to_owned(), Value::from("openai"));
    }
    result
}
