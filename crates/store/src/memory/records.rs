//! Schedules and records as they are searched.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use punctual_core::ScheduleId;
use punctual_core::journal::RecordState;
use punctual_core::run::Run;
use punctual_core::schedule::Schedule;

use super::{MemoryStore, State};
use crate::error::Result;
use crate::requests::{
    Condition, Direction, Keep, RecordFilter, RecordItem, RecordOrder, RecordPage, ScheduleFilter, SchedulePage,
};
use crate::roles::Records;

#[async_trait]
impl Records for MemoryStore {
    async fn records(&self, filter: &RecordFilter) -> Result<RecordPage> {
        let mut found: Vec<RecordItem> = self.state().all_records().filter(|item| fits(item, filter)).collect();
        found.sort_by(|a, b| order(a, b, filter));
        let total = found.len() as u64;
        Ok(RecordPage { total, records: found.into_iter().skip(filter.offset).take(filter.limit).collect() })
    }

    async fn archive(&self, schedules: Option<&[ScheduleId]>, keep: Keep) -> Result<usize> {
        let mut state = self.state();
        let mut numbers: BTreeMap<ScheduleId, BTreeSet<u64>> = BTreeMap::new();
        for item in state.all_records() {
            if let Some((schedule, seq)) = item.schedule_id.zip(item.seq) {
                numbers.entry(schedule).or_default().insert(seq);
            }
        }
        let mut gone = 0;
        for (schedule, seqs) in numbers {
            if schedules.is_none_or(|those| those.contains(&schedule)) && keep.threshold < seqs.len() {
                let old = seqs.len().saturating_sub(keep.max);
                state.archived.extend(seqs.into_iter().take(old));
                gone += old;
            }
        }
        Ok(gone)
    }
}

impl MemoryStore {
    pub(super) fn find_all(&self, filter: &ScheduleFilter) -> SchedulePage {
        let state = self.state();
        let schedules = state.world.schedules.values().map(|record| &*record.schedule);
        let mut found: Vec<Schedule> = schedules.filter(|schedule| is_meant(schedule, filter)).cloned().collect();
        if filter.is_by_name {
            found.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
        }
        if filter.is_reversed {
            found.reverse();
        }
        let total = found.len() as u64;
        SchedulePage { total, schedules: found.into_iter().skip(filter.offset).take(filter.limit).collect() }
    }
}

impl State {
    fn all_records(&self) -> impl Iterator<Item = RecordItem> {
        let entries = self.entries.iter().filter(|entry| !self.archived.contains(&entry.seq));
        let ended = entries.filter_map(|entry| {
            let record = entry.body.record(entry.at)?;
            Some(RecordItem {
                seq: Some(entry.seq),
                schedule_id: entry.body.schedule(),
                run: entry.body.run(),
                project: entry.body.mark(entry.at)?.project.map(str::to_owned),
                schedule: record.start.schedule.clone(),
                workflow: record.start.workflow.clone(),
                workflow_id: record.workflow_id,
                state: record.state,
                note: record.note,
                scheduled_at: record.scheduled_at,
                executed_at: Some(record.executed_at),
            })
        });
        ended.chain(self.world.runs.values().filter_map(begun))
    }
}

/// The record of a workflow that is being started.
fn begun(run: &Run) -> Option<RecordItem> {
    let is_begun = !run.state.is_final() && 1 <= run.state.tally().attempt;
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

fn is_meant(schedule: &Schedule, filter: &ScheduleFilter) -> bool {
    let workflow = schedule.work.workflow().map(|workflow| workflow.name.as_str());
    let texts = [schedule.name.as_deref(), workflow, schedule.description.as_deref()];
    filter.face.is_none_or(|face| face == schedule.face)
        && filter.projects.as_ref().is_none_or(|projects| projects.contains(&schedule.project))
        && filter.agent.as_ref().is_none_or(|agent| agent == schedule.work.agent())
        && filter.workflow.as_ref().is_none_or(|wanted| Some(wanted.as_str()) == workflow)
        && filter.name.as_ref().is_none_or(|name| Some(name) == schedule.name.as_ref())
        && filter.name_part.as_ref().is_none_or(|part| has(schedule.name.as_deref(), part))
        && filter.text.as_ref().is_none_or(|text| texts.iter().any(|it| has(*it, text)))
        && filter.conditions.as_ref().is_none_or(|conditions| conditions.contains(&Condition::of(schedule)))
}

fn fits(item: &RecordItem, filter: &RecordFilter) -> bool {
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

fn order(a: &RecordItem, b: &RecordItem, filter: &RecordFilter) -> Ordering {
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
