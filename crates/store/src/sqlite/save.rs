//! Saving: what a commit appends.

use punctual_kernel::transaction::{Changes, Line};
use rusqlite::{Connection, params};

use super::fault::{Done, Fault};
use super::values::{At, Id, signed, to_json};
use crate::journal_rows::{ChangeRow, JournalRow, pack};

/// Appends what a transaction has decided, apart from the head of the journal.
pub(super) fn append(connection: &Connection, changes: &Changes) -> Done<()> {
    let rows = pack(&changes.lines).map_err(Fault::other)?;
    rows.iter().try_for_each(|row| insert_row(connection, row))?;
    changes.lines.iter().try_for_each(|line| insert_line(connection, line))?;
    save_answers(connection, changes)?;
    save_cluster(connection, changes)
}

fn insert_row(connection: &Connection, row: &JournalRow) -> Done<()> {
    let sql = "INSERT INTO journal (first, last, at, checksum, change, detail) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let JournalRow { changes: ChangeRow { first, last, at, change, checksum }, detail } = row;
    let params = params![signed(*first), signed(*last), At(*at), signed(*checksum), change, detail];
    connection.prepare_cached(sql)?.execute(params)?;
    Ok(())
}

/// What an entry is found by.
fn insert_line(connection: &Connection, line: &Line) -> Done<()> {
    if let Some(subject) = line.subject {
        let sql = "INSERT INTO subjects (subject, seq) VALUES (?1, ?2)";
        connection.prepare_cached(sql)?.execute(params![Id(subject), signed(line.seq)])?;
    }
    let Some(mark) = &line.mark else { return Ok(()) };
    let sql = "INSERT INTO history
        (seq, run_id, schedule_id, verdict, is_final, agent, project, shown_at, duration_ms, late_ms, tokens, cost_micros)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    connection.prepare_cached(sql)?.execute(params![
        signed(line.seq),
        line.run.map(|id| Id(id.0)),
        line.schedule.map(|id| Id(id.0)),
        mark.verdict.as_str(),
        mark.is_final,
        mark.agent,
        mark.project,
        At(mark.shown_at),
        mark.duration_ms.map(signed),
        mark.late_ms.map(signed),
        mark.tokens.map(signed),
        mark.cost_micros.map(signed),
    ])?;
    let Some(record) = &line.record else { return Ok(()) };
    let sql = "INSERT INTO records VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    connection.prepare_cached(sql)?.execute(params![
        signed(line.seq),
        line.schedule.map(|id| Id(id.0)),
        line.run.map(|id| Id(id.0)),
        mark.project,
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

fn save_answers(connection: &Connection, changes: &Changes) -> Done<()> {
    for (key, answered) in &changes.answers {
        let sql = "INSERT INTO answers (key, digest, subject, at) VALUES (?1, ?2, ?3, ?4)";
        let params = params![key, signed(answered.digest), Id(answered.subject), At(answered.at)];
        connection.prepare_cached(sql)?.execute(params)?;
    }
    Ok(())
}

fn save_cluster(connection: &Connection, changes: &Changes) -> Done<()> {
    for (id, node) in &changes.nodes {
        let Some(node) = node else {
            connection.prepare_cached("DELETE FROM nodes WHERE id = ?1")?.execute([Id(id.0)])?;
            continue;
        };
        let sql = "INSERT OR REPLACE INTO nodes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        connection.prepare_cached(sql)?.execute(params![
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
        connection.prepare_cached(sql)?.execute(params)?;
    }
    let mut see = connection.prepare_cached("INSERT OR REPLACE INTO agents_seen VALUES (?1, ?2)")?;
    for (agent, at) in changes.agents_named.iter().chain(&changes.agents_seen) {
        see.execute(params![agent, At(*at)])?;
    }
    Ok(())
}
