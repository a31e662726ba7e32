//! Runs that find another of their schedule at work, and give way to it or replace it.
//!
//! The rule is [`World::overlaps`](punctual_core::journal::World::overlaps). For each schedule that it may concern, the
//! table `overlapping` keeps the first run and when that is due: so a claim looks at what has become due, however many
//! runs wait for a place.

use jiff::Timestamp;
use punctual_core::{RunId, ScheduleId};
use rusqlite::{OptionalExtension, params};

use super::fault::Done;
use super::plan::rows_max;
use super::session::Session;
use super::values::{At, Id};

const IS_AT_WORK: &str = "SELECT 1 FROM runs WHERE schedule_id = ?1 AND ended_at IS NULL
    AND state IN ('claimed', 'running', 'waiting')";
const ASKED: &str = "SELECT id, ready_at FROM runs WHERE schedule_id = ?1 AND ready_at <= ?2
    AND state = 'planned' AND is_parked = 0 AND resumes = 0 AND overlap IN ('skip', 'replace')
    AND NOT EXISTS (SELECT 1 FROM runs AS leader
        WHERE leader.id = runs.follows AND leader.has_started = 0 AND leader.ended_at IS NULL)
    ORDER BY ready_at, id LIMIT ?3";
const DUE: &str = "SELECT schedule_id FROM overlapping WHERE ready_at <= ?1 ORDER BY ready_at, run_id LIMIT ?2";
const PUT: &str = "INSERT INTO overlapping VALUES (?1, ?2, ?3)
    ON CONFLICT DO UPDATE SET ready_at = excluded.ready_at, run_id = excluded.run_id";

/// All of them, to see how they are carried out.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[IS_AT_WORK, ASKED, DUE, PUT];

impl Session {
    /// Runs that are due and find another at work, at most `limit` of them.
    pub(super) fn overlapping(&self, now: Timestamp, limit: usize) -> Done<Vec<(RunId, ScheduleId)>> {
        let mut statement = self.connection.prepare_cached(DUE)?;
        let schedules = statement.query_map(params![At(now), rows_max(limit)], |row| Ok(row.get::<_, Id>(0)?.0))?;
        let mut found = vec![];
        for schedule in schedules {
            let schedule = ScheduleId(schedule?);
            found.extend(self.asked(schedule, now, limit)?.into_iter().map(|(at, run)| (at, run, schedule)));
        }
        found.sort_unstable();
        found.truncate(limit);
        Ok(found.into_iter().map(|(_, run, schedule)| (run, schedule)).collect())
    }

    /// Writes which run of a schedule is the first that will find another at work.
    pub(super) fn refresh_overlap(&self, schedule: ScheduleId) -> Done<()> {
        let is_at_work = || self.connection.prepare_cached(IS_AT_WORK)?.exists([Id(schedule.0)]);
        match self.asked(schedule, Timestamp::MAX, 1)?.first() {
            Some((ready_at, run)) if is_at_work()? => {
                let params = params![Id(schedule.0), At(*ready_at), Id(run.0)];
                self.connection.prepare_cached(PUT)?.execute(params)?;
            }
            _ => {
                let sql = "DELETE FROM overlapping WHERE schedule_id = ?1";
                self.connection.prepare_cached(sql)?.execute([Id(schedule.0)])?;
            }
        }
        Ok(())
    }

    /// When the next run finds another at work.
    pub(super) fn next_overlap_at(&self) -> Done<Option<Timestamp>> {
        let sql = "SELECT ready_at FROM overlapping ORDER BY ready_at LIMIT 1";
        let found = self.connection.prepare_cached(sql)?.query_row([], |row| row.get::<_, At>(0)).optional()?;
        Ok(found.map(|at| at.0))
    }

    /// The first planned runs of a schedule that would not begin beside another, due until an instant.
    fn asked(&self, schedule: ScheduleId, until: Timestamp, limit: usize) -> Done<Vec<(Timestamp, RunId)>> {
        let mut statement = self.connection.prepare_cached(ASKED)?;
        let runs = statement.query_map(params![Id(schedule.0), At(until), rows_max(limit)], |row| {
            Ok((row.get::<_, At>(1)?.0, RunId(row.get::<_, Id>(0)?.0)))
        })?;
        Ok(runs.collect::<rusqlite::Result<_>>()?)
    }
}
