//! Clients: people and programs that create, change, pause, resume, delete, trigger and cancel, also before the time has come.
//!
//! A request is served by one process and dies with it. Only an answer that says yes is held against the store.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_core::plan::expires_at;
use punctual_core::plan::{SlotsAhead, run_ahead};
use punctual_core::run::{Run, RunState, Terms};
use punctual_core::schedule::{Pause, PauseKind, Schedule, ScheduleState, Trigger};
use punctual_core::time::{Every, Slot, SlotKey};
use punctual_core::{RunId, ScheduleId};
use punctual_engine::edit::EditError;
use punctual_engine::ids::Ids;
use punctual_store::Cancellation;

use crate::cluster::Process;
use crate::invariants::ensure;
use crate::random::Random;
use crate::schedules;
use crate::setup::ZONES;
use crate::sim::Sim;

/// No more schedules than these live at once.
const SCHEDULES_MAX: usize = 14;

/// Within so long an event comes again that does: what was answered is known for longer.
const EVENT_AGAIN: Duration = Duration::from_secs(6 * 3_600);

/// Of so many slots ahead one is cancelled.
const AHEAD_MAX: usize = 8;

/// Asks for things until it is over.
pub(crate) async fn clients(sim: Arc<Sim>) {
    let mut random = Random::new(sim.seed, "clients");
    let ends_at = sim.timeline.boot() + sim.setup.lasts;
    let first = random.between(2, 8);
    let mut asked = 0;
    loop {
        let wait = if asked < first { Duration::from_secs(60) } else { Duration::from_secs(3 * 3_600) };
        sim.wait(random.stretch(Duration::from_millis(500), wait)).await;
        if ends_at <= sim.timeline.boot() {
            return;
        }
        asked += 1;
        let awake = sim.cluster().awake();
        if awake.is_empty() || sim.cluster().is_clock_wrong {
            continue;
        }
        let group = *random.pick(&awake);
        let Some(process) = sim.cluster().processes.get(&group).cloned() else { continue };
        let what = choose(&sim, &mut random);
        let client =
            Client { sim: Arc::clone(&sim), process, random: random.clone(), losses: sim.ledger().acks.losses };
        random.next();
        sim.timeline.spawn(group, Box::pin(client.ask(what)));
    }
}

#[derive(Debug, Clone, Copy)]
enum Request {
    Create,
    EditTiming(ScheduleId),
    EditPolicy(ScheduleId),
    EditZone(ScheduleId),
    Pause(ScheduleId, PauseKind),
    Resume(ScheduleId),
    Delete(ScheduleId),
    Trigger(ScheduleId),
    Event(ScheduleId),
    Cancel(RunId),
    /// A slot whose time has not come.
    CancelAhead(ScheduleId),
}

fn choose(sim: &Sim, random: &mut Random) -> Request {
    let (schedules, paused, events, runs) = sim.log.look(|state| {
        let schedules = &state.world.schedules;
        let all: Vec<ScheduleId> = schedules.keys().copied().collect();
        let of = |is: &dyn Fn(&Schedule) -> bool| -> Vec<ScheduleId> {
            schedules.values().filter(|it| is(&it.schedule)).map(|it| it.schedule.id).collect()
        };
        let over = state.entries.iter().rev().filter_map(|entry| entry.body.ended()).map(|(run, _)| run).take(2);
        let runs: Vec<RunId> = state.world.runs.keys().copied().chain(over).collect();
        let paused = of(&|it| matches!(it.state, ScheduleState::Paused(_)));
        (all, paused, of(&|it| matches!(*it.trigger, Trigger::OnEvent(_))), runs)
    });
    if schedules.is_empty() || schedules.len() < SCHEDULES_MAX && random.chance(20) {
        return Request::Create;
    }
    let lost = {
        let ledger = sim.ledger();
        ledger.acks.lost_change(&ledger.world)
    };
    // Whose change was lost makes it again.
    let id = lost.filter(|_| random.chance(30)).unwrap_or_else(|| *random.pick(&schedules));
    if !runs.is_empty() && random.chance(15) {
        return Request::Cancel(*random.pick(&runs));
    }
    if !paused.is_empty() && random.chance(25) {
        return Request::Resume(*random.pick(&paused));
    }
    if !events.is_empty() && random.chance(25) {
        return Request::Event(*random.pick(&events));
    }
    random.weighted(&[
        (10, Request::EditTiming(id)),
        (10, Request::EditPolicy(id)),
        (5, Request::EditZone(id)),
        (6, Request::Pause(id, PauseKind::Paused)),
        (6, Request::Pause(id, PauseKind::Disabled)),
        (2, Request::Resume(id)),
        (if SCHEDULES_MAX / 2 < schedules.len() { 8 } else { 2 }, Request::Delete(id)),
        (8, Request::Trigger(id)),
        (12, Request::CancelAhead(id)),
    ])
}

struct Client {
    sim: Arc<Sim>,
    process: Process,
    random: Random,
    /// How often something had been lost when it asked.
    losses: u32,
}

impl Client {
    async fn ask(mut self, what: Request) {
        self.sim.tell(format_args!("client asks slot {} for {what:?}", self.process.slot));
        match self.answer(what).await {
            Ok(()) => self.process.nudges.schedules_changed(),
            Err(error) => self.sim.tell(format_args!("client is refused: {error}")),
        }
    }

    async fn answer(&mut self, what: Request) -> Result<(), EditError> {
        let now = self.process.clock.now();
        let editor = Arc::clone(&self.process.editor);
        let zones = Arc::clone(&self.process.settings.zones);
        let random = &mut self.random;
        let written = match what {
            Request::Create => editor.create(schedules::schedule(random, &zones, now), now).await?,
            Request::EditTiming(id) => {
                let mut stream = random.clone();
                let (trigger, is_fast) = schedules::trigger(&mut stream, &zones, "UTC", now);
                if is_fast {
                    return Ok(());
                }
                editor.edit(id, None, now, move |it| Schedule { trigger: trigger.clone().into(), ..it.clone() }).await?
            }
            Request::EditPolicy(id) => {
                let policy = schedules::policy(random);
                editor.edit(id, None, now, move |it| Schedule { policy: policy.clone().into(), ..it.clone() }).await?
            }
            Request::EditZone(id) => {
                let zone = random.pick(&ZONES).to_string();
                let own = zones.get(&zone).expect("the zone data has it");
                let change = move |it: &Schedule| {
                    let trigger = match &*it.trigger {
                        Trigger::Every(every) => {
                            Trigger::Every(Every::anchored(every.interval(), &own, now).expect("it was long enough"))
                        }
                        other => other.clone(),
                    };
                    Schedule { zone: zone.as_str().into(), trigger: trigger.into(), ..it.clone() }
                };
                editor.edit(id, None, now, change).await?
            }
            Request::Pause(id, kind) => {
                let after =
                    random.chance(30).then(|| random.stretch(Duration::from_secs(10), Duration::from_secs(86_400)));
                let until = after.map(|after| now + after);
                let pause = Pause { kind, at: now, source: "client".to_owned(), reason: None, until };
                editor.pause(id, pause, now).await?
            }
            Request::Resume(id) => editor.resume(id, now).await?,
            Request::Delete(id) => {
                self.sim.ledger().acks.asks_to_delete(id);
                editor.delete(id, now).await?;
                let ledger = &mut *self.sim.ledger();
                self.sim.check(ledger.acks.deleted(id, &ledger.world, self.losses));
                return Ok(());
            }
            Request::Trigger(id) => {
                let run = editor.trigger(id, now).await?;
                return self.asked(run);
            }
            Request::Event(id) => return self.event(id, now).await,
            Request::Cancel(_) | Request::CancelAhead(_) => {
                let run = match what {
                    Request::Cancel(run) => Some(run),
                    Request::CancelAhead(id) => self.slot_ahead(id, now).await?,
                    _ => None,
                };
                let Some(run) = run else { return Ok(()) };
                let said = editor.cancel(run, now).await?;
                let ledger = &mut *self.sim.ledger();
                // Between the answer and this look the run may have come to its end.
                let found = ledger.run(run).cloned();
                let has_ended = said == Cancellation::Asked && found.as_ref().is_some_and(|run| run.state.is_final());
                if !has_ended {
                    self.sim.check(ledger.acks.cancelled(run, said, found.as_ref(), self.losses));
                }
                return Ok(());
            }
        };
        let ledger = &mut *self.sim.ledger();
        self.sim.check(ledger.acks.written(written.id, written.version, &ledger.world, self.losses));
        Ok(())
    }

    /// One of the next slots of a schedule, by the id that its run will have.
    async fn slot_ahead(&mut self, id: ScheduleId, now: Timestamp) -> Result<Option<RunId>, EditError> {
        let schedule = self.process.store.schedule(id).await?.ok_or(EditError::NotFound(id))?;
        let schedule = Arc::new(schedule);
        let timetable = self.process.settings.timetables().of(&schedule)?;
        let until = now + Duration::from_secs(2 * 86_400);
        let slots: Vec<Slot> = SlotsAhead::new(&schedule, &timetable, (now, until)).take(AHEAD_MAX).collect();
        if slots.is_empty() {
            return Ok(None);
        }
        Ok(Some(run_ahead(&schedule, &timetable, self.random.pick(&slots)).id))
    }

    fn asked(&self, run: RunId) -> Result<(), EditError> {
        let ledger = &mut *self.sim.ledger();
        let exists = ledger.lives.has(run);
        self.sim.check(ledger.acks.asked(run, exists, self.losses));
        Ok(())
    }

    /// An event comes, now and then twice; and sometimes again when its run may be over.
    async fn event(&mut self, id: ScheduleId, now: Timestamp) -> Result<(), EditError> {
        let schedule = self.process.store.schedule(id).await?.ok_or(EditError::NotFound(id))?;
        if !schedule.is_active() {
            return Ok(());
        }
        let key = SlotKey::event(&self.random.below(1_000_000).to_string());
        for _ in 0..self.random.between(1, 2) {
            if let Some(asked) = self.asked_by_event(&schedule, &key, now)
                && self.process.store.ask(now, asked.clone(), None).await?
            {
                self.asked(asked.id)?;
            }
        }
        let (losses, clocks) = (self.sim.ledger().acks.losses, self.sim.faults().clocks_set());
        // What is noted by a clock that is a day behind is old at once for everybody else.
        let is_old = self.sim.timeline.now().duration_since(now) >= SignedDuration::from_hours(12);
        if self.random.chance(50) && !is_old {
            self.sim.wait(self.random.stretch(Duration::from_secs(1), EVENT_AGAIN)).await;
            let now = self.process.clock.now();
            let Some(asked) = self.asked_by_event(&schedule, &key, now) else { return Ok(()) };
            // Where a clock was set, it may have been forgotten; where commits were lost, it is new.
            let is_same = || losses == self.sim.ledger().acks.losses && clocks == self.sim.faults().clocks_set();
            if is_same() && self.process.store.ask(now, asked, None).await? && is_same() {
                self.sim.check(ensure("I10", false, || format!("event {key} of schedule {id} has two runs")));
            }
        }
        Ok(())
    }

    /// The run that an event asks for.
    fn asked_by_event(&self, schedule: &Schedule, key: &SlotKey, now: Timestamp) -> Option<Run> {
        let Trigger::OnEvent(on) = &*schedule.trigger else { return None };
        let zone = self.process.settings.zones.get(&schedule.zone).expect("the zone data has it");
        let due_at = now.checked_add(on.delay().duration()).unwrap_or(now);
        let terms = Arc::new(Terms::of(schedule));
        let asked =
            Run::asked(RunId(self.sim.ids.next(now)), Some((schedule.id, schedule.version)), key.clone(), now, terms);
        let expires_at = expires_at(schedule.policy.max_delay, &zone, key, now, due_at);
        Some(Run { due_at, expires_at, state: RunState::planned(due_at, 0), ..asked })
    }
}

/// Pauses everything, so that what is left can come to its end.
pub(crate) async fn pause_all(sim: &Arc<Sim>, process: &Process) -> Result<(), EditError> {
    let now = process.clock.now();
    let ids: Vec<ScheduleId> = sim.log.look(|state| state.world.schedules.keys().copied().collect());
    for id in ids {
        let pause = Pause { kind: PauseKind::Paused, at: now, source: "the end".to_owned(), reason: None, until: None };
        match process.editor.pause(id, pause, now).await {
            Ok(_) | Err(EditError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
