//! Steps: one call of a store each, with all that it is given. They mean the same on any store, in any order.

use punctual_core::run::{RunEvent, SkipReason};

use super::names::{Millis, RunNumber};
use super::shape::Shape;
use punctual_store::Decision;

/// One call, at a time.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) now: Millis,
    pub(crate) op: Op,
}

#[derive(Debug, Clone)]
pub(crate) enum Op {
    Plan(Vec<Write>),
    Ask(Asked),
    Cancel { run: RunNumber },
    Resume { run: RunNumber },
    Claim { node: u32, limit: usize, agents: Vec<&'static str>, caps: Caps },
    Start { node: u32, limit: usize, agents: Vec<&'static str>, caps: Caps },
    Settle(Vec<Settled>),
    Finish(Vec<Finished>),
    Join(Alive),
    Renew(Alive),
    Leave { node: u32 },
    Bury,
    TakePlanner(Alive),
    NoteOutage { node: u32, from: Millis },
    BeginDay { zone: &'static str, day: i8 },
    ForgetAnswers { before: Millis },
    Prune { before: Millis },
    Read(Read),
}

#[derive(Debug, Clone)]
pub(crate) enum Read {
    Schedule { schedule: u32 },
    Schedules { after: Option<u32>, limit: usize },
    Count,
    ToPlan { zone_data: &'static str, limit: usize },
    NextPlanAt,
    Subject { schedule: u32 },
    ZoneDays,
    Run { run: RunNumber },
    Runs { schedule: Option<u32>, from: Option<Millis>, until: Option<Millis>, which: Which, limit: usize },
    Nodes,
    Entries { after: u64, limit: usize },
    About { schedule: u32, run: RunNumber, each: usize },
    Base,
    Head,
    History { schedule: Option<u32>, run: Option<RunNumber>, offset: usize, limit: usize },
    Verify,
}

/// Which runs are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    Live,
    NotSucceeded,
}

/// A planning decision.
#[derive(Debug, Clone)]
pub(crate) struct Write {
    pub(crate) schedule: u32,
    /// The version and cursor that it is based on; none for a schedule that is new.
    pub(crate) expects: Option<(u64, Millis)>,
    pub(crate) change: Change,
    pub(crate) skips: Vec<Skips>,
    pub(crate) cancelled: Vec<RunNumber>,
    pub(crate) plan: Option<Planned>,
}

#[derive(Debug, Clone)]
pub(crate) enum Change {
    None,
    Put { version: u64, cursor: Millis, shape: Shape },
    Delete { withdrawn: Vec<RunNumber> },
}

#[derive(Debug, Clone)]
pub(crate) struct Skips {
    pub(crate) version: u64,
    pub(crate) from: Millis,
    pub(crate) count: u64,
    pub(crate) reason: SkipReason,
}

#[derive(Debug, Clone)]
pub(crate) struct Planned {
    pub(crate) version: u64,
    pub(crate) cursor: Millis,
    pub(crate) plan_at: Option<Millis>,
    pub(crate) zone_data: &'static str,
    /// What is left of an outage: from, until, and from where on slots are kept.
    pub(crate) outage: Option<(Millis, Millis, Option<Millis>)>,
    pub(crate) runs: Vec<Slot>,
    pub(crate) moved: Vec<Slot>,
    pub(crate) withdrawn: Vec<RunNumber>,
}

/// A run and its slot.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    pub(crate) run: RunNumber,
    pub(crate) key: Millis,
    pub(crate) scheduled: Millis,
    pub(crate) due: Millis,
    pub(crate) expires: Option<Millis>,
    pub(crate) follows: Option<RunNumber>,
}

#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) run: RunNumber,
    pub(crate) schedule: Option<u32>,
    /// The event; none for a person's request.
    pub(crate) event: Option<u8>,
    pub(crate) due: Millis,
    pub(crate) expires: Option<Millis>,
    pub(crate) shape: Shape,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Caps {
    pub(crate) global: Option<u32>,
    pub(crate) agents: Vec<(&'static str, u32)>,
    pub(crate) projects: Vec<(&'static str, u32)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Settled {
    pub(crate) run: RunNumber,
    pub(crate) epoch: u64,
    pub(crate) decision: Decision,
}

#[derive(Debug, Clone)]
pub(crate) struct Finished {
    pub(crate) run: RunNumber,
    pub(crate) epoch: u64,
    pub(crate) event: RunEvent,
    pub(crate) said: u8,
}

#[derive(Debug, Clone)]
pub(crate) struct Alive {
    pub(crate) node: u32,
    pub(crate) lease: u32,
    pub(crate) agents: Vec<&'static str>,
}
