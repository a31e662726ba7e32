//! Who asked for a change.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{RunId, TokenId};

/// Who asked for a change, and why: kept in the journal with the change. What nodes do by themselves is by nobody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct By {
    /// Who.
    pub actor: Actor,
    /// Why, in their own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How to know the same request again. Not in the journal: it matters for a day.
    #[serde(skip)]
    pub once: Option<Once>,
}

/// A request that may come again, because its answer was lost: under the same key it is carried out once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Once {
    /// The key, and whose it is.
    pub key: String,
    /// A digest of what is asked for: another request under the same key is a mistake.
    pub digest: u64,
}

/// Who asks for changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Actor {
    /// The operator: the configuration file, or a command beside the database.
    Operator,
    /// Somebody with a token.
    Token {
        /// The token.
        id: TokenId,
        /// What people call it.
        name: String,
    },
    /// A run, with a token of its own.
    Run {
        /// The run.
        run: RunId,
    },
}

impl By {
    /// An actor who gives no reason.
    pub fn new(actor: Actor) -> By {
        By { actor, reason: None, once: None }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Actor::Operator => f.write_str("the operator"),
            Actor::Token { name, .. } => write!(f, "token {name}"),
            Actor::Run { run } => write!(f, "run {run}"),
        }
    }
}
