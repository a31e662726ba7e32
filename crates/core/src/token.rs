//! Tokens: who may do what over the API. The secret itself is nowhere but with whoever holds it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::TokenId;

/// What a token allows, and how it is known again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Its id.
    pub id: TokenId,
    /// What people call it.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// The projects that it is for; none is all of them, and what belongs to no project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projects: Option<BTreeSet<String>>,
    /// The agents that a worker may carry out runs for.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub agents: BTreeSet<String>,
    /// The SHA-256 of the secret, in hexadecimal digits.
    pub hash: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Carrying out runs of its agents, and nothing else.
    Worker,
    /// Reading.
    Viewer,
    /// Reading; creating and changing schedules; asking for runs and calling them off.
    Editor,
    /// Everything but defining agents, which is the operator's alone.
    Admin,
}

impl Token {
    /// Whether it is still good at an instant.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|expires_at| now < expires_at)
    }

    /// Whether it is for what belongs to a project, or to none.
    pub fn reaches(&self, project: Option<&str>) -> bool {
        let Some(projects) = &self.projects else { return true };
        project.is_some_and(|project| projects.contains(project))
    }
}
