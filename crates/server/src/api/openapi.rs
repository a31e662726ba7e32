//! The description of the API.

use std::sync::Arc;

use axum::Extension;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

/// The description, as it is sent.
#[derive(Clone)]
pub(crate) struct Description(Arc<str>);

impl Description {
    pub(crate) fn new(description: &Value) -> Description {
        Description(format!("{description:#}").into())
    }
}

/// This description.
#[utoipa::path(get, path = "/api/openapi.json", tag = "about", responses((status = 200, description = "OpenAPI 3.1", content_type = "application/json", body = Object)))]
pub(crate) async fn document(Extension(description): Extension<Description>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], description.0.to_string()).into_response()
}
