//! Names of schedules, for listings.

use std::collections::BTreeMap;

use punctual_core::ScheduleId;
use punctual_store::{Result, Schedules};

/// How many schedules are read at once.
const PAGE: usize = 1_000;

/// The names of schedules by id.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeMap<ScheduleId, String>);

impl Names {
    pub(crate) async fn read(store: &(impl Schedules + ?Sized)) -> Result<Names> {
        let mut names = BTreeMap::new();
        let mut after = None;
        loop {
            let page = store.schedules(after, PAGE).await?;
            after = page.last().map(|schedule| schedule.id);
            let is_last = page.len() < PAGE;
            names.extend(page.into_iter().filter_map(|schedule| Some((schedule.id, schedule.name?))));
            if is_last {
                return Ok(Names(names));
            }
        }
    }

    /// The name of a schedule, or the beginning of its id.
    pub(crate) fn of(&self, id: Option<ScheduleId>) -> String {
        let Some(id) = id else { return "-".to_owned() };
        self.0.get(&id).cloned().unwrap_or_else(|| id.to_string())
    }

    /// The schedule that a person means by a name or an id.
    pub(crate) fn find(&self, text: &str) -> anyhow::Result<ScheduleId> {
        if let Ok(id) = text.parse() {
            return Ok(ScheduleId(id));
        }
        let mut found = self.0.iter().filter(|(_, name)| *name == text).map(|(id, _)| *id);
        match (found.next(), found.next()) {
            (Some(id), None) => Ok(id),
            (Some(_), Some(_)) => anyhow::bail!("several schedules are called {text:?}; name one by its id"),
            (None, _) => anyhow::bail!("there is no schedule {text:?}"),
        }
    }
}
