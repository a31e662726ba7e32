//! What the journal folds to, against what a snapshot says.

use punctual_core::journal::World;

/// The most differences that are told.
const TOLD_MAX: usize = 100;

/// Every difference between the world that the journal folds to and the snapshot, in words.
pub fn differences(folded: &World, snapshot: &World) -> Vec<String> {
    let mut found = vec![];
    if folded.seq != snapshot.seq {
        found.push(format!("the journal ends with entry {}, the snapshot say {}", folded.seq, snapshot.seq));
    }
    if folded.days != snapshot.days || folded.epoch_floor != snapshot.epoch_floor {
        found.push("the days that have begun, or the epoch floor, differ".to_owned());
    }
    if folded.outages != snapshot.outages {
        found.push("the outages differ".to_owned());
    }
    if folded.tokens != snapshot.tokens {
        found.push("the tokens differ".to_owned());
    }
    for id in folded.schedules.keys().chain(snapshot.schedules.keys().filter(|id| !folded.schedules.contains_key(id))) {
        match (folded.schedules.get(id), snapshot.schedules.get(id)) {
            (Some(a), Some(b)) if a == b => {}
            (Some(_), None) => found.push(format!("schedule {id} is in the journal and not in the snapshot")),
            (None, Some(_)) => found.push(format!("schedule {id} is in the snapshot and not in the journal")),
            (a, b) => found.push(format!("schedule {id} differs: the journal has {a:?}, the snapshot have {b:?}")),
        }
    }
    for id in folded.runs.keys().chain(snapshot.runs.keys().filter(|id| !folded.runs.contains_key(id))) {
        match (folded.runs.get(id), snapshot.runs.get(id)) {
            (Some(a), Some(b)) if a == b => {}
            (Some(_), None) => found.push(format!("run {id} is in the journal and not in the snapshot")),
            (None, Some(_)) => found.push(format!("run {id} is in the snapshot and not in the journal")),
            (a, b) => found.push(format!("run {id} differs: the journal has {a:?}, the snapshot have {b:?}")),
        }
    }
    told(found)
}

/// As much of what was found as anybody reads, and how much more there is.
pub fn told(mut found: Vec<String>) -> Vec<String> {
    if TOLD_MAX < found.len() {
        let more = found.len() - TOLD_MAX;
        found.truncate(TOLD_MAX);
        found.push(format!("and {more} more"));
    }
    found
}
