//! Which planned runs have to let others go first.
//!
//! The rule is [`World::is_blocked`]. It asks whether *any* other run of a schedule is at work, or waits in front: so it
//! is enough to show it one run at work and the first that waits, however many there are.

use std::collections::BTreeMap;

use punctual_core::journal::World;
use punctual_core::{RunId, ScheduleId};
use rusqlite::params;

use super::fault::Done;
use super::rows::RunRow;
use super::session::Session;
use super::values::Id;

const AT_WORK: &str = "SELECT * FROM runs WHERE schedule_id = ?1 AND ended_at IS NULL
    AND state IN ('claimed', 'running', 'waiting') LIMIT 1";
/// The first that waits, but for those that wait for another's start.
const FIRST: &str = "SELECT * FROM runs WHERE schedule_id = ?1 AND ended_at IS NULL AND state = 'planned'
    AND NOT EXISTS (SELECT 1 FROM runs AS leader
        WHERE leader.id = runs.follows AND leader.has_started = 0 AND leader.ended_at IS NULL)
    ORDER BY ready_at, id LIMIT 1";
/// Runs that may have to wait now.
const OPEN: &str = "SELECT * FROM runs WHERE schedule_id = ?1 AND state = 'planned' AND is_blocked = 0
    AND (overlap = 'queue' OR is_parked = 1)";
/// Runs that may go when nothing is at work, whatever their place.
const PARKED: &str = "SELECT * FROM runs WHERE schedule_id = ?1 AND state = 'planned' AND is_blocked = 1
    AND overlap <> 'queue' AND is_parked = 1";
const FOLLOWING: &str = "SELECT * FROM runs WHERE follows = ?1 AND state = 'planned'";
const ANY_FOLLOWING: &str = "SELECT 1 FROM runs WHERE follows IS NOT NULL AND state = 'planned' LIMIT 1";
const ONE: &str = "SELECT * FROM runs WHERE id = ?1";

/// All of them, to see how they are carried out.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[AT_WORK, FIRST, OPEN, PARKED, FOLLOWING, ANY_FOLLOWING, ONE];

impl Session {
    /// Looks again at every run whose turn may have come, or gone, with what was written.
    pub(super) fn refresh_blocked(&mut self) -> Done<()> {
        for schedule in std::mem::take(&mut self.derived.schedules) {
            self.refresh_schedule(schedule)?;
            self.refresh_overlap(schedule)?;
        }
        let mut followers = std::mem::take(&mut self.derived.followers);
        let leaders = std::mem::take(&mut self.derived.leaders);
        // Runs that follow another are rare: mostly there is none at all.
        if self.connection.prepare_cached(ANY_FOLLOWING)?.exists([])? {
            for leader in leaders {
                followers.extend(self.rows(FOLLOWING, leader)?.iter().map(|row| row.id));
            }
        }
        for id in followers {
            for row in self.rows(ONE, id)?.into_iter().filter(|row| row.lane_id.is_some()) {
                let mut shown = vec![];
                if let Some(schedule) = row.schedule {
                    shown.extend(self.rows(AT_WORK, schedule)?);
                    shown.extend(self.rows(FIRST, schedule)?);
                }
                self.refresh_rows(vec![row], shown)?;
            }
        }
        Ok(())
    }

    fn refresh_schedule(&mut self, schedule: ScheduleId) -> Done<()> {
        let mut asked = self.rows(OPEN, schedule)?;
        asked.extend(self.rows(PARKED, schedule)?);
        let first = self.rows(FIRST, schedule)?;
        asked.extend(first.iter().filter(|row| row.queues() && row.is_blocked).cloned());
        if asked.is_empty() {
            return Ok(());
        }
        let mut shown = self.rows(AT_WORK, schedule)?;
        shown.extend(first);
        self.refresh_rows(asked, shown)
    }

    /// Decides about `asked`, in a world in which there are they, `shown`, and whom they follow.
    fn refresh_rows(&mut self, asked: Vec<RunRow>, shown: Vec<RunRow>) -> Done<()> {
        let mut flags: BTreeMap<RunId, (bool, i64)> = BTreeMap::new();
        let mut world = World::beginning_at(1);
        let mut rows = shown;
        for row in asked {
            flags.insert(row.id, (row.is_blocked, row.lane_id.expect("a planned run is in a lane")));
            if let Some(leader) = row.follows {
                rows.extend(self.rows(ONE, leader)?);
            }
            rows.push(row);
        }
        for row in rows {
            let terms = self.terms.get(&self.connection, row.terms_id)?;
            world.runs.insert(row.id, row.into_run(terms)?);
        }
        for (id, (was_blocked, lane)) in flags {
            let is_blocked = world.is_blocked(&world.runs[&id]);
            if is_blocked != was_blocked {
                let sql = "UPDATE runs SET is_blocked = ?2 WHERE id = ?1";
                self.connection.prepare_cached(sql)?.execute(params![Id(id.0), is_blocked])?;
                self.touch_lane(lane)?;
            }
        }
        Ok(())
    }

    fn rows(&self, sql: &str, id: impl Into<Of>) -> Done<Vec<RunRow>> {
        let Of(id) = id.into();
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map([id], RunRow::read)?.collect::<rusqlite::Result<_>>()?;
        Ok(rows)
    }
}

/// What a question about runs names: a schedule, or another run.
struct Of(Id);

impl From<ScheduleId> for Of {
    fn from(id: ScheduleId) -> Of {
        Of(Id(id.0))
    }
}

impl From<RunId> for Of {
    fn from(id: RunId) -> Of {
        Of(Id(id.0))
    }
}
