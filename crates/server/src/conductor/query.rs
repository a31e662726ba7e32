//! The query language of the search for executions: clauses joined by `AND`. Pure.

use jiff::Timestamp;
use punctual_core::RunId;
use punctual_core::journal::RecordState;
use punctual_store::{Direction, RecordFilter, RecordOrder};

/// One clause: what it is about, how it compares, and with what.
#[derive(Debug, PartialEq, Eq)]
struct Clause<'a> {
    field: &'a str,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    In,
    Is,
    Above,
    AtLeast,
    Below,
    AtMost,
}

/// What a query asks for, laid over a filter. A query that nothing can fit finds nothing; one that is not understood is an error,
/// in words.
pub(super) fn read(query: &str, filter: RecordFilter) -> Result<RecordFilter, String> {
    clauses(query).into_iter().try_fold(filter, |filter, clause| match Clause::read(clause) {
        Some(clause) => clause.apply(filter),
        // What is no clause is the name of a schedule.
        None => Ok(narrow_schedules(filter, vec![unquoted(clause)])),
    })
}

/// The clauses of a query: the text between the `AND`s that stand outside of quotes and brackets.
fn clauses(query: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quote) = (vec![], 0, 0_usize, None);
    let bytes = query.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        match (quote, byte) {
            (Some(open), _) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b'(') => depth += 1,
            (None, b')') => depth = depth.saturating_sub(1),
            (None, _) if depth == 0 && is_and(bytes, at) => {
                parts.push(&query[start..at]);
                start = at + 5;
                at = start;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    parts.push(&query[start..]);
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// Whether ` AND ` stands at a place.
fn is_and(bytes: &[u8], at: usize) -> bool {
    bytes.get(at..at + 5).is_some_and(|word| {
        word[0].is_ascii_whitespace() && word[4].is_ascii_whitespace() && word[1..4].eq_ignore_ascii_case(b"and")
    })
}

impl<'a> Clause<'a> {
    fn read(text: &'a str) -> Option<Clause<'a>> {
        let end = text.find(|it: char| !it.is_alphanumeric() && it != '_' && it != '.')?;
        let (field, rest) = text.split_at(end);
        let rest = rest.trim_start();
        let is_in = rest.get(..2).is_some_and(|word| word.eq_ignore_ascii_case("in"));
        if is_in && let Some(list) = rest[2..].trim().strip_prefix('(').and_then(|list| list.strip_suffix(')')) {
            let values = list.split(',').map(unquoted).filter(|value| !value.is_empty()).collect();
            return Some(Clause { field, operator: Operator::In, values });
        }
        let operators = [
            (">=", Operator::AtLeast),
            ("<=", Operator::AtMost),
            (">", Operator::Above),
            ("<", Operator::Below),
            ("=", Operator::Is),
        ];
        let (sign, operator) = operators.into_iter().find(|(sign, _)| rest.starts_with(sign))?;
        Some(Clause { field, operator, values: vec![unquoted(&rest[sign.len()..])] })
    }

    fn apply(self, filter: RecordFilter) -> Result<RecordFilter, String> {
        let Clause { field, operator, values } = self;
        Ok(match field.to_ascii_lowercase().as_str() {
            "schedulename" | "name" => narrow_schedules(filter, values),
            "state" | "status" => {
                let states = values.iter().filter_map(|word| state(word)).collect();
                RecordFilter { states: Some(both(filter.states, states)), ..filter }
            }
            "workflowname" if operator == Operator::Is => {
                RecordFilter { workflow_part: values.into_iter().next(), ..filter }
            }
            "workflowname" | "workflowtype" => {
                RecordFilter { workflows: Some(both(filter.workflows, values)), ..filter }
            }
            "executionid" => {
                let run = values.first().and_then(|id| id.parse().ok()).map_or(RunId(uuid::Uuid::nil()), RunId);
                RecordFilter { run: Some(run), ..filter }
            }
            "workflowid" => RecordFilter { text: values.into_iter().next(), ..filter },
            "scheduledtime" | "executiontime" | "starttime" => times(filter, field, operator, &values)?,
            other => {
                return Err(format!(
                    "query: {other:?} is no field; use scheduleName, workflowName, state, scheduledTime or executionId"
                ));
            }
        })
    }
}

fn narrow_schedules(filter: RecordFilter, names: Vec<String>) -> RecordFilter {
    RecordFilter { schedules: Some(both(filter.schedules, names)), ..filter }
}

/// What is in both lists; the second, if there is no first.
fn both<T: PartialEq>(first: Option<Vec<T>>, second: Vec<T>) -> Vec<T> {
    match first {
        None => second,
        Some(first) => second.into_iter().filter(|it| first.contains(it)).collect(),
    }
}

/// A state, in the words of records or of workflows.
fn state(word: &str) -> Option<RecordState> {
    match word.to_ascii_uppercase().as_str() {
        "POLLED" | "SCHEDULED" | "RUNNING" | "PAUSED" => Some(RecordState::Polled),
        "EXECUTED" | "COMPLETED" => Some(RecordState::Executed),
        "FAILED" | "TIMED_OUT" | "TERMINATED" => Some(RecordState::Failed),
        _ => None,
    }
}

fn times(filter: RecordFilter, field: &str, operator: Operator, values: &[String]) -> Result<RecordFilter, String> {
    let text = values.first().map(String::as_str).unwrap_or_default();
    let millis = text.parse::<i64>().ok().and_then(|millis| Timestamp::from_millisecond(millis).ok());
    let at = millis.or_else(|| text.parse().ok());
    let at = at.ok_or_else(|| format!("query: {field}: {text:?} is no time; use milliseconds since 1970"))?;
    let moment = punctual_store::MOMENT;
    let before = at.checked_sub(moment).unwrap_or(at);
    let behind = at.checked_add(moment).unwrap_or(at);
    Ok(match operator {
        Operator::Above => RecordFilter { after: Some(at), ..filter },
        Operator::AtLeast => RecordFilter { after: Some(before), ..filter },
        Operator::Below => RecordFilter { before: Some(at), ..filter },
        Operator::AtMost => RecordFilter { before: Some(behind), ..filter },
        Operator::Is | Operator::In => RecordFilter { after: Some(before), before: Some(behind), ..filter },
    })
}

/// A value without its quotes.
fn unquoted(text: &str) -> String {
    let text = text.trim();
    let inner = ['\'', '"'].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote));
    inner.unwrap_or(text).trim().to_owned()
}

/// The order that a text like `scheduledTime:DESC,state` asks for; by scheduled time, latest first, if it says nothing.
pub(super) fn sort(text: Option<&str>) -> Vec<(RecordOrder, Direction)> {
    let given = text.unwrap_or_default().split(',').map(str::trim).filter(|part| !part.is_empty());
    let mut sort: Vec<(RecordOrder, Direction)> = given
        .map(|part| {
            let (field, direction) = part.split_once(':').unwrap_or((part, "ASC"));
            let order = match field.trim().to_ascii_lowercase().as_str() {
                "executiontime" | "starttime" => RecordOrder::ExecutedAt,
                "schedulename" | "name" => RecordOrder::Schedule,
                "workflowname" | "workflowtype" => RecordOrder::Workflow,
                "state" | "status" => RecordOrder::State,
                _ => RecordOrder::ScheduledAt,
            };
            let is_down = direction.trim().eq_ignore_ascii_case("desc");
            (order, if is_down { Direction::Down } else { Direction::Up })
        })
        .collect();
    if sort.is_empty() {
        sort.push((RecordOrder::ScheduledAt, Direction::Down));
    }
    sort
}

/// The text that is looked for; `*` and blank look for nothing in particular.
pub(super) fn free_text(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty() && text != "*")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(query: &str) -> RecordFilter {
        read(query, RecordFilter::default()).unwrap()
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    #[test]
    fn every_clause_of_their_grammar_is_understood() {
        let all = "scheduleName IN (a, 'b c') AND state IN (EXECUTED,FAILED) AND scheduledTime>1000 AND \
            scheduledTime<9000 AND workflowName=rep AND executionId=00000000-0000-0000-0000-000000000007";
        let expected = RecordFilter {
            schedules: Some(vec!["a".into(), "b c".into()]),
            states: Some(vec![RecordState::Executed, RecordState::Failed]),
            after: Some(at(1_000)),
            before: Some(at(9_000)),
            workflow_part: Some("rep".into()),
            run: Some(RunId(uuid::Uuid::from_u128(7))),
            ..RecordFilter::default()
        };
        assert_eq!(found(all), expected);
    }

    #[test]
    fn what_their_command_line_and_documentation_write_is_understood_too() {
        let command_line = found(" workflowType IN (x)  AND status IN (COMPLETED) ");
        assert_eq!(command_line.workflows, Some(vec!["x".into()]));
        assert_eq!(command_line.states, Some(vec![RecordState::Executed]));
        let documented = found("scheduleName='x' AND status='COMPLETED'");
        assert_eq!(documented.schedules, Some(vec!["x".into()]));
        assert_eq!(documented.states, Some(vec![RecordState::Executed]));
        assert_eq!(found("status = 'nonsense'").states, Some(vec![]), "no record is in such a state");
    }

    #[test]
    fn what_is_no_clause_is_the_name_of_a_schedule() {
        assert_eq!(found("nightly").schedules, Some(vec!["nightly".into()]));
        assert_eq!(found("'salt AND pepper'").schedules, Some(vec!["salt AND pepper".into()]));
        assert_eq!(found("a AND b").schedules, Some(vec![]), "no schedule has two names");
        assert_eq!(found(""), RecordFilter::default());
        assert!(read("colour=red", RecordFilter::default()).is_err());
        assert!(read("scheduledTime>soon", RecordFilter::default()).is_err());
    }

    #[test]
    fn sorting_is_by_scheduled_time_unless_it_says_otherwise() {
        let latest_first = vec![(RecordOrder::ScheduledAt, Direction::Down)];
        assert_eq!(sort(None), latest_first);
        assert_eq!(sort(Some(" ")), latest_first);
        assert_eq!(sort(Some("startTime:DESC")), [(RecordOrder::ExecutedAt, Direction::Down)]);
        assert_eq!(
            sort(Some("state,scheduleName:desc")),
            [(RecordOrder::State, Direction::Up), (RecordOrder::Schedule, Direction::Down)]
        );
        assert_eq!(sort(Some("colour:ASC")), [(RecordOrder::ScheduledAt, Direction::Up)]);
    }
}
