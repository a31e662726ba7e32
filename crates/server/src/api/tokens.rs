//! Tokens: who may come over the API.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use punctual_core::{Role, Token, TokenId, storable};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::again::{again, answered_before};
use crate::app::App;
use crate::auth::{Caller, Secret};
use crate::error::{ApiError, Problem};
use crate::extract::{Asked, Params, PathText};

/// A token that is asked for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TokenRequest {
    /// What people call it.
    #[schema(example = "ada")]
    name: String,
    /// `admin`, `editor`, `viewer` or `worker`.
    #[schema(value_type = String, example = "editor")]
    role: Role,
    /// The projects that it is for; all when absent.
    projects: Option<BTreeSet<String>>,
    /// The agents that a worker may carry out runs for.
    #[serde(default)]
    agents: BTreeSet<String>,
    /// When it ends.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
}

/// A token, without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TokenView {
    #[schema(value_type = uuid::Uuid)]
    token_id: TokenId,
    name: String,
    #[schema(value_type = String)]
    role: Role,
    projects: Option<BTreeSet<String>>,
    agents: BTreeSet<String>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// When somebody last came with it, to the minute or so.
    #[schema(value_type = Option<String>, format = DateTime)]
    used_at: Option<Timestamp>,
    /// The secret: shown this once, and never again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "pt_…")]
    secret: Option<String>,
}

impl TokenView {
    fn new(token: Token, used_at: Option<Timestamp>, secret: Option<&Secret>) -> TokenView {
        TokenView {
            token_id: token.id,
            name: token.name,
            role: token.role,
            projects: token.projects,
            agents: token.agents,
            created_at: token.created_at,
            expires_at: token.expires_at,
            used_at,
            secret: secret.map(|secret| secret.reveal().to_owned()),
        }
    }
}

/// Make a token. Its secret is in the answer, and nowhere else.
#[utoipa::path(post, path = "/api/tokens", tag = "tokens", request_body = TokenRequest, responses(
    (status = 201, body = TokenView), (status = 422, body = Problem),
))]
pub(crate) async fn create(
    State(app): State<App>,
    Asked { body: request, by }: Asked<TokenRequest>,
) -> Result<Response, ApiError> {
    let now = app.now();
    if request.name.trim().is_empty() || request.name.contains(char::is_control) {
        return Err(ApiError::invalid("name", "nobody could tell it from others", "use visible characters"));
    }
    if request.expires_at.is_some_and(|expires_at| expires_at <= now) {
        return Err(ApiError::invalid("expiresAt", "that is past", "use a time that comes"));
    }
    if request.role != Role::Worker && !request.agents.is_empty() {
        return Err(ApiError::invalid("agents", "only a worker has agents", "leave it out"));
    }
    if request.role == Role::Admin && request.projects.is_some() {
        return Err(ApiError::invalid("projects", "an admin is for all of them", "leave it out, or use another role"));
    }
    let secret = Secret::random();
    let token = Token {
        id: TokenId(app.ids.next(now)),
        name: request.name,
        role: request.role,
        projects: request.projects,
        agents: request.agents,
        hash: secret.hash(),
        created_at: now,
        expires_at: request.expires_at.map(storable::instant),
    };
    match app.store.make_token(now, token.clone(), Some(by.clone())).await {
        Ok(()) => {
            app.doors.tokens_changed();
            Ok((StatusCode::CREATED, Json(TokenView::new(token, None, Some(&secret)))).into_response())
        }
        Err(error) => {
            // Its secret was shown once: whoever lost that answer makes another token.
            let id = answered_before(&by, error.into())?;
            let records = app.store.tokens().await?;
            let record = records.into_iter().find(|record| record.token.id.0 == id);
            let record = record.ok_or_else(|| ApiError::not_found("token", id))?;
            Ok(again((StatusCode::CREATED, Json(TokenView::new(record.token, record.used_at, None))).into_response()))
        }
    }
}

/// The tokens, without their secrets.
#[utoipa::path(get, path = "/api/tokens", tag = "tokens", responses((status = 200, body = Vec<TokenView>)))]
pub(crate) async fn list(State(app): State<App>, _: Caller) -> Result<Json<Vec<TokenView>>, ApiError> {
    let records = app.store.tokens().await?;
    Ok(Json(records.into_iter().map(|record| TokenView::new(record.token, record.used_at, None)).collect()))
}

/// How to take a token back.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RevokeParams {
    /// Whether also the last token of an admin is taken back.
    #[serde(default)]
    force: bool,
}

/// Take a token back: it allows nothing any more.
///
/// The last token of an admin is only taken back with `force`: nobody could make another one before the next start.
#[utoipa::path(delete, path = "/api/tokens/{tokenId}", tag = "tokens",
    params(("tokenId" = uuid::Uuid, Path), RevokeParams),
    responses((status = 204), (status = 404, body = Problem),
        (status = 409, description = "It is the last one of an admin", body = Problem)))]
pub(crate) async fn revoke(
    State(app): State<App>,
    caller: Caller,
    PathText(id): PathText,
    Params(params): Params<RevokeParams>,
) -> Result<StatusCode, ApiError> {
    let missing = || ApiError::not_found("token", id.escape_debug());
    let token = TokenId(id.parse().map_err(|_| missing())?);
    if !params.force && is_last_admin(&app, token).await? {
        let detail = "this is the last token of an admin: nobody could make another one; make one first, or use force";
        return Err(ApiError::conflict("last_admin", detail));
    }
    let was_there = app.store.revoke_token(app.now(), token, Some(caller.by())).await?;
    app.doors.tokens_changed();
    if was_there { Ok(StatusCode::NO_CONTENT) } else { Err(missing()) }
}

/// Whether a token is an admin's, and no other one is.
async fn is_last_admin(app: &App, id: TokenId) -> Result<bool, ApiError> {
    let now = app.now();
    let records = app.store.tokens().await?;
    let is_admin = |token: &&Token| token.role == Role::Admin && token.expires_at.is_none_or(|end| now < end);
    let admins: Vec<&Token> = records.iter().map(|record| &record.token).filter(is_admin).collect();
    Ok(matches!(admins[..], [only] if only.id == id))
}
