//! Claiming, settling, finishing.

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::RunId;
use punctual_core::journal::Body;
use punctual_core::run::Run;
use rusqlite::{OptionalExtension, params};

use super::SqliteStore;
use super::fault::Done;
use super::session::Session;
use super::take::Taken;
use super::values::{At, Id};
use crate::change::{self, SWEEP_MAX, Wants};
use crate::error::{Result, StoreError};
use crate::requests::{AttemptReport, ClaimRequest, Claimed, ClaimedRun, MOMENT, RunWritten, Settlement};
use crate::roles::Claims;

#[async_trait]
impl Claims for SqliteStore {
    async fn claim(&self, request: &ClaimRequest) -> Result<Claimed> {
        let request = request.clone();
        self.write("claiming runs", request.now, move |session| session.claim(&request)).await
    }

    async fn settle(&self, now: Timestamp, settlements: Vec<Settlement>) -> Result<Vec<RunWritten>> {
        self.write("settling runs", now, move |session| {
            let wants = Wants::runs(settlements.iter().map(|settlement| settlement.run));
            session.change(&wants, now, |draft| change::settle(draft, &settlements))
        })
        .await
    }

    async fn finish(&self, now: Timestamp, reports: Vec<AttemptReport>) -> Result<Vec<RunWritten>> {
        self.write("finishing attempts", now, move |session| {
            let wants = Wants::runs(reports.iter().map(|report| report.run));
            session.change(&wants, now, |draft| change::finish(draft, reports))
        })
        .await
    }
}

impl Session {
    fn claim(&mut self, request: &ClaimRequest) -> Done<Claimed> {
        let now = request.now;
        if !self.has_lease(request.node, now)? {
            return Err(StoreError::LeaseEnded.into());
        }
        if self.awaits_planning(now)? {
            return Ok(change::planning_first(now));
        }
        let overdue = self.overdue(request)?;
        let mut claimed = Claimed::nothing(now);
        if !overdue.is_empty() {
            let swept = self.change(&overdue.wants(), now, |draft| change::sweep(draft, &overdue))?;
            (claimed.swept, claimed.has_replaced) = (swept.answers, swept.has_replaced);
        }
        if overdue.len() == SWEEP_MAX {
            return Ok(claimed);
        }
        self.set_limits(&request.limits)?;
        self.mark_due(now)?;
        self.settle_derived(now)?;
        let taken = self.choose(request)?;
        claimed.runs = self.take(request, taken)?;
        self.settle_derived(now)?;
        claimed.next_at = self.next_at(request)?;
        Ok(claimed)
    }

    /// Writes what was chosen.
    fn take(&mut self, request: &ClaimRequest, taken: Taken) -> Done<Vec<ClaimedRun>> {
        let Taken { runs, turns, moves } = taken;
        for (lane, shared, max) in &moves {
            self.move_lane(*lane, shared, *max)?;
        }
        if runs.is_empty() {
            return Ok(vec![]);
        }
        for lane in turns {
            self.take_turn(lane, request.now)?;
        }
        let wants = Wants::runs(runs.iter().copied());
        let body = Body::RunsClaimed { owner: request.node, runs: runs.clone() };
        let world = self.change(&wants, request.now, |draft| {
            draft.add(body).expect("each is planned and due");
            draft.world.clone()
        })?;
        let mut claimed = vec![];
        for (index, id) in runs.iter().enumerate() {
            let run = world.runs[id].clone();
            let record = run.schedule.and_then(|id| world.schedules.get(&id));
            let schedule = record.map(|record| record.schedule.clone());
            claimed.push(ClaimedRun { is_busy: self.is_busy(&run, &runs[index..])?, schedule, run });
        }
        Ok(claimed)
    }

    /// Whether another run of the schedule is active; `later` are the run itself and those that were claimed behind it.
    fn is_busy(&self, run: &Run, later: &[RunId]) -> Done<bool> {
        let Some(schedule) = run.schedule else { return Ok(false) };
        let mut statement = self.connection.prepare_cached(include_str!("sql/active_of_schedule.sql"))?;
        let mut rows = statement.query(params![Id(schedule.0)])?;
        while let Some(row) = rows.next()? {
            if !later.contains(&RunId(row.get::<_, Id>(0)?.0)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// When a claim would give something that it does not give now, as far as time alone can tell.
    fn next_at(&mut self, request: &ClaimRequest) -> Done<Option<Timestamp>> {
        let (due_at, noted) = self.next_due_at(request)?;
        for (lane, shared, max) in &noted.moves {
            self.move_lane(*lane, shared, *max)?;
        }
        let first = |sql: &str| -> Done<Option<Timestamp>> {
            let found = self.connection.prepare_cached(sql)?.query_row([], |row| row.get::<_, At>(0)).optional()?;
            Ok(found.map(|at| at.0))
        };
        let expires_at = first(
            "SELECT expires_at FROM runs WHERE state = 'planned' AND expires_at IS NOT NULL ORDER BY expires_at LIMIT 1",
        )?;
        let wait_until = first("SELECT wait_until FROM runs WHERE state = 'waiting' ORDER BY wait_until LIMIT 1")?;
        // At its last instant a run may still begin: its time is over a moment later.
        let expired_at = expires_at.and_then(|at| at.checked_add(MOMENT).ok());
        Ok([due_at, expired_at, self.next_overlap_at()?, wait_until].into_iter().flatten().min())
    }

    /// Reads what a change wants, makes it, and writes what is different.
    pub(super) fn change<T>(
        &mut self,
        wants: &Wants,
        now: Timestamp,
        change: impl FnOnce(&mut change::Draft) -> T,
    ) -> Done<T> {
        let mut draft = self.draft(wants, now)?;
        let before = draft.world.clone();
        let answer = change(&mut draft);
        self.save(&before, &draft)?;
        Ok(answer)
    }
}
