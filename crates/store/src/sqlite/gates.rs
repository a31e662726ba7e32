//! Gates: the limits that lanes share, so that what is full is not looked at.
//!
//! A lane passes if its agent, its project and its key all have a place left. It stands behind one of the three. While
//! that gate is shut, no claim sees the lane; when a claim finds it behind an open one and another of its gates shut, it
//! goes and stands there. So a claim looks at lanes that it takes from, and at each other lane at most once in a while,
//! however many are full; and to shut a gate or to open it is one row, however many lanes stand behind it.

use punctual_core::plan::{Held, Lane, Limits};
use rusqlite::{OptionalExtension, params};

use super::fault::Done;
use super::session::Session;
pub(super) use crate::places::{Kind, Shared, gates_of, is_open};

impl Session {
    /// How many runs hold a place, by what they share.
    pub(super) fn held(&self, shared: &Shared) -> Done<u32> {
        let sql = "SELECT runs FROM held WHERE kind = ?1 AND name = ?2";
        let params = params![shared.kind.as_str(), shared.name];
        let runs: Option<u32> = self.connection.prepare_cached(sql)?.query_row(params, |row| row.get(0)).optional()?;
        Ok(runs.unwrap_or(0))
    }

    /// How many runs hold places that a lane shares.
    pub(super) fn held_of(&self, lane: &Lane) -> Done<Held> {
        let mut held = Held::default();
        for (shared, _) in gates_of(lane) {
            let runs = self.held(&shared)?;
            match shared.kind {
                Kind::Agent => held.agent = runs,
                Kind::Project => held.project = runs,
                Kind::Key => held.key = runs,
                Kind::All => {}
            }
        }
        Ok(held)
    }

    /// The number of a gate; a new one, open or shut as it should be, if there is none.
    pub(super) fn gate(&mut self, shared: &Shared, max: Option<u32>) -> Done<i64> {
        let kind = shared.kind.as_str();
        let sql = "SELECT id FROM gates WHERE kind = ?1 AND name = ?2 AND max IS ?3";
        let params = params![kind, shared.name, max];
        let found = self.connection.prepare_cached(sql)?.query_row(params, |row| row.get(0)).optional()?;
        if let Some(id) = found {
            return Ok(id);
        }
        let sql = "INSERT INTO gates (kind, name, max, is_open, lanes) VALUES (?1, ?2, ?3, 0, 0)";
        let id = self.connection.prepare_cached(sql)?.insert(params![kind, shared.name, max])?;
        self.derived.gates.insert(id);
        Ok(id)
    }

    /// Notes that so many more lanes stand behind a gate.
    pub(super) fn count_lanes(&mut self, gate: i64, more: i64) -> Done<()> {
        self.connection.prepare_cached("UPDATE gates SET lanes = lanes + ?2 WHERE id = ?1")?.execute([gate, more])?;
        self.derived.gates.insert(gate);
        Ok(())
    }

    /// Writes how many runs hold a place, and notes the gates that this may open or shut.
    pub(super) fn count_held(&mut self) -> Done<()> {
        for (shared, change) in std::mem::take(&mut self.derived.held) {
            if change == 0 {
                continue;
            }
            let (kind, name) = (shared.kind.as_str(), &shared.name);
            let sql = "UPDATE held SET runs = runs + ?3 WHERE kind = ?1 AND name = ?2 RETURNING runs";
            let params = params![kind, name, change];
            let runs: Option<i64> =
                self.connection.prepare_cached(sql)?.query_row(params, |row| row.get(0)).optional()?;
            let sql = match runs {
                None => Some("INSERT INTO held VALUES (?1, ?2, ?3)"),
                Some(0) => Some("DELETE FROM held WHERE kind = ?1 AND name = ?2 AND runs + ?3 = ?3"),
                Some(_) => None,
            };
            if let Some(sql) = sql {
                self.connection.prepare_cached(sql)?.execute(params)?;
            }
            let mut statement = self.connection.prepare_cached("SELECT id FROM gates WHERE kind = ?1 AND name = ?2")?;
            let gates = statement.query_map(params![kind, name], |row| row.get(0))?;
            self.derived.gates.extend(gates.collect::<rusqlite::Result<Vec<i64>>>()?);
        }
        Ok(())
    }

    /// Writes the gates that have changed: whether they are open, the best of their lanes, or that they are gone.
    pub(super) fn refresh_gates(&mut self) -> Done<()> {
        let limits = self.limits.clone().unwrap_or_default();
        for id in std::mem::take(&mut self.derived.gates) {
            let sql = "SELECT kind, name, max, lanes FROM gates WHERE id = ?1";
            let read = |row: &rusqlite::Row<'_>| {
                let shared = Shared { kind: Kind::from_str(&row.get::<_, String>(0)?), name: row.get(1)? };
                Ok((shared, row.get::<_, Option<u32>>(2)?, row.get::<_, i64>(3)?))
            };
            let found = self.connection.prepare_cached(sql)?.query_row([id], read).optional()?;
            let Some((shared, max, lanes)) = found else { continue };
            if lanes == 0 {
                self.connection.prepare_cached("DELETE FROM gates WHERE id = ?1")?.execute([id])?;
                continue;
            }
            let is_open = is_open(&limits, &shared, max, self.held(&shared)?);
            let sql = include_str!("sql/refresh_gate.sql");
            self.connection.prepare_cached(sql)?.execute(params![id, is_open])?;
        }
        Ok(())
    }

    /// Opens and shuts all gates by other limits than before.
    pub(super) fn set_limits(&mut self, limits: &std::sync::Arc<Limits>) -> Done<()> {
        if self.limits.as_ref() == Some(limits) {
            return Ok(());
        }
        self.limits = Some(std::sync::Arc::clone(limits));
        let mut statement = self.connection.prepare_cached("SELECT id FROM gates")?;
        let gates = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
        self.derived.gates.extend(gates);
        Ok(())
    }
}
