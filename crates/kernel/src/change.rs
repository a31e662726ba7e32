//! Changes: what each verb of a store does to the rows that it has read.
//!
//! A store reads what a change [`Wants`] into a [`Draft`], calls the verb's function here, and writes back the rows that
//! differ together with the draft's entries. So the rules of writing are here once, for every store; what a store adds is how
//! rows are found and kept.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use punctual_core::journal::{Attempt, Body, EndedRun, Entry, JournalError, PlanEntry, RunChange, World};
use punctual_core::plan::Outage;
use punctual_core::run::{AttemptEnd, Report, Run, RunEvent, RunState, SkipReason, WaitFor};
use punctual_core::schedule::{Face, MaxDelay, Overlap, Schedule, ScheduleState};
use punctual_core::time::SlotKey;
use punctual_core::{Actor, By, NodeId, RunId, ScheduleId, Token, TokenId};

use crate::types::{
    AttemptReport, Cancellation, Decision, Expected, PlanWrite, RunWritten, ScheduleChange, Settlement, Written,
};

/// The most runs whose time is over that one claim answers.
pub const SWEEP_MAX: usize = 1_000;

/// How long nobody has to have had an agent before its runs are given up.
pub const AGENT_GONE_AFTER: SignedDuration = SignedDuration::from_mins(10);

/// What a schedule is known by among people: its face, its project and its name.
pub type Name = (Face, Option<String>, String);

/// The name of a schedule, if it has one.
pub fn name_of(schedule: &Schedule) -> Option<Name> {
    Some((schedule.face, Option::clone(&schedule.project), schedule.name.clone()?))
}

/// What a change has to read. With a run comes its schedule.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wants {
    /// These schedules.
    pub schedules: BTreeSet<ScheduleId>,
    /// These runs.
    pub runs: BTreeSet<RunId>,
    /// The runs of these events.
    pub slots: Vec<(ScheduleId, SlotKey)>,
    /// The planned runs of these schedules: what nobody has taken follows their edits.
    pub planned_of: BTreeSet<ScheduleId>,
    /// The schedules of these names.
    pub names: Vec<Name>,
    /// The runs of these schedules that are at work, or parked.
    pub at_work_of: BTreeSet<ScheduleId>,
    /// Every run.
    pub all_runs: bool,
}

impl Wants {
    /// What has to be there when an entry is taken in.
    pub fn of_entry(body: &Body) -> Wants {
        let of_schedule = |id: ScheduleId| Wants { schedules: [id].into(), ..Wants::default() };
        match body {
            Body::ScheduleChanged { schedule, .. } => {
                Wants { planned_of: [schedule.id].into(), ..of_schedule(schedule.id) }
            }
            Body::ScheduleDeleted { schedule, .. } => of_schedule(*schedule),
            Body::Planned(plan) => {
                let runs = plan.withdrawn.iter().copied().chain(plan.moved.iter().map(|run| run.id));
                Wants { schedules: [plan.schedule].into(), ..Wants::runs(runs) }
            }
            Body::Skipped(skip) => of_schedule(skip.schedule),
            Body::RunAsked { run, .. } => Wants { schedules: run.schedule.into_iter().collect(), ..Wants::default() },
            Body::RunsClaimed { runs, .. } | Body::RunsStarted { runs } => Wants::runs(runs.iter().copied()),
            Body::RunChanged(change) => Wants::runs([change.run]),
            Body::AttemptEnded(attempt) => Wants::runs([attempt.run]),
            Body::Restored { .. } => Wants { all_runs: true, ..Wants::default() },
            Body::PlannerTaken { .. }
            | Body::DayStarted { .. }
            | Body::TokenMade { .. }
            | Body::TokenRevoked { .. }
            | Body::NodeJoined { .. }
            | Body::NodeLeft { .. } => Wants::default(),
        }
    }

    /// Both.
    pub fn extend(&mut self, other: Wants) {
        self.schedules.extend(other.schedules);
        self.runs.extend(other.runs);
        self.slots.extend(other.slots);
        self.planned_of.extend(other.planned_of);
        self.names.extend(other.names);
        self.at_work_of.extend(other.at_work_of);
        self.all_runs |= other.all_runs;
    }

    /// These runs, and their schedules.
    pub fn runs(runs: impl IntoIterator<Item = RunId>) -> Wants {
        Wants { runs: runs.into_iter().collect(), ..Wants::default() }
    }
}

/// A piece of the world that is being changed, and the entries that explain how.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The rows as they are now.
    pub world: World,
    /// What has happened to them, in order.
    pub entries: Vec<Entry>,
    now: Timestamp,
    /// Who asked for what is being done.
    by: Option<By>,
}

impl Draft {
    /// A draft over rows that have been read. `world.seq` is the number of the last entry.
    pub fn new(world: World, now: Timestamp) -> Draft {
        Draft { world, entries: vec![], now, by: None }
    }

    /// Notes who asks for what follows.
    pub fn asked_by(&mut self, by: Option<By>) -> &mut Draft {
        self.by = by;
        self
    }

    /// Makes something happen.
    pub fn add(&mut self, body: Body) -> Result<(), JournalError> {
        let entry = Entry { seq: self.world.seq + 1, at: self.now, body };
        self.world.apply(&entry)?;
        self.entries.push(entry);
        Ok(())
    }

    fn run_event(&mut self, run: &Run, event: RunEvent) -> Result<(), JournalError> {
        let pause = match event {
            RunEvent::Skipped(reason) => {
                let record = run.schedule.and_then(|id| self.world.schedules.get(&id));
                record.and_then(|record| record.schedule.pause_behind(reason)).cloned()
            }
            _ => None,
        };
        let change = RunChange::of(run, event, self.now);
        self.add(Body::RunChanged(RunChange { by: self.by.clone(), pause, ..change }))
    }

    /// The state of a run that was just changed.
    fn state(&self, id: RunId) -> RunWritten {
        let live = self.world.runs.get(&id).map(|run| run.state);
        let ended = || self.entries.iter().rev().filter_map(|entry| entry.body.ended()).find(|(run, _)| *run == id);
        live.or_else(|| ended().map(|(_, state)| state)).map_or(RunWritten::Stale, RunWritten::Done)
    }
}

impl PlanWrite {
    /// The schedule that it is about.
    pub fn schedule(&self) -> ScheduleId {
        match (&self.expected, &self.change, &self.plan) {
            (Expected::At { schedule, .. }, ..) => *schedule,
            (Expected::New, ScheduleChange::Put(schedule), _) => schedule.id,
            (Expected::New, _, Some(plan)) => plan.schedule,
            (Expected::New, _, None) => ScheduleId(uuid::Uuid::nil()),
        }
    }

    /// What has to be read for it.
    pub fn wants(&self) -> Wants {
        let id = self.schedule();
        let plan = self.plan.iter();
        let mut wants = Wants { schedules: [id].into(), ..Wants::default() };
        wants.runs.extend(&self.cancelled);
        for plan in plan {
            wants.runs.extend(&plan.withdrawn);
            wants.runs.extend(plan.moved.iter().map(|run| run.id));
            wants.runs.extend(plan.runs.iter().map(|run| run.id));
            if !plan.runs.is_empty() {
                // A slot that has its run, under whatever id, has no other.
                (wants.planned_of, wants.at_work_of) = ([id].into(), [id].into());
            }
        }
        match &self.change {
            ScheduleChange::None => {}
            ScheduleChange::Put(schedule) => {
                wants.planned_of = [id].into();
                wants.names.extend(name_of(schedule));
            }
            ScheduleChange::Delete { withdrawn, .. } => wants.runs.extend(withdrawn),
        }
        wants
    }
}

/// Carries out a planning decision. After a conflict the draft is of no use any more. `planned_until` is the end of the planner's
/// lease.
pub fn plan(draft: &mut Draft, write: PlanWrite, planned_until: Option<Timestamp>) -> Written {
    let is_due = is_as_expected(&draft.world, &write) && !has_unnoted_outage(draft, &write, planned_until);
    if is_due && try_plan(draft, write).is_ok() {
        return Written::Done;
    }
    Written::Conflict
}

/// Whether a write has slots run as if there was no outage, while nobody has planned for a while and that is not noted yet: what was
/// missed is for catch-up to decide.
fn has_unnoted_outage(draft: &Draft, write: &PlanWrite, planned_until: Option<Timestamp>) -> bool {
    let World { schedules, outages, .. } = &draft.world;
    let record = schedules.get(&write.schedule()).filter(|record| record.schedule.is_active());
    let is_unnoted = record.is_some_and(|record| outages.of(record).is_none());
    let runs = write.plan.iter().flat_map(|plan| &plan.runs);
    is_unnoted
        && outage(planned_until, draft.now).is_some()
        && runs.into_iter().any(|run| run.scheduled_at <= draft.now)
}

fn is_as_expected(world: &World, write: &PlanWrite) -> bool {
    let id = write.schedule();
    let is_named_so = |name: &Name| {
        world.schedules.values().any(|it| it.schedule.id != id && name_of(&it.schedule).as_ref() == Some(name))
    };
    // What was checked for one schedule is written for that one, and its name is nobody else's.
    let is_its_own = match &write.change {
        ScheduleChange::Put(schedule) => schedule.id == id && !name_of(schedule).as_ref().is_some_and(is_named_so),
        ScheduleChange::None | ScheduleChange::Delete { .. } => true,
    };
    let is_planned = write.plan.as_ref().is_none_or(|plan| plan.schedule == id);
    if !is_its_own || !is_planned || write.skips.iter().any(|skip| skip.schedule != id) {
        return false;
    }
    match (&write.expected, world.schedules.get(&id)) {
        (Expected::New, found) => found.is_none(),
        (Expected::At { version, cursor, early, outage, .. }, Some(found)) => {
            let schedule = &found.schedule;
            let is_same = schedule.version == *version && schedule.cursor == *cursor && schedule.early == *early;
            is_same && (write.plan.is_none() || world.outages.of(found) == *outage)
        }
        (Expected::At { .. }, None) => false,
    }
}

fn try_plan(draft: &mut Draft, write: PlanWrite) -> Result<(), JournalError> {
    let id = write.schedule();
    let version = draft.world.schedules.get(&id).map_or(0, |record| record.schedule.version);
    // What was skipped under the version before is written before the new one.
    let (old, new): (Vec<_>, Vec<_>) = write.skips.into_iter().partition(|skip| skip.version == version);
    for skip in old {
        draft.add(Body::Skipped(skip))?;
    }
    let by = write.by.clone();
    match write.change {
        ScheduleChange::None => {}
        ScheduleChange::Put(schedule) => draft.add(Body::ScheduleChanged { schedule, by: write.by })?,
        ScheduleChange::Delete { withdrawn, next_gone } => {
            let record = draft.world.schedules.get(&id).ok_or(JournalError::UnknownSchedule(id))?;
            let plan = PlanEntry { plan_at: None, outage: None, withdrawn, next_gone, ..PlanEntry::unchanged(record) };
            draft.add(Body::Planned(plan))?;
            draft.add(Body::ScheduleDeleted { schedule: id, by: write.by })?;
        }
    }
    for skip in new {
        draft.add(Body::Skipped(skip))?;
    }
    write.plan.map_or(Ok(()), |plan| draft.add(Body::Planned(plan)))?;
    draft.asked_by(by);
    for run in write.cancelled {
        let run = draft.world.runs.get(&run).ok_or(JournalError::UnknownRun(run))?.clone();
        if run.schedule != Some(id) {
            return Err(JournalError::NotIts(run.id));
        }
        if !run.is_untouched() {
            return Err(JournalError::NotPlanned(run.id));
        }
        draft.run_event(&run, RunEvent::Cancelled)?;
    }
    Ok(())
}

/// Whether no node plans: what is due may have been missed by an outage, and that is for catch-up to decide.
pub fn awaits_planning(planned_until: Option<Timestamp>, now: Timestamp) -> bool {
    planned_until.is_none_or(|until| until < now)
}

/// Writes what admission decided about claimed runs.
pub fn settle(draft: &mut Draft, settlements: &[Settlement]) -> Vec<RunWritten> {
    let mut starts = vec![];
    let mut is_stale = vec![];
    for settlement in settlements {
        let held = draft
            .world
            .runs
            .get(&settlement.run)
            .filter(|run| run.epoch() == settlement.epoch && matches!(run.state, RunState::Claimed { .. }));
        let Some(run) = held.cloned().filter(|run| !starts.contains(&run.id)) else {
            is_stale.push(true);
            continue;
        };
        let event = match settlement.decision {
            // Somebody may have paused the schedule since admission looked, and was told that nothing begins any more.
            Decision::Start if let Some(reason) = paused(&draft.world, &run) => RunEvent::Skipped(reason),
            Decision::Start => {
                starts.push(run.id);
                is_stale.push(false);
                continue;
            }
            Decision::Skip(reason) => RunEvent::Skipped(reason),
            Decision::HandBack { due_at, parks } => RunEvent::HandedBack { due_at, parks },
            Decision::Wait { on, wait_until } => RunEvent::Waits { on, wait_until },
        };
        is_stale.push(draft.run_event(&run, event).is_err());
    }
    if !starts.is_empty() {
        draft.add(Body::RunsStarted { runs: starts }).expect("each of them is claimed");
    }
    let answer = |(settlement, is_stale): (&Settlement, bool)| {
        if is_stale { RunWritten::Stale } else { draft.state(settlement.run) }
    };
    settlements.iter().zip(is_stale).map(answer).collect()
}

/// Why a run may not begin although it was let in: what [`punctual_core::plan::admit`] says of a pause.
fn paused(world: &World, run: &Run) -> Option<SkipReason> {
    let record = run.schedule.and_then(|id| world.schedules.get(&id))?;
    let goes_on = run.key.is_manual() || matches!(run.state, RunState::Claimed { resumes: true, .. });
    match &record.schedule.state {
        ScheduleState::Paused(pause) if !goes_on => Some(pause.kind.skip_reason()),
        _ => None,
    }
}

/// Writes how attempts ended. `ended` knows of runs that are over.
pub fn finish(
    draft: &mut Draft,
    reports: Vec<AttemptReport>,
    ended: impl Fn(&Draft, RunId) -> Option<EndedRun>,
) -> Vec<RunWritten> {
    reports.into_iter().map(|report| finish_one(draft, report, &ended)).collect()
}

fn finish_one(
    draft: &mut Draft,
    report: AttemptReport,
    ended: impl Fn(&Draft, RunId) -> Option<EndedRun>,
) -> RunWritten {
    let AttemptReport { run: id, epoch, event, report } = report;
    let same_again = |end: Option<AttemptEnd>| {
        let end = end.filter(|end| end.epoch == epoch)?;
        let is_same = end.digest == Attempt::digest(&event, &report);
        Some(if is_same { RunWritten::Done(end.state) } else { RunWritten::Stale })
    };
    let Some(run) = draft.world.runs.get(&id).cloned() else {
        return ended(draft, id).and_then(|ended| same_again(ended.last_end)).unwrap_or(RunWritten::Stale);
    };
    if let Some(written) = same_again(run.last_end) {
        return written;
    }
    // A run that went back keeps its epoch, and is nobody's all the same.
    let is_held = !matches!(run.state, RunState::Planned { .. } | RunState::Finished { .. });
    if !is_held || run.epoch() != epoch {
        return RunWritten::Stale;
    }
    let is_running = matches!(run.state, RunState::Running { .. });
    let written = match event {
        RunEvent::Succeeded => {
            let next = report.next_run.zip(report.next_run_at);
            end_attempt(draft, &run, event, report).inspect(|()| ask_for_next(draft, &run, next))
        }
        RunEvent::Failed { .. } | RunEvent::Cancelled => end_attempt(draft, &run, event, report),
        // It had begun: its own node had to stop it, or never heard of it and does not know how far it came.
        RunEvent::OwnerLost { .. } | RunEvent::Stopped { .. } if is_running => end_attempt(draft, &run, event, report),
        // Nothing has been tried, or it goes on later: that is no end of an attempt.
        RunEvent::HandedBack { .. } | RunEvent::Waits { .. } => draft.run_event(&run, event),
        // What happens to a run without its node is not its node's to report.
        RunEvent::Claimed { .. }
        | RunEvent::Started
        | RunEvent::Skipped(_)
        | RunEvent::Resumed { .. }
        | RunEvent::WaitExpired { .. }
        | RunEvent::OwnerLost { .. }
        | RunEvent::Stopped { .. }
        | RunEvent::CancelAsked
        | RunEvent::Kept
        | RunEvent::Parked => return RunWritten::Stale,
    };
    if written.is_ok() { draft.state(id) } else { RunWritten::Stale }
}

/// Writes the end of an attempt that was counted.
fn end_attempt(draft: &mut Draft, run: &Run, event: RunEvent, report: Report) -> Result<(), JournalError> {
    draft.add(Body::AttemptEnded(Box::new(Attempt::of(run, event, report, draft.now))))
}

/// Adds the run that another asks for when it is done, unless its schedule has come to its end.
fn ask_for_next(draft: &mut Draft, run: &Run, next: Option<(RunId, Timestamp)>) {
    let record = run.schedule.and_then(|id| draft.world.schedules.get(&id));
    let (Some((id, at)), Some(record)) = (next, record) else { return };
    let schedule = &record.schedule;
    let is_over = schedule.bounds.max_runs().is_some_and(|max| max <= schedule.runs_started);
    if is_over || matches!(schedule.state, ScheduleState::Ended(_)) {
        return;
    }
    let of = Some((schedule.id, schedule.version));
    let next = Run::asked(id, of, SlotKey::next_of(run.id), at, Arc::clone(&run.terms));
    let by = Some(By::new(Actor::Run { run: run.id }));
    // Its id is new, and so is its key: a run is done once.
    draft.add(Body::RunAsked { run: Box::new(next), by }).ok();
}

/// Cancels a run that is not over.
pub fn cancel(draft: &mut Draft, id: RunId) -> Option<Cancellation> {
    let run = draft.world.runs.get(&id)?.clone();
    Some(match run.state {
        RunState::Running { .. } => {
            if !run.is_cancelling {
                draft.run_event(&run, RunEvent::CancelAsked).expect("a run at work can be asked to stop");
            }
            Cancellation::Asked
        }
        _ => {
            draft.run_event(&run, RunEvent::Cancelled).expect("a run that is not over can be cancelled");
            Cancellation::Done
        }
    })
}

/// Adds a run that an event or a person requests. Whether it is new. `ended` is the run of its id that is over.
pub fn ask(draft: &mut Draft, run: Run, ended: Option<&EndedRun>) -> Result<bool, JournalError> {
    let has_key = |other: &Run| other.schedule == run.schedule && other.key == run.key;
    if draft.world.live_runs().any(has_key) {
        return Ok(false);
    }
    if let Some(ended) = ended {
        let is_same = ended.schedule == run.schedule && ended.key == run.key;
        return if is_same { Ok(false) } else { Err(JournalError::DuplicateRun(run.id)) };
    }
    draft.add(Body::RunAsked { run: Box::new(run), by: draft.by.clone() })?;
    Ok(true)
}

/// Makes a token.
pub fn make_token(draft: &mut Draft, token: Token) -> Result<(), JournalError> {
    draft.add(Body::TokenMade { token: Box::new(token), by: draft.by.clone() })
}

/// Takes a token back. Whether it was there.
pub fn revoke_token(draft: &mut Draft, token: TokenId) -> bool {
    draft.add(Body::TokenRevoked { token, by: draft.by.clone() }).is_ok()
}

/// Lets a run that waits go on.
pub fn resume(draft: &mut Draft, id: RunId, epoch: Option<u64>) -> RunWritten {
    let is_meant = |run: &&Arc<Run>| epoch.is_none_or(|epoch| run.epoch() == epoch);
    let Some(run) = draft.world.runs.get(&id).filter(is_meant).cloned() else { return RunWritten::Stale };
    let at = draft.now;
    match draft.run_event(&run, RunEvent::Resumed { at }) {
        Ok(()) => draft.state(id),
        Err(_) => RunWritten::Stale,
    }
}

/// Runs whose time is over.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overdue {
    /// Planned runs that are too late to be begun, by the end of their time and id; with each, whether it waits for a place.
    pub expired: Vec<(RunId, bool)>,
    /// Planned runs that are due and whose agent nobody has any more.
    pub agent_gone: Vec<RunId>,
    /// Planned runs that are due while another of their schedule is at work, by time and id, with their schedules.
    pub overlapping: Vec<(RunId, ScheduleId)>,
    /// Runs that have waited long enough for something else.
    pub waited: Vec<RunId>,
}

impl Overdue {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.expired.len() + self.agent_gone.len() + self.overlapping.len() + self.waited.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What has to be read for them.
    pub fn wants(&self) -> Wants {
        let expired = self.expired.iter().map(|(id, _)| *id);
        let overlapping = self.overlapping.iter().map(|(id, _)| *id);
        let others = self.agent_gone.iter().chain(&self.waited).copied();
        let at_work_of = self.overlapping.iter().map(|(_, schedule)| *schedule).collect();
        Wants { at_work_of, ..Wants::runs(expired.chain(overlapping).chain(others)) }
    }
}

/// What a sweep did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// How many runs it gave an answer.
    pub answers: usize,
    /// Whether runs at work were called off for others.
    pub has_replaced: bool,
}

/// Answers runs whose time is over, and those that find another at work.
pub fn sweep(draft: &mut Draft, overdue: &Overdue) -> Swept {
    let now = draft.now;
    let mut swept = Swept::default();
    for (id, waits_for_place) in &overdue.expired {
        swept.answers += sweep_one(draft, *id, |run| too_late(run, *waits_for_place));
    }
    for id in &overdue.agent_gone {
        swept.answers += sweep_one(draft, *id, |_| RunEvent::Skipped(SkipReason::AgentRemoved));
    }
    for (id, _) in &overdue.overlapping {
        let Some(run) = draft.world.runs.get(id).cloned() else { continue };
        // What it found at work may have been called off by the one before.
        if draft.world.overlaps(&run) {
            swept.has_replaced |= overlap(draft, &run);
            swept.answers += 1;
        }
    }
    for id in &overdue.waited {
        // It may have been called off for another.
        let waits = |run: &&Arc<Run>| matches!(run.state, RunState::Waiting { .. });
        if let Some(run) = draft.world.runs.get(id).filter(waits).cloned() {
            let event = RunEvent::WaitExpired { at: now };
            // What was never approved has not been tried.
            let is_tried = !matches!(run.state, RunState::Waiting { on: WaitFor::Approval, .. });
            let written = if is_tried {
                end_attempt(draft, &run, event, Report::default())
            } else {
                draft.run_event(&run, event)
            };
            written.expect("what is swept here waits");
            swept.answers += 1;
        }
    }
    swept
}

/// Answers a planned run that finds another of its schedule at work. Whether others are called off for it.
fn overlap(draft: &mut Draft, run: &Run) -> bool {
    let event = match paused(&draft.world, run) {
        Some(reason) => RunEvent::Skipped(reason),
        None if run.terms.overlap == Overlap::Replace => RunEvent::Parked,
        None => RunEvent::Skipped(SkipReason::Overlap),
    };
    draft.run_event(run, event).expect("it is planned");
    if event != RunEvent::Parked {
        return false;
    }
    0 < replace(draft, [run])
}

/// Cancels the runs that others replace: those of their schedules that became due before them and are at work, or wait to replace
/// others themselves. How many.
pub fn replace<'a>(draft: &mut Draft, newer: impl IntoIterator<Item = &'a Run>) -> usize {
    let mut count = 0;
    for run in newer {
        let is_replaced = |other: &&Run| other.schedule == run.schedule && other.is_replaced_by(run);
        let replaced: Vec<RunId> = draft.world.live_runs().filter(is_replaced).map(|other| other.id).collect();
        for id in &replaced {
            cancel(draft, *id);
        }
        count += replaced.len();
    }
    count
}

fn too_late(run: &Run, waits_for_place: bool) -> RunEvent {
    match run.terms.max_delay {
        // It was there on its day, and only found no place.
        MaxDelay::Day if waits_for_place => RunEvent::Kept,
        MaxDelay::Day => RunEvent::Skipped(SkipReason::DayEnded),
        MaxDelay::Duration(_) | MaxDelay::None => RunEvent::Skipped(SkipReason::Late),
    }
}

/// Gives a planned run an answer. How many answers that were: it may be overdue in two ways, and have one.
fn sweep_one(draft: &mut Draft, id: RunId, event: impl Fn(&Run) -> RunEvent) -> usize {
    let Some(run) = draft.world.runs.get(&id).cloned() else { return 0 };
    draft.run_event(&run, event(&run)).expect("what is swept is planned");
    1
}

/// Takes the runs of a node away from it: it is dead, or it stops.
pub fn take_away(draft: &mut Draft, node: NodeId, owned: &[RunId], is_lost: bool) {
    let now = draft.now;
    for id in owned {
        let Some(run) = draft.world.runs.get(id).cloned() else { continue };
        match run.state {
            RunState::Claimed { .. } if !is_lost => {
                let due_at = run.due_at.min(now);
                draft.run_event(&run, RunEvent::HandedBack { due_at, parks: false }).expect("it is claimed");
            }
            RunState::Claimed { .. } | RunState::Running { .. } => {
                let event = if is_lost { RunEvent::OwnerLost { at: now } } else { RunEvent::Stopped { at: now } };
                end_attempt(draft, &run, event, Report::default()).expect("a node has it");
            }
            _ => {}
        }
    }
    draft.add(Body::NodeLeft { node, is_lost }).expect("a node may leave at any time");
}

/// The most claims of one run between two restorations: one each second for twelve days.
const CLAIMS_MAX: u64 = 1 << 20;

/// A floor above every epoch that was given while `floor` was the highest that anybody knows of.
///
/// An epoch goes up with a claim, a clock with every millisecond; but a clock can be set back.
pub fn raised_floor(floor: u64, now: Timestamp) -> u64 {
    floor.saturating_add(CLAIMS_MAX).max(u64::try_from(now.as_millisecond()).unwrap_or(0))
}

/// The outage that taking the planner's lease over reveals: nobody had it between its end and now.
pub fn outage(ended_at: Option<Timestamp>, now: Timestamp) -> Option<Outage> {
    let from = ended_at.filter(|ended_at| *ended_at < now)?;
    Some(Outage { from, until: now, kept: None })
}
