//! Saving: what a transaction writes, row by row.

use std::collections::BTreeMap;
use std::sync::Arc;

use punctual_core::journal::ScheduleRecord;
use punctual_core::run::{Run, Terms};
use punctual_kernel::change::name_of;
use punctual_kernel::transaction::{Changes, Line, Row};
use rusqlite::params;
use uuid::Uuid;

use super::fault::Done;
use super::rows::StateColumns;
use super::session::Session;
use super::values::{At, Id, signed, to_json};
use crate::columns;

impl Session {
    /// Writes what a transaction has changed, apart from the head of the journal.
    pub(super) fn save(&self, changes: &Changes) -> Done<()> {
        self.save_runs(changes)?;
        self.save_schedules(changes)?;
        self.save_cluster(changes)?;
        self.save_small(changes)?;
        changes.lines.iter().try_for_each(|line| self.insert_line(line))?;
        if let Some(floor) = changes.epoch_floor {
            let sql = "UPDATE runs SET epoch = max(epoch, ?1) WHERE ended_at IS NULL";
            self.connection.prepare_cached(sql)?.execute([signed(floor)])?;
        }
        if let Some(first) = changes.first {
            let sql = "UPDATE head SET first_seq = ?1, checksum_before = ?2";
            self.connection.prepare_cached(sql)?.execute([signed(first.seq), signed(first.checksum)])?;
            self.connection.prepare_cached("DELETE FROM records WHERE seq < ?1")?.execute([signed(first.seq)])?;
        }
        Ok(())
    }

    fn save_runs(&self, changes: &Changes) -> Done<()> {
        // What is withdrawn goes first: its slot may come back in the same transaction.
        let gone = changes.runs.iter().filter(|(_, row)| row.before.is_some() && row.after.is_none()).map(|(id, _)| id);
        let mut delete = self.connection.prepare_cached("DELETE FROM runs WHERE id = ?1")?;
        for id in gone.chain(&changes.forgotten) {
            delete.execute([Id(id.0)])?;
        }
        if !changes.forgotten.is_empty() {
            let sql = "DELETE FROM terms WHERE id NOT IN (SELECT terms_id FROM runs)";
            self.connection.prepare_cached(sql)?.execute([])?;
        }
        // Terms by where they lie: runs of one transaction that share them write them once.
        let mut terms = BTreeMap::new();
        for row in changes.runs.values() {
            match (&row.before, &row.after) {
                (None, Some(run)) => self.insert_run(run, &mut terms)?,
                (Some(before), Some(after)) => self.update_run(before, after, &mut terms)?,
                (_, None) => {}
            }
        }
        Ok(())
    }

    fn insert_run(&self, run: &Run, terms: &mut BTreeMap<*const Terms, Uuid>) -> Done<()> {
        let terms = self.put_terms(&run.terms, terms)?;
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
            Id(terms),
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
        ])?;
        Ok(())
    }

    fn update_run(&self, before: &Run, run: &Run, terms: &mut BTreeMap<*const Terms, Uuid>) -> Done<()> {
        if plan_of(before) != plan_of(run) || before.terms != run.terms {
            let terms = self.put_terms(&run.terms, terms)?;
            self.connection.prepare_cached(include_str!("sql/update_run_plan.sql"))?.execute(params![
                Id(run.id.0),
                signed(run.version),
                At(run.scheduled_at),
                At(run.due_at),
                run.follows.map(|id| Id(id.0)),
                Id(terms),
            ])?;
        }
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
        ])?;
        Ok(())
    }

    /// The id of terms, which are written if they are not there.
    fn put_terms(&self, terms: &Arc<Terms>, known: &mut BTreeMap<*const Terms, Uuid>) -> Done<Uuid> {
        if let Some(id) = known.get(&Arc::as_ptr(terms)) {
            return Ok(*id);
        }
        let (id, body) = columns::terms_id(terms);
        let sql = "INSERT INTO terms (id, body) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        self.connection.prepare_cached(sql)?.execute(params![Id(id), body])?;
        known.insert(Arc::as_ptr(terms), id);
        Ok(id)
    }

    fn save_schedules(&self, changes: &Changes) -> Done<()> {
        // A name that one gives up may be another's in the same transaction.
        let named = |record: &Option<ScheduleRecord>| record.as_ref().and_then(|record| name_of(&record.schedule));
        for (id, row) in &changes.schedules {
            let sql = match &row.after {
                None => "DELETE FROM schedules WHERE id = ?1",
                Some(_) if row.before.is_some() && named(&row.before) != named(&row.after) => {
                    "UPDATE schedules SET name = NULL WHERE id = ?1"
                }
                Some(_) => continue,
            };
            self.connection.prepare_cached(sql)?.execute([Id(id.0)])?;
        }
        changes.schedules.values().try_for_each(|row| self.save_schedule(row))
    }

    fn save_schedule(&self, row: &Row<ScheduleRecord>) -> Done<()> {
        let Some(record) = &row.after else { return Ok(()) };
        let schedule = &record.schedule;
        let is_moved =
            row.before.as_ref().is_some_and(|before| columns::is_same_definition(&before.schedule, schedule));
        if !is_moved {
            self.connection.prepare_cached(include_str!("sql/put_schedule.sql"))?.execute(params![
                Id(schedule.id.0),
                signed(schedule.version),
                schedule.name,
                schedule.project,
                schedule.zone,
                columns::definition(schedule),
            ])?;
        }
        let outage = record.outage;
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

    fn save_cluster(&self, changes: &Changes) -> Done<()> {
        for (id, node) in &changes.nodes {
            let Some(node) = node else {
                self.connection.prepare_cached("DELETE FROM nodes WHERE id = ?1")?.execute([Id(id.0)])?;
                continue;
            };
            let sql = "INSERT OR REPLACE INTO nodes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
            self.connection.prepare_cached(sql)?.execute(params![
                Id(id.0),
                node.name,
                At(node.joined_at),
                At(node.lease_until),
                node.lease.milliseconds(),
                to_json(&node.agents),
                to_json(&node.about),
            ])?;
        }
        if let Some(planner) = changes.planner {
            let sql = "INSERT OR REPLACE INTO planner VALUES (1, ?1, ?2, ?3)";
            let params = params![Id(planner.node.0), At(planner.until), signed(planner.epoch)];
            self.connection.prepare_cached(sql)?.execute(params)?;
        }
        let sql = "INSERT OR REPLACE INTO agents_seen VALUES (?1, ?2)";
        let mut see = self.connection.prepare_cached(sql)?;
        for (agent, at) in changes.agents_named.iter().chain(&changes.agents_seen) {
            see.execute(params![agent, At(*at)])?;
        }
        Ok(())
    }

    fn save_small(&self, changes: &Changes) -> Done<()> {
        for (zone, date) in &changes.days {
            let sql = "INSERT OR REPLACE INTO days VALUES (?1, ?2)";
            self.connection.prepare_cached(sql)?.execute(params![zone, date.to_string()])?;
        }
        for (id, token) in &changes.tokens {
            match token {
                None => {
                    self.connection.prepare_cached("DELETE FROM tokens WHERE id = ?1")?.execute([Id(id.0)])?;
                }
                Some(token) => {
                    let sql = "INSERT INTO tokens (id, body) VALUES (?1, ?2)";
                    self.connection.prepare_cached(sql)?.execute(params![Id(id.0), to_json(token)])?;
                }
            }
        }
        for (key, answered) in &changes.answers {
            let sql = "INSERT INTO answers (key, digest, subject, at) VALUES (?1, ?2, ?3, ?4)";
            let params = params![key, signed(answered.digest), Id(answered.subject), At(answered.at)];
            self.connection.prepare_cached(sql)?.execute(params)?;
        }
        Ok(())
    }

    fn insert_line(&self, line: &Line) -> Done<()> {
        let mark = line.mark.as_ref();
        self.connection.prepare_cached(include_str!("sql/insert_entry.sql"))?.execute(params![
            signed(line.seq),
            At(line.at),
            line.kind,
            line.schedule.map(|id| Id(id.0)),
            line.run.map(|id| Id(id.0)),
            line.body,
            signed(line.checksum),
            mark.map(|mark| mark.verdict.as_str()),
            mark.map(|mark| &mark.agent),
            mark.and_then(|mark| mark.project.as_ref()),
            mark.map(|mark| At(mark.shown_at)),
            mark.and_then(|mark| mark.duration_ms).map(signed),
            mark.and_then(|mark| mark.tokens).map(signed),
            mark.and_then(|mark| mark.cost_micros).map(signed),
            mark.map(|mark| mark.is_final),
        ])?;
        let Some(record) = &line.record else { return Ok(()) };
        let sql = "INSERT INTO records VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
        self.connection.prepare_cached(sql)?.execute(params![
            signed(line.seq),
            line.schedule.map(|id| Id(id.0)),
            line.run.map(|id| Id(id.0)),
            mark.and_then(|mark| mark.project.as_ref()),
            record.schedule,
            record.workflow,
            record.workflow_id,
            record.state.as_str(),
            record.note,
            At(record.scheduled_at),
            At(record.executed_at),
        ])?;
        Ok(())
    }
}

/// What only planning changes.
fn plan_of(run: &Run) -> impl PartialEq {
    (run.version, run.scheduled_at, run.due_at, run.follows)
}
