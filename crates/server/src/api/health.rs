//! Health, for whatever watches the process.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;

/// How the server is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok`.
    #[schema(example = "ok")]
    status: &'static str,
    /// The release.
    version: &'static str,
}

const WELL: Health = Health { status: "ok", version: env!("CARGO_PKG_VERSION") };

/// Whether the process lives.
#[utoipa::path(get, path = "/health/live", tag = "health", responses((status = 200, body = Health)))]
pub(crate) async fn live() -> Json<Health> {
    Json(WELL)
}

/// Whether it can do its work: the store answers.
#[utoipa::path(get, path = "/health/ready", tag = "health", responses(
    (status = 200, body = Health),
    (status = 503, description = "The store does not answer", body = crate::error::Problem),
))]
pub(crate) async fn ready(State(app): State<App>) -> Result<Json<Health>, ApiError> {
    app.store.head().await.map_err(|_| {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", "the store does not answer")
    })?;
    Ok(Json(WELL))
}
