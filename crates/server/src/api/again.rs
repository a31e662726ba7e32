//! Requests that come again, under a key that was used before.

use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use punctual_core::By;
use punctual_engine::edit::EditError;
use punctual_store::StoreError;
use uuid::Uuid;

use crate::error::ApiError;

/// What an error means: that the same request was carried out before, and what it was about; or what else went wrong.
pub(crate) fn answered_before(by: &By, error: EditError) -> Result<Uuid, EditError> {
    match error {
        EditError::Store(StoreError::Answered(answered)) if is_same(by, answered.digest) => Ok(answered.subject),
        other => Err(other),
    }
}

fn is_same(by: &By, digest: u64) -> bool {
    by.once.as_ref().is_some_and(|once| once.digest == digest)
}

/// The key was used for another request.
pub(crate) fn other_request() -> ApiError {
    let detail =
        "Idempotency-Key: it was used for another request; use a new key for each, and the same only to ask again";
    ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "key_reused", detail)
}

/// Marks an answer as one that was given before.
pub(crate) fn again(mut response: Response) -> Response {
    let name = HeaderName::from_static("idempotent-replayed");
    response.headers_mut().insert(name, HeaderValue::from_static("true"));
    response
}
