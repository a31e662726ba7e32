//! What the description of the API says of values: words, ranges and objects, as they are read and written.

use serde_json::{Map, Value, json};

/// Fields whose value is one of a few words.
const WORDS: [(&str, &[&str]); 8] = [
    ("catchUp", &["none", "first", "latest", "all"]),
    ("dialect", &["unix", "spring", "quartz"]),
    ("dstGap", &["after", "skip"]),
    ("dstRepeat", &["once", "both"]),
    ("inputType", &["threads_since_last_run", "latest_intake_window", "all", "none"]),
    ("overlap", &["allow", "skip", "queue", "replace"]),
    ("role", &["worker", "viewer", "editor", "admin"]),
    ("stream", &["stdout", "stderr"]),
];

/// Completes the schemas of a description.
pub(crate) fn complete(description: &mut Value) {
    let Some(schemas) = description["components"]["schemas"].as_object_mut() else { return };
    let parts = schemas.clone();
    for schema in schemas.values_mut() {
        merge(schema, &parts);
        for (name, field) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
            add_words(name, field);
        }
    }
    widen(description);
}

/// Makes one object of one that is made of several: each part for itself would forbid the fields of the others.
fn merge(schema: &mut Value, parts: &Map<String, Value>) {
    let Some(all) = schema.as_object_mut().and_then(|schema| schema.remove("allOf")) else { return };
    let (mut properties, mut required) = (Map::new(), vec![]);
    for part in all.as_array().into_iter().flatten() {
        let name = part["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
        let part = name.and_then(|name| parts.get(name)).unwrap_or(part);
        properties.extend(part["properties"].as_object().cloned().unwrap_or_default());
        required.extend(part["required"].as_array().cloned().unwrap_or_default());
    }
    schema["type"] = json!("object");
    schema["properties"] = Value::Object(properties);
    schema["required"] = Value::Array(required);
}

fn add_words(name: &str, field: &mut Value) {
    let Some((_, words)) = WORDS.iter().find(|(known, _)| *known == name) else { return };
    let is_absent = Value::Null;
    match &field["type"] {
        Value::String(kind) if kind == "string" => field["enum"] = json!(words),
        Value::Array(kinds) if kinds.contains(&json!("string")) => {
            field["enum"] = words.iter().map(|word| json!(word)).chain([is_absent]).collect();
        }
        _ => {}
    }
}

/// Numbers without a sign go on to twice what their format says.
fn widen(value: &mut Value) {
    if value["format"] == "int32" && value["minimum"].is_number() {
        let schema = value.as_object_mut().into_iter();
        schema.for_each(|schema| {
            schema.remove("format");
            schema.entry("maximum").or_insert(json!(u32::MAX));
        });
    }
    match value {
        Value::Object(fields) => fields.values_mut().for_each(widen),
        Value::Array(items) => items.iter_mut().for_each(widen),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::Role;
    use punctual_core::schedule::{CatchUpMode, GapPolicy, InputType, Overlap, RepeatPolicy};
    use punctual_core::time::Dialect;
    use serde::de::DeserializeOwned;

    use super::*;

    /// The words that a type is read from, as its own refusal lists them.
    fn listed<T: DeserializeOwned>() -> Vec<String> {
        let refusal = serde_json::from_value::<T>(json!("?")).err().expect("it is no word").to_string();
        refusal.split('`').skip(3).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn the_words_are_those_that_are_read() {
        let words = |name: &str| WORDS.iter().find(|(known, _)| *known == name).expect("it is known").1;
        assert_eq!(listed::<CatchUpMode>(), words("catchUp"));
        assert_eq!(listed::<Dialect>(), words("dialect"));
        assert_eq!(listed::<GapPolicy>(), words("dstGap"));
        assert_eq!(listed::<RepeatPolicy>(), words("dstRepeat"));
        assert_eq!(listed::<InputType>(), words("inputType"));
        assert_eq!(listed::<Overlap>(), words("overlap"));
        assert_eq!(listed::<Role>(), words("role"));
        assert_eq!(listed::<punctual_store::Stream>(), words("stream"));
    }
}
