//! The journal and what is read from it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;
use punctual_core::journal::{Entry, Mark, Verdict, World};

use super::MemoryStore;
use crate::error::Result;
use crate::requests::{Head, HistoryFilter, HistoryItem, LATE_MS, Totals};
use crate::roles::{History, Journal};
use punctual_kernel::compare::differences;
use uuid::Uuid;

#[async_trait]
impl Journal for MemoryStore {
    async fn entries(&self, after: u64, limit: usize) -> Result<Vec<Entry>> {
        let state = self.state();
        Ok(state.entries.iter().filter(|entry| after < entry.seq).take(limit).cloned().collect())
    }

    async fn head(&self) -> Result<Head> {
        let state = self.state();
        Ok(Head { seq: state.world.seq, checksum: state.entries.iter().fold(state.checksum_before, chain) })
    }

    async fn about(&self, subjects: &[Uuid], each: usize) -> Result<Vec<Entry>> {
        let state = self.state();
        let of = |subject: &Uuid| {
            let about = state.entries.iter().rev().filter(|entry| entry.body.subject() == Some(*subject));
            about.take(each).cloned().collect::<Vec<_>>()
        };
        Ok(subjects.iter().flat_map(of).collect())
    }

    async fn base(&self) -> Result<World> {
        Ok(self.state().base.clone())
    }

    async fn prune(&self, before: Timestamp) -> Result<u64> {
        let mut state = self.state();
        let old = state.entries.iter().take_while(|entry| entry.at < before).count();
        let gone: Vec<Entry> = state.entries.drain(..old).collect();
        for entry in &gone {
            state.base.apply(entry)?;
            state.archived.remove(&entry.seq);
        }
        // What is gone stays in the sum of what comes after it.
        state.checksum_before = gone.iter().fold(state.checksum_before, chain);
        Ok(gone.len() as u64)
    }

    async fn verify(&self) -> Result<Vec<String>> {
        let state = self.state();
        let mut world = state.base.clone();
        for entry in &state.entries {
            world.apply(entry)?;
        }
        Ok(differences(&world, &state.world))
    }
}

fn chain(before: u64, entry: &Entry) -> u64 {
    entry.checksum(before)
}

#[async_trait]
impl History for MemoryStore {
    async fn history(&self, filter: &HistoryFilter) -> Result<Vec<HistoryItem>> {
        let state = self.state();
        let mut found: Vec<(&Entry, Mark<'_>)> = found(&state.entries, filter).collect();
        found.sort_by_key(|(entry, mark)| Reverse((mark.shown_at, entry.seq)));
        let page = found.into_iter().skip(filter.offset).take(filter.limit);
        Ok(page.filter_map(|(entry, _)| HistoryItem::of(entry)).collect())
    }

    async fn count_history(&self, filter: &HistoryFilter) -> Result<u64> {
        Ok(found(&self.state().entries, filter).count() as u64)
    }

    async fn totals(&self, filter: &HistoryFilter) -> Result<Vec<Totals>> {
        let state = self.state();
        let mut totals: BTreeMap<(&str, Verdict), Totals> = BTreeMap::new();
        for (_, mark) in found(&state.entries, filter) {
            let Some(duration_ms) = mark.duration_ms else { continue };
            let (agent, verdict) = (mark.agent.to_owned(), mark.verdict);
            let late = Default::default();
            let nothing =
                Totals { agent, verdict, attempts: 0, runs: 0, duration_ms: 0, tokens: 0, cost_micros: 0, late };
            let sum = totals.entry((mark.agent, verdict)).or_insert(nothing);
            sum.attempts += 1;
            sum.runs += u64::from(mark.is_final);
            sum.duration_ms = sum.duration_ms.saturating_add(duration_ms);
            sum.tokens = sum.tokens.saturating_add(mark.tokens.unwrap_or(0));
            sum.cost_micros = sum.cost_micros.saturating_add(mark.cost_micros.unwrap_or(0));
            if let Some(late_ms) = mark.late_ms {
                sum.late[LATE_MS.iter().filter(|most| **most < late_ms).count()] += 1;
            }
        }
        Ok(totals.into_values().collect())
    }
}

/// The entries that a filter asks for.
fn found<'a>(entries: &'a [Entry], filter: &'a HistoryFilter) -> impl Iterator<Item = (&'a Entry, Mark<'a>)> {
    let marked = entries.iter().filter_map(|entry| Some((entry, entry.body.mark(entry.at)?)));
    marked.filter(|(entry, mark)| {
        let is_of = |project: &str| filter.projects.as_ref().is_none_or(|those| those.iter().any(|it| it == project));
        filter.schedule.is_none_or(|schedule| entry.body.schedule() == Some(schedule))
            && filter.run.is_none_or(|run| entry.body.run() == Some(run))
            && filter.agent.as_ref().is_none_or(|agent| agent == mark.agent)
            && mark.project.map_or(filter.projects.is_none(), is_of)
            && filter.verdict.is_none_or(|verdict| verdict == mark.verdict)
            && (mark.is_final || !filter.only_final)
            && filter.from.is_none_or(|from| from <= mark.shown_at)
            && filter.until.is_none_or(|until| mark.shown_at < until)
    })
}
