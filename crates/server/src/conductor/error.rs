//! Errors, as clients of Conductor get them. Handlers fail with problems like all others; here they get their other shape.

use axum::Json;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::error::{ApiError, Problem};

/// What went wrong.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ErrorResponse {
    /// The status, as a number.
    #[schema(example = 400)]
    status: u16,
    /// The same code that problems of the native API have.
    #[schema(example = "invalid_value")]
    code: String,
    /// What is wrong, where, and what would be right.
    message: String,
    /// The server.
    instance: String,
    /// Whether the same request may be carried out later.
    retryable: bool,
    /// The fields that cannot be used.
    validation_errors: Vec<ValidationError>,
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
}

/// A field that cannot be used.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ValidationError {
    path: String,
    message: String,
}

impl ErrorResponse {
    /// The other shape of a problem.
    pub(crate) fn of(problem: &Problem) -> ErrorResponse {
        // Clients know no finer status for what is wrong with a request.
        let status = if problem.status == 422 { 400 } else { problem.status };
        let validation = problem
            .field
            .as_ref()
            .map(|field| ValidationError { path: field.clone(), message: problem.detail.clone() });
        ErrorResponse {
            status,
            code: problem.code.to_owned(),
            message: problem.detail.clone(),
            instance: "punctual".to_owned(),
            retryable: matches!(status, 429 | 503),
            validation_errors: validation.into_iter().collect(),
            metadata: Map::new(),
        }
    }
}

/// A value that cannot be used, in Conductor's own words.
pub(crate) fn refused(field: &str, message: impl Into<String>) -> ApiError {
    ApiError::refused(field, message)
}

/// A schedule that is not there, in Conductor's own words.
pub(crate) fn no_schedule(name: &str) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "not_found", format!("Schedule '{}' not found", name.escape_debug()))
}

/// Where clients of Conductor come.
const PATHS: [&str; 4] = ["/api/scheduler", "/api/token", "/api/workflow", "/api/metadata"];

/// Whether a path is one of theirs, known or not.
fn is_theirs(path: &str) -> bool {
    PATHS.iter().any(|own| path.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// Gives problems the shape that clients of Conductor read, if it is they who have come.
pub(crate) async fn in_their_shape(request: Request, next: Next) -> Response {
    if !is_theirs(request.uri().path()) {
        return next.run(request).await;
    }
    let mut response = next.run(request).await;
    let Some(error) = response.extensions_mut().remove::<ApiError>() else { return response };
    let told = ErrorResponse::of(error.problem());
    let status = StatusCode::from_u16(told.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = (status, Json(told)).into_response();
    for name in [header::WWW_AUTHENTICATE, header::RETRY_AFTER] {
        if let Some(value) = response.headers_mut().remove(&name) {
            answer.headers_mut().insert(name, value);
        }
    }
    answer
}
