//! Prices: what the tokens of a run have cost, where its agent says only how many there were.

use std::collections::BTreeMap;

use punctual_core::run::Report;
use punctual_core::run::figures::{COST, bound_figures};
use serde_json::{Map, Value};

/// What models cost, as the operator has written it down.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices {
    /// Which table this is: it is kept with every cost that was computed with it.
    pub version: String,
    /// By model.
    pub models: BTreeMap<String, Price>,
}

/// What a million tokens of a model cost, in US dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Price {
    /// That it reads.
    pub prompt: f64,
    /// That it writes.
    pub completion: f64,
    /// That it reads and has read before.
    pub cached: f64,
    /// That it reads and keeps, to have read them before the next time.
    pub cache_write: f64,
}

impl Prices {
    /// Completes what an agent says of its models: figures that sums can hold, and the cost, unless the agent says it itself. A
    /// cost that cannot be known is told.
    pub fn complete(&self, report: &mut Report) {
        let mut warnings = bound_figures(&mut report.llm);
        warnings.extend(self.add_cost(&mut report.llm));
        // A price is the operator's, and can be too much as well.
        warnings.extend(bound_figures(&mut report.llm));
        warnings.iter().for_each(|warning| report.warn(warning));
    }

    /// Adds the cost. The reason, if there are tokens and no price for them.
    ///
    /// The name of the model is looked up as it is: a name that is nearly the same may have another price.
    fn add_cost(&self, llm: &mut Map<String, Value>) -> Option<String> {
        let tokens = |name: &str| llm.get(name).and_then(Value::as_u64);
        let is_used = ["promptTokens", "completionTokens", "totalTokens"].iter().any(|name| tokens(name) > Some(0));
        if llm.contains_key(COST) || !is_used {
            return None;
        }
        let Some(model) = llm.get("model").and_then(Value::as_str) else {
            return Some("no price: the result names no model".to_owned());
        };
        let Some(price) = self.models.get(model) else { return Some(format!("no price for model {model}")) };
        if tokens("promptTokens").or(tokens("completionTokens")).is_none() {
            return Some(format!("no price for the tokens of {model}: only their total is known"));
        }
        let count = |name: &str| tokens(name).unwrap_or(0) as f64;
        let cached = count("cachedTokens").min(count("promptTokens"));
        let written = count("cacheWriteTokens").min(count("promptTokens") - cached);
        let fresh = count("promptTokens") - cached - written;
        let read = fresh * price.prompt + cached * price.cached + written * price.cache_write;
        let cost = read + count("completionTokens") * price.completion;
        llm.insert(COST.to_owned(), Value::from(cost / 1e6));
        llm.insert("priceTable".to_owned(), Value::from(self.version.clone()));
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(llm: Value, expected: Value, warnings: &[&str]) {
        let price = Price { prompt: 3.0, completion: 15.0, cached: 0.3, cache_write: 3.75 };
        let prices = Prices { version: "2026-11".to_owned(), models: [("m".to_owned(), price)].into() };
        let mut report = Report { llm: llm.as_object().unwrap().clone(), ..Report::default() };
        prices.complete(&mut report);
        assert_eq!(report.llm.get(COST).cloned().unwrap_or_default(), expected, "{llm}");
        assert_eq!(report.llm.contains_key("priceTable"), !expected.is_null() && llm.get(COST).is_none());
        assert_eq!(report.warnings, warnings);
    }

    #[test]
    fn tokens_have_their_price() {
        check(json!({"model": "m", "promptTokens": 1_000_000, "completionTokens": 100_000}), json!(4.5), &[]);
        check(json!({"model": "m", "promptTokens": 1_000_000, "cachedTokens": 1_000_000}), json!(0.3), &[]);
        let cached =
            json!({"model": "m", "promptTokens": 3_000_000, "cachedTokens": 1_000_000, "cacheWriteTokens": 1_000_000});
        check(cached, json!(7.05), &[]);
        let more_than_all =
            json!({"model": "m", "promptTokens": 1_000_000, "cachedTokens": 500_000, "cacheWriteTokens": 9_000_000});
        check(more_than_all, json!(2.025), &[]);
        check(json!({"model": "m", "completionTokens": 1_000}), json!(0.015), &[]);
        check(json!({"model": "m", "promptTokens": 10, "estimatedCostUsd": 0.25}), json!(0.25), &[]);
        check(json!({"model": "other", "estimatedCostUsd": 0.25}), json!(0.25), &[]);
        check(json!({"model": "m", "promptTokens": 0}), json!(null), &[]);
        check(json!({}), json!(null), &[]);
    }

    #[test]
    fn tokens_without_a_price_are_told() {
        check(json!({"model": "gpt-x", "promptTokens": 10}), json!(null), &["no price for model gpt-x"]);
        // Not the same name: it may have another price.
        check(json!({"model": "m-20260101", "promptTokens": 1}), json!(null), &["no price for model m-20260101"]);
        check(json!({"promptTokens": 10}), json!(null), &["no price: the result names no model"]);
        let total = "no price for the tokens of m: only their total is known";
        check(json!({"model": "m", "totalTokens": 10}), json!(null), &[total]);
        let enemy = json!({"model": "m", "promptTokens": -3, "completionTokens": 1e300});
        let said = [
            "result: llm.promptTokens is -3: counted as 0",
            "result: llm.completionTokens is 1e+300: counted as 1000000000000",
        ];
        check(enemy, json!(1e6), &[said[0], said[1], "result: llm.estimatedCostUsd is 15000000.0: counted as 1000000"]);
    }
}
