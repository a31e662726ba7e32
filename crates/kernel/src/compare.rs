//! What the journal folds to, against what the rows say; and checkpoints, which are the one in terms of the other.

use punctual_core::journal::{Checkpoint, World};

/// The most schedules and runs in one part of a checkpoint.
pub const PART_MAX: usize = 500;

/// The most differences that are told.
const TOLD_MAX: usize = 100;

/// Every difference between the world that the journal folds to and the rows, in words.
pub fn differences(folded: &World, rows: &World) -> Vec<String> {
    let mut found = vec![];
    if folded.seq != rows.seq {
        found.push(format!("the journal ends with entry {}, the rows say {}", folded.seq, rows.seq));
    }
    if folded.days != rows.days || folded.epoch_floor != rows.epoch_floor {
        found.push("the days that have begun, or the epoch floor, differ".to_owned());
    }
    if folded.tokens != rows.tokens {
        found.push("the tokens differ".to_owned());
    }
    for id in folded.schedules.keys().chain(rows.schedules.keys().filter(|id| !folded.schedules.contains_key(id))) {
        match (folded.schedules.get(id), rows.schedules.get(id)) {
            (Some(a), Some(b)) if a == b => {}
            (Some(_), None) => found.push(format!("schedule {id} is in the journal and not in the rows")),
            (None, Some(_)) => found.push(format!("schedule {id} is in the rows and not in the journal")),
            (a, b) => found.push(format!("schedule {id} differs: the journal has {a:?}, the rows have {b:?}")),
        }
    }
    for id in folded.runs.keys().chain(rows.runs.keys().filter(|id| !folded.runs.contains_key(id))) {
        match (folded.runs.get(id), rows.runs.get(id)) {
            (Some(a), Some(b)) if a == b => {}
            (Some(_), None) => found.push(format!("run {id} is in the journal and not in the rows")),
            (None, Some(_)) => found.push(format!("run {id} is in the rows and not in the journal")),
            (a, b) => found.push(format!("run {id} differs: the journal has {a:?}, the rows have {b:?}")),
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

/// The world in parts, as entries of the journal have it.
pub fn checkpoints(world: &World) -> Vec<Checkpoint> {
    let schedules: Vec<_> = world.schedules.values().cloned().collect();
    let runs: Vec<_> = world.runs.values().cloned().collect();
    let schedules = schedules.chunks(PART_MAX).map(|part| (part.to_vec(), vec![]));
    let runs = runs.chunks(PART_MAX).map(|part| (vec![], part.to_vec()));
    let mut contents: Vec<_> = schedules.chain(runs).collect();
    if contents.is_empty() {
        contents.push((vec![], vec![]));
    }
    let parts = contents.len() as u32;
    let part = |(index, (schedules, runs))| {
        let part = index as u32 + 1;
        let days = if part == parts { world.days.clone() } else { Default::default() };
        let epoch_floor = if part == parts { world.epoch_floor } else { 0 };
        let tokens = if part == parts { (*world.tokens).clone() } else { Default::default() };
        Checkpoint { part, parts, schedules, runs, days, epoch_floor, tokens }
    };
    contents.into_iter().enumerate().map(part).collect()
}
