//! The session of the one writer: its connection, and what it remembers between two statements.

use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::journal::{Body, Entry, World, checksum};
use punctual_core::plan::Limits;
use punctual_core::{RunId, ScheduleId};
use rusqlite::{Connection, OptionalExtension, params};

use super::derived::Derived;
use super::fault::Done;
use super::rows::{self, TermsRead};
use super::values::{At, Id, count, signed, to_json};
use crate::change::{Draft, Wants};
use crate::requests::Head;

/// What the writer works with. Everything here that is also in the file is as the transaction has it.
pub(super) struct Session {
    pub(super) connection: Connection,
    /// The last entry, those of this transaction included.
    pub(super) head: Head,
    pub(super) epoch_floor: u64,
    pub(super) terms: TermsRead,
    /// What follows from rows that have been written and is not written itself yet.
    pub(super) derived: Derived,
    /// The limits that the gates are open or shut by.
    pub(super) limits: Option<Arc<Limits>>,
}

/// What a session remembers, to go back to when a command fails.
#[derive(Debug, Clone)]
pub(super) struct Before {
    head: Head,
    epoch_floor: u64,
    limits: Option<Arc<Limits>>,
}

impl Session {
    pub(super) fn new(connection: Connection) -> Done<Session> {
        let mut session = Session {
            connection,
            head: Head::default(),
            epoch_floor: 0,
            terms: TermsRead::default(),
            derived: Derived::default(),
            limits: None,
        };
        session.read_again()?;
        Ok(session)
    }

    /// Forgets everything, and reads again what the file says.
    pub(super) fn read_again(&mut self) -> Done<()> {
        self.terms.forget_all();
        self.derived = Derived::default();
        self.limits = None;
        (self.head, self.epoch_floor) = read_head(&self.connection)?;
        Ok(())
    }

    pub(super) fn before(&self) -> Before {
        Before { head: self.head, epoch_floor: self.epoch_floor, limits: self.limits.clone() }
    }

    /// Goes back to where a command began that has been rolled back.
    pub(super) fn go_back(&mut self, before: Before) {
        Before { head: self.head, epoch_floor: self.epoch_floor, limits: self.limits } = before;
        self.terms.forget_all();
        self.derived = Derived::default();
    }

    /// Writes how far the journal goes: the last statement of a transaction.
    pub(super) fn write_head(&self) -> Done<()> {
        let sql = "UPDATE head SET seq = ?1, checksum = ?2, epoch_floor = ?3";
        let params = params![signed(self.head.seq), signed(self.head.checksum), signed(self.epoch_floor)];
        self.connection.prepare_cached(sql)?.execute(params)?;
        Ok(())
    }

    /// Appends what happened to the journal.
    pub(super) fn append(&mut self, at: Timestamp, body: &Body) -> Done<()> {
        let text = to_json(body);
        let seq = self.head.seq + 1;
        let checksum = checksum(self.head.checksum, seq, at, &text);
        let (schedule, run) = (body.schedule().map(|id| Id(id.0)), body.run().map(|id| Id(id.0)));
        let mark = body.mark(at);
        self.connection.prepare_cached(include_str!("sql/insert_entry.sql"))?.execute(params![
            signed(seq),
            At(at),
            body.kind(),
            schedule,
            run,
            text,
            signed(checksum),
            mark.map(|mark| mark.verdict.as_str()),
            mark.map(|mark| mark.agent),
            mark.and_then(|mark| mark.project),
            mark.map(|mark| At(mark.shown_at)),
            mark.and_then(|mark| mark.duration_ms).map(signed),
            mark.and_then(|mark| mark.tokens).map(signed),
            mark.and_then(|mark| mark.cost_micros).map(signed),
            mark.map(|mark| mark.is_final),
        ])?;
        if let Some(record) = body.record(at) {
            self.insert_record(seq, body, &record)?;
        }
        self.head = Head { seq, checksum };
        Ok(())
    }

    pub(super) fn append_all(&mut self, entries: &[Entry]) -> Done<()> {
        entries.iter().try_for_each(|entry| self.append(entry.at, &entry.body))
    }

    /// Reads what a change wants.
    pub(super) fn draft(&mut self, wants: &Wants, now: Timestamp) -> Done<Draft> {
        let mut piece = World::beginning_at(1);
        (piece.seq, piece.epoch_floor) = (self.head.seq, self.epoch_floor);
        for id in &wants.runs {
            self.add_run(&mut piece, "SELECT * FROM runs WHERE id = ?1", *id)?;
        }
        for (schedule, key) in &wants.slots {
            let sql = "SELECT * FROM runs WHERE schedule_id = ?1 AND slot_key = ?2";
            self.add_runs(&mut piece, sql, params![Id(schedule.0), key.as_str()])?;
        }
        if let Some(schedule) = wants.planned_of {
            let sql = "SELECT * FROM runs WHERE schedule_id = ?1 AND state = 'planned' AND ended_at IS NULL";
            self.add_runs(&mut piece, sql, [Id(schedule.0)])?;
        }
        for schedule in &wants.at_work_of {
            let sql = include_str!("sql/at_work_of.sql");
            self.add_runs(&mut piece, sql, [Id(schedule.0)])?;
        }
        let mut ids = wants.schedules.clone();
        ids.extend(piece.runs.values().filter_map(|run| run.schedule));
        for (face, project, name) in &wants.names {
            let sql = "SELECT id FROM schedules WHERE name = ?1 AND face = ?3 AND ifnull(project, '') = ifnull(?2, '')";
            let id = self
                .connection
                .prepare_cached(sql)?
                .query_row(params![name, project, face.as_str()], |row| row.get::<_, Id>(0));
            ids.extend(id.optional()?.map(|id| ScheduleId(id.0)));
        }
        for id in ids {
            self.add_schedule(&mut piece, id)?;
        }
        Ok(Draft::new(piece, now))
    }

    fn add_run(&mut self, piece: &mut World, sql: &str, id: RunId) -> Done<()> {
        self.add_runs(piece, sql, [Id(id.0)])
    }

    fn add_runs(&mut self, piece: &mut World, sql: &str, params: impl rusqlite::Params) -> Done<()> {
        let runs = rows::read_runs(&self.connection, &mut self.terms, sql, params)?;
        piece.runs.extend(runs.into_iter().map(|run| (run.id, run)));
        Ok(())
    }

    fn add_schedule(&self, piece: &mut World, id: ScheduleId) -> Done<()> {
        if let Some(record) = rows::read_schedule(&self.connection, id)? {
            piece.schedules.insert(id, record);
        }
        Ok(())
    }
}

/// How far the journal goes, and the epoch floor.
pub(super) fn read_head(connection: &Connection) -> Done<(Head, u64)> {
    let sql = "SELECT seq, checksum, epoch_floor FROM head";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
    let found = connection.prepare_cached(sql)?.query_row([], read).optional()?;
    let (seq, checksum, floor) =
        found.ok_or_else(|| super::fault::Fault::damaged("the head of the journal is gone"))?;
    Ok((Head { seq: count(seq), checksum: checksum.cast_unsigned() }, count(floor)))
}
