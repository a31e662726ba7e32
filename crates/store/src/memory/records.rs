//! Schedules and records as they are searched.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use punctual_core::ScheduleId;

use super::{MemoryStore, State};
use crate::error::Result;
use crate::records::{begun, page};
use crate::requests::{Keep, RecordFilter, RecordItem, RecordPage};
use crate::roles::Records;

#[async_trait]
impl Records for MemoryStore {
    async fn records(&self, filter: &RecordFilter) -> Result<RecordPage> {
        Ok(page(filter, RecordPage::default(), self.state().all_records()))
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
        ended.chain(self.world.live_runs().filter_map(begun))
    }
}
