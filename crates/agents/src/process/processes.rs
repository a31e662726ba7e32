//! Other processes, as `/proc` shows them, and signals to the right one of them.
//!
//! A process id is only a number: between reading it and using it, its process may end and another may get it. A
//! [`Process`] therefore carries the moment of its start, and [`Process::signal`] compares it on a handle that can no
//! longer change its mind.

use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Pid,
    pub(super) parent: Option<Pid>,
    /// In ticks since the machine started.
    started_at: u64,
}

/// All processes that this one can see. Those that come or go meanwhile may be missing or be gone.
pub(super) fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter_map(Process::read).collect()
}

impl Process {
    fn read(pid: i32) -> Option<Process> {
        Process::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Reads `42 (name) S 1 42 42 …`. The name may hold anything, blanks and brackets too, so the rest begins after the
    /// last bracket.
    fn parse(stat: &str) -> Option<Process> {
        let pid = stat.split(' ').next()?;
        let (_, rest) = stat.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let parent = fields.nth(1)?;
        let started_at = fields.nth(17)?;
        Some(Process {
            pid: Pid::from_raw(pid.parse().ok()?)?,
            parent: Pid::from_raw(parent.parse().ok()?),
            started_at: started_at.parse().ok()?,
        })
    }

    /// Sends a signal, unless the process is gone. Refusals are not told: a process that cannot be reached still shows
    /// up in the next look around.
    pub(super) fn signal(&self, signal: Signal) {
        match pidfd_open(self.pid, PidfdFlags::empty()) {
            Ok(handle) => {
                if self.is_the_same() {
                    let _ = pidfd_send_signal(handle, signal);
                }
            }
            Err(rustix::io::Errno::SRCH) => {}
            // Before Linux 5.3, or forbidden by a filter of the container: the next best, with a gap of microseconds.
            Err(_) => {
                if self.is_the_same() {
                    let _ = kill_process(self.pid, signal);
                }
            }
        }
    }

    fn is_the_same(&self) -> bool {
        Process::read(self.pid.as_raw_nonzero().get()).is_some_and(|now| now.started_at == self.started_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_does_not_shift_the_fields() {
        let stat = "42 (a) b (c) R 7 42 42 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 12345 2600960 200";
        let process = Process::parse(stat).unwrap();
        assert_eq!(process, Process { pid: Pid::from_raw(42).unwrap(), parent: Pid::from_raw(7), started_at: 12345 });
    }

    #[test]
    fn this_process_is_among_all() {
        assert!(all().iter().any(|process| process.pid == rustix::process::getpid()));
    }
}
