//! Brings the store in line with the schedules of the configuration.

use std::fmt;

use anyhow::Context;
use punctual_core::schedule::Schedule;
use punctual_engine::clock::now;
use punctual_engine::edit::Editor;
use punctual_store::Store;
use tracing::{info, warn};

use crate::config::{Changes, Config, changes};

/// How many schedules are read at once.
const PAGE: usize = 1_000;

/// What was done.
#[derive(Debug, Default)]
pub(super) struct Synced {
    total: usize,
    created: usize,
    edited: usize,
    deleted: usize,
}

impl fmt::Display for Synced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.total)?;
        let changes = [(self.created, "new"), (self.edited, "changed"), (self.deleted, "gone from the file")];
        let changes: Vec<String> =
            changes.iter().filter(|(n, _)| 0 < *n).map(|(n, what)| format!("{n} {what}")).collect();
        if changes.is_empty() { Ok(()) } else { write!(f, " ({})", changes.join(", ")) }
    }
}

/// Creates, edits and deletes schedules until those that came from the file are those of the file.
pub(super) async fn schedules(store: &dyn Store, editor: &Editor, config: &Config) -> anyhow::Result<Synced> {
    let stored = all_schedules(store).await?;
    let at = now();
    let Changes { create, edit, delete, taken } = changes(&config.schedules, &stored, at, || {
        punctual_core::ScheduleId(uuid::Uuid::nil()) // The editor gives the id.
    });
    let mut synced = Synced { total: stored.len(), ..Synced::default() };
    for schedule in create {
        let created = editor.create(schedule, at).await?;
        info!(schedule.id = %created.id, "schedule {} is new", label(&created));
        (synced.created, synced.total) = (synced.created + 1, synced.total + 1);
    }
    for wanted in edit {
        let edited = editor.edit(wanted.id, None, at, |_| wanted.clone()).await?;
        info!(schedule.id = %edited.id, "schedule {} has changed", label(&edited));
        synced.edited += 1;
    }
    for id in delete {
        editor.delete(id, at).await?;
        info!(schedule.id = %id, "schedule {id} is gone from the file");
        (synced.deleted, synced.total) = (synced.deleted + 1, synced.total - 1);
    }
    for taken in taken {
        warn!("schedule {} of the file is left out: schedule {} has its name", taken.name, taken.by);
    }
    Ok(synced)
}

async fn all_schedules(store: &dyn Store) -> anyhow::Result<Vec<Schedule>> {
    let mut all: Vec<Schedule> = vec![];
    loop {
        let page = store.schedules(all.last().map(|schedule| schedule.id), PAGE).await.context("reading schedules")?;
        let is_last = page.len() < PAGE;
        all.extend(page);
        if is_last {
            return Ok(all);
        }
    }
}

fn label(schedule: &Schedule) -> String {
    schedule.name.clone().unwrap_or_else(|| schedule.id.to_string())
}
