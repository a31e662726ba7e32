//! Sums: what the history of each day comes to, kept so that questions need not scan it.
//!
//! Two tables have the history up to the snapshot's entry, and are written with the snapshot: `sums` by day, agent, project, verdict
//! and whether it was the last word, and `schedule_sums` the same for each schedule. A question reads them for whole days, and
//! adds what they do not have: the history after the snapshot (`unsummed`), and that of days which are asked for in part. So an
//! answer is exact at every moment, and costs what days and agents there are, however many runs they had.

use std::collections::BTreeMap;
use std::fmt;

use jiff::{SignedDuration, Timestamp};
use punctual_core::journal::{Mark, Verdict};
use punctual_core::time::zone::at_microsecond;
use uuid::Uuid;

use crate::columns::count;
use crate::requests::{HistoryFilter, LATE_MS, Totals};

/// The microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// How many numbers a sum has.
pub(crate) const WIDTH: usize = 12;

/// The numbers of a sum, as columns.
pub(crate) const COLUMNS: [&str; WIDTH] = [
    "marks",
    "attempts",
    "duration_ms",
    "tokens",
    "cost_micros",
    "late_10ms",
    "late_100ms",
    "late_1s",
    "late_10s",
    "late_1min",
    "late_10min",
    "late_more",
];

/// What a row of history adds to each of them, as [`Sum::of`] has it.
pub(crate) const COUNTED: [&str; WIDTH] = [
    "1",
    "CASE WHEN duration_ms IS NULL THEN 0 ELSE 1 END",
    "coalesce(duration_ms, 0)",
    "CASE WHEN duration_ms IS NULL THEN 0 ELSE coalesce(tokens, 0) END",
    "CASE WHEN duration_ms IS NULL THEN 0 ELSE coalesce(cost_micros, 0) END",
    "CASE WHEN late_ms <= 10 THEN 1 ELSE 0 END",
    "CASE WHEN 10 < late_ms AND late_ms <= 100 THEN 1 ELSE 0 END",
    "CASE WHEN 100 < late_ms AND late_ms <= 1000 THEN 1 ELSE 0 END",
    "CASE WHEN 1000 < late_ms AND late_ms <= 10000 THEN 1 ELSE 0 END",
    "CASE WHEN 10000 < late_ms AND late_ms <= 60000 THEN 1 ELSE 0 END",
    "CASE WHEN 60000 < late_ms AND late_ms <= 600000 THEN 1 ELSE 0 END",
    "CASE WHEN 600000 < late_ms THEN 1 ELSE 0 END",
];

/// What sums are of. Without a schedule they are of all history, otherwise of that schedule's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SumKey {
    /// The first instant of the day, in UTC.
    pub(crate) day: Timestamp,
    pub(crate) schedule: Option<Uuid>,
    pub(crate) agent: String,
    /// Empty if there is none: who asks for the project that has no name asks the history ([`parts`]).
    pub(crate) project: String,
    pub(crate) verdict: Verdict,
    pub(crate) is_final: bool,
}

/// How much there is, in the order of [`COLUMNS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sum(pub(crate) [i64; WIDTH]);

/// Sums, folded from history.
#[derive(Debug, Default)]
pub(crate) struct Sums(pub(crate) BTreeMap<SumKey, Sum>);

impl Sum {
    fn of(mark: &Mark<'_>) -> Sum {
        let mut sum = [0; WIDTH];
        sum[0] = 1;
        if let Some(duration_ms) = mark.duration_ms {
            let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
            sum[1] = 1;
            sum[2..5]
                .copy_from_slice(&[Some(duration_ms), mark.tokens, mark.cost_micros].map(|it| it.map_or(0, number)));
        }
        if let Some(late_ms) = mark.late_ms {
            sum[5 + LATE_MS.partition_point(|most| *most < late_ms)] = 1;
        }
        Sum(sum)
    }

    fn add(&mut self, other: &Sum) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, number)| *sum = sum.saturating_add(number));
    }
}

impl Sums {
    /// Counts a row of history, for its schedule and for all.
    pub(crate) fn count(&mut self, schedule: Option<Uuid>, mark: &Mark<'_>) {
        let (agent, project) = (mark.agent.to_owned(), mark.project.unwrap_or_default().to_owned());
        let (verdict, is_final) = (mark.verdict, mark.is_final);
        let key = SumKey { day: day_of(mark.shown_at), schedule: None, agent, project, verdict, is_final };
        let sum = Sum::of(mark);
        if schedule.is_some() {
            self.0.entry(SumKey { schedule, ..key.clone() }).or_default().add(&sum);
        }
        self.0.entry(key).or_default().add(&sum);
    }

    /// How the sums that are kept differ from these, in words.
    pub(crate) fn differences(&self, kept: &Sums) -> Vec<String> {
        let nothing = Sum::default();
        let of = |sums: &Sums, key: &SumKey| *sums.0.get(key).unwrap_or(&nothing);
        let others = kept.0.keys().filter(|key| !self.0.contains_key(*key));
        let wrong = self.0.keys().chain(others).filter(|key| self.0.get(*key) != kept.0.get(*key));
        wrong.map(|key| format!("the sums of {key} have {}, and history {}", of(kept, key), of(self, key))).collect()
    }
}

impl fmt::Display for SumKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SumKey { day, schedule, agent, project, verdict, is_final } = self;
        let schedule = schedule.map(|id| format!(", schedule {id}")).unwrap_or_default();
        let last = if *is_final { "for good" } else { "to be tried again" };
        write!(f, "the day of {day}, agent {agent:?}, project {project:?}{schedule}, {} {last}", verdict.as_str())
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = COLUMNS.iter().zip(self.0).filter(|(_, number)| *number != 0);
        let named: Vec<String> = named.map(|(name, number)| format!("{name} {number}")).collect();
        f.write_str(if named.is_empty() { "nothing" } else { "" })?;
        f.write_str(&named.join(", "))
    }
}

/// The first instant of the day that a time lies in, in UTC. The end of time is a day of its own.
pub(crate) fn day_of(at: Timestamp) -> Timestamp {
    if at == Timestamp::MAX {
        return at;
    }
    at_microsecond(at.as_microsecond().div_euclid(DAY) * DAY).unwrap_or(Timestamp::MIN)
}

/// The first beginning of a day from a time on.
fn next_day(at: Timestamp) -> Timestamp {
    let day = day_of(at);
    if day == at { day } else { day.checked_add(SignedDuration::from_hours(24)).unwrap_or(Timestamp::MAX) }
}

/// The tables that together have what a filter finds, each row of it once, and what is to be found in each.
fn parts(filter: &HistoryFilter) -> Vec<(&'static str, HistoryFilter)> {
    let (from, until) = (filter.from.map(next_day), filter.until.map(day_of));
    let has_no_day = from.zip(until).is_some_and(|(from, until)| until <= from);
    let has_nameless = filter.projects.iter().flatten().any(String::is_empty);
    if has_no_day || has_nameless || filter.run.is_some() {
        return vec![("history", filter.clone())];
    }
    let days = HistoryFilter { from, until, ..filter.clone() };
    let table = if filter.schedule.is_some() { "schedule_sums" } else { "sums" };
    let mut parts = vec![(table, days.clone()), ("unsummed", days)];
    if filter.from != from {
        parts.push(("history", HistoryFilter { until: from, ..filter.clone() }));
    }
    if filter.until != until {
        parts.push(("history", HistoryFilter { from: until, ..filter.clone() }));
    }
    parts
}

/// A query for what a filter finds: some columns of history, and the first so many numbers of sums. `conditions` says in SQL what a
/// filter finds in any of the tables.
pub(crate) fn query(
    filter: &HistoryFilter,
    columns: &str,
    width: usize,
    mut conditions: impl FnMut(&HistoryFilter) -> String,
) -> String {
    let select = |(table, filter): (&'static str, HistoryFilter)| {
        let numbers = if table.ends_with("sums") { COLUMNS } else { COUNTED };
        let named = numbers.iter().zip(COLUMNS).take(width).map(|(number, name)| format!("{number} AS {name}"));
        let named: Vec<String> = named.collect();
        // A schedule's days are found one by one: between them lie those of all others.
        let days = if table == "schedule_sums" { " AND shown_at IN (SELECT shown_at FROM sums)" } else { "" };
        format!("SELECT {columns}{} FROM {table} WHERE {}{days}", named.join(", "), conditions(&filter))
    };
    parts(filter).into_iter().map(select).collect::<Vec<_>>().join(" UNION ALL ")
}

/// What sums come to, by agent and verdict, from rows that have these and whether it was the last word.
pub(crate) fn totals(rows: impl Iterator<Item = (String, Verdict, bool, Sum)>) -> Vec<Totals> {
    let mut sums: BTreeMap<(String, Verdict), (Sum, u64)> = BTreeMap::new();
    for (agent, verdict, is_final, row) in rows {
        let (sum, runs) = sums.entry((agent, verdict)).or_default();
        sum.add(&row);
        *runs += if is_final { count(row.0[1]) } else { 0 };
    }
    let total = |((agent, verdict), (sum, runs)): ((String, Verdict), (Sum, u64))| {
        let [_, attempts, duration_ms, tokens, cost_micros, late @ ..] = sum.0.map(count);
        Totals { agent, verdict, attempts, runs, duration_ms, tokens, cost_micros, late }
    };
    sums.into_iter().map(total).filter(|total| 0 < total.attempts).collect()
}
