//! What handlers take out of requests, with errors of our own.

use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use bytes::Bytes;
use punctual_core::{RunId, ScheduleId};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::error::ApiError;

/// A body of JSON, read strictly.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Body<T>, ApiError> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_json = kind.is_some_and(|kind| {
            let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            kind == "application/json" || kind.starts_with("application/") && kind.ends_with("+json")
        });
        if !is_json {
            let detail = "send JSON, and say so: Content-Type: application/json";
            return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", detail));
        }
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| {
            let status = rejection.status();
            let code = if status == StatusCode::PAYLOAD_TOO_LARGE { "too_large" } else { "malformed" };
            ApiError::new(status, code, rejection.body_text())
        })?;
        serde_json::from_slice(&bytes).map(Body).map_err(|error| ApiError::malformed(format!("the body: {error}")))
    }
}

/// What stands behind the question mark.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Params<T>, ApiError> {
        let read = Query::<T>::from_request_parts(parts, state).await;
        read.map(|Query(value)| Params(value)).map_err(|rejection| ApiError::malformed(rejection.body_text()))
    }
}

/// An id in the path. What is no id is not there.
pub(crate) struct Id<T>(pub(crate) T);

macro_rules! id {
    ($kind:ident, $what:literal) => {
        impl<S: Send + Sync> FromRequestParts<S> for Id<$kind> {
            type Rejection = ApiError;

            async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Id<$kind>, ApiError> {
                let read = Path::<String>::from_request_parts(parts, state).await;
                let Ok(Path(text)) = read else { return Err(ApiError::malformed("the path cannot be read")) };
                let id: Option<Uuid> = text.parse().ok();
                id.map(|id| Id($kind(id))).ok_or_else(|| ApiError::not_found($what, text.escape_debug()))
            }
        }
    };
}

id!(ScheduleId, "schedule");
id!(RunId, "execution");
