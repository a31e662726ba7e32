//! Marks on schedules.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use punctual_core::schedule::{Schedule, Tag};
use punctual_engine::edit::EditError;

use super::error::{ErrorResponse, no_schedule};
use super::find::found;
use super::model::TagView;
use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::extract::{Body, PathText};

/// The marks of a schedule.
#[utoipa::path(get, path = "/api/scheduler/schedules/{name}/tags", tag = "conductor", params(("name" = String, Path)),
    responses((status = 200, body = Vec<TagView>), (status = 404, body = ErrorResponse)))]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    PathText(name): PathText,
) -> Result<Json<Vec<TagView>>, ApiError> {
    let schedule = found(&app, &caller, &name).await?;
    Ok(Json(schedule.tags.iter().map(TagView::of).collect()))
}

/// Put marks on a schedule, beside those that it has.
#[utoipa::path(put, path = "/api/scheduler/schedules/{name}/tags", tag = "conductor", params(("name" = String, Path)),
    request_body = Vec<TagView>,
    responses((status = 200, description = "It has them"), (status = 404, body = ErrorResponse)))]
pub(crate) async fn put(
    State(app): State<App>,
    caller: Caller,
    PathText(name): PathText,
    Body(tags): Body<Vec<TagView>>,
) -> Result<StatusCode, ApiError> {
    let new: Vec<Tag> = tags.into_iter().map(TagView::into_tag).collect();
    change(&app, &caller, &name, |before| {
        let old = before.iter().filter(|tag| !new.contains(tag)).cloned();
        old.chain(new.clone()).collect()
    })
    .await
}

/// Take marks off a schedule.
#[utoipa::path(delete, path = "/api/scheduler/schedules/{name}/tags", tag = "conductor", params(("name" = String, Path)),
    request_body = Vec<TagView>,
    responses((status = 200, description = "It does not have them"), (status = 404, body = ErrorResponse)))]
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    PathText(name): PathText,
    Body(tags): Body<Vec<TagView>>,
) -> Result<StatusCode, ApiError> {
    let gone: Vec<(String, String)> = tags.into_iter().map(TagView::into_tag).map(|tag| (tag.key, tag.value)).collect();
    change(&app, &caller, &name, |before| {
        let stays = |tag: &&Tag| !gone.iter().any(|(key, value)| *key == tag.key && *value == tag.value);
        before.iter().filter(stays).cloned().collect()
    })
    .await
}

async fn change(
    app: &App,
    caller: &Caller,
    name: &str,
    change: impl Fn(&[Tag]) -> Vec<Tag> + Send + Sync,
) -> Result<StatusCode, ApiError> {
    let schedule = found(app, caller, name).await?;
    let edit = |before: &Schedule| Schedule { tags: change(&before.tags).into(), ..before.clone() };
    match app.editor_for(&caller.by()).edit(schedule.id, None, app.now(), edit).await {
        Ok(_) => Ok(StatusCode::OK),
        Err(EditError::NotFound(_)) => Err(no_schedule(name)),
        Err(error) => Err(error.into()),
    }
}
