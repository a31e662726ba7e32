//! Sweeping: runs whose time is over.

use std::collections::BTreeSet;

use jiff::Timestamp;
use punctual_core::RunId;
use punctual_core::plan::Lane;
use rusqlite::params;

use super::fault::Done;
use super::gates::{self, Shared};
use super::plan::rows_max;
use super::rows::RunRow;
use super::session::Session;
use super::values::{At, Id};
use crate::change::{AGENT_GONE_AFTER, Overdue, SWEEP_MAX};
use crate::requests::ClaimRequest;

impl Session {
    /// Runs whose time is over, at most [`SWEEP_MAX`] of them.
    pub(super) fn overdue(&mut self, request: &ClaimRequest) -> Done<Overdue> {
        let now = request.now;
        let expired = self.expired(request)?;
        let left = SWEEP_MAX - expired.len();
        let agent_gone = self.agent_gone(now, left)?;
        let left = left - agent_gone.len();
        let overlapping = self.overlapping(now, left)?;
        let left = left - overlapping.len();
        let sql = "SELECT id FROM runs WHERE state = 'waiting' AND wait_until <= ?1 ORDER BY wait_until, id LIMIT ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let waited = statement.query_map(params![At(now), rows_max(left)], |row| Ok(RunId(row.get::<_, Id>(0)?.0)))?;
        let waited = waited.collect::<rusqlite::Result<_>>()?;
        Ok(Overdue { expired, agent_gone, overlapping, waited })
    }

    fn expired(&mut self, request: &ClaimRequest) -> Done<Vec<(RunId, bool)>> {
        let (now, limits) = (request.now, &*request.limits);
        let rows: Vec<RunRow> = self
            .connection
            .prepare_cached(include_str!("sql/expired.sql"))?
            .query_map(params![At(now), rows_max(SWEEP_MAX)], RunRow::read)?
            .collect::<rusqlite::Result<_>>()?;
        let is_full = !gates::is_open(limits, &Shared::all(), None, self.held(&Shared::all())?);
        let mut expired = vec![];
        for row in rows {
            let lane = Lane::of(&*self.terms.get(&self.connection, row.terms_id)?);
            let is_full = is_full || request.has_no_place_for(&lane.agent);
            let waits_for_place = is_full || row.is_blocked || !limits.is_open(&lane, self.held_of(&lane)?);
            expired.push((row.id, waits_for_place));
        }
        Ok(expired)
    }

    /// Planned runs that are due and whose agent nobody has any more.
    fn agent_gone(&self, now: Timestamp, limit: usize) -> Done<Vec<RunId>> {
        let mut gone = vec![];
        for agent in self.agents_gone(now)? {
            let mut statement = self.connection.prepare_cached(include_str!("sql/due_of_agent.sql"))?;
            let runs = statement.query_map(params![agent, At(now), rows_max(limit)], |row| {
                Ok((row.get::<_, At>(1)?.0, RunId(row.get::<_, Id>(0)?.0)))
            })?;
            gone.extend(runs.collect::<rusqlite::Result<Vec<_>>>()?);
        }
        gone.sort_unstable();
        gone.truncate(limit);
        Ok(gone.into_iter().map(|(_, id)| id).collect())
    }

    /// Agents with planned runs that were last seen too long ago, and that no living node has.
    fn agents_gone(&self, now: Timestamp) -> Done<Vec<String>> {
        let Ok(before) = now.checked_sub(AGENT_GONE_AFTER) else { return Ok(vec![]) };
        let mut statement = self.connection.prepare_cached(include_str!("sql/agents_not_seen.sql"))?;
        let agents = statement.query_map([At(before)], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
        if agents.is_empty() {
            return Ok(agents);
        }
        let alive: BTreeSet<String> =
            self.nodes()?.into_iter().filter(|node| now <= node.lease_until).flat_map(|node| node.agents).collect();
        Ok(agents.into_iter().filter(|agent| !alive.contains(agent)).collect())
    }
}
