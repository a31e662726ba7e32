//! Saving: the rows in which a draft differs from what was read, and its entries.

use std::collections::BTreeMap;
use std::sync::Arc;

use punctual_core::journal::{ScheduleRecord, World, checksum};
use punctual_core::plan::Lane;
use punctual_core::run::{Run, RunState, Terms};
use punctual_core::schedule::{Overlap, Schedule};
use punctual_core::{RunId, ScheduleId};
use rusqlite::{OptionalExtension, params};

use super::fault::Done;
use super::gates::Shared;
use super::rows::StateColumns;
use super::session::Session;
use super::values::{At, Id, signed, to_json, to_word};
use crate::change::Draft;
use crate::columns;

impl Session {
    /// Writes a draft back: `before` is what it was when it was read.
    pub(super) fn save(&mut self, before: &World, draft: &Draft) -> Done<()> {
        self.save_schedules(&before.schedules, &draft.world.schedules)?;
        self.save_runs(&before.runs, &draft.world.runs)?;
        for (zone, date) in &draft.world.days {
            if before.days.get(zone) != Some(date) {
                let sql = "INSERT INTO days VALUES (?1, ?2) ON CONFLICT DO UPDATE SET date = excluded.date";
                self.connection.prepare_cached(sql)?.execute(params![zone, date.to_string()])?;
            }
        }
        if before.tokens != draft.world.tokens {
            self.save_tokens(&before.tokens, &draft.world.tokens)?;
        }
        self.append_all(&draft.entries)?;
        self.forget_turns_of_empty_lanes();
        Ok(())
    }

    fn save_schedules(
        &mut self,
        before: &BTreeMap<ScheduleId, ScheduleRecord>,
        after: &BTreeMap<ScheduleId, ScheduleRecord>,
    ) -> Done<()> {
        for id in before.keys().filter(|id| !after.contains_key(id)) {
            self.connection.prepare_cached("DELETE FROM schedules WHERE id = ?1")?.execute([Id(id.0)])?;
        }
        for (id, record) in after {
            match before.get(id) {
                None => self.insert_schedule(record)?,
                Some(old) if old == record => {}
                Some(old) => self.update_schedule(old, record)?,
            }
        }
        Ok(())
    }

    fn insert_schedule(&self, record: &ScheduleRecord) -> Done<()> {
        let schedule = &record.schedule;
        let outage = record.outage;
        self.connection.prepare_cached(include_str!("sql/insert_schedule.sql"))?.execute(params![
            Id(schedule.id.0),
            signed(schedule.version),
            schedule.name,
            schedule.project,
            schedule.zone,
            columns::definition(schedule),
            At(schedule.cursor.at),
            to_json(&schedule.cursor.reached),
            signed(schedule.runs_started),
            record.plan_at.map(At),
            record.zone_data,
            outage.map(|outage| At(outage.from)),
            outage.map(|outage| At(outage.until)),
            outage.and_then(|outage| outage.kept).map(|kept| to_json(&kept)),
        ])?;
        Ok(())
    }

    fn update_schedule(&self, old: &ScheduleRecord, record: &ScheduleRecord) -> Done<()> {
        let schedule = &record.schedule;
        let outage = record.outage;
        if !columns::is_same_definition(&old.schedule, schedule) {
            let sql =
                "UPDATE schedules SET version = ?2, name = ?3, project = ?4, zone = ?5, definition = ?6 WHERE id = ?1";
            let Schedule { version, name, project, zone, .. } = &**schedule;
            let definition = columns::definition(schedule);
            let params = params![Id(schedule.id.0), signed(*version), name, project, zone, definition];
            self.connection.prepare_cached(sql)?.execute(params)?;
        }
        self.connection.prepare_cached(include_str!("sql/update_schedule.sql"))?.execute(params![
            Id(schedule.id.0),
            At(schedule.cursor.at),
            to_json(&schedule.cursor.reached),
            signed(schedule.runs_started),
            record.plan_at.map(At),
            record.zone_data,
            outage.map(|outage| At(outage.from)),
            outage.map(|outage| At(outage.until)),
            outage.and_then(|outage| outage.kept).map(|kept| to_json(&kept)),
        ])?;
        Ok(())
    }

    fn save_runs(&mut self, before: &BTreeMap<RunId, Run>, after: &BTreeMap<RunId, Run>) -> Done<()> {
        // Numbers of terms by where they lie: runs of one draft that share them are looked up once.
        let mut numbers: BTreeMap<*const Terms, i64> = BTreeMap::new();
        for (id, old) in before.iter().filter(|(id, _)| !after.contains_key(id)) {
            self.connection.prepare_cached("DELETE FROM runs WHERE id = ?1")?.execute([Id(id.0)])?;
            let number = self.number_of(&old.terms, &mut numbers)?;
            *self.derived.uses.entry(number).or_default() -= 1;
            self.note_change(Some(old), None)?;
        }
        for (id, run) in after {
            match before.get(id) {
                None => self.insert_run(run, &mut numbers)?,
                Some(old) if old == run => {}
                Some(old) => self.update_run(old, run, &mut numbers)?,
            }
        }
        Ok(())
    }

    fn insert_run(&mut self, run: &Run, numbers: &mut BTreeMap<*const Terms, i64>) -> Done<()> {
        let number = self.number_of(&run.terms, numbers)?;
        *self.derived.uses.entry(number).or_default() += 1;
        let lane = self.note_change(None, Some(run))?;
        let state = StateColumns::of(&run.state);
        self.connection.prepare_cached(include_str!("sql/insert_run.sql"))?.execute(params![
            Id(run.id.0),
            run.schedule.map(|id| Id(id.0)),
            signed(run.version),
            run.key.as_str(),
            At(run.scheduled_at),
            At(run.due_at),
            run.expires_at.map(At),
            run.follows.map(|id| Id(id.0)),
            number,
            state.state,
            state.ready_at.map(At),
            state.resumes,
            state.owner.map(|id| Id(id.0)),
            state.wait_for,
            state.wait_until.map(At),
            state.reason,
            state.tally.attempt,
            signed(state.tally.epoch),
            state.tally.losses,
            run.started_at.map(At),
            run.ended_at.map(At),
            run.has_started,
            run.is_parked,
            run.is_cancelling,
            run.last_end.map(|end| to_json(&end)),
            lane,
            to_word(&run.terms.overlap),
            starts_blocked(run),
        ])?;
        Ok(())
    }

    fn update_run(&mut self, old: &Run, run: &Run, numbers: &mut BTreeMap<*const Terms, i64>) -> Done<()> {
        if plan_of(old) != plan_of(run) || old.terms != run.terms {
            let (before, number) = (self.number_of(&old.terms, numbers)?, self.number_of(&run.terms, numbers)?);
            *self.derived.uses.entry(before).or_default() -= 1;
            *self.derived.uses.entry(number).or_default() += 1;
            self.connection.prepare_cached(include_str!("sql/update_run_plan.sql"))?.execute(params![
                Id(run.id.0),
                signed(run.version),
                At(run.scheduled_at),
                At(run.due_at),
                run.follows.map(|id| Id(id.0)),
                number,
                to_word(&run.terms.overlap),
            ])?;
        }
        let lane = self.note_change(Some(old), Some(run))?;
        let state = StateColumns::of(&run.state);
        self.connection.prepare_cached(include_str!("sql/update_run_state.sql"))?.execute(params![
            Id(run.id.0),
            run.expires_at.map(At),
            state.state,
            state.ready_at.map(At),
            state.resumes,
            state.owner.map(|id| Id(id.0)),
            state.wait_for,
            state.wait_until.map(At),
            state.reason,
            state.tally.attempt,
            signed(state.tally.epoch),
            state.tally.losses,
            run.started_at.map(At),
            run.ended_at.map(At),
            run.has_started,
            run.is_parked,
            run.is_cancelling,
            run.last_end.map(|end| to_json(&end)),
            lane,
            starts_blocked(run),
        ])?;
        Ok(())
    }

    /// Notes what a change of a run may mean for lanes, counts and other runs. The number of the lane that it is in now.
    fn note_change(&mut self, old: Option<&Run>, new: Option<&Run>) -> Done<Option<i64>> {
        for schedule in [old, new].into_iter().flatten().filter_map(|run| run.schedule) {
            self.derived.schedules.insert(schedule);
        }
        if let Some(id) = old.or(new).map(|run| run.id) {
            self.derived.leaders.insert(id);
        }
        if let Some(run) = new.filter(|run| run.follows.is_some() && run.planned_for().is_some()) {
            self.derived.followers.insert(run.id);
        }
        for (run, change) in [(old, -1), (new, 1)] {
            let Some(run) = run.filter(|run| run.owner().is_some()) else { continue };
            for shared in Shared::all_of(&Lane::of(&run.terms)) {
                *self.derived.held.entry(shared).or_default() += change;
            }
        }
        if let Some(run) = old.filter(|run| run.planned_for().is_some()) {
            self.change_lane(&Lane::of(&run.terms), -1)?;
        }
        match new.filter(|run| run.planned_for().is_some()) {
            Some(run) => self.change_lane(&Lane::of(&run.terms), 1).map(Some),
            None => Ok(None),
        }
    }

    /// The number of the row that has these terms; a new one if there is none.
    fn number_of(&mut self, terms: &Arc<Terms>, numbers: &mut BTreeMap<*const Terms, i64>) -> Done<i64> {
        if let Some(number) = numbers.get(&Arc::as_ptr(terms)) {
            return Ok(*number);
        }
        let body = to_json(terms);
        let hash = signed(checksum(0, 0, jiff::Timestamp::UNIX_EPOCH, &body));
        let found = self
            .connection
            .prepare_cached("SELECT id FROM terms WHERE hash = ?1 AND body = ?2")?
            .query_row(params![hash, body], |row| row.get(0))
            .optional()?;
        let number = match found {
            Some(number) => number,
            None => {
                let sql = "INSERT INTO terms (hash, body, uses) VALUES (?1, ?2, 0)";
                self.connection.prepare_cached(sql)?.insert(params![hash, body])?
            }
        };
        self.terms.put(number, Arc::clone(terms));
        numbers.insert(Arc::as_ptr(terms), number);
        Ok(number)
    }

    /// Writes how many runs use which terms, and lets go of those that none uses.
    pub(super) fn count_uses(&mut self) -> Done<()> {
        for (number, change) in std::mem::take(&mut self.derived.uses) {
            // Also where nothing changes: terms may be new and have lost their only run in the same command.
            let sql = "UPDATE terms SET uses = uses + ?2 WHERE id = ?1 RETURNING uses";
            let uses: i64 = self.connection.prepare_cached(sql)?.query_row([number, change], |row| row.get(0))?;
            if uses == 0 {
                self.connection.prepare_cached("DELETE FROM terms WHERE id = ?1")?.execute([number])?;
            }
        }
        Ok(())
    }
}

/// What only planning changes.
fn plan_of(run: &Run) -> impl PartialEq {
    (run.version, run.scheduled_at, run.due_at, run.follows)
}

/// A run that may have to wait for others is blocked until it has been looked at.
fn starts_blocked(run: &Run) -> bool {
    let queues = run.schedule.is_some() && (run.terms.overlap == Overlap::Queue || run.is_parked);
    let may_wait = queues || run.follows.is_some();
    may_wait && matches!(run.state, RunState::Planned { .. })
}
