//! Descriptors: connections leave enough of them for runs.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

use crate::config::Config;

/// What the database, the log, files that are being read and requests to other servers need.
const OWN: u64 = 128;

/// What a process at work needs: its pipes, its supervisor, and what starting it takes.
const PER_PROCESS: u64 = 8;

/// What a workflow on another server needs.
const PER_REMOTE: u64 = 2;

/// So few connections are served whatever the limit is.
const CONNECTIONS_MIN: u64 = 16;

/// How many connections may be open. Raises the soft limit on open files as far as that is needed: agents get a limit of their own.
pub(super) fn connections(config: &Config) -> usize {
    let wanted = u64::from(config.server.max_connections);
    let reserve = reserve(config.engine.executor_pool_size, config.conductor.max_running);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let needed = wanted + reserve;
    let current = current.unwrap_or(u64::MAX);
    let mut limit = current;
    if current < needed {
        let raised = needed.min(maximum.unwrap_or(u64::MAX));
        if setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }).is_ok() {
            limit = raised;
        }
    }
    let served = served(wanted, reserve, limit);
    if served < wanted {
        warn!(
            "this process may open {limit} files and keeps {reserve} for runs: at most {served} connections are served, not {wanted}; \
             raise the hard limit on open files (`ulimit -Hn`)"
        );
    }
    served as usize
}

/// What is kept for others than connections.
fn reserve(processes: u32, remote: u32) -> u64 {
    OWN + PER_PROCESS * u64::from(processes) + PER_REMOTE * u64::from(remote)
}

/// How many connections are served under a limit.
fn served(wanted: u64, reserve: u64, limit: u64) -> u64 {
    wanted.min(limit.saturating_sub(reserve).max(CONNECTIONS_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_come_before_connections() {
        let reserve = reserve(8, 64);
        assert_eq!(reserve, 320);
        assert_eq!(served(512, reserve, 1_048_576), 512);
        assert_eq!(served(512, reserve, 832), 512);
        assert_eq!(served(512, reserve, 400), 80);
        assert_eq!(served(512, reserve, 256), 16);
    }
}
