//! Brings the store in line with the schedules of the configuration.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use anyhow::Context;
use jiff::Timestamp;
use punctual_core::schedule::{Face, Schedule, Work};
use punctual_engine::edit::{EditError, Editor};
use punctual_engine::roster::Workflows;
use punctual_store::Store;
use tracing::{error, info, warn};

use crate::config::{Changes, Config, changes};
use crate::output::plural;

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

/// How often the store is compared with the file while other nodes bring it in line with theirs.
const TRIES_MAX: usize = 10;

/// Creates, edits and deletes schedules until those that came from the file are those of the file.
///
/// Nodes that share a store may have different files: a schedule that is in the store and not in this file goes if its agent
/// is one of this file's, or nobody's any more.
pub(super) async fn schedules(
    store: &dyn Store,
    editor: &Editor,
    config: &Config,
    at: Timestamp,
) -> anyhow::Result<Synced> {
    for _ in 0..TRIES_MAX {
        match try_schedules(store, editor, config, at).await {
            // Another node with the same file was faster.
            Err(error) if matches!(error.downcast_ref(), Some(EditError::NameTaken(_) | EditError::NotFound(_))) => {}
            synced => return synced,
        }
    }
    anyhow::bail!("other nodes keep changing the schedules of the file; start them one after another")
}

async fn try_schedules(store: &dyn Store, editor: &Editor, config: &Config, at: Timestamp) -> anyhow::Result<Synced> {
    let mut all = all_schedules(store).await?;
    // The others are none of the file's business.
    all.retain(|schedule| schedule.face == Face::Executions);
    let elsewhere = agents_elsewhere(store, config, at).await?;
    let stored: Vec<Schedule> = all.into_iter().filter(|schedule| !elsewhere.contains(schedule.work.agent())).collect();
    let Changes { create, edit, mut delete, taken } = changes(&config.schedules, &stored, at, || {
        punctual_core::ScheduleId(uuid::Uuid::nil()) // The editor gives the id.
    });
    if config.is_blank && !delete.is_empty() {
        warn!(
            "the configuration is empty or not there: {} of the file stay as they are; [agents] without [[schedules]] would delete them",
            plural(delete.len(), "schedule")
        );
        delete.clear();
    }
    let mut synced = Synced { total: stored.len(), ..Synced::default() };
    for schedule in create {
        let name = label(&schedule);
        let Some(created) = unless_refused(&name, editor.create(schedule, at).await)? else { continue };
        info!(schedule.id = %created.id, "schedule {} is new", label(&created));
        (synced.created, synced.total) = (synced.created + 1, synced.total + 1);
    }
    for wanted in edit {
        let edited = editor.edit(wanted.id, None, at, |_| wanted.clone()).await;
        let Some(edited) = unless_refused(&label(&wanted), edited)? else { continue };
        info!(schedule.id = %edited.id, "schedule {} has changed", label(&edited));
        synced.edited += 1;
    }
    for id in delete {
        let name = stored.iter().find(|it| it.id == id).map_or_else(|| id.to_string(), label);
        let Some(()) = unless_refused(&name, editor.delete(id, at).await)? else { continue };
        info!(schedule.id = %id, "schedule {name} is gone from the file, and deleted");
        (synced.deleted, synced.total) = (synced.deleted + 1, synced.total - 1);
    }
    for taken in taken {
        warn!("schedule {} of the file is left out: schedule {} has its name", taken.name, taken.by);
    }
    Ok(synced)
}

/// Has every schedule of a workflow started by whom the configuration says. How many have changed.
pub(super) async fn workflows(
    store: &dyn Store,
    editor: &Editor,
    workflows: &Workflows,
    at: Timestamp,
) -> anyhow::Result<usize> {
    let mut changed = 0;
    for schedule in all_schedules(store).await? {
        let Some(workflow) = schedule.work.workflow() else { continue };
        let agent = workflows.agent_for(&workflow.name);
        if agent == schedule.work.agent() {
            continue;
        }
        info!(schedule.id = %schedule.id, "schedule {} is carried out by {agent} now", label(&schedule));
        let edited = editor.edit(schedule.id, None, at, |before| started_by(before, agent)).await;
        match edited {
            Ok(_) => changed += 1,
            Err(EditError::NotFound(_)) => {}
            edited => drop(unless_refused(&label(&schedule), edited)?),
        }
    }
    Ok(changed)
}

/// What an edit brought. A schedule that the store refuses for a lasting reason is told, and keeps none of the others from their
/// place.
fn unless_refused<T>(name: &str, edited: Result<T, EditError>) -> Result<Option<T>, EditError> {
    match edited {
        Ok(edited) => Ok(Some(edited)),
        Err(EditError::Store(refused)) if refused.is_lasting() => {
            let cause = std::error::Error::source(&refused).map(|cause| format!(": {cause}")).unwrap_or_default();
            error!("schedule {name} of the file is left as it is, as it cannot be stored: {refused}{cause}");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// A schedule whose workflow another agent starts.
fn started_by(schedule: &Schedule, agent: &str) -> Schedule {
    let work = match &schedule.work {
        Work::Workflow { request, .. } => Work::Workflow { agent: agent.into(), request: request.clone() },
        work @ Work::Agent { .. } => work.clone(),
    };
    Schedule { work, ..schedule.clone() }
}

/// The agents of other nodes that share the store, and are not this one's too.
async fn agents_elsewhere(store: &dyn Store, config: &Config, at: Timestamp) -> anyhow::Result<BTreeSet<String>> {
    if store.is_exclusive() {
        return Ok(BTreeSet::new());
    }
    let nodes = store.nodes().await.context("reading the nodes")?;
    let alive = nodes.into_iter().filter(|node| at <= node.lease_until);
    Ok(alive.flat_map(|node| node.agents).filter(|agent| !config.agents.contains_key(agent)).collect())
}

async fn all_schedules(store: &dyn Store) -> anyhow::Result<Vec<Schedule>> {
    let mut all: Vec<Schedule> = vec![];
    loop {
        let page = store.schedules(all.last().map(|schedule| schedule.id), PAGE).await.context("reading schedules")?;
        let is_last = page.len() < PAGE;
        all.extend(page.into_iter().map(Arc::unwrap_or_clone));
        if is_last {
            return Ok(all);
        }
    }
}

fn label(schedule: &Schedule) -> String {
    schedule.name.clone().unwrap_or_else(|| schedule.id.to_string())
}

#[cfg(test)]
mod tests {
    use punctual_store::StoreError;

    use super::*;

    #[test]
    fn a_schedule_that_is_refused_for_good_keeps_none_of_the_others_from_their_place() {
        let refused = StoreError::Database { doing: "testing", source: "no such value".into() };
        assert!(matches!(unless_refused::<()>("x", Err(EditError::Store(refused))), Ok(None)));
        let passing = [EditError::Store(StoreError::DiskFull), EditError::NameTaken("x".to_owned())];
        for error in passing {
            assert!(unless_refused::<()>("x", Err(error)).is_err(), "it is tried again, or told");
        }
        assert!(matches!(unless_refused("x", Ok(7)), Ok(Some(7))));
    }
}
