//! Outputs and what is read from them: recorded ones of tools and APIs, and what agents print themselves.

use serde_json::json;

use super::*;

fn read(text: &str) -> AgentResult {
    AgentResult::read(Kept { head: &[], tail: text.as_bytes(), is_cut: false })
}

fn recorded(name: &str) -> String {
    let path = format!("{}/tests/recorded/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What was read, without what is empty.
fn shown(result: AgentResult) -> Value {
    let error = result.error.map(|error| json!([error.code, error.message, error.is_retryable]));
    let mut all = json!({
        "summary": result.summary, "refs": result.refs, "llm": result.llm, "tools": result.tools, "facts": result.facts,
        "session": result.session_id, "next": result.next_run_at, "error": error, "warnings": result.warnings,
    });
    let is_empty = |value: &Value| value.is_null() || *value == json!({}) || *value == json!([]);
    all.as_object_mut().unwrap().retain(|_, value| !is_empty(value));
    all
}

#[track_caller]
fn check(text: &str, expected: Value) {
    assert_eq!(shown(read(text)), expected, "{text}");
}

#[test]
fn claude_code_is_read() {
    check(
        &recorded("claude-code.json"),
        json!({
            "summary": "Three reminders are due today.\n\n- R-1\n- R-2\n- R-3",
            "llm": {"promptTokens": 49271, "completionTokens": 510, "cachedTokens": 36391, "cacheWriteTokens": 12871,
                "estimatedCostUsd": 0.0529, "turns": 2, "provider": "anthropic", "model": "claude-sonnet-4-5-20250929",
                "models": ["claude-haiku-4-5-20251001", "claude-sonnet-4-5-20250929"]},
            "session": "550e8400-e29b-41d4-a716-446655440001",
        }),
    );
    // With --verbose, the objects stand in one list.
    let stream = recorded("claude-code-stream.jsonl");
    let list = format!("[{}]", stream.lines().collect::<Vec<_>>().join(","));
    for text in [stream.as_str(), list.as_str()] {
        check(
            text,
            json!({
                "summary": "I may not delete the folder.",
                "llm": {"promptTokens": 225, "completionTokens": 20, "cachedTokens": 100, "cacheWriteTokens": 120,
                    "estimatedCostUsd": 0.00145, "turns": 2, "provider": "anthropic", "model": "claude-sonnet-4-5-20250929"},
                "session": "550e8400-e29b-41d4-a716-446655440002",
                "tools": {"deniedCalls": 1},
                "warnings": ["Claude Code was denied 1 tool call: Bash"],
            }),
        );
    }
    let failed = shown(read(&recorded("claude-code-max-turns.json")));
    assert_eq!(failed["error"], json!(["error_max_turns", "Claude Code ended with error_max_turns", false]));
    assert_eq!(failed["llm"]["estimatedCostUsd"], json!(0.16741));
    let failed = shown(read(&recorded("claude-code-error.json")));
    assert_eq!(failed["error"], json!(["error", "Invalid API key · Fix external API key", true]));
    assert_eq!(failed["summary"], json!(null));
}

#[test]
fn codex_is_read() {
    let expected = json!({
        "summary": "There is a README.md in the repository root.",
        "llm": {"promptTokens": 24763, "completionTokens": 122, "cachedTokens": 24448, "provider": "openai"},
        "tools": {"totalCalls": 1},
        "session": "0199a213-81c0-7800-8aa1-bbab2a035a53",
    });
    check(&recorded("codex.jsonl"), expected.clone());
    // An error that the turn got over is none.
    let text = recorded("codex.jsonl");
    let error = "{\"type\":\"error\",\"message\":\"Reconnecting... 1/5\"}\n{\"type\":\"item.completed\",\"item\":{\"id\":\"item_3\"";
    check(&text.replace("{\"type\":\"item.completed\",\"item\":{\"id\":\"item_3\"", error), expected);
    check(
        &recorded("codex-failed.jsonl"),
        json!({
            "error": ["turn_failed", "stream disconnected before completion: quota exceeded", true],
            "session": "0199a213-81c0-7800-8aa1-bbab2a035a54",
        }),
    );
}

#[test]
fn gemini_is_read() {
    check(
        &recorded("gemini.json"),
        json!({
            "summary": "The capital of France is Paris.",
            "llm": {"promptTokens": 33932, "completionTokens": 214, "totalTokens": 34146, "cachedTokens": 21263, "llmCalls": 3,
                "provider": "google", "model": "gemini-2.5-pro", "models": ["gemini-2.5-pro", "gemini-2.5-flash"]},
            "tools": {"totalCalls": 1, "failedCalls": 0},
            "session": "b3c1b5a0-6f3e-4a57-9a3c-0d4e6a2a1f11",
        }),
    );
    check(
        &recorded("gemini-stream.jsonl"),
        json!({
            "summary": "Here are two files.",
            "llm": {"promptTokens": 50, "completionTokens": 200, "totalTokens": 250, "cachedTokens": 10,
                "provider": "google", "model": "gemini-2.5-flash"},
            "tools": {"totalCalls": 1},
            "session": "abc123",
        }),
    );
    let failed =
        r#"{"session_id": "s", "error": {"type": "FatalTurnLimitedError", "message": "too many turns", "code": 53}}"#;
    check(failed, json!({"error": ["53", "too many turns", true], "session": "s"}));
}

#[test]
fn the_apis_of_models_are_read() {
    check(
        &recorded("anthropic.json"),
        json!({
            "summary": "Good morning.",
            "llm": {"promptTokens": 3595, "completionTokens": 503, "cachedTokens": 500, "cacheWriteTokens": 1000,
                "provider": "anthropic", "model": "claude-sonnet-4-5-20250929"},
        }),
    );
    check(&recorded("anthropic-error.json"), json!({"error": ["overloaded_error", "Overloaded", true]}));
    check(
        &recorded("openai-chat.json"),
        json!({
            "summary": "Hello! How can I assist you today?",
            "llm": {"promptTokens": 1019, "completionTokens": 10, "totalTokens": 1029, "cachedTokens": 1000, "reasoningTokens": 0,
                "provider": "openai", "model": "gpt-4.1-2025-04-14"},
        }),
    );
    check(
        &recorded("openai-response.json"),
        json!({
            "summary": "In a peaceful grove a unicorn slept.",
            "llm": {"promptTokens": 36, "completionTokens": 87, "totalTokens": 123, "cachedTokens": 16, "reasoningTokens": 7,
                "provider": "openai", "model": "gpt-4.1-2025-04-14"},
        }),
    );
    check(
        &recorded("openai-error.json"),
        json!({"error": ["rate_limit_exceeded", "Rate limit reached for gpt-4.1", true]}),
    );
}

#[test]
fn the_own_shape_is_read_wherever_it_stands() {
    let own = json!({"summary": "done", "refs": {"a": 1}, "llm": {"model": "m", "promptTokens": 2}, "tools": {"c": 3},
        "facts": {"d": 4}, "colour": "green", "sessionId": "s", "nextRunAt": "2026-03-09T16:00:00+01:00"});
    let expected = json!({"summary": "done", "refs": {"a": 1}, "llm": {"model": "m", "promptTokens": 2}, "tools": {"c": 3},
        "facts": {"d": 4}, "session": "s", "next": "2026-03-09T15:00:00Z"});
    let pretty = serde_json::to_string_pretty(&own).unwrap();
    check(r#"{"Summary": "done", "LLM": {"Model": "m"}}"#, json!({"summary": "done", "llm": {"model": "m"}}));
    for text in [
        own.to_string(),
        pretty.clone(),
        format!("starting\n{{\"error\": \"an old line\"}}\n{pretty}\nbye\n"),
        format!("The result:\n```json\n{pretty}\n```\n"),
        format!("{own}\nwrote {{}} files in {{ 3 }} folders"),
    ] {
        check(&text, expected.clone());
    }
}

#[test]
fn names_may_be_snakes_and_those_of_others() {
    let expected = json!({"llm": {"model": "m", "promptTokens": 2100, "completionTokens": 300, "estimatedCostUsd": 0.5, "llmCalls": 2}});
    for llm in [
        json!({"model": "m", "promptTokens": 2100, "completionTokens": 300, "estimatedCostUsd": 0.5, "llmCalls": 2}),
        json!({"model": "m", "prompt_tokens": 2100, "completion_tokens": 300, "estimated_cost_usd": 0.5, "llm_calls": 2}),
        json!({"model": "m", "input_tokens": 2100, "output_tokens": 300, "total_cost_usd": 0.5, "calls": 2}),
        json!({"model": "m", "usage": {"input_tokens": 2100, "output_tokens": 300}, "cost": 0.5, "llmCalls": 2}),
    ] {
        check(&json!({ "llm": llm }).to_string(), expected.clone());
    }
    check(
        r#"{"summary": "x", "model": "m", "usage": {"input_tokens": 1, "output_tokens": 2}, "total_cost_usd": 0.1, "next_run_at": "2026-03-09T15:00:00Z", "session_id": "s"}"#,
        json!({"summary": "x", "llm": {"model": "m", "promptTokens": 1, "completionTokens": 2, "estimatedCostUsd": 0.1},
            "next": "2026-03-09T15:00:00Z", "session": "s"}),
    );
}

#[test]
fn what_is_not_understood_is_told() {
    for (text, warnings) in [
        (r#"{"llm": {"model": "m", "tokensUsed": 3}}"#, json!(["result: unknown field llm.tokensUsed"])),
        (r#"{"llm": {"model": "m", "answers": 3}}"#, json!(["result: unknown field llm.answers"])),
        (
            r#"{"llm": {"promtTokens": 3}}"#,
            json!(["result: unknown field llm.promtTokens; did you mean promptTokens?"]),
        ),
        (r#"{"llm": "gpt-x"}"#, json!(["result: llm is a string, not an object: taken for the name of the model"])),
        (r#"{"llm": [1]}"#, json!(["result: llm is a list, not an object: ignored"])),
        (r#"{"llm": {"model": 4}}"#, json!(["result: llm.model is a number, not a string: ignored"])),
        (
            r#"{"summary": 3, "refs": [], "facts": "x", "llm": null}"#,
            json!([
                "result: facts is a string, not an object: ignored",
                "result: refs is a list, not an object: ignored",
                "result: summary is a number, not a string: ignored",
            ]),
        ),
        (r#"{"summry": "x"}"#, json!(["result: unknown field summry; did you mean summary?"])),
        (r#"{"sumary": "x", "llm": {"model": "m"}}"#, json!(["result: unknown field sumary; did you mean summary?"])),
        (
            r#"{"nextRunAt": "tomorrow"}"#,
            json!(["result: nextRunAt is \"tomorrow\", not an instant like 2026-03-09T15:00:00Z: ignored"]),
        ),
        (r#"{"nextRunAt": 1700000000}"#, json!(["result: nextRunAt is a number, not a string: ignored"])),
        ("{'summary': 'x'}", json!(["result: not read, as it is not JSON"])),
        ("{\"summary\": \"x\",}", json!(["result: not read, as it is not JSON: trailing comma at line 1 column 17"])),
        ("{\"summary\": \"x", json!(["result: not read, as it is cut off"])),
    ] {
        assert_eq!(json!(read(text).warnings), warnings, "{text}");
    }
    let long = format!("{{\"summary\": \"x\", \"facts\": {{\"a\": \"{}\"}}}}", "x".repeat(70_000));
    assert_eq!(
        shown(read(&long)),
        json!({"summary": "x", "warnings": ["result: facts is longer than 64 KiB: ignored"]})
    );
}

#[test]
fn what_is_no_result_is_none_and_not_told() {
    for text in [
        "",
        "done",
        "[1]",
        "\"{}\"",
        "{",
        "{}",
        "3",
        "fn main() { let a = Config { summary: 3 }; }",
        r#"{"total": 3, "errors": 0, "status": "ok"}"#,
        r#"{"level": "warn", "msg": "retrying", "error": "timeout"}"#,
        r#"{"time": "12:00", "level": "ERROR", "error": "timeout", "tools": {}}"#,
        // Not the last object.
        "{\"error\": \"timeout\"}\n{\"attempt\": 2, \"ok\": true}\n",
        r#"{"llm": null, "summary": null}"#,
    ] {
        assert_eq!(read(text), AgentResult::default(), "{text}");
    }
    assert_eq!(read(&"{\"a\":".repeat(1000)), AgentResult::default());
}

#[test]
fn an_error_is_what_is_there_and_not_false() {
    for (error, expected) in [
        (json!(null), json!(null)),
        (json!(false), json!(null)),
        (json!("boom"), json!(["error", "boom", true])),
        (json!({}), json!(["error", "the work reports an error", true])),
        (json!(7), json!(["error", "the work reports an error", true])),
        (json!({"code": "quota", "message": "full"}), json!(["quota", "full", true])),
        (json!({"code": 429, "message": "slow", "retryable": false}), json!(["429", "slow", false])),
        (json!({"message": "x", "retryable": "no"}), json!(["error", "x", true])),
    ] {
        assert_eq!(shown(read(&json!({ "error": error }).to_string()))["error"], expected);
    }
}

#[test]
fn a_script_around_a_tool_adds_its_own_words_and_loses_no_cost() {
    let tool = recorded("claude-code.json");
    let result = shown(read(&format!("{tool}{{\"summary\": \"posted\"}}\n")));
    assert_eq!((&result["summary"], &result["llm"]["estimatedCostUsd"]), (&json!("posted"), &json!(0.0529)));
    assert_eq!(result["session"], "550e8400-e29b-41d4-a716-446655440001");
    assert_eq!(result["warnings"], json!(null));
    let result = shown(read(&format!("{tool}{{\"posted\": true}}\n")));
    assert_eq!(result["llm"]["estimatedCostUsd"], json!(0.0529));
    let result = shown(read(&format!("{tool}{tool}{tool}")));
    assert_eq!(
        result["warnings"],
        json!(["result: 2 earlier results with tokens or cost do not count, only the last does"])
    );
}

#[test]
fn of_a_cut_output_the_end_counts_and_the_beginning_says_which_session() {
    let text = recorded("codex.jsonl");
    let (head, tail) = text.split_once("{\"type\":\"turn.started\"}").unwrap();
    let read = |head: &str, tail: &str| {
        shown(AgentResult::read(Kept { head: head.as_bytes(), tail: tail.as_bytes(), is_cut: true }))
    };
    let result = read(head, tail);
    assert_eq!(result["session"], "0199a213-81c0-7800-8aa1-bbab2a035a53");
    assert_eq!(result["llm"]["promptTokens"], 24763);
    // Nothing inside of an object whose beginning is missing is taken for a whole.
    let too_long = json!({"warnings": ["result: longer than 256 KiB, so it was not read"]});
    let pretty = "x\",\n  \"items\": [\n    {\n      \"error\": \"no\"\n    }\n  ]\n}\n";
    assert_eq!(read("", pretty), too_long);
    assert_eq!(read("", &format!("{pretty}done\n")), too_long);
    let line = format!("{}\", \"a\": {{\"error\": 1}}}}", "x".repeat(200 * 1024));
    assert_eq!(read("", &line), too_long);
    assert_eq!(read("", &format!("{line}\ndone\n")), too_long);
    assert_eq!(read("", &format!("{line}\n{{\"summary\": \"x\"}}\n")), json!({"summary": "x"}));
    assert_eq!(read("", "of code }\n}\nmore\n"), json!({}));
}

#[test]
fn a_result_is_bounded() {
    let result = read(&json!({"summary": "ä".repeat(SUMMARY_MAX), "error": "ö".repeat(ERROR_MESSAGE_MAX)}).to_string());
    assert_eq!(result.summary.unwrap().len(), SUMMARY_MAX + '…'.len_utf8());
    assert_eq!(result.error.unwrap().message.len(), ERROR_MESSAGE_MAX + '…'.len_utf8());
}
