//! Bugs that need crashes, lost answers or a clock that jumps to show; caught by the rules of the simulation.
//!
//! A bug that makes a loop go round without end makes the simulation slow, not wrong: plant another.

use std::path::Path;

use anyhow::{Context, bail, ensure};

use super::{Caught, Place};
use crate::shell::command;

/// Some bugs need a rare history to show.
const SEEDS: &str = "1000";

/// What is wrong, the rules that may notice first, and where it is planted: in two places where one guards the other.
type Bug = (&'static str, &'static [&'static str], &'static [Place]);

/// Files are below `crates`.
pub(super) const BUGS: &[Bug] = &[
    (
        "slots of an outage that is not noted run",
        &["I13"],
        &[
            ("kernel/src/change.rs", " && !has_unnoted_outage(draft, &write, planned_until)", ""),
            ("engine/src/edit.rs", "self.unnoted_outage(&subject, now).await?.unwrap_or(write)", "write"),
        ],
    ),
    (
        "who ends a run need not hold it",
        &["I2"],
        &[
            (
                "kernel/src/change.rs",
                "same_again(run.last_end)",
                "same_again(run.last_end.filter(|_| run.epoch() == epoch))",
            ),
            ("kernel/src/change.rs", "if !is_held || run.epoch() != epoch {", "if !is_held {"),
        ],
    ),
    (
        "who was taken for dead goes on claiming",
        &["I1"],
        &[("kernel/src/transaction/claims.rs", "if !self.has_lease(request.node, now) {", "if false {")],
    ),
    (
        "a claim whose answer got lost is never given back",
        &["L3"],
        &[("engine/src/keeper.rs", "self.hand_back(forgotten, now)", "self.hand_back(vec![], now)")],
    ),
    (
        "a dead node keeps what it had not begun",
        &["L3"],
        &[(
            "kernel/src/change.rs",
            "RunState::Claimed { .. } | RunState::Running { .. } => {",
            "RunState::Running { .. } => {",
        )],
    ),
    (
        "catch-up runs all where the latest is asked for",
        &["I13"],
        &[("core/src/plan/catch_up.rs", "CatchUpMode::Latest => 1,", "CatchUpMode::Latest => policy.max as usize,")],
    ),
    (
        "what is caught up was due before",
        &["I13"],
        &[(
            "engine/src/recovery.rs",
            "            run.due_at = *due_at;\n",
            "            run.due_at = run.due_at.min(*due_at);\n",
        )],
    ),
    (
        "catch-up is decided twice",
        &["I10", "I13", "I15"],
        &[(
            "engine/src/recovery.rs",
            "entry.cursor = caught_up.cursor.clone();",
            "entry.cursor = schedule.cursor.clone();",
        )],
    ),
    (
        "a schedule is not through with an outage that it has caught up with",
        &["I13"],
        &[(
            "core/src/journal/world.rs",
            "(record.outage, record.outage_seq) = (plan.outage, self.outages.last_seq());",
            "record.outage = plan.outage;",
        )],
    ),
    (
        "an outage is forgotten while schedules have slots in it",
        &["I13"],
        &[("core/src/journal/outages.rs", "self.0.push(noted);", "self.0 = vec![noted];")],
    ),
    (
        "starts decide the slots of an outage",
        &["I13"],
        &[(
            "kernel/src/state/timers.rs",
            "self.timers.miss(noted.outage.until)",
            "self.timers.miss(noted.outage.from)",
        )],
    ),
    (
        "an outage leaves out what it missed",
        &["I13"],
        &[("core/src/journal/outages.rs", "|plan_at| plan_at <= outage.until)", "|plan_at| plan_at <= outage.from)")],
    ),
    (
        "an outage is everybody's",
        &["I13"],
        &[("core/src/journal/outages.rs", "|plan_at| plan_at <= outage.until)", "|plan_at| plan_at != outage.until)")],
    ),
    (
        "the cursor passes a due slot without its run",
        &["I11"],
        &[(
            "kernel/src/due.rs",
            "    for DueSlots { plan, skips, .. } in due {\n",
            "    for DueSlots { mut plan, skips, .. } in due {\n        plan.runs.pop();\n",
        )],
    ),
    (
        "a due slot has its run, and the cursor stays",
        &["I15", "fold"],
        &[("kernel/src/due.rs", "cursor: passed.cursor.clone(),", "cursor: schedule.cursor.clone(),")],
    ),
    (
        "the id of a run names when it is due",
        &["I12"],
        &[(
            "core/src/journal/entry.rs",
            "RunId::of(schedule.id, scheduled_at, &key)",
            "RunId::of(schedule.id, due_at, &key)",
        )],
    ),
    (
        "a start decides although no node plans",
        &["I13"],
        &[(
            "kernel/src/transaction/claims.rs",
            "            passed.awaits_planning = self.mirror.has_undecided(now);\n            return Ok(passed);\n",
            "            passed.awaits_planning = self.mirror.has_undecided(now);\n",
        )],
    ),
    (
        "an early decision is forgotten",
        &["I10", "I15"],
        &[("kernel/src/due.rs", "early.drop_passed(timetable, &passed.cursor);", "early = Default::default();")],
    ),
    (
        "a slot that is cancelled early waits for its time",
        &["I12"],
        &[(
            "kernel/src/change.rs",
            "    for run in write.cancelled {\n",
            "    for run in write.cancelled.into_iter().skip(1) {\n",
        )],
    ),
    (
        "a time hides that a run wakes its schedule",
        &["I11", "I13", "L2", "L5"],
        &[(
            "core/src/plan/pass.rs",
            "if matches!(self.upcoming.next, NextSlot::Full(_) | NextSlot::Exhausted(_)) {",
            "if matches!(self.upcoming.next, NextSlot::Full(_)) {",
        )],
    ),
    (
        "a pause that is made up for brings back what was decided",
        &["I10", "I15"],
        &[(
            "engine/src/edit.rs",
            "decided.take_while(|slot| waiting.contains(&slot.key())).last();",
            "decided.take(3).last();",
        )],
    ),
    (
        "who plans need not have read the last plan",
        &["I10", "I15"],
        &[("kernel/src/change.rs", " && schedule.cursor == *cursor", "")],
    ),
    (
        "an edit that came too late is taken for done",
        &["I17"],
        &[(
            "engine/src/edit.rs",
            "if let [Written::Done] = self.store.plan(now, vec![write]).await?[..] {\n                return Ok(edited);",
            "if let [_] = self.store.plan(now, vec![write]).await?[..] {\n                return Ok(edited);",
        )],
    ),
    (
        "an edit leaves behind what planning has not come to",
        &["I11"],
        &[(
            "engine/src/edit.rs",
            "let (subject, now) = self.up_to_date(id, now).await?;\n            let before",
            "let subject = self.store.subject(id, now).await?.ok_or(EditError::NotFound(id))?;\n            let before",
        )],
    ),
    (
        "the cursor passes slots that it had no run for",
        &["I11"],
        &[(
            "core/src/plan/answering.rs",
            "                stop_before(plan, slot.scheduled_at);\n",
            "                plan.cursor.pass_until(timetable, until);\n",
        )],
    ),
    (
        "nobody stops work when the lease ends",
        &["I4"],
        &[(
            "engine/src/holdings.rs",
            "if level != StopLevel::GoOn {\n            inner",
            "if false {\n            inner",
        )],
    ),
    (
        "work begins after the lease",
        &["I3"],
        &[("engine/src/holdings.rs", "if self.fence(boot) != StopLevel::GoOn {", "if false {")],
    ),
    (
        "who has renewed meanwhile is buried all the same",
        &["I3"],
        &[(
            "kernel/src/transaction/nodes.rs",
            "dead.contains(&node.lease())",
            "dead.iter().any(|lease| lease.node == node.id)",
        )],
    ),
    (
        "a clock set forwards kills the living",
        &["I3"],
        &[("engine/src/keeper.rs", "is_silent || seen.is_believed && later(", "is_silent || later(")],
    ),
    (
        "a node whose clock is ahead claims early",
        &["I7"],
        &[(
            "kernel/src/transaction/claims.rs",
            "self.cluster.now.map_or(request.now, |now| now.min(request.now))",
            "request.now",
        )],
    ),
    (
        "who is ahead of the store's clock buries the living",
        &["I3"],
        &[("engine/src/keeper.rs", "now.min(renewal.at).min(signed_at)", "now")],
    ),
    (
        "a clock behind the store's gives a lease that ends too early",
        &["I3"],
        &[
            ("engine/src/keeper.rs", "BURY_AFTER < answer.at.duration_since(signed_at)", "signed_at < Timestamp::MIN"),
            (
                "engine/src/keeper.rs",
                "|time| time.when_running_for(boot)",
                "|time| now.min(time.when_running_for(boot))",
            ),
        ],
    ),
    (
        "an older copy of the store goes unnoticed",
        &["I2"],
        &[
            (
                "sim/src/log.rs",
                "Some(false) => return Ok(Following::Lost)",
                "Some(false) => return Ok(Following::OpenAgain)",
            ),
            ("sim/src/writer.rs", "== Some(false)", "== None"),
        ],
    ),
    (
        "after commits were lost the epochs stay",
        &["I1"],
        &[("core/src/journal/world.rs", "|run| Arc::make_mut(run).state.raise_epoch(*epoch_floor)", "|_| ()")],
    ),
    (
        "a process decides without having followed the journal",
        &["I20", "state"],
        &[(
            "sim/src/writer.rs",
            "self.follow(sim)?;\n        let opened = self.opened.as_mut().expect(\"it was just opened\");\n        if let Some(sent)",
            "let opened = self.opened.as_mut().expect(\"it was just opened\");\n        if let Some(sent)",
        )],
    ),
    (
        "a follower takes an entry twice",
        &["state"],
        &[
            ("core/src/journal/world.rs", "if entry.seq != self.seq + 1 {", "if self.seq + 1 < entry.seq {"),
            (
                "kernel/src/state/mod.rs",
                "        piece.apply(entry)?;\n",
                "        piece.apply(entry)?;\n        piece.apply(entry).ok();\n",
            ),
        ],
    ),
    (
        "a follower keeps in its indexes what it replaces",
        &["state"],
        &[("kernel/src/state/mod.rs", "self.lanes.hold(id, false);", "self.lanes.hold(id, run.is_cancelling);")],
    ),
    (
        "what was decided stays although its commit was refused",
        &["I20", "state"],
        &[("sim/src/writer.rs", "opened.state.undo(undo);", "drop(undo);")],
    ),
    (
        "a commit whose reply got lost counts as not written",
        &["once"],
        &[("sim/src/writer.rs", "&& sim.log.has(sent) == Some(true)", "&& sim.log.has(sent).is_none()")],
    ),
    (
        "an old snapshot is taken for the present",
        &["I20", "state"],
        &[(
            "sim/src/log.rs",
            "Opened { state: State::new((*world).clone()), head, saved: head };",
            "Opened { state: State::new((*world).clone()), head: self.head(), saved: head };",
        )],
    ),
    (
        "a run that is over stays in the state",
        &["I19", "state"],
        &[(
            "kernel/src/state/mod.rs",
            "for id in before.runs.keys().filter(|id| !piece.runs.contains_key(id)) {",
            "for id in before.runs.keys().filter(|id| !piece.runs.contains_key(id)).take(0) {",
        )],
    ),
    (
        "a run is over, and its entry does not say so",
        &["I2", "I8", "I17"],
        &[(
            "core/src/journal/entry.rs",
            "end: after.as_ref().and_then(RunEnd::of),",
            "end: after.as_ref().filter(|run| !run.is_cancelling).and_then(RunEnd::of),",
        )],
    ),
    (
        "the report of a run that is over is taken for another",
        &["I2"],
        &[(
            "kernel/src/change.rs",
            "ended(draft, id).and_then(|ended| same_again(ended.last_end))",
            "ended(draft, id).map(|ended| RunWritten::Done(ended.end.state(epoch + 1)))",
        )],
    ),
    (
        "an event is forgotten with its run",
        &["I10", "I16"],
        &[(
            "kernel/src/transaction/plan.rs",
            "is_some_and(|key| self.found.answers.contains_key(key));",
            "is_some_and(|key| self.found.answers.contains_key(key) && false);",
        )],
    ),
    (
        "retention reaches what snapshots need",
        &["base"],
        &[(
            "sim/src/log.rs",
            "entry.at < before && entry.seq <= until",
            "entry.at < before && entry.seq <= until + 50",
        )],
    ),
    (
        "a piece of the snapshot lacks what is new",
        &["snapshot"],
        &[("kernel/src/state/mod.rs", "self.unsaved.note_run(run.id, before.is_some());", "")],
    ),
    (
        "a piece of the snapshot that was not written counts as saved",
        &["snapshot"],
        &[("sim/src/log.rs", "        if dies {\n", "        if dies {\n            opened.state.note_saved();\n")],
    ),
    (
        "work goes on that is not the node's own any more",
        &["I4"],
        &[("engine/src/keeper.rs", "in held.difference(&owned) {", "in held.difference(&owned).take(0) {")],
    ),
    (
        "limits are off by one",
        &["I5"],
        &[("core/src/plan/lane.rs", "held < max_concurrent && ", "held <= max_concurrent && ")],
    ),
    (
        "one try too many",
        &["I6"],
        &[("core/src/run/retry.rs", "self.max_attempts.get() <= attempt", "self.max_attempts.get() < attempt")],
    ),
    (
        "a run that is being called off is tried again",
        &["I6"],
        &[(
            "core/src/run/state.rs",
            "rules.is_cancelling && leaves_its_node",
            "rules.is_cancelling && leaves_its_node && next.tally().attempt == 0",
        )],
    ),
    (
        "a pause holds nothing back",
        &["I7"],
        &[
            (
                "core/src/plan/admission.rs",
                "&& !is_manual\n        && !run.resumes",
                "&& !is_manual\n        && run.resumes",
            ),
            (
                "kernel/src/change.rs",
                "ScheduleState::Paused(pause) if !goes_on =>",
                "ScheduleState::Paused(pause) if goes_on =>",
            ),
        ],
    ),
    (
        "what overlaps runs all the same",
        &["overlap"],
        &[(
            "core/src/plan/admission.rs",
            "Overlap::Skip => return Admission::Skip(SkipReason::Overlap),",
            "Overlap::Skip => {}",
        )],
    ),
];

/// A bug is built often and runs shortly: little optimisation, and nothing twice.
const PROFILE: [(&str, &str); 4] = [
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
    ("CARGO_PROFILE_RELEASE_INCREMENTAL", "true"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "256"),
    ("CARGO_PROFILE_RELEASE_DEBUG", "false"),
];

/// The rule that the simulation finds broken in the copy, and after how many seeds.
pub(super) fn catches(tree: &Path, scratch: &Path) -> anyhow::Result<Option<Caught>> {
    let target = scratch.join("target");
    let mut build = command("cargo", &["build", "--release", "--quiet", "-p", "punctual-sim"]);
    build.current_dir(tree).env("CARGO_TARGET_DIR", &target).envs(PROFILE);
    let built = build.output().context("starting cargo")?;
    ensure!(built.status.success(), "the planted bug does not compile:\n{}", String::from_utf8_lossy(&built.stderr));
    let program = target.join("release/punctual-sim");
    let mut simulate = command(&program.to_string_lossy(), &["--seeds", SEEDS, "--first"]);
    let output = simulate.output().context("starting the simulation")?;
    match output.status.code() {
        Some(0) => Ok(None),
        Some(1) => told(&String::from_utf8_lossy(&output.stdout)).map(Some),
        _ => bail!("the simulation ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr)),
    }
}

/// What a failure says first: `seed 4: I5: a run was claimed as number 2 of 1`.
fn told(output: &str) -> anyhow::Result<Caught> {
    let mut words = output.lines().next().unwrap_or_default().splitn(3, ": ");
    let seed = words.next().and_then(|word| word.strip_prefix("seed ")?.parse::<u64>().ok());
    let (Some(seed), Some(rule)) = (seed, words.next()) else { bail!("the simulation names no rule: {output}") };
    Ok(Caught { by: rule.to_owned(), after_seeds: Some(seed + 1) })
}
