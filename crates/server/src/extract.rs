//! What handlers take out of requests, with errors of our own.

use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use bytes::Bytes;
use futures_util::StreamExt;
use punctual_core::storable::{self, Unstorable};
use punctual_core::{By, Once, RunId, ScheduleId};
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use tokio::time::timeout;
use uuid::Uuid;

use crate::auth::Caller;
use crate::error::ApiError;
use crate::reading;

/// The longest key of a request that may come again.
const KEY_MAX: usize = 255;

/// The longest body that is taken.
pub(crate) const BODY_MAX: usize = 1024 * 1024;

/// How long a client may rest while it sends a body.
const PIECE_WITHIN: Duration = Duration::from_secs(10);

/// So much of a body that is too long is taken and thrown away.
const THROWN_AWAY_MAX: usize = 16 * BODY_MAX;

/// A body of JSON, read strictly.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Body<T>, ApiError> {
        let bytes = json_bytes(request).await?;
        read_json(&bytes).map(Body)
    }
}

/// A body in which nothing has to be said.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// What somebody asks for, who may ask again: a body of JSON, or none where nothing has to be said, with who asks and, in
/// `Idempotency-Key`, how to know the request again.
pub(crate) struct Asked<T> {
    pub(crate) body: T,
    pub(crate) by: By,
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Asked<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Asked<T>, ApiError> {
        let (mut parts, body) = request.into_parts();
        let caller = Caller::from_request_parts(&mut parts, state).await?;
        let key = idempotency_key(&parts)?;
        let path = parts.uri.to_string();
        let has_body = parts.headers.get(header::CONTENT_LENGTH).is_none_or(|length| length != "0")
            && (parts.headers.contains_key(header::CONTENT_LENGTH)
                || parts.headers.contains_key(header::TRANSFER_ENCODING));
        let request = Request::from_parts(parts, body);
        let bytes = if has_body { json_bytes(request).await? } else { Bytes::new() };
        // Who says nothing says nothing special.
        let text: &[u8] = if matches!(bytes.trim_ascii(), b"" | b"null") { b"{}" } else { &bytes };
        let body = read_json(text)?;
        let once = key.map(|key| {
            let digest = Sha256::new().chain_update(&path).chain_update([0]).chain_update(text).finalize();
            let digest = digest.first_chunk().map_or(0, |first| u64::from_be_bytes(*first));
            // A key is its owner's: others may use the same.
            Once { key: format!("{}/{key}", caller.token.id), digest }
        });
        Ok(Asked { body, by: By { once, ..caller.by() } })
    }
}

fn idempotency_key(parts: &Parts) -> Result<Option<String>, ApiError> {
    let Some(value) = parts.headers.get("idempotency-key") else { return Ok(None) };
    let key = value.to_str().unwrap_or_default().trim().trim_matches('"');
    if key.is_empty() || KEY_MAX < key.len() {
        let detail = format!("Idempotency-Key: use 1 to {KEY_MAX} visible characters, and another for each request");
        return Err(ApiError::malformed(detail));
    }
    Ok(Some(key.to_owned()))
}

async fn json_bytes(request: Request) -> Result<Bytes, ApiError> {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_json = kind.is_some_and(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        kind == "application/json" || kind.starts_with("application/") && kind.ends_with("+json")
    });
    if !is_json {
        return Err(not_json());
    }
    read_body(request.into_body()).await
}

/// Reads a body to its end. One that is too long is taken and thrown away up to a point: a client that still sends when the
/// connection is closed would see no answer.
async fn read_body(body: axum::body::Body) -> Result<Bytes, ApiError> {
    let (mut read, mut length) = (vec![], 0);
    let mut pieces = body.into_data_stream();
    let slow = |_| {
        let seconds = PIECE_WITHIN.as_secs();
        ApiError::malformed(format!("the body did not come to its end: nothing came for {seconds} seconds"))
    };
    while let Some(piece) = timeout(PIECE_WITHIN, pieces.next()).await.map_err(slow)? {
        let piece = piece.map_err(|_| ApiError::malformed("the body did not come to its end"))?;
        length += piece.len();
        if THROWN_AWAY_MAX < length {
            break;
        }
        if length <= BODY_MAX {
            read.extend_from_slice(&piece);
        }
    }
    if BODY_MAX < length { Err(ApiError::too_large(BODY_MAX)) } else { Ok(read.into()) }
}

/// The body is something else.
pub(crate) fn not_json() -> ApiError {
    let detail = "send JSON, and say so: Content-Type: application/json";
    ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", detail)
}

/// A body of JSON, with nothing in it that cannot be kept.
fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let read = reading::json(bytes)?;
    if may_be_unstorable(bytes)
        && let Ok(value) = serde_json::from_slice(bytes)
        && let Some((path, problem)) = storable::find_unstorable(&value)
    {
        let field = if path.is_empty() { "the body".to_owned() } else { path };
        return Err(unstorable(&field, problem));
    }
    Ok(read)
}

/// Whether it is worth looking for what cannot be kept: a NUL character is always written as an escape.
fn may_be_unstorable(bytes: &[u8]) -> bool {
    let opened = bytes.iter().filter(|byte| matches!(byte, b'{' | b'[')).count();
    storable::DEPTH_MAX < opened || bytes.windows(6).any(|window| window == b"\\u0000")
}

fn unstorable(field: &str, problem: Unstorable) -> ApiError {
    ApiError::invalid(field, problem.to_string(), "leave it out")
}

/// What stands behind the question mark.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Params<T>, ApiError> {
        refuse_nul(parts)?;
        let read = Query::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        let Ok(Query(pairs)) = read else { return Err(ApiError::malformed("the query cannot be read")) };
        reading::query(pairs).map(Params)
    }
}

/// The one name in a path.
pub(crate) struct PathText(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for PathText {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<PathText, ApiError> {
        let read = Path::<String>::from_request_parts(parts, state).await;
        read.map(|Path(text)| PathText(text)).map_err(|_| ApiError::malformed("the path cannot be read: use UTF-8"))
    }
}

/// No filter finds a text with a NUL character, and no name has one.
fn refuse_nul(parts: &Parts) -> Result<(), ApiError> {
    if !parts.uri.query().is_some_and(|query| query.contains("%00")) {
        return Ok(());
    }
    let Ok(Query(pairs)) = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri) else { return Ok(()) };
    match pairs.iter().find(|(name, value)| name.contains('\0') || value.contains('\0')) {
        None => Ok(()),
        Some((name, _)) => Err(unstorable(&storable::text(name.clone()), Unstorable::Nul)),
    }
}

/// An id in the path. What is no id is not there.
pub(crate) struct Id<T>(pub(crate) T);

macro_rules! id {
    ($kind:ident, $what:literal) => {
        impl<S: Send + Sync> FromRequestParts<S> for Id<$kind> {
            type Rejection = ApiError;

            async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Id<$kind>, ApiError> {
                let PathText(text) = PathText::from_request_parts(parts, state).await?;
                let id: Option<Uuid> = text.parse().ok();
                id.map(|id| Id($kind(id))).ok_or_else(|| ApiError::not_found($what, text.escape_debug()))
            }
        }
    };
}

id!(ScheduleId, "schedule");
id!(RunId, "execution");
