//! Signing in as clients of Conductor do: a key and its secret for a token. Here the secret is the token.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::error::{ErrorResponse, refused};
use crate::app::App;
use crate::auth::{Secret, bad_token};
use crate::error::ApiError;
use crate::extract::Body;

/// Who wants in.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeyRequest {
    /// Anything.
    #[schema(example = "punctual")]
    #[serde(default)]
    #[expect(dead_code, reason = "clients send one, and it tells nothing")]
    key_id: Option<String>,
    /// A token of this server.
    #[schema(example = "pt_…")]
    #[serde(default)]
    key_secret: Option<String>,
}

/// What lets them in.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeyResponse {
    /// What to send as `X-Authorization`.
    token: String,
    /// What the token is called.
    user_id: String,
}

/// Exchange a key and its secret for a token.
#[utoipa::path(post, path = "/api/token", tag = "conductor", request_body = KeyRequest,
    responses((status = 200, body = KeyResponse), (status = 401, body = ErrorResponse)))]
pub(crate) async fn exchange(
    State(app): State<App>,
    Body(request): Body<KeyRequest>,
) -> Result<Json<KeyResponse>, ApiError> {
    let secret = request.key_secret.filter(|secret| !secret.is_empty());
    let secret = Secret::given(&secret.ok_or_else(|| refused("keySecret", "keySecret is required"))?);
    let (now, boot) = (app.clock.now(), app.clock.boot());
    let Some(token) = app.doors.find(&*app.store, &secret, now, boot).await? else {
        app.doors.slow_down(boot).await;
        return Err(bad_token());
    };
    Ok(Json(KeyResponse { token: secret.reveal().to_owned(), user_id: token.name }))
}
