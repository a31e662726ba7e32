//! Records of workflows, as they are searched: those that are kept, and those of runs that are not over.

use std::cmp::Ordering;

use punctual_core::journal::RecordState;
use punctual_core::run::Run;

use crate::requests::{Direction, RecordFilter, RecordItem, RecordOrder, RecordPage};

/// A page of all records. `kept` are the first ones that are kept, as many as the page and what comes before it have, and how many
/// there are.
pub(crate) fn page(filter: &RecordFilter, kept: RecordPage, live: impl Iterator<Item = RecordItem>) -> RecordPage {
    let mut found = kept.records;
    let mut total = kept.total;
    for item in live.filter(|item| fits(item, filter)) {
        total += 1;
        found.push(item);
    }
    found.sort_by(|a, b| order(a, b, filter));
    RecordPage { total, records: found.into_iter().skip(filter.offset).take(filter.limit).collect() }
}

/// The record of a workflow that is being started.
pub(crate) fn begun(run: &Run) -> Option<RecordItem> {
    let is_begun = 1 <= run.state.tally().attempt;
    let start = run.terms.work.workflow_start().filter(|_| is_begun)?;
    Some(RecordItem {
        seq: None,
        schedule_id: run.schedule,
        run: Some(run.id),
        project: run.terms.project.clone(),
        schedule: start.schedule,
        workflow: start.workflow,
        workflow_id: None,
        state: RecordState::Polled,
        note: None,
        scheduled_at: run.scheduled_at,
        executed_at: run.started_at,
    })
}

fn has(text: Option<&str>, part: &str) -> bool {
    text.is_some_and(|text| text.to_ascii_lowercase().contains(&part.to_ascii_lowercase()))
}

pub(crate) fn fits(item: &RecordItem, filter: &RecordFilter) -> bool {
    let run = item.run.map(|run| run.to_string());
    let texts = [
        Some(item.schedule.as_str()),
        Some(item.workflow.as_str()),
        item.workflow_id.as_deref(),
        item.note.as_deref(),
        run.as_deref(),
    ];
    filter.projects.as_ref().is_none_or(|projects| projects.contains(&item.project))
        && filter.schedules.as_ref().is_none_or(|names| names.contains(&item.schedule))
        && filter.states.as_ref().is_none_or(|states| states.contains(&item.state))
        && filter.workflows.as_ref().is_none_or(|names| names.contains(&item.workflow))
        && filter.workflow_part.as_ref().is_none_or(|part| has(Some(&item.workflow), part))
        && filter.run.is_none_or(|run| item.run == Some(run))
        && filter.after.is_none_or(|after| after < item.scheduled_at)
        && filter.before.is_none_or(|before| item.scheduled_at < before)
        && filter.text.as_ref().is_none_or(|text| texts.iter().any(|it| has(*it, text)))
}

pub(crate) fn order(a: &RecordItem, b: &RecordItem, filter: &RecordFilter) -> Ordering {
    let executed_at = |item: &RecordItem| item.executed_at.unwrap_or(item.scheduled_at);
    let by = |(order, direction): &(RecordOrder, Direction)| {
        let ordering = match order {
            RecordOrder::ScheduledAt => a.scheduled_at.cmp(&b.scheduled_at),
            RecordOrder::ExecutedAt => executed_at(a).cmp(&executed_at(b)),
            RecordOrder::Schedule => a.schedule.cmp(&b.schedule),
            RecordOrder::Workflow => a.workflow.cmp(&b.workflow),
            RecordOrder::State => a.state.as_str().cmp(b.state.as_str()),
        };
        if *direction == Direction::Down { ordering.reverse() } else { ordering }
    };
    let sorted = filter.sort.iter().map(by).fold(Ordering::Equal, Ordering::then);
    // What is being started has no number yet: it is the latest.
    let last = |item: &RecordItem| (item.seq.unwrap_or(u64::MAX), item.run);
    sorted.then_with(|| last(b).cmp(&last(a)))
}
