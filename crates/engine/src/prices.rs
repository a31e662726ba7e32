//! Prices: what the tokens of a run have cost, where its agent says only how many there were.

use std::collections::BTreeMap;

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
}

impl Prices {
    /// Adds the cost to what an agent says of its models, unless it says it itself or there is no price.
    pub fn add_cost(&self, llm: &mut Map<String, Value>) {
        let is_known = llm.get("estimatedCostUsd").is_some_and(|cost| !cost.is_null());
        let price = llm.get("model").and_then(Value::as_str).and_then(|model| self.models.get(model));
        let Some(price) = price.filter(|_| !is_known) else { return };
        let tokens = |name: &str| llm.get(name).and_then(Value::as_u64);
        if tokens("promptTokens").or(tokens("completionTokens")).is_none() {
            return;
        }
        let count = |name: &str| tokens(name).unwrap_or(0) as f64;
        let cached = count("cachedTokens").min(count("promptTokens"));
        let fresh = count("promptTokens") - cached;
        let cost = fresh * price.prompt + cached * price.cached + count("completionTokens") * price.completion;
        llm.insert("estimatedCostUsd".to_owned(), Value::from(cost / 1e6));
        llm.insert("priceTable".to_owned(), Value::from(self.version.clone()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(llm: Value, expected: Value) {
        let price = Price { prompt: 3.0, completion: 15.0, cached: 0.3 };
        let prices = Prices { version: "2026-11".to_owned(), models: [("m".to_owned(), price)].into() };
        let mut found = llm.as_object().unwrap().clone();
        prices.add_cost(&mut found);
        assert_eq!(found.get("estimatedCostUsd").cloned().unwrap_or_default(), expected, "{llm}");
        assert_eq!(found.contains_key("priceTable"), !expected.is_null() && llm.get("estimatedCostUsd").is_none());
    }

    #[test]
    fn tokens_have_their_price() {
        check(json!({"model": "m", "promptTokens": 1_000_000, "completionTokens": 100_000}), json!(4.5));
        check(json!({"model": "m", "promptTokens": 1_000_000, "cachedTokens": 1_000_000}), json!(0.3));
        check(json!({"model": "m", "completionTokens": 1_000}), json!(0.015));
        check(json!({"model": "m", "promptTokens": 10, "estimatedCostUsd": 0.25}), json!(0.25));
        check(json!({"model": "other", "promptTokens": 10}), json!(null));
        check(json!({"promptTokens": 10}), json!(null));
        check(json!({"model": "m", "totalTokens": 10}), json!(null));
    }
}
