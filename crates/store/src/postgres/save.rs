//! Saving: the changes of a transaction as a few statements, each for many rows.

use std::collections::BTreeMap;

use futures_util::future::{FutureExt, try_join_all};
use jiff::Timestamp;
use punctual_core::NodeId;
use punctual_core::journal::ScheduleRecord;
use punctual_core::run::{Run, Terms};
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::fault::Done;
use super::values::At;
use crate::columns::{StateColumns, definition, is_same_definition, signed, terms_id, to_json};
use crate::requests::Condition;
use punctual_kernel::change::name_of;
use punctual_kernel::transaction::{Changes, Line, LineRecord, Row};

type Param = (Box<dyn ToSql + Sync + Send>, Type);

/// A statement with what it is about.
pub(super) struct Statement {
    sql: String,
    params: Vec<Param>,
}

impl Statement {
    fn new(sql: &str) -> Statement {
        Statement { sql: sql.to_owned(), params: vec![] }
    }

    /// Functions that need nothing of each other, called by one statement: what every transaction does is a function, whose
    /// plan its session keeps (`migrations/0002_steps.sql`), and a statement costs as much again as many a function.
    fn calls(functions: Vec<Statement>) -> Statement {
        let (mut calls, mut params): (Vec<String>, Vec<Param>) = (vec![], vec![]);
        for function in functions {
            let places = (0..function.params.len()).map(|place| format!("${}", params.len() + place + 1));
            calls.push(format!("{}({})", function.sql, places.collect::<Vec<_>>().join(", ")));
            params.extend(function.params);
        }
        Statement { sql: format!("SELECT {}", calls.join(", ")), params }
    }

    fn with<T: ToSql + Sync + Send + 'static>(mut self, value: T, kind: Type) -> Statement {
        self.params.push((Box::new(value), kind));
        self
    }

    fn uuids(self, values: impl Iterator<Item = Uuid>) -> Statement {
        self.with(values.collect::<Vec<_>>(), Type::UUID_ARRAY)
    }

    fn maybe_uuids(self, values: impl Iterator<Item = Option<Uuid>>) -> Statement {
        self.with(values.collect::<Vec<_>>(), Type::UUID_ARRAY)
    }

    fn texts(self, values: impl Iterator<Item = String>) -> Statement {
        self.with(values.map(as_text).collect::<Vec<_>>(), Type::TEXT_ARRAY)
    }

    fn maybe_texts(self, values: impl Iterator<Item = Option<String>>) -> Statement {
        self.with(values.map(|value| value.map(as_text)).collect::<Vec<_>>(), Type::TEXT_ARRAY)
    }

    fn times(self, values: impl Iterator<Item = Timestamp>) -> Statement {
        self.with(values.map(At).collect::<Vec<_>>(), Type::TIMESTAMPTZ_ARRAY)
    }

    fn maybe_times(self, values: impl Iterator<Item = Option<Timestamp>>) -> Statement {
        self.with(values.map(|at| at.map(At)).collect::<Vec<_>>(), Type::TIMESTAMPTZ_ARRAY)
    }

    fn numbers(self, values: impl Iterator<Item = i64>) -> Statement {
        self.with(values.collect::<Vec<_>>(), Type::INT8_ARRAY)
    }

    fn maybe_numbers(self, values: impl Iterator<Item = Option<u64>>) -> Statement {
        self.with(values.map(|value| value.map(signed)).collect::<Vec<_>>(), Type::INT8_ARRAY)
    }

    fn flags(self, values: impl Iterator<Item = bool>) -> Statement {
        self.with(values.collect::<Vec<_>>(), Type::BOOL_ARRAY)
    }

    pub(super) async fn run(&self, client: &Client) -> Done<u64> {
        let params: Vec<(&(dyn ToSql + Sync), Type)> =
            self.params.iter().map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind.clone())).collect();
        Ok(client.execute_typed(&self.sql, &params).await?)
    }
}

/// Everything that a transaction writes, in the order in which it must be.
pub(super) fn statements(changes: &Changes, day: i32) -> Vec<Statement> {
    let mut statements = vec![];
    let runs = || changes.runs.values();
    let is_new = |row: &&Row<Run>| row.before.is_none() && row.after.is_some();
    let is_changed = |row: &&Row<Run>| row.before.is_some() && row.after.is_some();
    let is_gone = |row: &&Row<Run>| row.before.is_some() && row.after.is_none();
    // What is withdrawn goes first: its slot may come back in the same transaction.
    let gone: Vec<Uuid> = runs().filter(is_gone).filter_map(|row| Some(row.before.as_ref()?.id.0)).collect();
    let gone: Vec<Uuid> = gone.into_iter().chain(changes.forgotten.iter().map(|id| id.0)).collect();
    if !gone.is_empty() {
        let count = gone.len() as i64;
        let delete = Statement::new("delete_runs").uuids(gone.into_iter()).with(count, Type::INT8);
        statements.push(Statement::calls(vec![delete]));
    }
    let has_new_terms = |row: &&Row<Run>| {
        let terms = |run: &Option<Run>| run.as_ref().map(|run| std::sync::Arc::clone(&run.terms));
        terms(&row.before) != terms(&row.after)
    };
    let with_new_terms: Vec<&Run> = runs().filter(has_new_terms).filter_map(|row| row.after.as_ref()).collect();
    if !with_new_terms.is_empty() {
        statements.push(insert_terms(&with_new_terms));
    }
    let new: Vec<&Run> = runs().filter(is_new).filter_map(|row| row.after.as_ref()).collect();
    if !new.is_empty() {
        statements.push(Statement::calls(vec![put_runs("insert_runs", &new)]));
    }
    let changed: Vec<(&Run, &Run)> =
        runs().filter(is_changed).filter_map(|row| Some((row.before.as_ref()?, row.after.as_ref()?))).collect();
    put_schedules(&mut statements, changes);
    put_cluster(&mut statements, changes);
    let mut calls = change_runs(&changed);
    calls.extend(move_schedules(changes));
    let (history, others): (Vec<&Line>, Vec<&Line>) = changes.lines.iter().partition(|line| line.mark.is_some());
    if !others.is_empty() {
        calls.push(insert_lines("insert_lines", &others, day));
    }
    if !history.is_empty() {
        calls.push(insert_history(&history, day));
    }
    calls.extend(insert_records(&history));
    if !calls.is_empty() {
        statements.push(Statement::calls(calls));
    }
    if let Some(floor) = changes.epoch_floor {
        for sql in
            ["UPDATE pen SET epoch_floor = $1", "UPDATE runs SET epoch = greatest(epoch, $1) WHERE ended_at IS NULL"]
        {
            statements.push(Statement::new(sql).with(signed(floor), Type::INT8));
        }
    }
    if let Some(first) = changes.first {
        let sql = "UPDATE pen SET first_seq = $1, checksum_before = $2";
        statements
            .push(Statement::new(sql).with(signed(first.seq), Type::INT8).with(signed(first.checksum), Type::INT8));
        let sql = "DELETE FROM records WHERE seq < $1";
        statements.push(Statement::new(sql).with(signed(first.seq), Type::INT8));
    }
    statements
}

/// Sends all of them at once, with the commit behind them: a round trip for everything.
pub(super) async fn send(client: &Client, statements: &[Statement], last: &str) -> Done<()> {
    let commit = async { Ok(client.batch_execute(last).await?) };
    let sent = statements.iter().map(|statement| statement.run(client).map(|done| done.map(drop)).boxed());
    try_join_all(sent.chain([commit.boxed()])).await?;
    Ok(())
}

/// A text as the server takes it: without the one character that it does not. What is read again is JSON, which has none.
fn as_text(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "") } else { text }
}

/// The most bytes of a text that an index has room for.
const KEY_MAX: usize = 1_000;

/// A text that rows are found by: what is longer than an index takes is found by its beginning.
fn as_key(text: &str) -> String {
    text[..text.floor_char_boundary(KEY_MAX)].to_owned()
}

fn insert_terms(runs: &[&Run]) -> Statement {
    let mut terms: BTreeMap<Uuid, (&Terms, String)> = BTreeMap::new();
    let mut seen: std::collections::BTreeSet<*const Terms> = std::collections::BTreeSet::new();
    for run in runs {
        if seen.insert(std::sync::Arc::as_ptr(&run.terms)) {
            let (id, body) = terms_id(&run.terms);
            terms.insert(id, (&run.terms, body));
        }
    }
    let sql = "INSERT INTO terms SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[])
        ON CONFLICT DO NOTHING";
    let starts = || terms.values().map(|(terms, _)| terms.work.workflow_start());
    let project = |(terms, _): &(&Terms, String)| terms.project.as_deref().map(as_key);
    Statement::new(sql)
        .uuids(terms.keys().copied())
        .texts(terms.values().map(|(_, body)| body.clone()))
        .maybe_texts(terms.values().map(project))
        .maybe_texts(starts().map(|start| Some(as_key(&start?.schedule))))
        .maybe_texts(starts().map(|start| Some(as_key(&start?.workflow))))
}

/// What runs have in common that take the same step of a usual life: they are claimed, they start, or they end and nothing is
/// left to be said about it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    from: &'static str,
    to: &'static str,
    owner: Option<NodeId>,
    has_started: bool,
}

impl Step {
    /// The step between two states of a run, if it changes what `step_runs` writes and nothing else.
    fn between(before: &Run, after: &Run) -> Option<Step> {
        let stepped = Run {
            expires_at: after.expires_at,
            state: after.state,
            started_at: after.started_at,
            ended_at: after.ended_at,
            has_started: after.has_started,
            last_end: after.last_end,
            ..before.clone()
        };
        let columns = StateColumns::of(&after.state);
        let StateColumns { ready_at: None, resumes: false, wait_for: None, wait_until: None, reason: None, .. } =
            columns
        else {
            return None;
        };
        let (from, to) = (before.state.name(), after.state.name());
        (stepped == *after).then_some(Step { from, to, owner: columns.owner, has_started: after.has_started })
    }
}

/// The least that has to be written for runs that were there before: steps that many take, and whole rows.
fn change_runs(changed: &[(&Run, &Run)]) -> Vec<Statement> {
    let mut steps: BTreeMap<Step, Vec<(&Run, &Run)>> = BTreeMap::new();
    let mut whole: Vec<(&Run, &Run)> = vec![];
    for (before, after) in changed.iter().copied() {
        match Step::between(before, after) {
            Some(step) => steps.entry(step).or_default().push((before, after)),
            None => whole.push((before, after)),
        }
    }
    let mut calls: Vec<Statement> = steps.iter().map(|(step, runs)| step_runs(step, runs)).collect();
    if !whole.is_empty() {
        let after: Vec<&Run> = whole.iter().map(|(_, after)| *after).collect();
        let before = || whole.iter().map(|(before, _)| *before);
        let update = put_runs("update_runs", &after)
            .texts(before().map(|run| run.state.name().to_owned()))
            .numbers(before().map(|run| signed(run.epoch())))
            .with(whole.len() as i64, Type::INT8);
        calls.push(update);
    }
    calls
}

fn step_runs(step: &Step, runs: &[(&Run, &Run)]) -> Statement {
    let before = || runs.iter().map(|(before, _)| *before);
    let after = || runs.iter().map(|(_, after)| *after);
    Statement::new("step_runs")
        .with(step.from, Type::TEXT)
        .with(step.to, Type::TEXT)
        .with(step.owner.map(|id| id.0), Type::UUID)
        .with(step.has_started, Type::BOOL)
        .uuids(after().map(|run| run.id.0))
        .numbers(before().map(|run| signed(run.epoch())))
        .numbers(after().map(|run| signed(run.epoch())))
        .numbers(after().map(|run| run.state.tally().attempt.into()))
        .numbers(after().map(|run| run.state.tally().losses.into()))
        .maybe_times(after().map(|run| run.expires_at))
        .maybe_times(after().map(|run| run.started_at))
        .maybe_times(after().map(|run| run.ended_at))
        .maybe_texts(after().map(|run| run.last_end.map(|end| to_json(&end))))
        .with(runs.len() as i64, Type::INT8)
}

fn put_runs(sql: &'static str, runs: &[&Run]) -> Statement {
    let runs = || runs.iter().copied();
    let states: Vec<StateColumns> = runs().map(|run| StateColumns::of(&run.state)).collect();
    let states = || states.iter();
    let mut ids: std::collections::HashMap<*const Terms, Uuid> = std::collections::HashMap::new();
    let terms: Vec<Uuid> = runs()
        .map(|run| *ids.entry(std::sync::Arc::as_ptr(&run.terms)).or_insert_with(|| terms_id(&run.terms).0))
        .collect();
    Statement::new(sql)
        .uuids(runs().map(|run| run.id.0))
        .maybe_uuids(runs().map(|run| run.schedule.map(|id| id.0)))
        .numbers(runs().map(|run| signed(run.version)))
        .texts(runs().map(|run| run.key.as_str().to_owned()))
        .times(runs().map(|run| run.scheduled_at))
        .times(runs().map(|run| run.due_at))
        .maybe_times(runs().map(|run| run.expires_at))
        .maybe_uuids(runs().map(|run| run.follows.map(|id| id.0)))
        .uuids(terms.into_iter())
        .texts(states().map(|state| state.state.clone()))
        .maybe_times(states().map(|state| state.ready_at))
        .flags(states().map(|state| state.resumes))
        .maybe_uuids(states().map(|state| state.owner.map(|id| id.0)))
        .maybe_texts(states().map(|state| state.wait_for.clone()))
        .maybe_times(states().map(|state| state.wait_until))
        .maybe_texts(states().map(|state| state.reason.clone()))
        .numbers(states().map(|state| state.tally.attempt.into()))
        .numbers(states().map(|state| signed(state.tally.epoch)))
        .numbers(states().map(|state| state.tally.losses.into()))
        .maybe_times(runs().map(|run| run.started_at))
        .maybe_times(runs().map(|run| run.ended_at))
        .flags(runs().map(|run| run.has_started))
        .flags(runs().map(|run| run.is_parked))
        .flags(runs().map(|run| run.is_cancelling))
        .maybe_texts(runs().map(|run| run.last_end.map(|end| to_json(&end))))
}

fn put_schedules(statements: &mut Vec<Statement>, changes: &Changes) {
    let gone: Vec<Uuid> = changes.schedules.iter().filter(|(_, row)| row.after.is_none()).map(|(id, _)| id.0).collect();
    if !gone.is_empty() {
        let sql = "DELETE FROM schedules WHERE id = ANY($1)";
        statements.push(Statement::new(sql).uuids(gone.into_iter()));
    }
    // A name that one gives up may be another's in the same transaction.
    let named = |record: &Option<ScheduleRecord>| record.as_ref().and_then(|record| name_of(&record.schedule));
    let is_renamed =
        |row: &Row<ScheduleRecord>| named(&row.before).is_some() && named(&row.before) != named(&row.after);
    let renamed = changes.schedules.iter().filter(|(_, row)| is_renamed(row) && row.after.is_some());
    let renamed: Vec<Uuid> = renamed.map(|(id, _)| id.0).collect();
    if !renamed.is_empty() {
        let sql = "UPDATE schedules SET name = NULL WHERE id = ANY($1)";
        statements.push(Statement::new(sql).uuids(renamed.into_iter()));
    }
    let whole = changes.schedules.values().filter(|row| !is_moved(row));
    let whole: Vec<&ScheduleRecord> = whole.filter_map(|row| row.after.as_ref()).collect();
    if !whole.is_empty() {
        let schedules = || whole.iter().map(|record| &*record.schedule);
        let statement = put_progress(include_str!("sql/put_schedules.sql"), &whole)
            .numbers(schedules().map(|schedule| signed(schedule.version)))
            .maybe_texts(schedules().map(|schedule| schedule.name.clone()))
            .maybe_texts(schedules().map(|schedule| schedule.project.as_deref().map(as_key)))
            .texts(schedules().map(|schedule| schedule.zone.clone()))
            .texts(schedules().map(definition))
            .texts(schedules().map(|schedule| schedule.face.as_str().to_owned()))
            .texts(schedules().map(|schedule| as_key(schedule.work.agent())))
            .maybe_texts(schedules().map(|schedule| Some(as_key(&schedule.work.workflow()?.name))))
            .texts(schedules().map(|schedule| Condition::of(schedule).as_str().to_owned()))
            .maybe_texts(schedules().map(|schedule| schedule.description.clone()));
        statements.push(statement);
    }
}

/// Whether planning and starts have changed a schedule, and nothing else.
fn is_moved(row: &Row<ScheduleRecord>) -> bool {
    let definitions = row.before.as_ref().zip(row.after.as_ref());
    definitions.is_some_and(|(before, after)| is_same_definition(&before.schedule, &after.schedule))
}

fn move_schedules(changes: &Changes) -> Option<Statement> {
    let moved = changes.schedules.values().filter(|row| is_moved(row));
    let moved: Vec<&ScheduleRecord> = moved.filter_map(|row| row.after.as_ref()).collect();
    let count = moved.len() as i64;
    (count != 0).then(|| put_progress("move_schedules", &moved).with(count, Type::INT8))
}

/// What planning and starts change of schedules.
fn put_progress(sql: &'static str, records: &[&ScheduleRecord]) -> Statement {
    let records = || records.iter().copied();
    let outages = || records().map(|record| record.outage);
    Statement::new(sql)
        .uuids(records().map(|record| record.schedule.id.0))
        .times(records().map(|record| record.schedule.cursor.at))
        .texts(records().map(|record| to_json(&record.schedule.cursor.reached)))
        .numbers(records().map(|record| signed(record.schedule.runs_started)))
        .maybe_times(records().map(|record| record.plan_at))
        .texts(records().map(|record| record.zone_data.clone()))
        .maybe_times(outages().map(|outage| outage.map(|outage| outage.from)))
        .maybe_times(outages().map(|outage| outage.map(|outage| outage.until)))
        .maybe_texts(outages().map(|outage| outage.and_then(|outage| outage.kept).map(|kept| to_json(&kept))))
}

fn put_cluster(statements: &mut Vec<Statement>, changes: &Changes) {
    for (id, node) in &changes.nodes {
        let statement = match node {
            None => Statement::new("DELETE FROM nodes WHERE id = $1").with(id.0, Type::UUID),
            Some(node) => Statement::new(include_str!("sql/put_node.sql"))
                .with(id.0, Type::UUID)
                .with(as_text(node.name.clone()), Type::TEXT)
                .with(At(node.joined_at), Type::TIMESTAMPTZ)
                .with(At(node.lease_until), Type::TIMESTAMPTZ)
                .with(node.lease.milliseconds(), Type::INT8)
                .with(to_json(&node.agents), Type::TEXT)
                .with(to_json(&node.about), Type::TEXT),
        };
        statements.push(statement);
    }
    if let Some(planner) = changes.planner {
        let sql = "INSERT INTO planner VALUES (true, $1, $2, $3)
            ON CONFLICT (one) DO UPDATE SET node = excluded.node, lease_until = excluded.lease_until, epoch = excluded.epoch";
        let statement = Statement::new(sql).with(planner.node.0, Type::UUID);
        let statement = statement.with(At(planner.until), Type::TIMESTAMPTZ).with(signed(planner.epoch), Type::INT8);
        statements.push(statement);
    }
    for (agents, sql) in [
        (&changes.agents_named, include_str!("sql/name_agents.sql")),
        (&changes.agents_seen, include_str!("sql/see_agents.sql")),
    ] {
        if !agents.is_empty() {
            statements.push(Statement::new(sql).texts(agents.keys().cloned()).times(agents.values().copied()));
        }
    }
    for (id, token) in &changes.tokens {
        statements.push(match token {
            None => Statement::new("DELETE FROM tokens WHERE id = $1").with(id.0, Type::UUID),
            Some(token) => Statement::new("INSERT INTO tokens (id, body) VALUES ($1, $2::text::json)")
                .with(id.0, Type::UUID)
                .with(to_json(token), Type::TEXT),
        });
    }
    if !changes.answers.is_empty() {
        let sql = "INSERT INTO answers SELECT * FROM unnest($1::text[], $2::bigint[], $3::uuid[], $4::timestamptz[])
            ON CONFLICT DO NOTHING";
        let answers = || changes.answers.values();
        let statement = Statement::new(sql)
            .texts(changes.answers.keys().cloned())
            .numbers(answers().map(|answered| signed(answered.digest)))
            .uuids(answers().map(|answered| answered.subject))
            .times(answers().map(|answered| answered.at));
        statements.push(statement);
    }
    if !changes.days.is_empty() {
        let sql = "INSERT INTO days SELECT * FROM unnest($1::text[], $2::text[])
            ON CONFLICT (zone) DO UPDATE SET date = excluded.date";
        let days = &changes.days;
        statements.push(Statement::new(sql).texts(days.keys().cloned()).texts(days.values().map(ToString::to_string)));
    }
}

fn insert_lines(function: &str, lines: &[&Line], day: i32) -> Statement {
    let lines = || lines.iter();
    Statement::new(function)
        .with(day, Type::INT4)
        .numbers(lines().map(|line| signed(line.seq)))
        .times(lines().map(|line| line.at))
        .texts(lines().map(|line| line.kind.to_owned()))
        .maybe_uuids(lines().map(|line| line.schedule.map(|id| id.0)))
        .maybe_uuids(lines().map(|line| line.run.map(|id| id.0)))
        .texts(lines().map(|line| line.body.clone()))
        .numbers(lines().map(|line| signed(line.checksum)))
}

/// What is history of workflows that schedules had started.
fn insert_records(lines: &[&Line]) -> Option<Statement> {
    let found: Vec<(&Line, &LineRecord)> =
        lines.iter().filter_map(|line| Some((*line, line.record.as_ref()?))).collect();
    let (lines, records) = (|| found.iter().map(|(line, _)| *line), || found.iter().map(|(_, record)| *record));
    let project = |line: &Line| line.mark.as_ref().and_then(|mark| mark.project.as_deref().map(as_key));
    let statement = Statement::new("insert_records")
        .numbers(lines().map(|line| signed(line.seq)))
        .maybe_uuids(lines().map(|line| line.schedule.map(|id| id.0)))
        .maybe_uuids(lines().map(|line| line.run.map(|id| id.0)))
        .maybe_texts(lines().map(project))
        .texts(records().map(|record| as_key(&record.schedule)))
        .texts(records().map(|record| as_key(&record.workflow)))
        .maybe_texts(records().map(|record| record.workflow_id.clone()))
        .texts(records().map(|record| record.state.as_str().to_owned()))
        .maybe_texts(records().map(|record| record.note.clone()))
        .times(records().map(|record| record.scheduled_at))
        .times(records().map(|record| record.executed_at));
    (!found.is_empty()).then_some(statement)
}

fn insert_history(lines: &[&Line], day: i32) -> Statement {
    let marks = || lines.iter().filter_map(|line| line.mark.as_ref());
    insert_lines("insert_history", lines, day)
        .texts(marks().map(|mark| mark.verdict.as_str().to_owned()))
        .texts(marks().map(|mark| as_key(&mark.agent)))
        .maybe_texts(marks().map(|mark| mark.project.as_deref().map(as_key)))
        .times(marks().map(|mark| mark.shown_at))
        .maybe_numbers(marks().map(|mark| mark.duration_ms))
        .maybe_numbers(marks().map(|mark| mark.tokens))
        .maybe_numbers(marks().map(|mark| mark.cost_micros))
        .flags(marks().map(|mark| mark.is_final))
}
