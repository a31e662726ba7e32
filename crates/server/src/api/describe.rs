//! What the description of the API says of all operations alike: how they fail, and examples.

use punctual_core::ScheduleId;
use punctual_engine::edit::EditError;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::schemas;
use crate::auth::{no_token, not_allowed};
use crate::conductor::error::ErrorResponse;
use crate::conductor::workflow::not_started;
use crate::error::ApiError;
use crate::extract::{BODY_MAX, not_json};

/// An example of each schema, all of one story.
const EXAMPLES: &str = include_str!("examples.json");

/// How failures are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// As problem documents.
    Problem,
    /// As clients of Conductor read them.
    Conductor,
}

/// Adds to a description what its operations do not say themselves.
pub(crate) fn complete(description: &mut Value) {
    for (path, item) in description["paths"].as_object_mut().into_iter().flatten() {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            if method == "post" && reads_key(path, operation) {
                add_key(operation);
            }
            let shape = Shape::of(operation);
            for status in failures(method, operation) {
                shape.add_failure(&mut operation["responses"], status);
            }
        }
    }
    schemas::complete(description);
    let components = &mut description["components"];
    for (meaning, problem) in problems() {
        for shape in [Shape::Problem, Shape::Conductor] {
            let (name, content) = (shape.name(problem.status()), shape.content(problem.status()));
            components["examples"][&name] = json!({ "value": shape.of_problem(&problem) });
            components["responses"][&name] = json!({ "description": meaning, "content": content });
        }
    }
    for (name, example) in examples() {
        components["schemas"][name]["examples"] = json!([example]);
    }
}

fn examples() -> Map<String, Value> {
    serde_json::from_str(EXAMPLES).expect("it is read by every test")
}

/// Whether an operation leaves something different behind. Some that only look have a body, and are posts for that.
fn changes(method: &str, operation: &Value) -> bool {
    method != "get" && operation["x-right"] != "viewer"
}

/// Whether an operation knows a request again by its key. Saving a schedule of Conductor's API and signing in come to the same
/// however often they are done, and nothing is defined here.
fn reads_key(path: &str, operation: &Value) -> bool {
    changes("post", operation) && (Shape::of(operation) == Shape::Problem || path.starts_with("/api/workflow"))
}

/// The ways in which an operation may fail, whatever it does.
fn failures(method: &str, operation: &Value) -> Vec<u16> {
    let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    let has_body = method == "post" || method == "put" || operation["requestBody"].is_object();
    let is_read = has_body || parameters.iter().any(|parameter| parameter["in"] != "path");
    let rules = [
        (400, has_body || !parameters.is_empty()),
        (401, operation["security"].is_array()),
        (403, true),
        (409, changes(method, operation)),
        (413, has_body),
        (415, has_body),
        (422, is_read && Shape::of(operation) == Shape::Problem),
        (500, true),
        (503, true),
    ];
    let declared = operation["responses"].as_object().into_iter().flat_map(Map::keys);
    let declared = declared.filter_map(|status| status.parse().ok()).filter(|status| 400 <= *status);
    rules.into_iter().filter(|(_, is_so)| *is_so).map(|(status, _)| status).chain(declared).collect()
}

impl Shape {
    fn of(operation: &Value) -> Shape {
        if operation["tags"][0] == "conductor" { Shape::Conductor } else { Shape::Problem }
    }

    /// Says how a failure is told. What an operation says of it itself stays.
    fn add_failure(self, responses: &mut Value, status: u16) {
        let response = &mut responses[status.to_string()];
        if response.is_null() {
            *response = json!({ "$ref": format!("#/components/responses/{}", self.name(status)) });
        }
        if let Some(content) = response["content"].as_object_mut() {
            content.retain(|_, body| body["schema"]["$ref"] != self.schema());
            content.extend(self.content(status));
        }
    }

    fn schema(self) -> &'static str {
        match self {
            Shape::Problem => "#/components/schemas/Problem",
            Shape::Conductor => "#/components/schemas/ErrorResponse",
        }
    }

    fn content(self, status: u16) -> Map<String, Value> {
        let kind = match self {
            Shape::Problem => "application/problem+json",
            Shape::Conductor => "application/json",
        };
        let example = json!({ "$ref": format!("#/components/examples/{}", self.name(status)) });
        let body = json!({ "schema": { "$ref": self.schema() }, "examples": { "problem": example } });
        Map::from_iter([(kind.to_owned(), body)])
    }

    fn name(self, status: u16) -> String {
        match self {
            Shape::Problem => format!("Problem{status}"),
            Shape::Conductor => format!("Error{status}"),
        }
    }

    fn of_problem(self, problem: &ApiError) -> Value {
        match self {
            Shape::Problem => problem.to_json(),
            Shape::Conductor => json!(ErrorResponse::of(problem.problem())),
        }
    }
}

/// Says how a request is known again.
fn add_key(operation: &mut Value) {
    let description = "A key of your choice, another for each request: if the answer is lost, the same request with the same key \
        is answered and not carried out again";
    let key = json!({
        "name": "idempotency-key", "in": "header", "required": false, "description": description,
        "schema": { "type": "string", "minLength": 1, "maxLength": 255 }, "example": "4f9c2a7e-order-1",
    });
    match operation["parameters"].as_array_mut() {
        Some(parameters) => parameters.push(key),
        None => operation["parameters"] = json!([key]),
    }
}

/// Every kind of failure: what it means, and one of it.
fn problems() -> impl IntoIterator<Item = (&'static str, ApiError)> {
    let schedule = ScheduleId(Uuid::from_u128(0x0198_f0c1_6f3a_7c44_9d1b_2f6c_0e5a_9b10));
    let other_version = EditError::OtherVersion { schedule, found: 4, expected: 3 };
    let too_large = ApiError::too_large(BODY_MAX);
    [
        ("It cannot be read", ApiError::unread("prompt", Some("prompt".to_owned()), "it is 5", "give a text")),
        ("There is no token, or it is not known", no_token()),
        ("The token, the host or the site does not allow it", not_allowed()),
        ("It is not there, or not for this token", ApiError::not_found("schedule", schedule)),
        ("Something stands in the way", other_version.into()),
        ("The body is longer than 1 MiB", too_large),
        ("The body is not said to be JSON", not_json()),
        (
            "A value cannot be used, or the key was used for another request",
            ApiError::invalid("cronExpr", "hour: 24 is out of range at position 2", "use 0 to 23"),
        ),
        ("Something is wrong here, and the log says what", ApiError::internal()),
        (
            "Another server did not do what it was asked for",
            not_started("it was answered with 400 Bad Request: bad input"),
        ),
        ("Not now: the store does not answer, or not in time", ApiError::too_slow()),
    ]
}
