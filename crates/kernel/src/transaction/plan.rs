//! Plans, and runs as people touch them.

use jiff::Timestamp;
use jiff::civil::Date;
use punctual_core::journal::{Body, EndedRun};
use punctual_core::run::Run;
use punctual_core::{By, RunId};

use super::{Needs, Transaction};
use crate::change::{self, Draft, Wants};
use crate::error::{KernelError, Result};
use crate::types::{Answered, Cancellation, PlanWrite, RunWritten, Written};

/// What has to be read before a run can be requested.
pub fn needs_of_ask(run: &Run, by: Option<&By>) -> Needs {
    Needs { runs: [run.id].into(), keys: event_key(run).into_iter().collect(), ..Needs::default() }.asked_by(by)
}

/// What an event is known again by for a while, so that it has one run.
pub fn event_key(run: &Run) -> Option<String> {
    let schedule = run.schedule.filter(|_| run.key.is_event())?;
    Some(format!("{schedule}/{}", run.key))
}

impl Transaction<'_> {
    /// Carries out planning decisions, each whole or not at all. If one of the requests was carried out before, none is.
    pub fn plan_all(&mut self, now: Timestamp, writes: &[PlanWrite]) -> Result<Vec<Written>> {
        writes.iter().try_for_each(|write| self.refuse_repeated(write.by.as_ref()))?;
        writes.iter().map(|write| self.plan(now, write.clone())).collect()
    }

    fn plan(&mut self, now: Timestamp, write: PlanWrite) -> Result<Written> {
        self.refuse_repeated(write.by.as_ref())?;
        let (by, subject) = (write.by.clone(), write.schedule().0);
        let mut draft = self.draft(&write.wants(), now);
        let before = draft.world.clone();
        let written = change::plan(&mut draft, write, self.cluster.planner.map(|planner| planner.until));
        if written == Written::Done {
            self.note_agents(&draft, now);
            self.save(before, draft);
            self.note_answer(by.as_ref(), subject, now);
        }
        Ok(written)
    }

    /// Notes that a day has begun in a zone. Whether this is the first to say so.
    pub fn begin_day(&mut self, now: Timestamp, zone: &str, date: Date) -> bool {
        let mut draft = self.draft(&Wants::default(), now);
        let before = draft.world.clone();
        let is_first = draft.add(Body::DayStarted { zone: zone.to_owned(), date }).is_ok();
        if is_first {
            self.save(before, draft);
        }
        is_first
    }

    /// Adds a run that an event or a person requests. Whether it is new.
    pub fn ask(&mut self, now: Timestamp, run: Run, by: Option<By>) -> Result<bool> {
        self.refuse_repeated(by.as_ref())?;
        let (id, key) = (run.id, event_key(&run));
        let slots = run.schedule.map(|schedule| (schedule, run.key.clone())).into_iter().collect();
        let schedules = run.schedule.into_iter().collect();
        let mut draft = self.draft(&Wants { schedules, runs: [id].into(), slots, ..Wants::default() }, now);
        let before = draft.world.clone();
        let ended = self.ended(id);
        let is_known = key.as_ref().is_some_and(|key| self.found.answers.contains_key(key));
        let is_new = !is_known && change::ask(draft.asked_by(by.clone()), run, ended.as_ref())?;
        self.note_agents(&draft, now);
        self.save(before, draft);
        self.note_answer(by.as_ref(), id.0, now);
        if let Some(key) = key.filter(|_| is_new) {
            self.put_answer(key, Answered { digest: 0, subject: id.0, at: now });
        }
        Ok(is_new)
    }

    /// Cancels a run; one that is at work is asked to stop.
    pub fn cancel(&mut self, now: Timestamp, id: RunId, by: Option<By>) -> Result<Cancellation> {
        self.refuse_repeated(by.as_ref())?;
        let cancel = |draft: &mut Draft| change::cancel(draft.asked_by(by.clone()), id);
        let over = |ended: EndedRun| Cancellation::Over(ended.end.outcome);
        let cancelled = self.change(&Wants::runs([id]), now, cancel).or_else(|| self.ended(id).map(over));
        let cancelled = cancelled.ok_or_else(|| KernelError::NotFound { what: "run", id: id.to_string() })?;
        self.note_answer(by.as_ref(), id.0, now);
        Ok(cancelled)
    }

    /// Lets a run that waits go on.
    pub fn resume(&mut self, now: Timestamp, id: RunId, epoch: Option<u64>, by: Option<By>) -> Result<RunWritten> {
        self.refuse_repeated(by.as_ref())?;
        let resume = |draft: &mut Draft| change::resume(draft.asked_by(by.clone()), id, epoch);
        let written = self.change(&Wants::runs([id]), now, resume);
        if written != RunWritten::Stale {
            self.note_answer(by.as_ref(), id.0, now);
        }
        Ok(written)
    }

    /// An agent counts as seen when the first run for it is planned: its nodes may be on their way.
    pub(super) fn note_agents(&mut self, draft: &Draft, now: Timestamp) {
        for run in draft.world.runs.values().filter(|run| run.planned_for().is_some()) {
            let agent = run.terms.work.agent();
            if !self.cluster.agents_seen.contains_key(agent) {
                self.cluster.agents_seen.insert(agent.to_owned(), now);
                self.changes.agents_named.insert(agent.to_owned(), now);
            }
        }
    }
}
