//! Projects: whatever schedules and limits name.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::Caller;
use crate::error::ApiError;

/// How many schedules are read at once.
const PAGE: usize = 1_000;

/// A project.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProjectView {
    project_id: String,
    /// How many schedules it has.
    schedules: u64,
    /// How many of them produce runs.
    active: u64,
    /// How many of its runs may be at work.
    max_running: Option<u32>,
}

/// The projects that schedules or limits name, by name.
#[utoipa::path(get, path = "/api/projects", tag = "about", responses((status = 200, body = Vec<ProjectView>)))]
pub(crate) async fn list(State(app): State<App>, caller: Caller) -> Result<Json<Vec<ProjectView>>, ApiError> {
    let limits = &app.settings.roster.now().limits.projects;
    let mut counts: BTreeMap<String, (u64, u64)> = limits.keys().map(|name| (name.clone(), (0, 0))).collect();
    let mut after = None;
    loop {
        let page = app.store.schedules(after, PAGE).await?;
        for schedule in &page {
            let Some(project) = &*schedule.project else { continue };
            let (all, active) = counts.entry(project.clone()).or_default();
            *all += 1;
            *active += u64::from(schedule.is_active());
        }
        after = page.last().map(|last| last.id);
        if page.len() < PAGE {
            break;
        }
    }
    let views = counts.into_iter().filter(|(name, _)| caller.reaches(Some(name))).map(|(name, (schedules, active))| {
        let max_running = limits.get(&name).copied();
        ProjectView { project_id: name, schedules, active, max_running }
    });
    Ok(Json(views.collect()))
}
