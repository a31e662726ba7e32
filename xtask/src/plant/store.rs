//! Bugs in what stores do, and in the rules that they carry out; caught by the suite and the differential test.

use super::Bug;

/// Files are below `crates`. What is planted here is the same on every store, so the model is enough.
pub(super) const BUGS: &[Bug] = &[
    ("cap off by one (agent)", "core/src/plan/lane.rs", "held.agent < agent_max", "held.agent <= agent_max"),
    ("project cap off by one", "core/src/plan/lane.rs", "held.project < *max", "held.project <= *max"),
    (
        "the schedule's own limit is forgotten",
        "core/src/plan/lane.rs",
        "|max| lane.max_concurrent.min(*max)",
        "|max| *max",
    ),
    ("global cap off by one", "store/src/memory/claims.rs", "max as usize <= held", "(max as usize) < held"),
    ("settle does not check the epoch", "store/src/change.rs", "run.epoch() == settlement.epoch && ", ""),
    ("a stale finish is accepted", "store/src/change.rs", "if !is_held || run.epoch() != epoch {", "if !is_held {"),
    ("who handed back still ends it", "store/src/change.rs", "if !is_held || run.epoch()", "if run.epoch()"),
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
        "core/src/journal/world.rs",
        "record.outage.map_or(outage, |earlier| earlier.and(outage))",
        "outage",
    ),
    (
        "another digest gets the old answer",
        "store/src/change.rs",
        "return if is_same { RunWritten::Done(end.state) } else { RunWritten::Stale };",
        "let _ = is_same; return RunWritten::Done(end.state);",
    ),
    (
        "the cursor is not checked",
        "store/src/change.rs",
        "found.schedule.cursor == *cursor;",
        "(found.schedule.cursor == *cursor || true);",
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
        "store/src/change.rs",
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
        "store/src/change.rs",
        "MaxDelay::Day if waits_for_place => RunEvent::Kept",
        "MaxDelay::Day if waits_for_place && false => RunEvent::Kept",
    ),
    (
        "an agent is gone after nine minutes",
        "store/src/change.rs",
        "AGENT_GONE_AFTER: SignedDuration = SignedDuration::from_mins(10)",
        "AGENT_GONE_AFTER: SignedDuration = SignedDuration::from_mins(9)",
    ),
    (
        "pruning forgets the days",
        "store/src/compare.rs",
        "if part == parts { world.days.clone() }",
        "if part == parts + 1 { world.days.clone() }",
    ),
    (
        "history forgets cancellations",
        "store/src/compare.rs",
        "RunEvent::Skipped(_) | RunEvent::Cancelled",
        "RunEvent::Skipped(_)",
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
    ("settle starts twice", "store/src/change.rs", ".filter(|run| !starts.contains(&run.id))", ""),
];
