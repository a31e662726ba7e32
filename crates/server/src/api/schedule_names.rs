//! The names of schedules, for lists of what came of them.

use std::collections::BTreeMap;

use punctual_core::ScheduleId;

use super::schedule_fields::given_name;
use crate::app::App;
use crate::error::ApiError;

/// Names of schedules, each read once.
pub(crate) struct ScheduleNames<'a> {
    app: &'a App,
    known: BTreeMap<ScheduleId, Option<String>>,
}

impl<'a> ScheduleNames<'a> {
    pub(crate) fn new(app: &'a App) -> ScheduleNames<'a> {
        ScheduleNames { app, known: BTreeMap::new() }
    }

    /// The name that people gave a schedule, if it is still there.
    pub(crate) async fn of(&mut self, schedule: Option<ScheduleId>) -> Result<Option<String>, ApiError> {
        let Some(id) = schedule else { return Ok(None) };
        if let Some(name) = self.known.get(&id) {
            return Ok(name.clone());
        }
        let name = self.app.store.schedule(id).await?.and_then(|it| given_name(&it).map(str::to_owned));
        self.known.insert(id, name.clone());
        Ok(name)
    }
}
