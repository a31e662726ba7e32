//! The ledgers: what the world outside the store knows, and what it makes of each commit.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_core::journal::{Body, Entry, SkipEntry, World};
use punctual_core::plan::Limits;
use punctual_core::run::Run;
use punctual_core::time::Zones;
use punctual_core::{RunId, ScheduleId};
use punctual_store::compare::differences;
use punctual_store::memory::State;

use crate::acks::Acks;
use crate::invariants::effects::Effects;
use crate::invariants::life::Lives;
use crate::invariants::ownership::Nodes;
use crate::invariants::slots::Slots;
use crate::invariants::{Check, Violation, caps, ensure, events, touched};
use crate::lost::Stretch;
use crate::setup::Setup;
use crate::timeline::Group;

/// The whole world is compared with the rows once in so many commits; what a commit touched, every time.
const COMPARE_EVERY: u64 = 256;

/// The base and the entries behind it are folded once in so many commits.
const FOLD_EVERY: u64 = 4_096;

/// Who made a commit, and when.
#[derive(Debug, Clone)]
pub(crate) struct Moment {
    pub(crate) group: Group,
    pub(crate) zones: Arc<Zones>,
    /// What the store's clock showed, where it has one of its own.
    pub(crate) now: Option<Timestamp>,
    pub(crate) boot: Duration,
    /// Whether it is a node that starts runs.
    pub(crate) is_start: bool,
}

/// What the world outside the store knows.
pub(crate) struct Ledger {
    /// The journal, folded a second time.
    pub(crate) world: World,
    pub(crate) lives: Lives,
    pub(crate) slots: Slots,
    pub(crate) nodes: Nodes,
    pub(crate) effects: Effects,
    pub(crate) acks: Acks,
    limits: Arc<Limits>,
    is_shared: bool,
    commits: u64,
    /// What is written while a standby lags.
    stretch: Option<Stretch>,
    /// The highest epoch floor of what was lost, if anything was: epochs above it may have been given.
    lost_floor: Option<u64>,
}

/// What a standby knows.
pub(crate) struct Kept {
    world: World,
    lives: Lives,
    slots: Slots,
    nodes: Nodes,
}

impl Ledger {
    pub(crate) fn new(setup: &Setup) -> Ledger {
        Ledger {
            world: World::default(),
            lives: Lives::default(),
            slots: Slots::new(setup.calendars.clone(), patience(setup)),
            nodes: Nodes::default(),
            effects: Effects::default(),
            acks: Acks::default(),
            limits: Arc::clone(&setup.limits),
            is_shared: !setup.is_exclusive,
            commits: 0,
            stretch: None,
            lost_floor: None,
        }
    }

    /// A standby gets nothing more: this is what it has.
    pub(crate) fn keep(&mut self) -> Kept {
        self.stretch = Some(Stretch::default());
        let Ledger { world, lives, slots, nodes, .. } = self;
        Kept { world: world.clone(), lives: lives.clone(), slots: slots.clone(), nodes: nodes.clone() }
    }

    /// The standby is of no use any more.
    pub(crate) fn keeps_all(&mut self) {
        self.stretch = None;
    }

    /// Forgets what was written since. Work that was begun because of it has ended at `ends_by`.
    pub(crate) fn go_back(&mut self, kept: Kept, ends_by: Duration) {
        let lost = self.stretch.take().unwrap_or_default();
        self.nodes.go_back(&kept.nodes, ends_by);
        self.lost_floor = self.lost_floor.max(Some(self.world.epoch_floor));
        self.effects.forget(&lost, &self.nodes, ends_by);
        self.acks.forget(lost, &kept.world);
        (self.world, self.lives, self.slots) = (kept.world, kept.lives, kept.slots);
    }

    /// Takes in what a call has written, if anything.
    pub(crate) fn observe(&mut self, state: &State, moment: &Moment, tell: impl Fn(fmt::Arguments<'_>)) -> Check {
        if state.world.seq == self.world.seq {
            return Ok(());
        }
        let written = state.entries.iter().rev().take_while(|entry| self.world.seq < entry.seq).count();
        let entries = &state.entries[state.entries.len() - written..];
        let (mut runs, mut schedules) = (BTreeSet::new(), BTreeSet::new());
        for entry in entries {
            tell(format_args!("p{} #{} {}", moment.group, entry.seq, Told(&entry.body)));
            self.take(entry, state, moment)?;
            runs.extend(touched(entry));
            schedules.extend(entry.body.schedule());
        }
        self.slots.committed(&self.world, self.lives.ends())?;
        self.commits += 1;
        self.compare(state, &runs, &schedules)?;
        if self.commits.is_multiple_of(FOLD_EVERY) {
            self.fold_all(state)?;
        }
        if self.commits.is_multiple_of(COMPARE_EVERY) { self.compare_all(state) } else { Ok(()) }
    }

    fn take(&mut self, entry: &Entry, state: &State, moment: &Moment) -> Check {
        ensure("I20", entry.seq == self.world.seq + 1, || {
            format!("entry {} follows entry {}", entry.seq, self.world.seq)
        })?;
        if let Body::Restored { .. } = entry.body {
            let is_needed = Some(self.world.epoch_floor) <= self.lost_floor;
            ensure("I1", is_needed, || format!("entry {} takes work from all nodes for nothing", entry.seq))?;
        }
        caps::check(entry, &self.world, &self.limits, moment)?;
        self.nodes.check(entry, &self.world, state, moment, self.is_shared)?;
        self.slots.take(entry, &self.world, moment, state.planner.map(|planner| planner.until))?;
        let happened = events(entry);
        let before: BTreeMap<RunId, Run> =
            happened.iter().filter_map(|(id, _)| Some((*id, Run::clone(self.world.runs.get(id)?)))).collect();
        self.world
            .apply(entry)
            .map_err(|error| Violation { rule: "fold", what: format!("entry {}: {error}", entry.seq) })?;
        if let Body::PlannerTaken { outage: Some(outage), .. } = &entry.body {
            self.slots.are_missed(outage, &self.world)?;
        }
        if let Some(stretch) = &mut self.stretch {
            stretch.note(entry, &self.world);
        }
        self.lives.take(entry, &before, &self.world)
    }

    /// The rows that a commit touched are what its entries say.
    fn compare(&self, state: &State, runs: &BTreeSet<RunId>, schedules: &BTreeSet<ScheduleId>) -> Check {
        for id in runs {
            let (folded, row) = (self.world.runs.get(id), state.world.runs.get(id));
            ensure("I19", folded == row, || format!("run {id}: the journal has {folded:?}, the row is {row:?}"))?;
        }
        for id in schedules {
            let (folded, row) = (self.world.schedules.get(id), state.world.schedules.get(id));
            ensure("I19", folded == row, || format!("schedule {id}: the journal has {folded:?}, the row is {row:?}"))?;
        }
        Ok(())
    }

    /// Every row is what the journal says.
    pub(crate) fn compare_all(&self, state: &State) -> Check {
        if self.world == state.world {
            return Ok(());
        }
        ensure("I19", false, || differences(&self.world, &state.world).join("; "))
    }
}

impl Ledger {
    /// The base and the entries behind it come to the present.
    pub(crate) fn fold_all(&self, state: &State) -> Check {
        let mut world = state.base.clone();
        for entry in &state.entries {
            let folded = world.apply(entry);
            folded.map_err(|error| Violation {
                rule: "base",
                what: format!("entry {} behind the base at {}: {error}", entry.seq, state.base.seq),
            })?;
        }
        ensure("base", self.world == world, || differences(&self.world, &world).join("; "))
    }

    /// A run, over or not, as the journal has it.
    pub(crate) fn run(&self, id: RunId) -> Option<&Run> {
        self.world.runs.get(&id).map(|run| &**run).or_else(|| self.lives.ends().get(&id))
    }
}

/// How late a slot may be decided that no outage missed: as long as the longest call takes, and a little.
fn patience(setup: &Setup) -> SignedDuration {
    SignedDuration::try_from(setup.lease * 2 + setup.poll + Duration::from_secs(60)).unwrap_or(SignedDuration::ZERO)
}

/// An entry in a few words.
struct Told<'a>(&'a Body);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.0.kind();
        match self.0 {
            Body::ScheduleChanged { schedule: it, .. } => {
                write!(f, "{kind} {} v{} {:?} {}", short(it.id.0), it.version, it.state, it.trigger.describe(&it.zone))
            }
            Body::Planned(plan) => {
                write!(f, "{kind} {} v{} to {}", short(plan.schedule.0), plan.version, plan.cursor.at)?;
                plan.runs.iter().try_for_each(|run| write!(f, " +{}:{}", short(run.id.0), run.key))?;
                plan.moved.iter().try_for_each(|run| write!(f, " ~{}:{}", short(run.id.0), run.due_at))?;
                plan.withdrawn.iter().try_for_each(|run| write!(f, " -{}", short(run.0)))?;
                plan.outage.map_or(Ok(()), |outage| write!(f, " {outage:?}"))
            }
            Body::Skipped(skip) => {
                let SkipEntry { schedule, first, last, count, reason, .. } = skip;
                write!(f, "{kind} {} {count} for {reason}: {first} to {last}", short(schedule.0))
            }
            Body::RunAsked { run, .. } => write!(f, "{kind} {} {} due {}", short(run.id.0), run.key, run.due_at),
            Body::RunsClaimed { runs, .. } | Body::RunsStarted { runs } => {
                write!(f, "{kind}")?;
                runs.iter().try_for_each(|run| write!(f, " {}", short(run.0)))
            }
            Body::RunChanged(it) => write!(f, "{kind} {} e{} {:?}", short(it.run.0), it.epoch, it.event),
            Body::AttemptEnded(it) => write!(f, "{kind} {} e{} {:?}", short(it.run.0), it.epoch, it.event),
            Body::PlannerTaken { outage, .. } => write!(f, "{kind} {outage:?}"),
            body => write!(f, "{body:?}"),
        }
    }
}

/// The end of an id: its beginning is the time, which many share.
pub(crate) fn short(id: uuid::Uuid) -> String {
    let text = id.simple().to_string();
    text[text.len() - 6..].to_owned()
}
