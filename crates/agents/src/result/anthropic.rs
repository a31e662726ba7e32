//! Anthropic's messages API: the body of an answer, as `curl` prints it.

use serde_json::{Map, Value};

use super::usage::add_usage;
use super::{AgentResult, Taken, own};

pub(super) fn take(object: &Map<String, Value>) -> Taken {
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    match text("type") {
        Some("message") if object.contains_key("usage") => Taken::result(read(object)),
        Some("error") if object.get("error").is_some_and(Value::is_object) => {
            let mut result = AgentResult::default();
            result.error = own::error(object["error"].clone(), &mut result);
            Taken::result(result)
        }
        _ => Taken::No,
    }
}

fn read(object: &Map<String, Value>) -> AgentResult {
    let mut result = AgentResult::default();
    let blocks = object.get("content").and_then(Value::as_array).into_iter().flatten();
    let texts: Vec<&str> = blocks.filter_map(|block| block.get("text")?.as_str()).collect();
    if !texts.is_empty() {
        result.summary = Some(AgentResult::cut_summary(texts.join("\n")));
    }
    if let Some(usage) = object.get("usage").and_then(Value::as_object) {
        add_usage(usage, &mut result.llm);
    }
    result.llm.extend(object.get("model").map(|model| ("model".to_owned(), model.clone())));
    result.llm.insert("provider".to_owned(), Value::from("anthropic"));
    if object.get("stop_reason").and_then(Value::as_str) == Some("max_tokens") {
        result.warnings.push("the model's answer ends at its limit of tokens (max_tokens)".to_owned());
    }
    result
}
