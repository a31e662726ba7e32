//! Errors, as clients get them: problem details (RFC 9457) with a code that stays the same. The one place where status codes
//! are chosen.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use punctual_core::ParseError;
use punctual_core::time::UnknownZone;
use punctual_engine::edit::EditError;
use punctual_store::StoreError;
use serde::Serialize;
use tracing::error;
use utoipa::ToSchema;

use crate::api::again::other_request;
use crate::routes::ANSWERED_WITHIN;

/// When a client may ask again for what could not be done now.
const RETRY_AFTER_SECONDS: &str = "5";

/// What went wrong, as a problem document.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Problem {
    /// The kind of problem: its code, as an address.
    #[serde(rename = "type")]
    #[schema(example = "urn:punctual:problem:invalid_value")]
    pub(crate) kind: String,
    /// The status, in words.
    #[schema(example = "Unprocessable Entity")]
    pub(crate) title: &'static str,
    /// The status.
    #[schema(example = 422)]
    pub(crate) status: u16,
    /// A word for programs that stays the same from release to release.
    #[schema(example = "invalid_value")]
    pub(crate) code: &'static str,
    /// What is wrong, and what would be right.
    #[schema(example = "cronExpr: hour: 24 is out of range at position 2; use 0 to 23")]
    pub(crate) detail: String,
    /// The field at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "cronExpr")]
    pub(crate) field: Option<String>,
    /// Where in the field the trouble begins: a character, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) position: Option<usize>,
    /// What would be right.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "use 0 to 23")]
    pub(crate) fix: Option<String>,
    /// What it is now, where somebody else was faster.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) current: Option<serde_json::Value>,
}

/// Why a request was not carried out.
#[derive(Debug, Clone)]
pub(crate) struct ApiError(Box<Problem>);

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> ApiError {
        ApiError(Box::new(Problem {
            kind: format!("urn:punctual:problem:{code}"),
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            code,
            detail: detail.into(),
            field: None,
            position: None,
            fix: None,
            current: None,
        }))
    }

    /// The request cannot be read.
    pub(crate) fn malformed(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "malformed", detail)
    }

    /// What was sent cannot be read: where, why, and what would be right.
    pub(crate) fn unread(place: &str, field: Option<String>, problem: &str, fix: &str) -> ApiError {
        let fix = Some(fix.to_owned()).filter(|fix| !fix.is_empty());
        let advice = fix.as_ref().map(|fix| format!("; {fix}")).unwrap_or_default();
        let mut error = ApiError::malformed(format!("{place}: {problem}{advice}"));
        (error.0.field, error.0.fix) = (field, fix);
        error
    }

    /// A value cannot be used.
    pub(crate) fn invalid(field: impl Into<String>, problem: impl Into<String>, fix: impl Into<String>) -> ApiError {
        let (field, problem, fix) = (field.into(), problem.into(), fix.into());
        let detail = format!("{field}: {problem}; {fix}");
        let mut error = ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_value", detail);
        (error.0.field, error.0.fix) = (Some(field), Some(fix));
        error
    }

    /// The text of a field cannot be read.
    pub(crate) fn unreadable(field: &str, error: ParseError) -> ApiError {
        // A field of ours that ends like the one at fault says it already: `timezone` for `zone`, `runAt` for `at`.
        let is_said =
            field.to_ascii_lowercase().ends_with(&error.field.to_ascii_lowercase()) || error.field == "duration";
        let inner = if is_said { String::new() } else { format!("{}: ", error.field) };
        let problem = format!("{inner}{}", error.problem);
        let place = error.position.map(|position| format!(" at position {position}")).unwrap_or_default();
        let mut refused = ApiError::invalid(field, format!("{problem}{place}"), error.fix);
        refused.0.position = error.position;
        refused
    }

    /// A zone is none.
    pub(crate) fn unknown_zone(field: &str, error: &UnknownZone) -> ApiError {
        let problem = format!("{:?} is not an IANA time zone of tzdata {}", error.name, error.version);
        ApiError::invalid(field, problem, "use a name like Europe/Paris or UTC")
    }

    /// It is not there, or not for whoever asks.
    pub(crate) fn not_found(what: &str, id: impl std::fmt::Display) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, "not_found", format!("{what} {id} does not exist"))
    }

    /// Something stands in the way.
    pub(crate) fn conflict(code: &'static str, detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::CONFLICT, code, detail)
    }

    /// Something is wrong here.
    pub(crate) fn internal() -> ApiError {
        let detail = "the server could not carry this out; its log says why";
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }

    /// The body is longer than it may be.
    pub(crate) fn too_large(most: usize) -> ApiError {
        let detail = format!("the body is longer than {} MiB ({} bytes)", most >> 20, in_thousands(most));
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
    }

    /// Every place for a connection is taken.
    pub(crate) fn too_many_connections() -> ApiError {
        let detail = "too many connections are open; come again in a moment";
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_connections", detail)
    }

    /// It has taken too long.
    pub(crate) fn too_slow() -> ApiError {
        let seconds = ANSWERED_WITHIN.as_secs();
        let detail = format!(
            "this could not be answered within {seconds} s, or its body did not come; whether it was carried out is not known"
        );
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "too_slow", detail)
    }

    /// Too much is asked of the server at once, or for too much: nothing was done.
    pub(crate) fn overloaded(detail: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", detail)
    }

    /// A value cannot be used, in words that are given.
    pub(crate) fn refused(field: &str, detail: impl Into<String>) -> ApiError {
        let mut error = ApiError::new(StatusCode::BAD_REQUEST, "invalid_value", detail);
        error.0.field = Some(field.to_owned());
        error
    }

    /// What is wrong.
    pub(crate) fn detail(&self) -> &str {
        &self.0.detail
    }

    /// As a document.
    pub(crate) fn problem(&self) -> &Problem {
        &self.0
    }

    pub(crate) fn status(&self) -> u16 {
        self.0.status
    }

    /// As clients get it.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(&*self.0).expect("a problem is plain data")
    }

    /// With what it is now.
    pub(crate) fn with_current(mut self, current: impl Serialize) -> ApiError {
        self.0.current = serde_json::to_value(current).ok();
        self
    }
}

/// A number as people read it: `1,048,576`.
fn in_thousands(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap_or_default()).collect();
    groups.join(",")
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(&*self.0)).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            // Who is not known has one request a connection: what else was sent ahead on it is not waited for.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS));
        }
        // For a face that has another shape for it.
        response.extensions_mut().insert(self);
        response
    }
}

impl From<StoreError> for ApiError {
    fn from(failed: StoreError) -> ApiError {
        match failed {
            StoreError::NotFound { what, id } => ApiError::not_found(what, id),
            StoreError::Answered(_) => other_request(),
            StoreError::Conflict { .. } | StoreError::StaleEpoch(_) => {
                ApiError::conflict("changed_meanwhile", failed.to_string())
            }
            StoreError::Overloaded { .. } => {
                ApiError::overloaded(format!("{failed}; ask for less, as for a shorter time, or again later"))
            }
            StoreError::DiskFull | StoreError::Unavailable { .. } => {
                error!(error = %failed, cause = ?std::error::Error::source(&failed), "a request could not be carried out");
                ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", failed.to_string())
            }
            other => {
                error!(error = %other, cause = ?std::error::Error::source(&other), "a request could not be carried out");
                ApiError::internal()
            }
        }
    }
}

impl From<EditError> for ApiError {
    fn from(refused: EditError) -> ApiError {
        match refused {
            EditError::Invalid(error) => ApiError::invalid("timezone", error.to_string(), "use one that exists"),
            EditError::NotFound(id) => ApiError::not_found("schedule", id),
            EditError::OtherVersion { .. } => ApiError::conflict("other_version", refused.to_string()),
            EditError::NameTaken(_) => ApiError::conflict("name_taken", refused.to_string()),
            EditError::NotWaiting(_) => ApiError::conflict("not_waiting", refused.to_string()),
            EditError::OtherDigest(_) => ApiError::conflict("other_digest", refused.to_string()),
            EditError::TooManyEarly(_) => ApiError::conflict("too_many_cancelled", refused.to_string()),
            EditError::Busy(_) | EditError::BusyRun(_) => ApiError::conflict("changed_meanwhile", refused.to_string()),
            EditError::Store(error) => error.into(),
        }
    }
}
