//! Who may come in, and what they may do.

mod doors;
mod guard;
mod secret;

pub use doors::Doors;
pub(crate) use guard::{Caller, bad_token, guard, no_token, not_allowed};
pub use secret::Secret;

use punctual_core::Role;

/// What a route needs of whoever comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// Nothing: health, for whatever watches the process.
    Nobody,
    /// To read.
    View,
    /// To change schedules, and to ask for runs and call them off.
    Edit,
    /// Everything else.
    Administer,
}

impl Right {
    /// Whether a role has it.
    pub fn is_held_by(self, role: Role) -> bool {
        match self {
            Right::Nobody => true,
            // What a worker may do has routes of its own.
            Right::View => matches!(role, Role::Viewer | Role::Editor | Role::Admin),
            Right::Edit => matches!(role, Role::Editor | Role::Admin),
            Right::Administer => role == Role::Admin,
        }
    }

    /// Its name in the description of the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Right::Nobody => "nobody",
            Right::View => "viewer",
            Right::Edit => "editor",
            Right::Administer => "admin",
        }
    }
}
