//! The guard: whoever comes is looked at here, before any handler. Host, Origin, token, role, in this order.

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use jiff::Timestamp;
use punctual_core::{Actor, By, Role, Token, TokenId};

use super::{Right, Secret};
use crate::app::App;
use crate::error::ApiError;

/// Whoever has come in: by a token, or without one where nobody has to have one.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) token: Token,
}

impl Caller {
    /// Whoever has the database itself may look at all of it.
    pub(crate) fn inside() -> Caller {
        let token = Token {
            id: TokenId(uuid::Uuid::nil()),
            name: "inside".to_owned(),
            role: Role::Viewer,
            projects: None,
            agents: [].into(),
            hash: String::new(),
            created_at: Timestamp::UNIX_EPOCH,
            expires_at: None,
        };
        Caller { token }
    }

    /// Whether it looks from inside, without a server.
    pub(crate) fn is_inside(&self) -> bool {
        self.token.id.0.is_nil()
    }

    /// Who the journal says it was.
    pub(crate) fn by(&self) -> By {
        By::new(Actor::Token { id: self.token.id, name: self.token.name.clone() })
    }

    /// Whether what belongs to a project, or to none, is for them.
    pub(crate) fn reaches(&self, project: Option<&str>) -> bool {
        self.token.reaches(project)
    }

    /// Refuses what belongs to a project that is not theirs.
    pub(crate) fn must_reach(&self, project: Option<&str>) -> Result<(), ApiError> {
        if self.reaches(project) { Ok(()) } else { Err(other_project("projectId: this token is for other projects")) }
    }

    /// Refuses whoever may see some projects only.
    pub(crate) fn must_reach_all(&self) -> Result<(), ApiError> {
        match self.token.projects {
            None => Ok(()),
            Some(_) => Err(other_project("this is of all projects, and this token is for some")),
        }
    }

    /// The projects that they may see, if not all.
    pub(crate) fn projects(&self) -> Option<Vec<String>> {
        Some(self.token.projects.as_ref()?.iter().cloned().collect())
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Caller, ApiError> {
        parts.extensions.get::<Caller>().cloned().ok_or_else(not_allowed)
    }
}

/// Lets a request pass if it may.
pub(crate) async fn guard(
    State((app, right)): State<(App, Right)>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    check_host(&app, request.headers())?;
    check_origin(&app, request.headers())?;
    // Whoever asks from inside this process is known already: no header makes a caller.
    if let Some(caller) = request.extensions().get::<Caller>() {
        if !right.is_held_by(caller.token.role) {
            return Err(not_allowed());
        }
    } else if right != Right::Nobody {
        let secret = bearer(request.headers())?;
        let (now, boot) = (app.clock.now(), app.clock.boot());
        let found = app.doors.find(&*app.store, &secret, now, boot).await?;
        let Some(token) = found else {
            app.doors.slow_down(boot).await;
            return Err(bad_token());
        };
        if !right.is_held_by(token.role) {
            return Err(not_allowed());
        }
        request.extensions_mut().insert(Caller { token });
    }
    Ok(next.run(request).await)
}

/// Nobody has such a token.
pub(crate) fn bad_token() -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "bad_token", "this token is not known here, or its time is over")
}

fn other_project(detail: &str) -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, "other_project", detail)
}

/// The token is for something else.
pub(crate) fn not_allowed() -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, "not_allowed", "this token does not allow this")
}

/// A page of another site that has its name point here does not know our names.
fn check_host(app: &App, headers: &HeaderMap) -> Result<(), ApiError> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    if host.is_some_and(|host| app.doors.is_host(host)) {
        return Ok(());
    }
    let detail = "this server is not called so; operators name it with --allow-host";
    Err(ApiError::new(StatusCode::FORBIDDEN, "bad_host", detail))
}

/// Browsers say which site a request comes from; no other site is welcome.
fn check_origin(app: &App, headers: &HeaderMap) -> Result<(), ApiError> {
    let refuse = || ApiError::new(StatusCode::FORBIDDEN, "bad_origin", "requests from other sites are not carried out");
    if let Some(origin) = headers.get(header::ORIGIN) {
        let host = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, host)| host);
        if !host.is_some_and(|host| app.doors.is_host(host)) {
            return Err(refuse());
        }
    }
    match headers.get("sec-fetch-site").map(|site| site.as_bytes()) {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => Err(refuse()),
    }
}

fn bearer(headers: &HeaderMap) -> Result<Secret, ApiError> {
    // Clients of Conductor have a header of their own, with or without the scheme.
    if let Some(value) = headers.get("x-authorization") {
        let text = value.to_str().map_err(|_| no_token())?;
        return Ok(Secret::given(text.strip_prefix("Bearer ").unwrap_or(text)));
    }
    let value = headers.get(header::AUTHORIZATION).ok_or_else(no_token)?;
    let text = value.to_str().map_err(|_| no_token())?;
    let (scheme, secret) = text.split_once(' ').ok_or_else(no_token)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(no_token());
    }
    Ok(Secret::given(secret))
}

/// Nobody is let in without a token.
pub(crate) fn no_token() -> ApiError {
    let detail = "send a token: Authorization: Bearer pt_…; `punctual token create` makes one";
    ApiError::new(StatusCode::UNAUTHORIZED, "no_token", detail)
}
