//! What protects the server, its machine and other runs from a run, on this machine and as this user.
//!
//! For `punctual doctor`: what is missing is said, never silently skipped.

use std::fs;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{PidfdFlags, child_subreaper, geteuid, getpid, parent_process_death_signal, pidfd_open};
use rustix::thread::no_new_privs;

/// One protection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protection {
    /// A short word for programs.
    pub name: &'static str,
    /// Whether it holds here.
    pub strength: Strength,
    /// What it is for, and what its absence means.
    pub meaning: &'static str,
}

/// Whether a protection holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strength {
    /// It does. A run that cannot have it does not start.
    Full,
    /// It does where it can, or in part.
    Partial,
    /// This machine or this user does not have it.
    Missing,
    /// Punctual does not use it.
    Unused,
}

/// All protections of process runs, in the order of what they are for. Asks the machine and changes nothing.
pub fn protections() -> Vec<Protection> {
    let full_if = |is_there: bool| if is_there { Strength::Full } else { Strength::Missing };
    let partial_if = |is_there: bool| if is_there { Strength::Full } else { Strength::Partial };
    let protection = |name, strength, meaning| Protection { name, strength, meaning };
    vec![
        protection(
            "proc",
            full_if(fs::read_dir("/proc/self/fd").is_ok()),
            "the supervisor starts, and finds the processes of its run, through /proc",
        ),
        protection(
            "subreaper",
            full_if(child_subreaper().is_ok()),
            "a process that leaves its session still belongs to its run, and ends with it",
        ),
        protection(
            "server_death",
            Strength::Full,
            "the supervisor ends its run when its socket to the server closes, however the server dies",
        ),
        protection(
            "supervisor_death",
            full_if(parent_process_death_signal().is_ok()),
            "the command is killed when its supervisor dies; its descendants are found by their environment",
        ),
        protection(
            "pidfd",
            partial_if(pidfd_open(getpid(), PidfdFlags::empty()).is_ok()),
            "a signal cannot hit a stranger that got the id of a process that just ended",
        ),
        protection(
            "memfd",
            full_if(memfd_create("probe", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).is_ok()),
            "the run context is handed over without touching a disk",
        ),
        protection(
            "no_new_privs",
            full_if(no_new_privs().is_ok()),
            "a run gains no rights through setuid programs: sudo does not work in it",
        ),
        protection(
            "rlimits",
            Strength::Full,
            "processor time, address space, open files and file size are limited for each process of a run, not for \
             their sum",
        ),
        protection(
            "rlimit_nproc",
            if geteuid().is_root() { Strength::Missing } else { Strength::Partial },
            "the number of processes is limited for the user that the server runs as, and not at all for root",
        ),
        protection(
            "oom_score",
            partial_if(fs::metadata("/proc/self/oom_score_adj").is_ok()),
            "when memory is short, the kernel ends a run sooner than the server",
        ),
        protection(
            "cgroup",
            Strength::Unused,
            "memory and processes of a run are not limited as a whole: put the server into a limited service",
        ),
        protection(
            "landlock",
            Strength::Unused,
            "a run can open every file that the user of the server can, the database of the server among them",
        ),
        protection(
            "other_user",
            Strength::Unused,
            "a run has the user of the server: it can signal the server and its other runs, and look into them",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_used_is_said() {
        let unused: Vec<_> = protections().into_iter().filter(|found| found.strength == Strength::Unused).collect();
        assert_eq!(unused.iter().map(|found| found.name).collect::<Vec<_>>(), ["cgroup", "landlock", "other_user"]);
    }

    #[test]
    fn root_is_told_that_its_processes_are_not_limited() {
        let found = protections().into_iter().find(|found| found.name == "rlimit_nproc").unwrap();
        let expected = if geteuid().is_root() { Strength::Missing } else { Strength::Partial };
        assert_eq!(found.strength, expected);
    }
}
