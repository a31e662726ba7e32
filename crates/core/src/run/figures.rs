//! The figures of a report: how many tokens, and what they cost. Brought to what sums over all history can hold.
//!
//! Invariant: whatever an agent says, a figure is a number from 0 to its maximum, or it is not there; and each change to
//! what the agent said is told.

use serde_json::{Map, Value};

/// The most tokens that one attempt counts for. More than nine million such attempts fit into a sum.
pub const TOKENS_MAX: u64 = 1_000_000_000_000;

/// The highest cost of one attempt, in millionths of a dollar: a million dollars.
pub const COST_MICROS_MAX: u64 = 1_000_000_000_000;

/// The figures of `llm` that are whole numbers.
pub const COUNTS: [&str; 8] = [
    "promptTokens",
    "completionTokens",
    "totalTokens",
    "cachedTokens",
    "cacheWriteTokens",
    "reasoningTokens",
    "llmCalls",
    "turns",
];

/// The figure of `llm` that is money, in US dollars.
pub const COST: &str = "estimatedCostUsd";

/// The longest text that is looked at as a number, and the longest that a warning repeats.
const TEXT_MAX: usize = 40;

/// Brings the figures of `llm` to numbers that sums can hold, and says what was changed.
pub fn bound_figures(llm: &mut Map<String, Value>) -> Vec<String> {
    let mut warnings = vec![];
    for name in COUNTS {
        let most = TOKENS_MAX as f64;
        bound(llm, name, most, |figure| Value::from(figure as u64), &mut warnings);
    }
    bound(llm, COST, COST_MICROS_MAX as f64 / 1e6, Value::from, &mut warnings);
    warnings
}

fn bound(llm: &mut Map<String, Value>, name: &str, most: f64, keep: impl Fn(f64) -> Value, warnings: &mut Vec<String>) {
    let Some(value) = llm.get(name) else { return };
    if value.is_null() {
        llm.remove(name);
        return;
    }
    let Some(figure) = number(value) else {
        warnings.push(format!("result: llm.{name} is {}, not a number: ignored", shown(value)));
        llm.remove(name);
        return;
    };
    let bounded = figure.clamp(0.0, most);
    if bounded != figure {
        warnings.push(format!("result: llm.{name} is {}: counted as {bounded}", shown(value)));
    }
    llm.insert(name.to_owned(), keep(if bounded == 0.0 { 0.0 } else { bounded }));
}

/// The number that a value is, also as text. `None` for what is none, or not a finite one.
pub fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) if text.len() <= TEXT_MAX => text.trim().parse().ok(),
        _ => None,
    }
    .filter(|number| number.is_finite())
}

/// The count that a value is; `None` for what is no number. What is negative or too much is brought to the nearest count.
pub fn count(value: &Value) -> Option<u64> {
    number(value).map(|number| number.clamp(0.0, TOKENS_MAX as f64) as u64)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => {
            let text = other.to_string();
            let end = text.floor_char_boundary(TEXT_MAX.min(text.len()));
            if end < text.len() { format!("{}…", &text[..end]) } else { text }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(name: &str, said: Value, expected: Value, warnings: &[&str]) {
        let mut llm = Map::from_iter([(name.to_owned(), said)]);
        assert_eq!(bound_figures(&mut llm), warnings);
        assert_eq!(llm.get(name).cloned().unwrap_or_default(), expected);
    }

    #[test]
    fn figures_are_numbers_that_sums_can_hold() {
        check("promptTokens", json!(1200), json!(1200), &[]);
        check("promptTokens", json!(1200.0), json!(1200), &[]);
        check("promptTokens", json!("1200"), json!(1200), &[]);
        check("promptTokens", json!(null), json!(null), &[]);
        check("turns", json!(-5), json!(0), &["result: llm.turns is -5: counted as 0"]);
        check(
            "totalTokens",
            json!(9_223_372_036_854_775_808_u64),
            json!(TOKENS_MAX),
            &["result: llm.totalTokens is 9223372036854775808: counted as 1000000000000"],
        );
        check("llmCalls", json!([]), json!(null), &["result: llm.llmCalls is a list, not a number: ignored"]);
        check(
            "cachedTokens",
            json!("NaN"),
            json!(null),
            &["result: llm.cachedTokens is \"NaN\", not a number: ignored"],
        );
        check("cachedTokens", json!(true), json!(null), &["result: llm.cachedTokens is true, not a number: ignored"]);
        check(COST, json!(0.25), json!(0.25), &[]);
        check(COST, json!("0.25"), json!(0.25), &[]);
        check(COST, json!(1e308), json!(1e6), &["result: llm.estimatedCostUsd is 1e+308: counted as 1000000"]);
        check(COST, json!(-0.5), json!(0.0), &["result: llm.estimatedCostUsd is -0.5: counted as 0"]);
        check(COST, json!("inf"), json!(null), &["result: llm.estimatedCostUsd is \"inf\", not a number: ignored"]);
        check(COST, json!("$3"), json!(null), &["result: llm.estimatedCostUsd is \"$3\", not a number: ignored"]);
    }
}
