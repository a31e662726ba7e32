//! As whom PostgreSQL runs: it refuses to be root.

use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, bail};

use crate::shell::{is_root, said};

/// Who may stand in for root, the most fitting first.
const NAMES: [&str; 2] = ["postgres", "nobody"];

/// A user that is not root, and its group.
#[derive(Clone, Copy)]
pub(super) struct Account {
    user: u32,
    group: u32,
}

impl Account {
    /// As whom the programs have to run; `None` means as whoever runs this.
    pub(super) fn for_programs() -> anyhow::Result<Option<Account>> {
        if !is_root() {
            return Ok(None);
        }
        for name in NAMES {
            if let (Some(user), Some(group)) = (said("id", &["-u", name]), said("id", &["-g", name])) {
                let account = Account {
                    user: user.parse().with_context(|| format!("reading the number of the user {name}"))?,
                    group: group.parse().with_context(|| format!("reading the number of the group of {name}"))?,
                };
                return Ok(Some(account));
            }
        }
        bail!("PostgreSQL refuses to run as root, and there is no user {} to run it", NAMES.join(" or "))
    }
}

/// Makes a command run as an account, without any of root's groups.
pub(super) fn run_as(command: &mut Command, account: Option<Account>) {
    if let Some(Account { user, group }) = account {
        // The standard library forgets the other groups when it changes the user.
        command.uid(user).gid(group);
    }
}
