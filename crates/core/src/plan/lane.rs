//! Lanes: in which order runs that are ready get the places that are free.
//!
//! A lane holds the planned runs that compete on equal terms. Between lanes the one that has waited longest goes first,
//! where a higher priority counts like an earlier time: [`PRIORITY_WORTH`] per level. So a run is never overtaken for
//! longer than its priority lags behind, and one that floods its lane only waits for itself.

use jiff::{SignedDuration, Timestamp};

use crate::run::Terms;
use crate::schedule::{Concurrency, Priority};

/// How much earlier a level of priority makes a lane.
pub const PRIORITY_WORTH: SignedDuration = SignedDuration::from_mins(10);

/// What the runs of a lane have in common: the limits that they share, and their priority.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane {
    /// The agent, whose limit they share.
    pub agent: String,
    /// The project, whose limit they share.
    pub project: Option<String>,
    /// A key of their own, whose limit they share.
    pub concurrency: Option<Concurrency>,
    /// How many runs of the agent may be at work when one of theirs starts.
    pub max_concurrent: u32,
    /// How urgent they are.
    pub priority: Priority,
}

impl Lane {
    /// The lane of a run.
    pub fn of(terms: &Terms) -> Lane {
        Lane {
            agent: terms.work.agent().to_owned(),
            project: terms.project.clone(),
            concurrency: terms.concurrency.clone(),
            max_concurrent: terms.max_concurrent.get(),
            priority: terms.priority,
        }
    }

    /// Its place among the lanes: the smallest goes first. `head_due_at` is when its first run became due, `turn_at` when a
    /// run of it was last claimed.
    pub fn rank(&self, head_due_at: Timestamp, turn_at: Option<Timestamp>) -> Timestamp {
        let waits_since = turn_at.map_or(head_due_at, |turn_at| turn_at.max(head_due_at));
        waits_since.checked_sub(PRIORITY_WORTH * self.priority.get().into()).unwrap_or(Timestamp::MIN)
    }
}

/// How many runs may be at work, by what they share. What is not named has no limit here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Limits {
    /// In all.
    pub global: Option<u32>,
    /// By agent.
    pub agents: std::collections::BTreeMap<String, u32>,
    /// By project.
    pub projects: std::collections::BTreeMap<String, u32>,
}

/// How many runs that hold a place share something with a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    /// The agent.
    pub agent: u32,
    /// The project.
    pub project: u32,
    /// The key.
    pub key: u32,
}

impl Limits {
    /// Whether another run of a lane may be claimed. The global limit is not a lane's.
    pub fn is_open(&self, lane: &Lane, held: Held) -> bool {
        self.has_place_for_agent(&lane.agent, lane.max_concurrent, held.agent)
            && lane.project.as_ref().is_none_or(|project| self.has_place_for_project(project, held.project))
            && lane.concurrency.as_ref().is_none_or(|concurrency| held.key < concurrency.max.get())
    }

    /// Whether another run of an agent may be claimed that says how many may be at work.
    pub fn has_place_for_agent(&self, agent: &str, max_concurrent: u32, held: u32) -> bool {
        held < max_concurrent && self.agents.get(agent).is_none_or(|max| held < *max)
    }

    /// Whether another run of a project may be claimed.
    pub fn has_place_for_project(&self, project: &str, held: u32) -> bool {
        self.projects.get(project).is_none_or(|max| held < *max)
    }
}
