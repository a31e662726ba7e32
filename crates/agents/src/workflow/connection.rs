//! Requests to a server: each is answered in its time, and costs a bounded amount.

use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Method, Url, redirect};

use super::answer::{Answer, retry_after};
use super::notes::Notes;
use super::server::{ConductorServer, ServerError};
use super::trouble::Trouble;

/// Whoever listens takes a connection at once.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// How long a connection is kept for the next request. Servers close those that nobody uses, some after five seconds: a start that is
/// sent on one that is being closed would be lost.
const IDLE_MAX: Duration = Duration::from_secs(4);

/// How much of an answer is read, in bytes.
const BODY_MAX: usize = 64 * 1024;

/// Where the token goes.
const AUTHORIZATION: HeaderName = HeaderName::from_static("x-authorization");

/// Where the idempotency key goes, beside the body: for what stands in front of the server.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A server's address, and the connections to it, which all attempts share.
#[derive(Debug)]
pub(super) struct Connection {
    http: reqwest::Client,
    base: Url,
    answer_max: Duration,
}

/// A request.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) idempotency_key: Option<String>,
    pub(super) body: Option<Vec<u8>>,
}

impl Connection {
    pub(super) fn new(server: &ConductorServer) -> Result<Connection, ServerError> {
        let base = server.address()?;
        let builder = reqwest::Client::builder()
            .connect_timeout(CONNECT_MAX)
            .pool_idle_timeout(IDLE_MAX)
            .timeout(server.answer_max)
            // A start that is sent elsewhere is not what the operator asked for, and neither is a proxy of the environment's.
            .redirect(redirect::Policy::none())
            .no_proxy()
            .user_agent(concat!("punctual/", env!("CARGO_PKG_VERSION")));
        // Without TLS, a machine that trusts no authority is good enough.
        let builder = if base.scheme() == "http" { builder.tls_certs_only([]) } else { builder };
        let http = builder.build().map_err(ServerError::Connections)?;
        Ok(Connection { http, base, answer_max: server.answer_max })
    }

    /// A place of the server's API.
    pub(super) fn at(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        url.path_segments_mut().expect("an address with a host has a path").pop_if_empty().extend(path);
        url
    }

    /// Sends a request and takes the beginning of its answer.
    pub(super) async fn send(&self, asked: &Asked, token: Option<&HeaderValue>) -> Result<Answer, Trouble> {
        let lost = |error: reqwest::Error| Trouble::lost(&error, &asked.url, self.answer_max);
        let mut request = self.http.request(asked.method.clone(), asked.url.clone());
        request = request.header(ACCEPT, "text/plain, application/json");
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, token);
        }
        // A key that cannot be a header is in the body all the same.
        if let Some(key) = asked.idempotency_key.as_deref().and_then(|key| HeaderValue::from_str(key).ok()) {
            request = request.header(IDEMPOTENCY_KEY, key);
        }
        if let Some(body) = &asked.body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        let mut response = request.send().await.map_err(lost)?;
        let (status, retry_after, mut body) = (response.status(), retry_after(response.headers()), vec![]);
        while body.len() < BODY_MAX
            && let Some(piece) = response.chunk().await.map_err(lost)?
        {
            let room = BODY_MAX - body.len();
            body.extend_from_slice(&piece[..piece.len().min(room)]);
        }
        Ok(Answer { status, retry_after, body })
    }
}

impl Asked {
    /// The trouble with an answer that is not a success.
    pub(super) fn refused(&self, answer: &Answer, notes: &Notes) -> Trouble {
        let text = notes.shown(&answer.text());
        let says = if text.is_empty() { text } else { format!(": {text}") };
        let message = format!("{} {} was answered with {}{says}", self.method, self.url, answer.status);
        let is_retryable = answer.may_go_away();
        let word = if is_retryable { "unavailable" } else { "refused" };
        let retry_after = answer.retry_after.filter(|_| is_retryable);
        Trouble { is_retryable, retry_after, ..Trouble::passing(word, message) }
    }
}
