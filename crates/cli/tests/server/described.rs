//! What the description of the API promises, held against what the server says.

use std::sync::LazyLock;

use serde_json::{Map, Value};

/// The published description. A test sees to it that the server has the same.
pub(crate) const DESCRIPTION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");

static PUBLISHED: LazyLock<Value> = LazyLock::new(|| {
    let text = std::fs::read_to_string(DESCRIPTION).unwrap();
    serde_json::from_str(&text).unwrap()
});

/// Whether the published description is about to be written anew.
pub(crate) fn is_written_anew() -> bool {
    std::env::var_os("PUNCTUAL_BLESS").is_some()
}

/// Panics if the answer to a request is not one that the description knows.
pub(crate) fn check_answer(method: &str, path: &str, status: u16, kind: Option<&str>, body: &str) {
    let path = path.split('?').next().unwrap_or_default();
    let Some(operation) = operation(method, path).filter(|_| !is_written_anew()) else { return };
    let said = format!("{method} {path} answers {status} {body}");
    let response = followed(&PUBLISHED, &operation["responses"][status.to_string()]);
    assert!(response.is_object(), "this is not described: {said}");
    let Some(content) = response["content"].as_object() else {
        return assert!(body.is_empty(), "no body is described: {said}");
    };
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    let described = content.get(kind).unwrap_or_else(|| panic!("{kind:?} is not described: {said}"));
    if kind.ends_with("json") {
        let value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {said}"));
        if let Err(problem) = check(&PUBLISHED, &described["schema"], &value) {
            panic!("{problem}: {said}");
        }
    }
}

/// What a request is described by: a path of words before one with places to fill in.
fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let method = method.to_ascii_lowercase();
    let fits = |template: &str| {
        let (mut places, mut parts) = (template.split('/'), path.split('/'));
        places.clone().count() == parts.clone().count()
            && places.all(|place| parts.next().is_some_and(|part| place.starts_with('{') || place == part))
    };
    let paths = PUBLISHED["paths"].as_object()?;
    let mut fitting: Vec<_> = paths.iter().filter(|(template, _)| fits(template)).collect();
    fitting.sort_by_key(|(template, _)| template.matches('{').count());
    fitting.first().and_then(|(_, item)| item.get(&method))
}

fn followed<'a>(description: &'a Value, part: &'a Value) -> &'a Value {
    match part["$ref"].as_str() {
        Some(reference) => description.pointer(reference.trim_start_matches('#')).unwrap_or(&Value::Null),
        None => part,
    }
}

/// Whether a value is what a schema says, and if not, why not.
pub(crate) fn check(description: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let schema = followed(description, schema);
    if let Some(choices) = schema["oneOf"].as_array() {
        let fits = choices.iter().any(|choice| check(description, choice, value).is_ok());
        return if fits { Ok(()) } else { Err(format!("{value} is none of {schema}")) };
    }
    check_kind(schema, value)?;
    if let (Some(items), Some(values)) = (schema.get("items"), value.as_array()) {
        values.iter().try_for_each(|value| check(description, items, value))?;
    }
    let Some(object) = value.as_object() else { return Ok(()) };
    let mut parts = vec![];
    collect(description, schema, &mut parts);
    let fields: Map<String, Value> =
        parts.iter().filter_map(|part| part["properties"].as_object().cloned()).flatten().collect();
    for name in parts.iter().filter_map(|part| part["required"].as_array()).flatten() {
        let name = name.as_str().unwrap_or_default();
        object.get(name).ok_or_else(|| format!("{name} is missing"))?;
    }
    for (name, value) in object.iter().filter(|_| !fields.is_empty()) {
        let field = fields.get(name).ok_or_else(|| format!("{name} is not described"))?;
        check(description, field, value).map_err(|problem| format!("{name}: {problem}"))?;
    }
    Ok(())
}

/// A schema and all that it is made of.
fn collect<'a>(description: &'a Value, schema: &'a Value, parts: &mut Vec<&'a Value>) {
    let schema = followed(description, schema);
    parts.push(schema);
    schema["allOf"].as_array().into_iter().flatten().for_each(|part| collect(description, part, parts));
}

fn check_kind(schema: &Value, value: &Value) -> Result<(), String> {
    let is = |kind: &str| match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        _ => value.is_object(),
    };
    let fits = match &schema["type"] {
        Value::String(kind) => is(kind),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).any(is),
        _ => true,
    };
    let is_word = schema["enum"].as_array().is_none_or(|words| words.contains(value));
    let is_well_formed = match (schema["format"].as_str(), value.as_str()) {
        (Some("date-time"), Some(text)) => text.parse::<jiff::Timestamp>().is_ok(),
        (Some("uuid"), Some(text)) => text.parse::<uuid::Uuid>().is_ok(),
        _ => true,
    };
    if fits && is_word && is_well_formed { Ok(()) } else { Err(format!("{value} is not {schema}")) }
}
