//! The names of schedules, for lists of what came of them.

use std::collections::BTreeMap;

use punctual_core::ScheduleId;

use super::schedule_fields::given_name;
use crate::app::App;
use crate::error::ApiError;

/// What a schedule is called.
#[derive(Debug, Clone, Default)]
pub(crate) struct Named {
    /// The name that people gave it.
    pub(crate) name: Option<String>,
    /// Whether it is there no more.
    pub(crate) is_deleted: bool,
}

/// Names of schedules, each read once.
pub(crate) struct ScheduleNames<'a> {
    app: &'a App,
    known: BTreeMap<ScheduleId, Named>,
}

impl<'a> ScheduleNames<'a> {
    pub(crate) fn new(app: &'a App) -> ScheduleNames<'a> {
        ScheduleNames { app, known: BTreeMap::new() }
    }

    /// What a schedule is called; nothing, for what has none.
    pub(crate) async fn of(&mut self, schedule: Option<ScheduleId>) -> Result<Named, ApiError> {
        let Some(id) = schedule else { return Ok(Named::default()) };
        if let Some(named) = self.known.get(&id) {
            return Ok(named.clone());
        }
        let found = self.app.store.schedule(id).await?;
        let name = found.as_ref().and_then(|it| given_name(it).map(str::to_owned));
        let named = Named { name, is_deleted: found.is_none() };
        self.known.insert(id, named.clone());
        Ok(named)
    }
}
