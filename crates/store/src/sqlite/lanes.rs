//! Lanes: a row for each that has planned runs, with its head and its rank.

use std::num::NonZeroU32;

use jiff::Timestamp;
use punctual_core::plan::Lane;
use punctual_core::schedule::{Concurrency, Priority};
use rusqlite::{OptionalExtension, Row, params};

use super::fault::{Done, Fault};
use super::gates::Shared;
use super::session::Session;
use super::values::At;

/// A lane that runs have come to or left, or whose head may be another.
#[derive(Debug, Clone)]
pub(super) struct LaneChange {
    pub(super) lane: Lane,
    pub(super) gate: i64,
    pub(super) planned: i64,
    pub(super) turn_at: Option<Timestamp>,
}

/// Reads the columns `agent, project, key, key_max, max_concurrent, priority` from `column` on.
pub(super) fn read_lane(row: &Row<'_>, column: usize) -> rusqlite::Result<Lane> {
    let key: Option<String> = row.get(column + 2)?;
    let key_max: Option<u32> = row.get(column + 3)?;
    let concurrency = key.zip(key_max.and_then(NonZeroU32::new)).map(|(key, max)| Concurrency { key, max });
    let priority = Priority::new(row.get(column + 5)?).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column + 5, rusqlite::types::Type::Integer, error.into())
    })?;
    let (agent, project) = (row.get(column)?, row.get(column + 1)?);
    Ok(Lane { agent, project, concurrency, max_concurrent: row.get(column + 4)?, priority })
}

impl Session {
    /// Notes that so many more planned runs are in a lane. The number of its row.
    pub(super) fn change_lane(&mut self, lane: &Lane, more: i64) -> Done<i64> {
        let id = match self.derived.lane_ids.get(lane) {
            Some(id) => *id,
            None => self.find_lane(lane)?,
        };
        self.derived.lanes.get_mut(&id).expect("it was just found").planned += more;
        Ok(id)
    }

    /// Notes that a lane's head may be another.
    pub(super) fn touch_lane(&mut self, id: i64) -> Done<()> {
        if self.derived.lanes.contains_key(&id) {
            return Ok(());
        }
        let found = self
            .connection
            .prepare_cached(include_str!("sql/lane.sql"))?
            .query_row([id], |row| {
                let turn_at = row.get::<_, Option<At>>(2)?.map(|at| at.0);
                Ok(LaneChange { gate: row.get(0)?, planned: row.get(1)?, turn_at, lane: read_lane(row, 3)? })
            })
            .optional()?;
        let change = found.ok_or_else(|| Fault::damaged(format!("lane {id} of a run is not there")))?;
        self.derived.lane_ids.insert(change.lane.clone(), id);
        self.derived.lanes.insert(id, change);
        Ok(())
    }

    /// Notes that a run of a lane has just been claimed.
    pub(super) fn take_turn(&mut self, id: i64, now: Timestamp) -> Done<()> {
        self.touch_lane(id)?;
        self.derived.lanes.get_mut(&id).expect("it was just touched").turn_at = Some(now);
        Ok(())
    }

    /// Puts a lane behind another of its gates.
    pub(super) fn move_lane(&mut self, id: i64, to: &Shared, max: Option<u32>) -> Done<()> {
        self.touch_lane(id)?;
        let to = self.gate(to, max)?;
        let change = self.derived.lanes.get_mut(&id).expect("it was just touched");
        let from = std::mem::replace(&mut change.gate, to);
        self.connection.prepare_cached("UPDATE lanes SET gate_id = ?2 WHERE id = ?1")?.execute([id, to])?;
        self.count_lanes(from, -1)?;
        self.count_lanes(to, 1)
    }

    /// A lane without planned runs is forgotten, and with it when it had its turn.
    pub(super) fn forget_turns_of_empty_lanes(&mut self) {
        for change in self.derived.lanes.values_mut().filter(|change| change.planned == 0) {
            change.turn_at = None;
        }
    }

    fn find_lane(&mut self, lane: &Lane) -> Done<i64> {
        let concurrency = lane.concurrency.as_ref();
        let found: Option<i64> = self
            .connection
            .prepare_cached(include_str!("sql/find_lane.sql"))?
            .query_row(
                params![
                    lane.agent,
                    lane.project,
                    concurrency.map(|it| &it.key),
                    concurrency.map(|it| it.max.get()),
                    lane.max_concurrent,
                    lane.priority.get(),
                ],
                |row| row.get(0),
            )
            .optional()?;
        if let Some(id) = found {
            self.touch_lane(id)?;
            return Ok(id);
        }
        let gate = self.gate(&Shared::agent(lane), Some(lane.max_concurrent))?;
        self.count_lanes(gate, 1)?;
        let id = self.connection.prepare_cached(include_str!("sql/insert_lane.sql"))?.insert(params![
            lane.agent,
            lane.project,
            concurrency.map(|it| &it.key),
            concurrency.map(|it| it.max.get()),
            lane.max_concurrent,
            lane.priority.get(),
            gate,
        ])?;
        self.derived.lane_ids.insert(lane.clone(), id);
        self.derived.lanes.insert(id, LaneChange { lane: lane.clone(), gate, planned: 0, turn_at: None });
        Ok(id)
    }

    /// Writes the lanes that have changed: their heads and ranks, or that they are gone.
    pub(super) fn refresh_lanes(&mut self, now: Timestamp) -> Done<()> {
        for (id, change) in std::mem::take(&mut self.derived.lanes) {
            self.derived.gates.insert(change.gate);
            if change.planned == 0 {
                self.connection.prepare_cached("DELETE FROM lanes WHERE id = ?1")?.execute([id])?;
                self.count_lanes(change.gate, -1)?;
                continue;
            }
            let head = self
                .connection
                .prepare_cached(include_str!("sql/lane_head.sql"))?
                .query_row([id], |row| row.get::<_, At>(0))
                .optional()?
                .map(|at| at.0);
            let rank = head.map(|head| change.lane.rank(head, change.turn_at));
            let is_due = head.is_some_and(|head| head <= now);
            self.connection.prepare_cached(include_str!("sql/update_lane.sql"))?.execute(params![
                id,
                change.planned,
                change.turn_at.map(At),
                head.map(At),
                rank.map(At),
                is_due,
            ])?;
        }
        self.derived.lane_ids.clear();
        Ok(())
    }

    /// Marks the lanes that have become due, and unmarks those that are not when the clock has gone back.
    pub(super) fn mark_due(&mut self, now: Timestamp) -> Done<()> {
        let mut gates: Vec<i64> = vec![];
        for sql in [include_str!("sql/mark_due.sql"), include_str!("sql/unmark_due.sql")] {
            let mut statement = self.connection.prepare_cached(sql)?;
            let found = statement.query_map([At(now)], |row| row.get(0))?;
            gates.extend(found.collect::<rusqlite::Result<Vec<i64>>>()?);
        }
        self.derived.gates.extend(gates);
        Ok(())
    }
}
