//! Usage: how many tokens, under the names that providers have for them.
//!
//! Here `promptTokens` is all that a model has read, and `cachedTokens` and `cacheWriteTokens` are parts of it. So it is with
//! OpenAI and Google; Anthropic counts what comes from its cache, or goes into it, beside `input_tokens`.

use punctual_core::run::figures::{count, number};
use serde_json::{Map, Value};

use super::names::snake;

/// The names of figures that [`add_usage`] knows, in snake case.
pub(super) const USAGE_NAMES: [&str; 14] = [
    "input_tokens",
    "prompt_tokens",
    "output_tokens",
    "completion_tokens",
    "total_tokens",
    "cached_tokens",
    "cached_input_tokens",
    "cache_write_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "reasoning_tokens",
    "reasoning_output_tokens",
    "input_tokens_details",
    "output_tokens_details",
];

/// Names for the same two objects in OpenAI's chat API.
const DETAILS: [(&str, &str); 2] =
    [("prompt_tokens_details", "input_tokens_details"), ("completion_tokens_details", "output_tokens_details")];

/// Whether a name is one of a figure of usage.
pub(super) fn is_usage_name(name: &str) -> bool {
    USAGE_NAMES.contains(&name) || DETAILS.iter().any(|(chat, _)| *chat == name)
}

/// Adds a usage to what is known of the models, where nothing is known yet. Figures stay as they are written, for whoever
/// bounds them; only what is added up is a number.
pub(super) fn add_usage(usage: &Map<String, Value>, llm: &mut Map<String, Value>) {
    let usage: Map<String, Value> = usage.iter().map(|(name, value)| (snake(name), value.clone())).collect();
    let get = |names: &[&str]| names.iter().find_map(|name| usage.get(*name).filter(|value| !value.is_null())).cloned();
    let detail = |details: [&str; 2], name: &str| {
        details.iter().find_map(|it| usage.get(*it)?.get(name).filter(|value| !value.is_null())).cloned()
    };
    let input = ["input_tokens_details", "prompt_tokens_details"];
    let output = ["output_tokens_details", "completion_tokens_details"];

    let (read, written) = (get(&["cache_read_input_tokens"]), get(&["cache_creation_input_tokens"]));
    let beside = [&read, &written].into_iter().flatten().filter_map(count).fold(0, u64::saturating_add);
    let prompt = match get(&["input_tokens", "prompt_tokens"]) {
        Some(prompt) if 0 < beside && number(&prompt).is_some() => {
            Some(Value::from(count(&prompt).unwrap_or(0).saturating_add(beside)))
        }
        None if 0 < beside => Some(Value::from(beside)),
        prompt => prompt,
    };
    let cached = get(&["cached_tokens", "cached_input_tokens"]).or_else(|| detail(input, "cached_tokens")).or(read);
    let cache_write = get(&["cache_write_tokens"]).or_else(|| detail(input, "cache_write_tokens")).or(written);
    let reasoning =
        get(&["reasoning_tokens", "reasoning_output_tokens"]).or_else(|| detail(output, "reasoning_tokens"));
    for (name, value) in [
        ("promptTokens", prompt),
        ("completionTokens", get(&["output_tokens", "completion_tokens"])),
        ("totalTokens", get(&["total_tokens"])),
        ("cachedTokens", cached),
        ("cacheWriteTokens", cache_write),
        ("reasoningTokens", reasoning),
    ] {
        if let Some(value) = value
            && !llm.contains_key(name)
        {
            llm.insert(name.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(usage: Value, expected: Value) {
        let mut llm = Map::new();
        add_usage(usage.as_object().unwrap(), &mut llm);
        assert_eq!(Value::Object(llm), expected);
    }

    #[test]
    fn every_provider_has_its_names() {
        // Anthropic: beside each other.
        check(
            json!({"input_tokens": 9, "cache_creation_input_tokens": 12871, "cache_read_input_tokens": 36391,
                "output_tokens": 510, "service_tier": "standard", "cache_creation": {"ephemeral_5m_input_tokens": 12871}}),
            json!({"promptTokens": 49271, "completionTokens": 510, "cachedTokens": 36391, "cacheWriteTokens": 12871}),
        );
        // OpenAI, chat: inside.
        check(
            json!({"prompt_tokens": 19, "completion_tokens": 10, "total_tokens": 29,
                "prompt_tokens_details": {"cached_tokens": 8, "audio_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 3}}),
            json!({"promptTokens": 19, "completionTokens": 10, "totalTokens": 29, "cachedTokens": 8, "reasoningTokens": 3}),
        );
        // OpenAI, responses: inside.
        check(
            json!({"input_tokens": 328, "input_tokens_details": {"cached_tokens": 100}, "output_tokens": 52,
                "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 380}),
            json!({"promptTokens": 328, "completionTokens": 52, "totalTokens": 380, "cachedTokens": 100, "reasoningTokens": 0}),
        );
        // Codex: inside.
        check(
            json!({"input_tokens": 24763, "cached_input_tokens": 24448, "output_tokens": 122}),
            json!({"promptTokens": 24763, "completionTokens": 122, "cachedTokens": 24448}),
        );
        // Ours, and JavaScript's spelling of the others.
        check(
            json!({"promptTokens": 1, "completionTokens": 2, "cachedTokens": null}),
            json!({"promptTokens": 1, "completionTokens": 2}),
        );
        check(
            json!({"inputTokens": 0, "outputTokens": 774, "cacheReadInputTokens": 5, "cacheCreationInputTokens": 0}),
            json!({"promptTokens": 5, "completionTokens": 774, "cachedTokens": 5, "cacheWriteTokens": 0}),
        );
        // What is no number is left to whoever says so.
        check(
            json!({"input_tokens": "many", "cache_read_input_tokens": 5}),
            json!({"promptTokens": "many", "cachedTokens": 5}),
        );
    }
}
