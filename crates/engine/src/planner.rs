//! The planner: decides what starts do not. Outages, other zone data, the ends of pauses and of schedules.
//!
//! Slots that are due are decided by the start that first looks at them ([`punctual_kernel::due`]); the planner decides those that
//! no start has come to.
//!
//! In: schedules whose time to be planned has come. Out: [`PlanWrite`]s. The decisions are `core/plan`'s; correctness is the
//! store's, which refuses a write that is based on an old reading. The planner's lease only says who runs the loop.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use punctual_core::plan::pass;
use punctual_core::schedule::{EndReason, Schedule, ScheduleState, Trigger};
use punctual_core::time::Timetable;
use punctual_core::{NodeId, ScheduleId};
use punctual_kernel::due::next_of;
use punctual_store::{PlanTask, PlanWrite, Result, ScheduleChange, Store, Written};
use tracing::{error, info, warn};

use crate::batch;
use crate::edit::Editor;
use crate::ids::Ids;
use crate::planner_lease::Term;
use crate::recovery::{Recovered, Recovering};
use crate::replan::{self, PlanBase, planning};
use crate::settings::Settings;

/// The most schedules that one tick plans.
pub const PAGE_MAX: usize = 200;

/// A restart takes this long at most; more is worth a warning.
const SHORT_OUTAGE: SignedDuration = SignedDuration::from_secs(60);

/// How long slots that are due are left to starts.
const STARTS_FIRST: SignedDuration = SignedDuration::from_secs(1);

/// How long a schedule rests that cannot be compiled: its zone or calendar is missing.
const BROKEN_REST: SignedDuration = SignedDuration::from_mins(10);

/// How long planning rests when a schedule can neither be planned nor put off.
const REFUSED_REST: SignedDuration = SignedDuration::from_secs(5);

/// How long planning rests when somebody else was faster.
const CONFLICT_REST: SignedDuration = SignedDuration::from_millis(20);

/// Plans, as long as its node has the planner's lease.
pub struct Planner {
    store: Arc<dyn Store>,
    ids: Arc<dyn Ids>,
    settings: Arc<Settings>,
    node: NodeId,
    recovering: Recovering,
    next_midnight: Option<Timestamp>,
    /// Schedules whose last write was a conflict: they are planned with a look at every run that stands.
    careful: BTreeSet<ScheduleId>,
    /// When the outages of schedules end, where that was later than the last look: it is repeated before they are caught up.
    ends_later: BTreeMap<ScheduleId, Timestamp>,
    /// Whether it planned when it looked last.
    is_planner: bool,
    term: Arc<Term>,
}

/// What a look at the schedules brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planned {
    /// Whether this node plans.
    pub is_planner: bool,
    /// Whether plans were written, so that there may be something to claim.
    pub wrote: bool,
    /// Whether it began to plan just now, so that claims need not wait for that any more.
    pub has_begun: bool,
    /// When to look again, unless something changes before.
    pub wake_at: Timestamp,
}

/// What was decided for one schedule.
enum Decided {
    /// This is to be written.
    Write(Box<PlanWrite>),
    /// An outage is made up for; its runs have to find their places among those of other schedules.
    Recovered(Box<Recovered>),
    /// It cannot be planned: it rests.
    Failed,
    /// Its outage ends after this look: the next one tells whether this one took too long, or a clock was set back.
    Later,
}

impl Planner {
    /// A planner for a node.
    pub fn new(store: Arc<dyn Store>, ids: Arc<dyn Ids>, settings: Arc<Settings>, node: NodeId) -> Planner {
        let recovering = Recovering::new(settings.max_recovery_catch_ups);
        Planner {
            store,
            ids,
            settings,
            node,
            recovering,
            next_midnight: None,
            careful: BTreeSet::new(),
            ends_later: BTreeMap::new(),
            is_planner: false,
            term: Arc::default(),
        }
    }

    /// The same, telling a term whether it has the lease.
    #[must_use]
    pub fn with_term(self, term: Arc<Term>) -> Planner {
        Planner { term, ..self }
    }

    /// Does what is to be done now, within bounds, and says when to look again.
    pub async fn tick(&mut self, now: Timestamp) -> Result<Planned> {
        let lease = self.store.take_planner(&self.settings.sign(self.node, now, 0)).await?;
        self.term.holds(lease.is_held);
        let was_planner = std::mem::replace(&mut self.is_planner, lease.is_held);
        let has_begun = lease.is_held && !was_planner;
        if !lease.is_held {
            let wake_at = self.poll_at(now).min(later(lease.until, SignedDuration::from_secs(2)));
            return Ok(Planned { is_planner: false, wrote: false, has_begun, wake_at });
        }
        if let Some(outage) = lease.outage {
            let length = outage.until.duration_since(outage.from);
            if length < SHORT_OUTAGE {
                info!(from = %outage.from, until = %outage.until, "nobody planned for {length:#}: catching up");
            } else {
                warn!(from = %outage.from, until = %outage.until, "nobody planned for {length:#}: catching up");
            }
        }
        self.begin_days(now).await?;
        let due = now.checked_sub(STARTS_FIRST).unwrap_or(Timestamp::MIN);
        let tasks = self.store.to_plan(due, self.settings.zones.version(), PAGE_MAX).await?;
        let is_full = tasks.len() == PAGE_MAX;
        if tasks.iter().all(|task| task.record.outage.is_none()) {
            // The next outage has all its places again.
            self.recovering = Recovering::new(self.settings.max_recovery_catch_ups);
        }
        let (mut writes, mut recovered, mut rests) = (vec![], vec![], BTreeMap::new());
        let mut is_old = false;
        for task in tasks {
            let rest = PlanBase::new(&task.record, &self.settings).rests_until(later(now, BROKEN_REST));
            rests.insert(task.record.schedule.id, rest.clone());
            match self.decide(task, now).await? {
                Some(Decided::Write(write)) => writes.push(*write),
                Some(Decided::Recovered(it)) => recovered.push(*it),
                Some(Decided::Failed) => writes.push(rest),
                Some(Decided::Later) => is_old = true,
                None => {}
            }
        }
        writes.extend(self.recovering.writes(recovered, now));
        let has_rest = writes.iter().any(|write| write.plan.as_ref().is_some_and(|plan| plan.outage.is_some()));
        let written = self.write(&writes, &mut rests, now).await?;
        let wrote = written.iter().any(Option::is_some);
        // What can neither be planned nor put off is due again at once: then there is time for others in between.
        let rest = if written.contains(&None) { REFUSED_REST } else { SignedDuration::ZERO };
        let ids = writes.iter().map(PlanWrite::schedule);
        self.careful = ids.zip(&written).filter(|(_, it)| **it == Some(Written::Conflict)).map(|(id, _)| id).collect();
        if !self.careful.is_empty() || is_old {
            return Ok(Planned { is_planner: true, wrote, has_begun, wake_at: later(now, CONFLICT_REST) });
        }
        if is_full || has_rest {
            return Ok(Planned { is_planner: true, wrote, has_begun, wake_at: later(now, rest) });
        }
        let mut wake_at = self.poll_at(now);
        if let Some(plan_at) = self.store.next_plan_at().await? {
            // What was just planned may be due for planning again at once, but never without end.
            let earliest = later(now, if wrote { rest } else { rest.max(SignedDuration::from_millis(1)) });
            wake_at = wake_at.min(later(plan_at, STARTS_FIRST).max(earliest));
        }
        let wake_at = self.next_midnight.map_or(wake_at, |midnight| wake_at.min(midnight.max(now)));
        Ok(Planned { is_planner: true, wrote, has_begun, wake_at })
    }

    /// Writes plans. A schedule whose plan the store refuses rests, and holds up none of the others; none is written where even that
    /// is refused.
    async fn write(
        &self,
        writes: &[PlanWrite],
        rests: &mut BTreeMap<ScheduleId, PlanWrite>,
        now: Timestamp,
    ) -> Result<Vec<Option<Written>>> {
        if writes.is_empty() {
            return Ok(vec![]);
        }
        let mut answers = Vec::with_capacity(writes.len());
        let written = batch::write(writes, |writes| self.store.plan(now, writes)).await?;
        for (write, written) in writes.iter().zip(written) {
            let Err(error) = &written else {
                answers.push(written.ok());
                continue;
            };
            let id = write.schedule();
            error!(schedule.id = %id, "the plan of schedule {id} cannot be stored: {}", batch::in_words(error));
            let Some(rest) = rests.remove(&id) else {
                answers.push(None);
                continue;
            };
            match self.store.plan(now, vec![rest]).await {
                Ok(written) => answers.push(written.into_iter().next()),
                Err(error) if error.is_lasting() => answers.push(None),
                Err(error) => return Err(error),
            }
        }
        Ok(answers)
    }

    /// What one schedule needs.
    async fn decide(&mut self, task: PlanTask, now: Timestamp) -> Result<Option<Decided>> {
        let schedule = Arc::clone(&task.record.schedule);
        if schedule.paused_until().is_some_and(|until| until <= now) {
            return self.end_pause(&schedule, now).await;
        }
        let timetable = match unless_it_panics(schedule.id, || self.settings.timetables().of(&schedule)) {
            Some(Ok(timetable)) => timetable,
            Some(Err(problem)) => {
                error!(schedule.id = %schedule.id, %problem, "schedule {} cannot be planned", schedule.id);
                return Ok(Some(Decided::Failed));
            }
            None => return Ok(Some(Decided::Failed)),
        };
        let zone_data = self.settings.zones.version();
        if let Some(outage) = task.record.outage {
            // What it has missed after `now` would be decided as if there was no outage.
            if now < outage.until && self.ends_later.insert(schedule.id, outage.until) != Some(outage.until) {
                return Ok(Some(Decided::Later));
            }
            self.ends_later.remove(&schedule.id);
            let Some(subject) = self.store.subject(schedule.id, now).await? else { return Ok(None) };
            let recover = || Recovered::new(&subject, &timetable, &self.settings, now);
            let recovered = unless_it_panics(schedule.id, recover);
            let decided = |recovered: Option<Recovered>| Some(Decided::Recovered(Box::new(recovered?)));
            return Ok(recovered.map_or(Some(Decided::Failed), decided));
        }
        if *task.record.zone_data != *zone_data || self.careful.contains(&schedule.id) {
            let Some(subject) = self.store.subject(schedule.id, now).await? else { return Ok(None) };
            info!(schedule.id = %schedule.id, "planning schedule {} again with zone data {zone_data}", schedule.id);
            let cursor = schedule.cursor.clone();
            let replan = || replan::write(&subject, None, cursor, &timetable, &self.settings, now);
            let write = unless_it_panics(schedule.id, replan);
            return Ok(Some(write.map_or(Decided::Failed, |write| Decided::Write(Box::new(write)))));
        }
        let write = unless_it_panics(schedule.id, || self.planned(&task, &timetable, now));
        Ok(Some(write.map_or(Decided::Failed, |write| Decided::Write(Box::new(write)))))
    }

    /// The slots of a schedule whose time to be planned has come.
    fn planned(&self, task: &PlanTask, timetable: &Timetable, now: Timestamp) -> PlanWrite {
        let schedule = &task.record.schedule;
        let planning = planning(schedule, timetable, task.waiting);
        let passed = pass(&planning, &schedule.cursor, now);
        let ended = end_of(schedule, task, passed.is_over());
        let base = PlanBase::new(&task.record, &self.settings);
        let mut write = base.passed(&planning, &passed, next_of(&planning).as_ref(), now);
        if let Some(reason) = ended {
            let name = schedule.name.clone().unwrap_or_else(|| schedule.id.to_string());
            info!(schedule.id = %schedule.id, ?reason, "schedule {name} is over");
            let ended = Schedule { state: ScheduleState::Ended(reason), ..(**schedule).clone() };
            write.change = ScheduleChange::Put(Box::new(ended));
        }
        write
    }

    /// Ends a pause whose time has come.
    async fn end_pause(&self, schedule: &Schedule, now: Timestamp) -> Result<Option<Decided>> {
        let Some(subject) = self.store.subject(schedule.id, now).await? else { return Ok(None) };
        let editor = Editor::new(Arc::clone(&self.store), Arc::clone(&self.ids), Arc::clone(&self.settings));
        match unless_it_panics(schedule.id, || editor.end_pause(&subject, now)) {
            Some(Ok(write)) => {
                let name = schedule.name.clone().unwrap_or_else(|| schedule.id.to_string());
                info!(schedule.id = %schedule.id, "the pause of schedule {name} has ended");
                Ok(Some(Decided::Write(Box::new(write))))
            }
            Some(Err(problem)) => {
                error!(schedule.id = %schedule.id, %problem, "the pause of schedule {} cannot be ended", schedule.id);
                Ok(Some(Decided::Failed))
            }
            None => Ok(Some(Decided::Failed)),
        }
    }

    /// Notes each day that has begun in a zone, once.
    async fn begin_days(&mut self, now: Timestamp) -> Result<()> {
        if self.next_midnight.is_some_and(|midnight| now < midnight) {
            return Ok(());
        }
        let mut next: Option<Timestamp> = None;
        for zone_day in self.store.zone_days().await? {
            // A zone that this zone data does not know is its schedules' problem, and told there.
            let Ok(zone) = self.settings.zones.get(&zone_day.zone) else { continue };
            let today = zone.day_of(now);
            if zone_day.begun.is_none_or(|begun| begun < today) && self.store.begin_day(now, zone.name(), today).await?
            {
                info!(zone = zone.name(), "the day {today} has begun in {}", zone.name());
            }
            let ends_at = zone.day_end(today);
            next = Some(next.map_or(ends_at, |next| next.min(ends_at)));
        }
        // A schedule with a new zone is noticed within the hour, and planned at once all the same.
        self.next_midnight = Some(next.unwrap_or(Timestamp::MAX).min(later(now, SignedDuration::from_hours(1))));
        Ok(())
    }

    /// No rest is longer.
    pub fn poll(&self) -> SignedDuration {
        self.settings.poll.duration()
    }

    fn poll_at(&self, now: Timestamp) -> Timestamp {
        later(now, self.poll())
    }

    /// A schedule has been written: its zone may be new.
    pub fn schedules_changed(&mut self) {
        self.next_midnight = None;
    }
}

/// What is decided about one schedule; `None` if deciding panics. That is a bug, and one schedule's: the others are planned.
fn unless_it_panics<T>(id: ScheduleId, decide: impl FnOnce() -> T) -> Option<T> {
    let decided = catch_unwind(AssertUnwindSafe(decide));
    decided
        .inspect_err(|_| error!(schedule.id = %id, "planning schedule {id} has failed; this is a bug in Punctual"))
        .ok()
}

/// Why a schedule is over, if it is: time brings nothing more, or all its runs have started, and none of them lives.
fn end_of(schedule: &Schedule, task: &PlanTask, is_over: bool) -> Option<EndReason> {
    if task.live != 0 || !schedule.is_active() || matches!(*schedule.trigger, Trigger::OnEvent(_)) {
        return None;
    }
    if schedule.bounds.max_runs().is_some_and(|max| max <= schedule.runs_started) {
        return Some(EndReason::MaxRuns);
    }
    is_over.then_some(EndReason::Done)
}

pub(crate) fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}
