//! The roster: the agents of a node, how much they may do at once, and what they cost. It is exchanged as a whole when the configuration is
//! read again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use punctual_core::Elapsed;
use punctual_core::plan::{AgentApproval, Limits};

use punctual_store::AgentFacts;

use crate::prices::Prices;

/// The most that an agent's work may do: what a schedule that asks for approval asks it for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Risk {
    /// Look at things.
    Read,
    /// Change things.
    Write,
    /// Run programs, and so do anything.
    Exec,
}

impl Risk {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Risk::Read => "read",
            Risk::Write => "write",
            Risk::Exec => "exec",
        }
    }

    /// Whether it may change anything: a schedule that asks for approval asks for it then.
    pub fn may_change(self) -> bool {
        Risk::Read < self
    }
}

/// What kind of place the work of an agent takes: work of one kind never keeps that of another from beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Processes of this machine.
    Process,
    /// Calls of other servers, which mostly wait.
    Remote,
}

/// What is known of an agent besides how its work is carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentInfo {
    /// What carries its work out.
    pub runner: &'static str,
    /// What it may do.
    pub risk: Risk,
    /// Which of its runs need an approval.
    pub approval: AgentApproval,
    /// How long a run may take, unless its schedule says otherwise.
    pub timeout: Elapsed,
    /// How many of its runs may be at work.
    pub max_concurrent: Option<u32>,
}

/// The agent that every node has: it has a Conductor server start workflows. No agent of a configuration can be called so.
pub const STARTER: &str = "conductor:start";

/// Who starts workflows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Workflows {
    /// Agents that stand in for workflows, by the names of these.
    pub agents: BTreeMap<String, String>,
    /// Whether there is a server that starts the others.
    pub has_server: bool,
}

impl Workflows {
    /// The agent that starts a workflow or stands in for it.
    pub fn agent_for(&self, workflow: &str) -> &str {
        self.agents.get(workflow).map_or(STARTER, String::as_str)
    }

    /// Whether nobody starts a workflow: each try will fail.
    pub fn lacks(&self, workflow: &str) -> bool {
        !self.has_server && !self.agents.contains_key(workflow)
    }
}

/// The agents and limits that are in force.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Agents {
    /// What they are called.
    pub names: Arc<BTreeSet<String>>,
    /// What is known of each.
    pub infos: Arc<BTreeMap<String, AgentInfo>>,
    /// What admission asks of each.
    pub facts: Arc<BTreeMap<String, AgentFacts>>,
    /// How many runs may be at work, by what they share.
    pub limits: Arc<Limits>,
    /// What their models cost.
    pub prices: Arc<Prices>,
    /// Who starts workflows.
    pub workflows: Arc<Workflows>,
}

impl AgentInfo {
    /// What kind of place its work takes.
    pub fn class(&self) -> Class {
        if self.runner == "workflow" { Class::Remote } else { Class::Process }
    }
}

impl Agents {
    /// What kind of place the work of an agent takes. What nobody knows is a process.
    pub fn class_of(&self, agent: &str) -> Class {
        self.infos.get(agent).map_or(Class::Process, AgentInfo::class)
    }

    /// These agents, under these limits.
    pub fn new(infos: BTreeMap<String, AgentInfo>, limits: Limits) -> Agents {
        let names = infos.keys().cloned().collect();
        let facts = |info: &AgentInfo| AgentFacts { may_change: info.risk.may_change(), approval: info.approval };
        let facts = infos.iter().map(|(name, info)| (name.clone(), facts(info))).collect();
        Agents {
            names: Arc::new(names),
            infos: Arc::new(infos),
            facts: Arc::new(facts),
            limits: Arc::new(limits),
            prices: Arc::default(),
            workflows: Arc::default(),
        }
    }

    /// Agents of which only the names matter: they may do anything, and there are no limits.
    pub fn named(names: impl IntoIterator<Item = String>) -> Agents {
        let info = AgentInfo {
            runner: "process",
            risk: Risk::Exec,
            approval: AgentApproval::Schedule,
            timeout: Elapsed::from_seconds(900),
            max_concurrent: None,
        };
        Agents::new(names.into_iter().map(|name| (name, info.clone())).collect(), Limits::default())
    }
}

/// Holds what is in force.
#[derive(Debug, Default)]
pub struct Roster(RwLock<Agents>);

impl Roster {
    /// A roster with these agents.
    pub fn new(agents: Agents) -> Roster {
        Roster(RwLock::new(agents))
    }

    /// What is in force now.
    pub fn now(&self) -> Agents {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts others in force. What is at work goes on.
    pub fn exchange(&self, agents: Agents) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = agents;
    }
}
