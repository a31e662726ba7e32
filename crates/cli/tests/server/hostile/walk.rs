//! Every place of the API that carries a value, from its own description.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::described::DESCRIPTION;

/// What stands where a hostile value comes.
const PLACE: &str = "@hostile@";

static DESCRIBED: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(&std::fs::read_to_string(DESCRIPTION).unwrap()).unwrap());

/// What requests are made with where nothing hostile stands.
pub(crate) struct Known {
    pub(crate) schedule: String,
    pub(crate) run: String,
}

/// A request with one place for a value.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) method: String,
    path: String,
    header: Option<String>,
    body: Option<String>,
}

impl Case {
    /// The path with a value in its place.
    pub(crate) fn path(&self, value: &[u8]) -> String {
        let escaped: String = value.iter().map(|byte| format!("%{byte:02x}")).collect();
        self.path.replace(PLACE, &escaped)
    }

    /// The body with a value, as JSON writes it, in its place.
    pub(crate) fn body(&self, json: &str) -> Option<String> {
        self.body.as_ref().map(|body| body.replace(&format!("\"{PLACE}\""), json))
    }

    /// The header whose value it is.
    pub(crate) fn header(&self) -> Option<&str> {
        self.header.as_deref()
    }

    /// Whether the value stands in the path or in the query.
    pub(crate) fn is_in_path(&self) -> bool {
        self.path.contains(PLACE)
    }
}

/// Every place of every operation.
pub(crate) fn cases(known: &Known) -> Vec<Case> {
    let mut cases = vec![];
    for (path, item) in DESCRIBED["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            // Whoever guesses tokens has to wait longer and longer.
            if path != "/api/token" {
                add_cases(&mut cases, method, path, operation, known);
            }
        }
    }
    cases
}

fn add_cases(cases: &mut Vec<Case>, method: &str, path: &str, operation: &Value, known: &Known) {
    let base = filled(path, method, known);
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    let example = (!schema.is_null()).then(|| example_for(path, schema));
    let body = example.as_ref().map(Value::to_string);
    let case = |path: String, header: Option<String>, body: Option<String>| Case {
        method: method.to_ascii_uppercase(),
        path,
        header,
        body,
    };
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap();
        match parameter["in"].as_str().unwrap() {
            "path" => {
                let path = filled(&path.replace(&format!("{{{name}}}"), PLACE), method, known);
                cases.push(case(path, None, body.clone()));
            }
            "query" => cases.push(case(format!("{base}?{name}={PLACE}"), None, body.clone())),
            "header" => cases.push(case(base.clone(), Some(name.to_owned()), body.clone())),
            other => panic!("{other} is a new place for a parameter"),
        }
    }
    let Some(example) = example else { return };
    cases.push(case(base.clone(), None, Some(json!(PLACE).to_string())));
    let mut pointers = vec![];
    places(schema, String::new(), &mut pointers);
    places_of(&example, String::new(), &mut pointers);
    pointers.sort();
    pointers.dedup();
    for pointer in pointers {
        let mut body = example.clone();
        put(&mut body, &pointer);
        cases.push(case(base.clone(), None, Some(body.to_string())));
    }
}

/// A path with what is there in its places. What would be deleted is not there.
fn filled(path: &str, method: &str, known: &Known) -> String {
    let nobody = "00000000-0000-7000-8000-000000000000";
    let (schedule, name) =
        if method == "delete" { (nobody, "nobody") } else { (known.schedule.as_str(), "nightly-report") };
    let values = [
        ("{scheduleId}", schedule),
        ("{executionId}", known.run.as_str()),
        ("{runId}", known.run.as_str()),
        ("{name}", name),
        ("{pastExecutionId}", "1"),
        ("{tokenId}", nobody),
    ];
    values.iter().fold(path.to_owned(), |path, (place, value)| path.replace(place, value))
}

/// The body of a start: it is Conductor's own, and described as any object.
fn start() -> Value {
    json!({
        "name": "report", "version": 1, "correlationId": "c", "input": {"region": "eu"}, "taskToDomain": {"a": "b"},
        "workflowDef": {"name": "report"}, "externalInputPayloadStoragePath": "s3://x", "priority": 1, "createdBy": "ada",
        "idempotencyKey": "once", "idempotencyStrategy": "RETURN_EXISTING",
    })
}

fn example_for(path: &str, schema: &Value) -> Value {
    if schema["type"] == "array" {
        return json!([example_of(&schema["items"])]);
    }
    let mut example = if path == "/api/workflow" { start() } else { example_of(schema) };
    if example["startWorkflowRequest"].is_object() {
        example["startWorkflowRequest"] = start();
    }
    example
}

fn example_of(schema: &Value) -> Value {
    let example = followed(schema)["examples"][0].clone();
    if !example.is_null() {
        return example;
    }
    if followed(schema)["type"] == "string" { json!("nightly-report") } else { json!({}) }
}

fn followed(schema: &Value) -> &Value {
    match schema["$ref"].as_str() {
        Some(reference) => DESCRIBED.pointer(reference.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

/// Where a schema has values, as JSON pointers.
fn places(schema: &Value, at: String, found: &mut Vec<String>) {
    let schema = followed(schema);
    for part in ["allOf", "oneOf"] {
        schema[part].as_array().into_iter().flatten().for_each(|part| places(part, at.clone(), found));
    }
    if let Some(fields) = schema["properties"].as_object() {
        fields.iter().for_each(|(name, field)| places(field, format!("{at}/{name}"), found));
    }
    if let Some(items) = schema.get("items") {
        places(items, format!("{at}/0"), found);
    }
    if !at.is_empty() {
        found.push(at);
    }
}

/// Where an example has values that its schema does not tell, as JSON pointers; and one more in each object.
fn places_of(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| places_of(value, format!("{at}/{name}"), found));
            found.extend((!at.is_empty()).then(|| format!("{at}/more")));
        }
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(index, it)| places_of(it, format!("{at}/{index}"), found))
        }
        _ => {}
    }
    if !at.is_empty() {
        found.push(at);
    }
}

/// Makes a place for a value, with whatever has to be around it.
fn put(body: &mut Value, pointer: &str) {
    let mut here = body;
    for step in pointer.trim_start_matches('/').split('/') {
        if let Ok(index) = step.parse::<usize>() {
            if !here.is_array() {
                *here = json!([]);
            }
            let list = here.as_array_mut().unwrap();
            while list.len() <= index {
                list.push(json!({}));
            }
            here = &mut list[index];
        } else {
            if !here.is_object() {
                *here = json!({});
            }
            here = &mut here[step];
        }
    }
    *here = json!(PLACE);
}
