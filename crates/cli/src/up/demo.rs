//! The demo: something to look at within seconds, with nothing to set up.

use anyhow::Context;
use jiff::Timestamp;
use punctual_core::{Actor, By};
use punctual_engine::edit::Editor;
use punctual_store::Store;

use crate::config::Config;

/// What it runs: also a file to learn from.
pub(super) const CONFIG: &str = include_str!("../../../../examples/demo.toml");

/// The schedules of the database. A demo would take the place of those of a file: it does not come near them.
pub(super) async fn refuse_others(store: &dyn Store, config: &Config) -> anyhow::Result<()> {
    let own: Vec<&str> = config.schedules.iter().map(|schedule| schedule.name.as_str()).collect();
    let stored = store.schedules(None, own.len() + 1).await.context("reading the schedules")?;
    let other = stored.iter().find(|schedule| !schedule.name.as_deref().is_some_and(|name| own.contains(&name)));
    match other {
        None => Ok(()),
        Some(other) => anyhow::bail!(
            "this database has schedules of its own ({}): start the demo in an empty folder, or with another --database",
            other.name.as_deref().unwrap_or("one without a name"),
        ),
    }
}

/// Runs every schedule once, so that there is something to see at once.
pub(super) async fn begin(store: &dyn Store, editor: &Editor, config: &Config, now: Timestamp) -> anyhow::Result<()> {
    let schedules = store.schedules(None, config.schedules.len()).await.context("reading the schedules")?;
    let reason = Some("the demo has something to show at once".to_owned());
    let editor = editor.by(By { reason, ..By::new(Actor::Operator) });
    for schedule in schedules {
        editor.trigger(schedule.id, now).await.context("starting the demo")?;
    }
    Ok(())
}
