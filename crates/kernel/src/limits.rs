//! Places: what runs that are at work share, and the limits on it.

use punctual_core::plan::{Lane, Limits};
use punctual_core::schedule::Concurrency;

/// What runs that hold a place share, and are counted by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shared {
    /// By what they are counted.
    pub kind: Kind,
    /// The name of it; none for the limit on all runs.
    pub name: String,
}

/// By what runs are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// All runs together.
    All,
    /// Runs of one agent.
    Agent,
    /// Runs of one project.
    Project,
    /// Runs with one concurrency key.
    Key,
}

impl Shared {
    /// The limit on all runs.
    pub fn all() -> Shared {
        Shared { kind: Kind::All, name: String::new() }
    }

    /// The limit of a lane's agent.
    pub fn agent(lane: &Lane) -> Shared {
        Shared { kind: Kind::Agent, name: lane.agent.clone() }
    }
}

/// The gates of a lane, each with what the lane says about its limit.
pub fn gates_of(lane: &Lane) -> Vec<(Shared, Option<u32>)> {
    let mut gates = vec![(Shared::agent(lane), Some(lane.max_concurrent))];
    if let Some(project) = &lane.project {
        gates.push((Shared { kind: Kind::Project, name: project.clone() }, None));
    }
    if let Some(Concurrency { key, max }) = &lane.concurrency {
        gates.push((Shared { kind: Kind::Key, name: key.clone() }, Some(max.get())));
    }
    gates
}

/// Whether a gate is open: whether a lane that has this one limit passes.
pub fn is_open(limits: &Limits, shared: &Shared, max: Option<u32>, held: u32) -> bool {
    match shared.kind {
        Kind::All => limits.global.is_none_or(|max| held < max),
        Kind::Agent => limits.has_place_for_agent(&shared.name, max.unwrap_or(u32::MAX), held),
        Kind::Project => limits.has_place_for_project(&shared.name, held),
        Kind::Key => max.is_none_or(|max| held < max),
    }
}
