//! Bugs in what stores do, and in the rules that they carry out; caught by the suite and the differential test.

use super::Bug;

/// Files are below `crates`. What is planted here is the same on every store, so the model is enough.
pub(super) const BUGS: &[Bug] = &[
    ("cap off by one (agent)", "core/src/plan/lane.rs", "held < max_concurrent && ", "held <= max_concurrent && "),
    (
        "project cap off by one",
        "core/src/plan/lane.rs",
        "self.projects.get(project).is_none_or(|max| held < *max)",
        "self.projects.get(project).is_none_or(|max| held <= *max)",
    ),
    ("the schedule's own limit is forgotten", "core/src/plan/lane.rs", "held < max_concurrent && ", ""),
    ("global cap off by one", "store/src/memory/claims.rs", "max as usize <= held", "(max as usize) < held"),
    (
        "slots of an outage that is not noted run",
        "kernel/src/change.rs",
        " && !has_unnoted_outage(draft, &write, planned_until)",
        "",
    ),
    ("settle does not check the epoch", "kernel/src/change.rs", "run.epoch() == settlement.epoch && ", ""),
    ("a stale finish is accepted", "kernel/src/change.rs", "if !is_held || run.epoch() != epoch {", "if !is_held {"),
    ("who handed back still ends it", "kernel/src/change.rs", "if !is_held || run.epoch()", "if run.epoch()"),
    ("turn_at is ignored", "core/src/plan/lane.rs", "|turn_at| turn_at.max(head_due_at)", "|_| head_due_at"),
    ("priority is worth a minute", "core/src/plan/lane.rs", "from_mins(10)", "from_mins(1)"),
    (
        "a hand-back keeps the attempt",
        "core/src/run/state.rs",
        "tally.attempt.saturating_sub(u32::from(!resumes))",
        "tally.attempt",
    ),
    (
        "an expired run is claimed",
        "store/src/memory/claims.rs",
        ".filter(|expires_at| *expires_at < now)",
        ".filter(|expires_at| *expires_at > now)",
    ),
    ("a second DayStarted is accepted", "core/src/journal/world.rs", "date <= begun =>", "date < begun =>"),
    (
        "an outage is not merged",
        "core/src/journal/outages.rs",
        "Some(earlier) => Some(earlier.and(noted.outage)),",
        "Some(_) => Some(noted.outage),",
    ),
    (
        "another digest gets the old answer",
        "kernel/src/change.rs",
        "Some(if is_same { RunWritten::Done(end.state) } else { RunWritten::Stale })",
        "Some(if is_same || true { RunWritten::Done(end.state) } else { RunWritten::Stale })",
    ),
    (
        "the cursor is not checked",
        "kernel/src/change.rs",
        "schedule.cursor == *cursor && schedule.early == *early;",
        "(schedule.cursor == *cursor || true) && schedule.early == *early;",
    ),
    (
        "an edit refreshes touched runs",
        "core/src/journal/world.rs",
        " && run.key.is_slot() && run.is_untouched();",
        " && run.key.is_slot() && run.planned_for().is_some();",
    ),
    (
        "a retry counts as another start",
        "core/src/journal/world.rs",
        "run.has_started && !had_started",
        "run.has_started && matches!(event, RunEvent::Started) || run.has_started && !had_started",
    ),
    (
        "who has renewed its lease is buried",
        "store/src/memory/nodes.rs",
        "dead.contains(&node.lease())",
        "dead.iter().any(|lease| lease.node == node.id)",
    ),
    (
        "leaving gives away what is at work",
        "kernel/src/change.rs",
        "RunState::Claimed { .. } if !is_lost =>",
        "RunState::Claimed { .. } if is_lost =>",
    ),
    (
        "who leaves keeps the planner's lease",
        "store/src/memory/nodes.rs",
        "planner.until = planner.until.min(now);",
        "planner.until = planner.until.max(now);",
    ),
    (
        "a queue lets its second go",
        "core/src/journal/world.rs",
        "queues && is_before(other)",
        "queues && is_before(other) && false",
    ),
    (
        "what follows waits for nobody",
        "core/src/journal/world.rs",
        "!leader.has_started && !leader.state.is_final()",
        "!leader.has_started && leader.state.is_final()",
    ),
    (
        "a day's run that waits is skipped",
        "kernel/src/change.rs",
        "MaxDelay::Day if waits_for_place => RunEvent::Kept",
        "MaxDelay::Day if waits_for_place && false => RunEvent::Kept",
    ),
    (
        "an agent is gone after nine minutes",
        "kernel/src/change.rs",
        "AGENT_GONE_AFTER: SignedDuration = SignedDuration::from_mins(10)",
        "AGENT_GONE_AFTER: SignedDuration = SignedDuration::from_mins(9)",
    ),
    (
        "the base drops an entry that went",
        "store/src/memory/journal.rs",
        "for entry in &gone {",
        "for entry in gone.iter().take(gone.len().saturating_sub(1)) {",
    ),
    (
        "pruning reaches what is not old",
        "store/src/memory/journal.rs",
        "take_while(|entry| entry.at < before)",
        "take_while(|entry| entry.at <= before)",
    ),
    (
        "a run that is over stays",
        "core/src/journal/world.rs",
        "if self.runs[&id].state.is_final() {",
        "if self.runs[&id].state.is_final() && self.runs[&id].has_started {",
    ),
    (
        "the end of a run is told without its last attempt",
        "core/src/journal/entry.rs",
        "last_end: run.last_end.filter(|_| end.is_some()),",
        "last_end: None,",
    ),
    (
        "an event is forgotten with its run",
        "store/src/memory/plan.rs",
        "is_some_and(|key| state.answers.contains_key(key));",
        "is_some_and(|key| state.answers.contains_key(key) && false);",
    ),
    (
        "a slot that has its run gets another",
        "kernel/src/change.rs",
        "            if !plan.runs.is_empty() {\n",
        "            if plan.runs.is_empty() {\n",
    ),
    (
        "history forgets cancellations",
        "core/src/journal/mark.rs",
        "RunEvent::Cancelled => Some(Verdict::Cancelled),",
        "RunEvent::Cancelled => None,",
    ),
    (
        "is_busy sees the later ones of its batch",
        "store/src/memory/claims.rs",
        " && !later.contains(&other.id)",
        " && (other.id != run.id)",
    ),
    (
        "a batch's conflict spoils the rest",
        "store/src/memory/plan.rs",
        "            answers.push(written);\n",
        "            answers.push(written);\n            if written == Written::Conflict { break; }\n",
    ),
    (
        "a conflict is half written",
        "store/src/memory/plan.rs",
        "if written == Written::Done {",
        "if written == Written::Done || !draft.entries.is_empty() {",
    ),
    (
        "what finds another at work waits for a place",
        "kernel/src/change.rs",
        "if draft.world.overlaps(&run) {",
        "if draft.world.overlaps(&run) && false {",
    ),
    (
        "what replaces calls nobody off",
        "kernel/src/change.rs",
        "other.schedule == run.schedule && other.is_replaced_by(run)",
        "other.schedule == run.schedule && other.is_replaced_by(run) && false",
    ),
    (
        "what goes on after a wait is skipped for another",
        "core/src/journal/world.rs",
        "matches!(run.state, RunState::Planned { resumes: false, .. }) && !run.is_parked",
        "matches!(run.state, RunState::Planned { .. }) && !run.is_parked",
    ),
    ("settle starts twice", "kernel/src/change.rs", ".filter(|run| !starts.contains(&run.id))", ""),
];

/// Bugs in how the sums of history follow it; caught by what SQLite's have to be.
pub(super) const SUMS: &[Bug] = &[
    (
        "what the sums have is counted twice",
        "store/src/sqlite/snapshot.rs",
        "sums::add(connection, snapshot_seq(connection)?, piece.seq)?;",
        "sums::add(connection, 0, piece.seq)?;",
    ),
    (
        "what the sums have not got yet is not added",
        "store/src/sums.rs",
        "vec![(table, days.clone()), (\"unsummed\", days)]",
        "vec![(table, days)]",
    ),
    (
        "a day that is asked for in part is left out",
        "store/src/sums.rs",
        "if filter.from != from {",
        "if filter.from != from && false {",
    ),
    (
        "what is pruned stays in the sums",
        "store/src/sqlite/base.rs",
        "    sums::take_out(connection, base.seq, last.seq)?;\n",
        "",
    ),
];
