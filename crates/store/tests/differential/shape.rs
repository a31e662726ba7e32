//! Shapes: what the schedules of a differential test differ in.

use std::num::NonZeroU32;
use std::sync::LazyLock;

use punctual_core::Elapsed;
use punctual_core::run::{AfterLoss, Backoff, RetryPolicy};
use punctual_core::schedule::{
    Concurrency, Cursor, EndReason, MaxDelay, Overlap, Pause, PauseKind, Priority, Schedule, ScheduleState,
};
use serde_json::json;

use super::dice::Dice;
use super::names::{Millis, schedule_id, time};

pub(crate) const AGENTS: [&str; 4] = ["a", "b", "c", "rare"];
pub(crate) const PROJECTS: [&str; 2] = ["p", "q"];
pub(crate) const ZONES: [&str; 3] = ["UTC", "Asia/Tokyo", "Europe/Paris"];

/// What is peculiar about a schedule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) agent: &'static str,
    pub(crate) project: Option<&'static str>,
    pub(crate) key: Option<(&'static str, u32)>,
    pub(crate) priority: u8,
    pub(crate) max_concurrent: u32,
    pub(crate) overlap: Overlap,
    pub(crate) max_delay: MaxDelay,
    pub(crate) attempts: u32,
    pub(crate) doubles: bool,
    pub(crate) holds: bool,
    pub(crate) zone: &'static str,
    pub(crate) state: char,
}

impl Shape {
    pub(crate) fn roll(dice: &mut Dice) -> Shape {
        let minutes = [1, 5, 20].map(|minutes| MaxDelay::Duration(Elapsed::from_seconds(minutes * 60)));
        Shape {
            agent: if dice.chance(10) { "rare" } else { dice.one(&AGENTS[..3]) },
            project: if dice.chance(50) { Some(dice.one(&PROJECTS)) } else { None },
            key: if dice.chance(30) { Some((dice.one(&["k", "l"]), dice.between(1, 3) as u32)) } else { None },
            priority: dice.one(&[1, 4, 5, 5, 6, 10]),
            max_concurrent: dice.one(&[1, 2, 3, 100]),
            overlap: dice.one(&[Overlap::Allow, Overlap::Skip, Overlap::Queue, Overlap::Replace]),
            max_delay: dice.one(&[MaxDelay::None, MaxDelay::Day, minutes[0], minutes[1], minutes[2]]),
            attempts: dice.one(&[1, 2, 3, 5]),
            doubles: dice.chance(50),
            holds: dice.chance(20),
            zone: dice.one(&ZONES),
            state: if dice.chance(85) { 'a' } else { dice.one(&['p', 'd', 'e']) },
        }
    }

    /// The same with one difference.
    pub(crate) fn edited(self, dice: &mut Dice) -> Shape {
        let other = Shape::roll(dice);
        match dice.below(8) {
            0 => Shape { agent: other.agent, ..self },
            1 => Shape { project: other.project, ..self },
            2 => Shape { key: other.key, ..self },
            3 => Shape { priority: other.priority, max_concurrent: other.max_concurrent, ..self },
            4 => Shape { overlap: other.overlap, ..self },
            5 => Shape { max_delay: other.max_delay, zone: other.zone, ..self },
            6 => Shape { attempts: other.attempts, doubles: other.doubles, holds: other.holds, ..self },
            _ => Shape { state: if self.state == 'a' { other.state } else { 'a' }, ..self },
        }
    }

    pub(crate) fn schedule(&self, number: u32, version: u64, cursor: Millis) -> Schedule {
        let mut schedule = PLAIN.clone();
        (schedule.id, schedule.version) = (schedule_id(number), version);
        schedule.work = punctual_core::schedule::Work::Agent {
            agent: self.agent.into(),
            prompt: Default::default(),
            inputs: serde_json::Map::new(),
            inputs_policy: Default::default(),
        };
        schedule.project = self.project.map(str::to_owned).into();
        schedule.zone = self.zone.into();
        schedule.cursor = Cursor::starting(time(cursor));
        let pause = |kind| {
            ScheduleState::Paused(Box::new(Pause {
                kind,
                at: time(0),
                source: "dice".to_owned(),
                reason: None,
                until: None,
            }))
        };
        schedule.state = match self.state {
            'p' => pause(PauseKind::Paused),
            'd' => pause(PauseKind::Disabled),
            'e' => ScheduleState::Ended(EndReason::Cancelled),
            _ => ScheduleState::Active,
        };
        let policy = &mut schedule.policy;
        let count = |number| NonZeroU32::new(number).expect("it is not 0");
        policy.concurrency = self.key.map(|(key, max)| Concurrency { key: key.to_owned(), max: count(max) });
        policy.priority = Priority::new(self.priority).expect("it is in range");
        policy.max_concurrent = count(self.max_concurrent);
        (policy.overlap, policy.max_delay) = (self.overlap, self.max_delay);
        policy.after_loss = if self.holds { AfterLoss::Hold } else { AfterLoss::Retry };
        policy.retry = RetryPolicy {
            max_attempts: count(self.attempts),
            backoff: if self.doubles { Backoff::Exponential } else { Backoff::Fixed },
            delay: Elapsed::from_seconds(20),
            ..RetryPolicy::default()
        };
        schedule
    }
}

static PLAIN: LazyLock<Schedule> = LazyLock::new(|| {
    let plain = json!({
        "id": "00000000-0000-0000-0000-000000000000",
        "version": 1,
        "work": {"agent": {"agent": "a"}},
        "trigger": {"cron": [{"expression": "* * * * *"}]},
        "zone": "UTC",
        "cursor": {"at": "2026-01-05T00:00:00Z"},
    });
    serde_json::from_value(plain).expect("it is a schedule")
});
