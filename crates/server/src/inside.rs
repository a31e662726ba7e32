//! Asking from inside: the same routes over a store that somebody has opened to look at, without a socket and without a token.

use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use bytes::Bytes;
use tower::ServiceExt;

use crate::app::App;
use crate::auth::Caller;
use crate::routes::router;

/// The largest answer that is taken: more than any page has.
const ANSWER_MAX: usize = 256 * 1024 * 1024;

/// An answer from inside.
#[derive(Debug, Clone)]
pub struct LookedAt {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Bytes,
}

/// Answers a `GET` as a server would answer whoever may see everything. What would change something is refused: the caller has
/// the role of a viewer.
pub async fn look(app: App, path_and_query: &str) -> std::io::Result<LookedAt> {
    let mut request = Request::get(path_and_query)
        .header(header::HOST, "localhost")
        .body(Body::empty())
        .map_err(std::io::Error::other)?;
    request.extensions_mut().insert(Caller::inside());
    let Ok(response) = router(app).oneshot(request).await;
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), ANSWER_MAX).await.map_err(std::io::Error::other)?;
    Ok(LookedAt { status, body })
}
