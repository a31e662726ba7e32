//! Prices: what models cost, as the operator writes it down.

use std::collections::BTreeMap;

use punctual_engine::prices::{Price, Prices};
use serde_json::{Map, Value as Json, json};

use super::keys::{PRICE, PRICES};
use super::value::Value;

/// Reads the table of prices.
pub(super) fn read(value: &Value<'_>) -> Option<Prices> {
    let section = value.section(&PRICES)?;
    let version = section.get("version").and_then(Value::text).unwrap_or_default().to_owned();
    let models: BTreeMap<String, Price> = section
        .get("models")
        .and_then(Value::named)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|(model, value)| Some((model.to_owned(), read_price(&value)?)))
        .collect();
    Some(Prices { version, models })
}

fn read_price(value: &Value<'_>) -> Option<Price> {
    let section = value.section(&PRICE)?;
    let number = |key| section.get(key).and_then(Value::number);
    let prompt = number("prompt").unwrap_or_default();
    let completion = number("completion").unwrap_or_default();
    let cached = number("cached").unwrap_or(prompt);
    Some(Price { prompt, completion, cached, cache_write: number("cache_write").unwrap_or(prompt) })
}

/// Every key of the table and its value.
pub(super) fn settings(prices: &Prices) -> Map<String, Json> {
    let price = |it: &Price| json!({"prompt": it.prompt, "completion": it.completion, "cached": it.cached, "cache_write": it.cache_write});
    let models: Map<String, Json> = prices.models.iter().map(|(model, it)| (model.clone(), price(it))).collect();
    super::print::object(json!({"version": prices.version, "models": models}))
}
