//! Places: what runs that are at work share, and the limits on it.

use std::num::NonZeroU32;

use punctual_core::plan::{Held, Lane, Limits};
use punctual_core::schedule::{Concurrency, Priority};

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

impl Kind {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::All => "all",
            Kind::Agent => "agent",
            Kind::Project => "project",
            Kind::Key => "key",
        }
    }

    /// The kind that a word stands for; all runs for an unknown one.
    pub fn from_word(word: &str) -> Kind {
        match word {
            "agent" => Kind::Agent,
            "project" => Kind::Project,
            "key" => Kind::Key,
            _ => Kind::All,
        }
    }
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

    /// Everything that a run of a lane is counted by.
    pub fn all_of(lane: &Lane) -> impl Iterator<Item = Shared> {
        let gates = gates_of(lane).into_iter().map(|(shared, _)| shared);
        std::iter::once(Shared::all()).chain(gates)
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
    let mut lane = Lane {
        agent: String::new(),
        project: None,
        concurrency: None,
        max_concurrent: u32::MAX,
        priority: Priority::default(),
    };
    let name = shared.name.clone();
    let held = match shared.kind {
        Kind::All => return limits.global.is_none_or(|max| held < max),
        Kind::Agent => {
            (lane.agent, lane.max_concurrent) = (name, max.unwrap_or(u32::MAX));
            Held { agent: held, ..Held::default() }
        }
        Kind::Project => {
            lane.project = Some(name);
            Held { project: held, ..Held::default() }
        }
        Kind::Key => {
            let max = max.and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MAX);
            lane.concurrency = Some(Concurrency { key: name, max });
            Held { key: held, ..Held::default() }
        }
    };
    limits.is_open(&lane, held)
}
