//! A node: the loops around the ticks, and the work that it carries out.
//!
//! Loops. One plans; beside it, another renews the planner's lease while a round of planning goes on, and one tidies up. One keeps
//! the node's lease, writes what has ended, claims what is ready and starts it, so that what the node holds
//! and what is its own can be compared. One fences: it stops work in time when the others hang, in a call of the store or
//! because nothing is left to run them, and so has a thread of its own. Only waiting is interrupted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_core::run::{Outcome, Report, RunEvent, RunState};
use punctual_core::{NodeId, RunId};
use punctual_store::{AttemptReport, Hint, RunWritten, Store, StoreError, catch_panic};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::batch;
use crate::begin::{Beginning, Label, WorkEnd};
use crate::claimer::{Claimer, Free, StartedRun};
use crate::clock::{Clock, ClockStep, ClockWatch};
use crate::holdings::{Attempt, Holdings, WhyStopped};
use crate::housekeeping::Housekeeping;
use crate::ids::Ids;
use crate::keeper::Keeper;
use crate::loops::Loops;
use crate::meters::Meters;
use crate::output::Press;
use crate::planner::{Planner, later};
use crate::planner_lease::{self, Term};
use crate::refused::{RefusedReports, refused_report};
use crate::roster::Class;
use crate::runner::{Ending, Runners, StopLevel};
use crate::settings::Settings;
use crate::spawn::Spawn;

/// How long a loop rests after a failure of the store.
const RETRY_AFTER: SignedDuration = SignedDuration::from_secs(1);

/// How long a stopping node waits for work that has been told to stop.
const KILL_WAIT: SignedDuration = SignedDuration::from_secs(15);

/// How long a node whose store has failed for good waits for its work and its loops: the process has to end.
const FATAL_WAIT: SignedDuration = SignedDuration::from_secs(5);

/// The longest rest between two tries to join.
const JOIN_RETRY_MAX: SignedDuration = SignedDuration::from_secs(30);

/// What a node is made of.
#[derive(Clone)]
pub struct Parts {
    /// Where everything is kept.
    pub store: Arc<dyn Store>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Where ids come from.
    pub ids: Arc<dyn Ids>,
    /// The settings.
    pub settings: Arc<Settings>,
    /// What carries out the runs of each agent.
    pub runners: Arc<Runners>,
    /// Wakes the loops when something has changed.
    pub nudges: Arc<Nudges>,
    /// Where its loops and its work run.
    pub spawn: Arc<dyn Spawn>,
    /// Counts what it does.
    pub meters: Arc<Meters>,
}

/// What others tell a running node. Wake-ups carry no data: whoever is woken looks for itself.
#[derive(Debug, Default)]
pub struct Nudges {
    plan: Notify,
    work: Notify,
    has_stops: AtomicBool,
    is_paused: AtomicBool,
}

impl Nudges {
    /// A schedule has changed.
    pub fn schedules_changed(&self) {
        self.plan.notify_one();
        self.work.notify_one();
    }

    /// There may be something to claim.
    pub fn runs_changed(&self) {
        self.work.notify_one();
    }

    /// A run at work was called off: its node stops it at once, and not only with its next renewal.
    pub fn run_cancelled(&self) {
        self.has_stops.store(true, Ordering::Release);
        self.work.notify_one();
    }

    /// Another node may have changed something.
    pub fn hear(&self, hint: Hint) {
        if hint.plan {
            self.plan.notify_one();
        }
        if hint.stops {
            self.has_stops.store(true, Ordering::Release);
        }
        self.work.notify_one();
    }

    /// The node claims nothing more until it is resumed. What is at work goes on, planning too.
    pub fn pause(&self) {
        self.is_paused.store(true, Ordering::Release);
    }

    /// Whether the node claims nothing until it is resumed.
    pub fn is_paused(&self) -> bool {
        self.is_paused.load(Ordering::Acquire)
    }

    /// The node claims again.
    pub fn resume(&self) {
        self.is_paused.store(false, Ordering::Release);
        self.work.notify_one();
    }
}

/// Why a node came to its end by itself: the process has to end with it.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The store has failed for good.
    #[error("the node cannot go on")]
    Store(#[from] StoreError),
    /// A loop of the node has panicked.
    #[error("the {part} has panicked: {why}; this is a bug in Punctual")]
    Panicked {
        /// Which loop.
        part: &'static str,
        /// What the panic says.
        why: String,
    },
}

/// What a loop of the node came to.
pub(crate) type Ended = Result<(), NodeError>;

/// Runs a node until `stop`, then lets what is at work end, and leaves.
pub async fn run(parts: Parts, stop: CancellationToken) -> Result<(), NodeError> {
    loop {
        let node = NodeId(parts.ids.next(parts.clock.now()));
        // An incarnation that was taken for dead is followed by another one.
        let life = Incarnation::new(&parts, node);
        match catch_panic(life.run(&stop)).await {
            Err(why) => return Err(NodeError::Panicked { part: "work loop", why }),
            Ok(Ok(())) => return Ok(()),
            Ok(Err(NodeError::Store(StoreError::LeaseEnded))) => {
                warn!(node.id = %node, "this node was taken for dead: it joins again");
            }
            Ok(Err(error)) => return Err(error),
        }
        if stop.is_cancelled() {
            return Ok(());
        }
    }
}

/// One life of a node, under one id.
struct Incarnation {
    parts: Parts,
    node: NodeId,
    keeper: Keeper,
    claimer: Claimer,
    stepped: SteppedClock,
    holdings: Arc<Holdings>,
    /// What of it is carried out by other servers.
    remote: BTreeSet<Attempt>,
    at_work: usize,
    /// Attempts whose end is not written.
    begun: BTreeMap<Attempt, StartedRun>,
    ends: (mpsc::UnboundedSender<WorkEnd>, mpsc::UnboundedReceiver<WorkEnd>),
    reports: Vec<AttemptReport>,
    /// Those of them that the store refuses.
    refused: RefusedReports,
    /// Takes what the work prints.
    press: Option<Press>,
    /// Runs at work whose end may be that of their schedule: then the planner has to look.
    may_end_schedule: BTreeSet<RunId>,
}

/// The time that a clock leaves out is an outage. Each loop that decides slots notes it before it decides any of them.
#[derive(Debug, Default)]
struct SteppedClock {
    watch: ClockWatch,
    /// Where the clock was when it was set forwards, until that is noted.
    from: Option<Timestamp>,
}

impl SteppedClock {
    /// Looks at both clocks.
    fn observe(&mut self, now: Timestamp, boot: Duration) {
        let ClockStep::Set(step) = self.watch.observe(now, boot) else { return };
        warn!("the clock was set by {step:#}");
        if step.is_positive() {
            let from = now.checked_sub(step).unwrap_or(now);
            self.from = Some(self.from.map_or(from, |earlier| earlier.min(from)));
        }
    }

    /// Notes the outage, if there was one.
    async fn note_outage(&mut self, store: &dyn Store, node: NodeId, now: Timestamp) -> Result<bool, StoreError> {
        let Some(from) = self.from.filter(|from| *from < now) else {
            self.from = None;
            return Ok(false);
        };
        store.note_outage(now, node, from).await?;
        self.from = None;
        Ok(true)
    }
}

impl Incarnation {
    fn new(parts: &Parts, node: NodeId) -> Incarnation {
        let (store, settings) = (Arc::clone(&parts.store), Arc::clone(&parts.settings));
        let lease = Duration::try_from(settings.lease.duration()).unwrap_or_default();
        let holdings = Arc::new(Holdings::new((!store.is_exclusive()).then_some(lease)));
        Incarnation {
            keeper: Keeper::new(Arc::clone(&store), Arc::clone(&settings), node, Arc::clone(&holdings)),
            claimer: Claimer::new(store, settings, node),
            parts: parts.clone(),
            node,
            stepped: SteppedClock::default(),
            holdings,
            remote: BTreeSet::new(),
            at_work: 0,
            begun: BTreeMap::new(),
            ends: mpsc::unbounded_channel(),
            reports: vec![],
            refused: RefusedReports::default(),
            press: None,
            may_end_schedule: BTreeSet::new(),
        }
    }

    async fn run(mut self, stop: &CancellationToken) -> Ended {
        let clock = Arc::clone(&self.parts.clock);
        if !self.join(stop).await? {
            return Ok(());
        }
        info!(node.id = %self.node, "node {} has joined", self.parts.settings.name);
        // Planning goes on while work drains: until the node has left, nobody else may. Should this panic, the loops end too.
        let end_loops = CancellationToken::new();
        let guard = end_loops.clone().drop_guard();
        let mut loops = Loops::default();
        let term = Arc::<Term>::default();
        let planning = plan_loop(self.parts.clone(), self.node, Arc::clone(&term), end_loops.clone());
        loops.spawn(&self.parts, "planning loop", planning);
        let housekeeping = Housekeeping::new(Arc::clone(&self.parts.store), Arc::clone(&self.parts.settings));
        let tidying = housekeeping.run(Arc::clone(&term), Arc::clone(&clock), end_loops.clone());
        loops.spawn(&self.parts, "housekeeping", async {
            tidying.await;
            Ok(())
        });
        // Nothing holds these up: neither planning that takes long nor work that keeps every thread of the node busy.
        let Parts { store, settings, .. } = self.parts.clone();
        let leasing = planner_lease::keep(term, store, Arc::clone(&clock), settings, self.node, end_loops.clone());
        loops.spawn_alone(&self.parts, "planner lease", async {
            leasing.await;
            Ok(())
        });
        let fencing = fence_loop(Arc::clone(&clock), Arc::clone(&self.holdings), end_loops.clone());
        loops.spawn_alone(&self.parts, "fencing loop", fencing);
        let (press, printing) = Press::new(Arc::clone(&self.parts.store), Arc::clone(&clock), end_loops.clone());
        self.press = Some(press);
        loops.spawn(&self.parts, "output writer", async {
            printing.await;
            Ok(())
        });
        let mut ended = tokio::select! {
            biased;
            failed = loops.failed() => Err(failed),
            ended = async {
                self.work_loop(stop).await?;
                self.drain().await
            } => ended,
        };
        let is_fatal = ended.as_ref().is_err_and(|error| !matches!(error, NodeError::Store(StoreError::LeaseEnded)));
        self.holdings.stop_all(StopLevel::Now, WhyStopped::Lost);
        let wait = if is_fatal { FATAL_WAIT } else { KILL_WAIT };
        self.wait_for_ends(later(clock.now(), wait)).await;
        drop(guard);
        if is_fatal {
            // A store that has failed may never answer them.
            tokio::select! {
                () = clock.sleep_until(later(clock.now(), FATAL_WAIT)) => {}
                _ = loops.ended() => {}
            }
            return ended;
        }
        ended = ended.and(loops.ended().await);
        if ended.is_ok() {
            self.write_reports(clock.now()).await.ok();
            self.parts.store.leave(clock.now(), self.node).await?;
            info!(node.id = %self.node, "node {} has left", self.parts.settings.name);
        }
        ended
    }

    /// Brings the node to life. What may pass is tried again; `false` if the node is told to stop meanwhile.
    async fn join(&mut self, stop: &CancellationToken) -> Result<bool, NodeError> {
        let clock = Arc::clone(&self.parts.clock);
        let mut rest = RETRY_AFTER;
        loop {
            match self.keeper.join(clock.now(), clock.boot()).await {
                Ok(()) => return Ok(true),
                Err(error) if error.is_passing() => {
                    warn!(%error, cause = ?std::error::Error::source(&error), "the node could not join, next try in {rest:#}");
                }
                Err(error) => return Err(error.into()),
            }
            // By a clock that nobody can set.
            let until = clock.boot() + rest.unsigned_abs();
            while clock.boot() < until {
                let left = SignedDuration::try_from(until.saturating_sub(clock.boot())).unwrap_or(rest);
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return Ok(false),
                    () = clock.sleep_until(later(clock.now(), left)) => {}
                }
            }
            rest = (rest * 2).min(JOIN_RETRY_MAX);
        }
    }

    /// Keeps the lease, writes ends, claims and starts, until the node is to stop or its lease has ended.
    async fn work_loop(&mut self, stop: &CancellationToken) -> Ended {
        let clock = Arc::clone(&self.parts.clock);
        let nudges = Arc::clone(&self.parts.nudges);
        loop {
            let now = clock.now();
            let wake_at = match self.round(now).await {
                Ok(wake_at) => wake_at,
                Err(error @ StoreError::LeaseEnded) => return Err(error.into()),
                Err(error) if error.is_fatal() => return Err(error.into()),
                Err(error) => {
                    error!(%error, cause = ?std::error::Error::source(&error), "the store failed, next try in {RETRY_AFTER:#}");
                    later(now, RETRY_AFTER)
                }
            };
            // The clock may have been set back while the store took its time.
            let wake_at = wake_at.min(later(clock.now(), self.parts.settings.poll.duration()));
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                Some(ended) = self.ends.1.recv() => self.take_end(ended),
                () = nudges.work.notified() => {}
                () = clock.sleep_until(wake_at) => {}
            }
        }
    }

    async fn round(&mut self, now: Timestamp) -> Result<Timestamp, StoreError> {
        let boot = self.parts.clock.boot();
        self.stepped.observe(now, boot);
        let keep_at = self.keep(now, boot).await?;
        while let Ok(ended) = self.ends.1.try_recv() {
            self.take_end(ended);
        }
        if self.stepped.note_outage(&*self.parts.store, self.node, now).await? {
            self.parts.nudges.plan.notify_one();
        }
        // What has ended and what may begin are asked for together, so that they can share a commit.
        let reports = self.refused.ready(&self.reports, now);
        let mut hands = self.holdings.hands();
        // Nothing of these is at work any more. They stay among those that have begun: their ends may not be written.
        for report in &reports {
            hands.held.remove(&(report.run, report.epoch));
        }
        let is_paused = self.parts.nudges.is_paused();
        let free = if is_paused { Free::each(0) } else { self.free(&hands.held) };
        let store = Arc::clone(&self.parts.store);
        let (written, round) = tokio::join!(
            biased;
            batch::write(&reports, |reports| store.finish(now, reports)),
            self.claimer.tick(now, free, &hands),
        );
        let has_freed = !reports.is_empty();
        let written = match written {
            Ok(written) => self.take_written(reports, written, now).await,
            Err(error) => Err(error),
        };
        // What was started begins, whatever became of the ends.
        let round = round?;
        self.start(round.started, now);
        written?;
        let left = self.free(&self.holdings.held());
        let has_room = !is_paused && (0 < left.process || 0 < left.remote);
        if round.has_replaced {
            self.keeper.look_soon();
        }
        if round.awaits_planning {
            self.parts.nudges.plan.notify_one();
        }
        // The places of what has ended may be free only since the store was asked what may begin.
        let may_have_more = round.may_have_more || has_freed;
        if round.has_replaced || round.has_more_due || may_have_more && has_room {
            return Ok(now);
        }
        Ok(round.wake_at.min(keep_at))
    }

    /// How many places are free.
    fn free(&mut self, held: &BTreeSet<Attempt>) -> Free {
        self.remote.retain(|attempt| held.contains(attempt));
        let settings = &self.parts.settings;
        let left = |class, taken| settings.places_of(class).saturating_sub(taken);
        let remote = self.remote.len();
        Free { process: left(Class::Process, held.len() - remote), remote: left(Class::Remote, remote) }
    }

    /// Keeps the lease. When to look again.
    async fn keep(&mut self, now: Timestamp, boot: Duration) -> Result<Timestamp, StoreError> {
        if self.parts.nudges.has_stops.swap(false, Ordering::AcqRel) {
            self.keeper.look_soon();
        }
        Ok(self.keeper.tick(now, boot).await?.wake_at)
    }

    /// Begins the work of runs. They are written as running already.
    fn start(&mut self, started: Vec<StartedRun>, now: Timestamp) {
        let begins: Vec<Beginning> = started.into_iter().filter_map(|started| self.take_up(started)).collect();
        if begins.is_empty() {
            return;
        }
        let (parts, press) = (self.parts.clone(), self.press.clone());
        // Beside the loop, which asks the store for more meanwhile.
        self.parts.spawn.spawn(Box::pin(async move {
            begins.into_iter().for_each(|begins| begins.begin(&parts, press.as_ref(), now));
        }));
    }

    /// Holds a run whose work begins, unless it may be another node's.
    fn take_up(&mut self, started: StartedRun) -> Option<Beginning> {
        let run = &started.run;
        let attempt = (run.id, run.epoch());
        let Some(stop) = self.holdings.begin(attempt, self.parts.clock.boot()) else {
            let label = Label(&started);
            warn!(run.id = %run.id, "{label} is not begun: the store took so long that it may be another node's");
            return None;
        };
        if started.schedule.as_ref().is_some_and(|schedule| schedule.may_end()) {
            self.may_end_schedule.insert(run.id);
        }
        if self.parts.settings.roster.now().class_of(run.terms.work.agent()) == Class::Remote {
            self.remote.insert(attempt);
        }
        self.at_work += 1;
        self.begun.insert(attempt, started.clone());
        Some(Beginning::new(started, stop, self.ends.0.clone()))
    }

    /// Waits for work that has been ended, up to a deadline: what does not hear is left behind.
    async fn wait_for_ends(&mut self, deadline: Timestamp) {
        let clock = Arc::clone(&self.parts.clock);
        while 0 < self.at_work && clock.now() < deadline {
            tokio::select! {
                biased;
                Some(ended) = self.ends.1.recv() => self.take_end(ended),
                () = clock.sleep_until(deadline) => {}
            }
        }
        if 0 < self.at_work {
            error!("{} runs do not stop and are left behind; this is a bug in their runner", self.at_work);
        }
    }

    /// Takes in that work has ended: how it ended becomes a report.
    fn take_end(&mut self, ended: WorkEnd) {
        let WorkEnd { run: id, epoch, finish } = ended;
        self.at_work -= 1;
        let why = self.holdings.why((id, epoch));
        let Some(event) = event_of(&finish.ending, why, self.parts.clock.now()) else {
            self.holdings.end_unreported((id, epoch));
            self.begun.remove(&(id, epoch));
            self.parts.meters.ended(id, None, self.parts.clock.now());
            return;
        };
        // Whatever a runner reports, nothing of it keeps a store from writing it.
        let report = self.completed(finish.report.storable(), event);
        report.warnings.iter().for_each(|warning| warn!(run.id = %id, "run {id}: {warning}"));
        self.reports.push(AttemptReport { run: id, epoch, event, report });
    }

    /// Adds to a report what its work does not know: what it has cost, and the run that it asks for, not too soon.
    fn completed(&self, mut report: Report, event: RunEvent) -> Report {
        let (settings, now) = (&self.parts.settings, self.parts.clock.now());
        settings.roster.now().prices.complete(&mut report);
        let wanted = report.next_run_at.filter(|_| event == RunEvent::Succeeded);
        report.next_run_at = wanted.map(|at| at.max(later(now, settings.min_interval.duration())));
        // An id begins with the time that its run is scheduled for.
        report.next_run = report.next_run_at.map(|at| RunId(self.parts.ids.next(at)));
        report
    }

    /// Writes how attempts ended. What cannot be written for now is kept, with its place, until it can; what cannot be written at
    /// all ends as a failure that says so, and holds up none of the others.
    async fn write_reports(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let ready: Vec<AttemptReport> = self.refused.ready(&self.reports, now);
        let store = Arc::clone(&self.parts.store);
        let written = batch::write(&ready, |reports| store.finish(now, reports)).await?;
        self.take_written(ready, written, now).await
    }

    /// Takes in what became of reports.
    async fn take_written(
        &mut self,
        ready: Vec<AttemptReport>,
        written: Vec<Result<RunWritten, StoreError>>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (mut done, mut ended) = (BTreeSet::new(), Ok(()));
        for (report, written) in ready.into_iter().zip(written) {
            let attempt = (report.run, report.epoch);
            let is_done = match written {
                Ok(written) => {
                    self.is_written(report, written, now);
                    Ok(true)
                }
                Err(error) => self.end_as_refused(report, &error, now).await,
            };
            match is_done {
                Ok(true) => drop(done.insert(attempt)),
                Ok(false) => {}
                Err(error) => {
                    ended = Err(error);
                    break;
                }
            }
        }
        self.reports.retain(|report| !done.contains(&(report.run, report.epoch)));
        ended
    }

    /// A report that the store refuses: the attempt ends as failed, for that reason. If even that is refused, it rests. Whether it
    /// has ended.
    async fn end_as_refused(
        &mut self,
        report: AttemptReport,
        error: &StoreError,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let why = batch::in_words(error);
        error!(run.id = %report.run, "the report of run {} cannot be stored: {why}", report.run);
        let instead = refused_report(&report, &why, now);
        match self.parts.store.finish(now, vec![instead.clone()]).await {
            Ok(written) => {
                written.into_iter().for_each(|written| self.is_written(instead.clone(), written, now));
                Ok(true)
            }
            Err(error) if error.is_lasting() => {
                self.refused.rest((report.run, report.epoch), now);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Takes in that a report is written, and with it the end of the attempt.
    fn is_written(&mut self, report: AttemptReport, written: RunWritten, now: Timestamp) {
        let attempt = (report.run, report.epoch);
        self.refused.forget(attempt);
        if self.may_end_schedule.remove(&report.run) {
            self.parts.nudges.plan.notify_one();
        }
        self.holdings.end(attempt);
        let begun = self.begun.remove(&attempt);
        let end = match written {
            RunWritten::Done(state) => {
                if let Some(begun) = &begun {
                    tell_end(&Label(begun), &report, &state);
                }
                Some((report.event, report.report))
            }
            RunWritten::Stale => {
                warn!(run.id = %report.run, "run {} was not this node's any more", report.run);
                None
            }
        };
        self.parts.meters.ended(report.run, end, now);
    }

    /// Waits for what is at work, up to a deadline; then asks the rest to stop. Fails only if the store has failed for good.
    async fn drain(&mut self) -> Ended {
        let clock = Arc::clone(&self.parts.clock);
        let deadline = later(clock.now(), self.parts.settings.drain.duration());
        if !self.holdings.is_empty() {
            info!("stopping: waiting for {} runs until {deadline}", self.holdings.len());
        }
        self.wait_for_work(deadline).await?;
        self.holdings.stop_all(StopLevel::Ask, WhyStopped::Shutdown);
        self.wait_for_work(later(clock.now(), KILL_WAIT)).await
    }

    /// Keeps the lease and writes ends until nothing is at work, or a deadline.
    async fn wait_for_work(&mut self, deadline: Timestamp) -> Ended {
        let clock = Arc::clone(&self.parts.clock);
        while 0 < self.at_work && clock.now() < deadline {
            let now = clock.now();
            let wake_at = match self.keep(now, clock.boot()).await {
                Ok(wake_at) => wake_at,
                Err(StoreError::LeaseEnded) => {
                    self.holdings.stop_all(StopLevel::Now, WhyStopped::Lost);
                    return Ok(());
                }
                Err(error) if error.is_fatal() => return Err(error.into()),
                Err(error) => self.keeper.retry_at(now, &error),
            };
            if let Err(error) = self.write_reports(now).await {
                warn!(%error, "ends of runs could not be written yet");
            }
            tokio::select! {
                biased;
                Some(ended) = self.ends.1.recv() => self.take_end(ended),
                () = clock.sleep_until(wake_at.min(deadline)) => {}
            }
        }
        self.write_reports(clock.now()).await.ok();
        Ok(())
    }
}

/// Stops work in time when the lease cannot be renewed, whatever the store does meanwhile.
async fn fence_loop(clock: Arc<dyn Clock>, holdings: Arc<Holdings>, stop: CancellationToken) -> Ended {
    loop {
        let wait = SignedDuration::try_from(holdings.enforce(clock.boot())).unwrap_or(RETRY_AFTER);
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            () = clock.sleep_until(later(clock.now(), wait)) => {}
        }
    }
}

/// Plans, until it is told to stop.
async fn plan_loop(parts: Parts, node: NodeId, term: Arc<Term>, stop: CancellationToken) -> Ended {
    let Parts { store, clock, ids, settings, nudges, .. } = parts;
    let mut planner = Planner::new(Arc::clone(&store), ids, settings, node).with_term(Arc::clone(&term));
    let mut stepped = SteppedClock::default();
    loop {
        let now = clock.now();
        stepped.observe(now, clock.boot());
        term.begin_round(clock.boot());
        let planned = match stepped.note_outage(&*store, node, now).await {
            Ok(_) => planner.tick(now).await,
            Err(error) => Err(error),
        };
        let wake_at = match planned {
            Ok(planned) => {
                if planned.wrote || planned.has_begun {
                    nudges.runs_changed();
                }
                planned.wake_at
            }
            Err(error) if error.is_fatal() => return Err(error.into()),
            Err(error) => {
                error!(%error, cause = ?std::error::Error::source(&error), "planning failed, next try in {RETRY_AFTER:#}");
                later(now, RETRY_AFTER)
            }
        };
        term.end_round();
        let wake_at = wake_at.min(later(clock.now(), planner.poll()));
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            () = nudges.plan.notified() => planner.schedules_changed(),
            () = clock.sleep_until(wake_at) => {}
        }
    }
}

/// Logs the end of an attempt: a failure that is final is for somebody to look at, a retry is not.
fn tell_end(label: &Label<'_>, report: &AttemptReport, state: &RunState) {
    let said = report.report.error.as_ref().map(|error| &error.message).or(report.report.summary.as_ref());
    // What the work says of itself stays on its line.
    let said = said.map(|said| format!(": {}", said.escape_debug())).unwrap_or_default();
    match state {
        RunState::Planned { .. } if matches!(report.event, RunEvent::Stopped { .. }) => {
            info!(run.id = %report.run, "{label} was stopped with this node and goes on elsewhere or after the restart");
        }
        RunState::Planned { due_at, .. } => {
            info!(run.id = %report.run, "{label} has {}, next try at {due_at}{said}", report.event.name());
        }
        RunState::Finished { outcome: Outcome::Failed(_), tally } => {
            warn!(run.id = %report.run, "{label} has failed for good at try {}{said}", tally.attempt);
        }
        RunState::Finished { outcome: Outcome::Unknown, .. } => {
            warn!(run.id = %report.run, "{label} was {}: whether its work was done is not known{said}", report.event.name());
        }
        state => info!(run.id = %report.run, "{label} has {}{said}", state.name()),
    }
}

/// What happened to a run whose work has ended; nothing, if it is not this node's to say.
fn event_of(ending: &Ending, why: Option<WhyStopped>, now: Timestamp) -> Option<RunEvent> {
    match (ending, why) {
        // Done is done: if the run is somebody else's by now, the store says so.
        (Ending::Succeeded, _) => Some(RunEvent::Succeeded),
        (_, Some(WhyStopped::Lost)) => None,
        (Ending::Failed { .. } | Ending::Stopped, Some(WhyStopped::Cancelled)) => Some(RunEvent::Cancelled),
        (Ending::Stopped, Some(WhyStopped::Shutdown)) => Some(RunEvent::Stopped { at: now }),
        // It had begun, and how far it came nobody knows.
        (Ending::Stopped, None) => Some(RunEvent::OwnerLost { at: now }),
        (Ending::Failed { code, is_retryable, retry_after }, _) => {
            Some(RunEvent::Failed { at: now, code: *code, is_retryable: *is_retryable, retry_after: *retry_after })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_reported_even_if_the_run_may_be_lost() {
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(event_of(&Ending::Succeeded, Some(WhyStopped::Lost), now), Some(RunEvent::Succeeded));
        assert_eq!(event_of(&Ending::Stopped, Some(WhyStopped::Lost), now), None);
    }
}
