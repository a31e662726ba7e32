//! The tree below the supervisor: asking all of it to end, and killing it.
//!
//! The supervisor is a sub-reaper, so a process whose parent ends becomes its child, whatever session or group it moved
//! to. Two things follow. When the supervisor has no child, nothing of the run lives. And killing its children is
//! enough to kill everything, one generation at a time.

use std::collections::HashMap;
use std::fs;

use rustix::process::{Pid, Signal, getpgid, getpgrp, getpid, kill_process, kill_process_group};

use super::super::processes::{self, Process};

/// Asks every process of the tree to end. One that is stopped must go on to hear it.
pub(super) fn ask_all() {
    for process in descendants() {
        process.signal(Signal::TERM);
        process.signal(Signal::CONT);
    }
}

/// Kills the children, and with each of them all of its process group.
///
/// The ids are safe to use: the supervisor has not waited for these children yet, so even if they are dead, neither
/// their ids nor those of their groups can belong to anybody else. The group is for those that fork faster than they
/// can be listed: the kernel signals a group as a whole, and a fork under way sees the signal. Those that also leave
/// their group each time are met one by one, as soon as they are orphans.
pub(super) fn kill_children() {
    for child in children() {
        // A child that has not left the supervisor's own group yet must not take the supervisor with it.
        if let Ok(group) = getpgid(Some(child))
            && group != getpgrp()
        {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = kill_process(child, Signal::KILL);
    }
}

/// How many processes the tree holds.
pub(super) fn count() -> usize {
    descendants().len()
}

/// The children, dead ones that have not been waited for among them.
fn children() -> Vec<Pid> {
    // One short file instead of a walk through all processes of the machine, but not every kernel has it.
    match fs::read_to_string("/proc/thread-self/children") {
        Ok(list) => list.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect(),
        Err(_) => {
            let own = getpid();
            processes::all().iter().filter(|process| process.parent == Some(own)).map(|process| process.pid).collect()
        }
    }
}

fn descendants() -> Vec<Process> {
    below(getpid(), &processes::all())
}

/// The processes that have `root` among their ancestors.
fn below(root: Pid, all: &[Process]) -> Vec<Process> {
    let mut by_parent: HashMap<Pid, Vec<Process>> = HashMap::new();
    for process in all {
        if let Some(parent) = process.parent {
            by_parent.entry(parent).or_default().push(*process);
        }
    }
    let mut found: Vec<Process> = Vec::new();
    // Taken out as it is used: a list that was read while ids were given out anew might lead in a circle.
    let mut next = by_parent.remove(&root).unwrap_or_default();
    while let Some(process) = next.pop() {
        next.extend(by_parent.remove(&process.pid).unwrap_or_default());
        found.push(process);
    }
    found
}
