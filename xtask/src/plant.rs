//! `cargo xtask plant`: a test that cannot fail proves nothing, so bugs are planted and must be caught.
//!
//! Each bug is one replacement in one file of a copy of the workspace. The tests of the core run against it; if they pass,
//! the bug has survived, and a test is missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, bail, ensure};

use crate::shell::{command, root};

/// What is wrong, the file below `crates/core/src`, what stands there, and what is planted instead.
const BUGS: &[(&str, &str, &str, &str)] = &[
    (
        "the horizon leaves out its end",
        "plan/answering.rs",
        "if until < slot.scheduled_at {",
        "if until <= slot.scheduled_at {",
    ),
    (
        "a bound inside a gap loses the rest",
        "plan/answering.rs",
        "        stop_before(plan, &next);\n",
        "        let _ = next;\n",
    ),
    ("what was shown before is answered again", "plan/due.rs", "if cursor.is_new(slot) {", "if true {"),
    (
        "runs are planned without end",
        "plan/due.rs",
        "(self.runs_left - 1, self.room - 1)",
        "(self.runs_left, self.room - 1)",
    ),
    ("the latest two are caught up", "plan/catch_up.rs", "CatchUpMode::Latest => 1,", "CatchUpMode::Latest => 2,"),
    (
        "catch-up is decided anew in each call",
        "plan/catch_up.rs",
        "kept: Some(kept), ..*outage",
        "kept: None, ..*outage",
    ),
    ("catch-up forgets the most runs", "plan/catch_up.rs", ".take(kept_max.min(runs_left))", ".take(kept_max)"),
    ("catch-up takes what waited before", "plan/catch_up.rs", "outage.from < run.due_at && ", ""),
    ("a reconcile starts at now", "plan/replan.rs", "cursor.at.min(now)", "now"),
    ("a run stays where its slot is skipped", "plan/replan.rs", ".filter(|slot| slot.skipped.is_none())", ""),
    ("a pause withdraws what is due", "plan/replan.rs", "planned().filter(|run| now < run.scheduled_at)", "planned()"),
    ("an edit withdraws manual runs", "plan/replan.rs", " && run.key.is_slot()", ""),
    ("a skip range reaches over an answer", "plan/answers.rs", "        self.is_contiguous = false;\n", ""),
    ("a resumed run can be late", "plan/admission.rs", "if 1 < run.attempt || run.resumes {", "if 1 < run.attempt {"),
    ("people cannot run what is paused", "plan/admission.rs", "&& !is_manual", ""),
    ("a day is its date", "plan/day.rs", "zone.day_of(must_end_at)", "zone.date_key(must_end_at)"),
    ("going on is another attempt", "run/state.rs", "tally.attempt + u32::from(!resumes)", "tally.attempt + 1"),
    ("a claim keeps the epoch", "run/state.rs", "epoch: tally.epoch + 1", "epoch: tally.epoch"),
    ("a run is claimed before it is due", "run/state.rs", "if due_at <= at =>", "if due_at <= at || at < due_at =>"),
    ("lost work never rests", "run/state.rs", "if tally.losses == 1", "if tally.losses >= 1"),
    ("the first rest is doubled", "run/retry.rs", "attempt.saturating_sub(1)", "attempt"),
    ("a second pass is never new", "schedule/cursor.rs", "slot.is_second_pass\n            || ", ""),
    (
        "the last nominal time is new again",
        "schedule/cursor.rs",
        "*reached < slot.nominal()",
        "*reached <= slot.nominal()",
    ),
    (
        "a gap of three hours is too long",
        "time/timetable.rs",
        "GAP_MOVED_MAX: i64 = 3 * 3_600",
        "GAP_MOVED_MAX: i64 = 2 * 3_600",
    ),
    ("jitter reaches the next slot", "time/timetable.rs", "as_millis() as i64 - 1)", "as_millis() as i64)"),
    (
        "the last listed zone runs behind a gap",
        "time/timetable.rs",
        "earliest.min_by_key(|(_, listed)| *listed)",
        "earliest.max_by_key(|(_, listed)| *listed)",
    ),
    (
        "the second pass is lost at the end",
        "time/walk.rs",
        "let mut local = find(self.from);",
        "let mut local = pattern.next(self.from)?;",
    ),
    (
        "a repeat is shown once",
        "time/walk.rs",
        "if *repeats && repeat_starts < self.from",
        "if false && repeat_starts < self.from",
    ),
    (
        "every window reaches into tomorrow",
        "time/calendar.rs",
        "self.is_over_midnight() && second < self.until",
        "second < self.until",
    ),
    ("a slot lies before itself", "time/interval.rs", "i64::from(before.subsec_nanosecond() % 1_000_000 == 0)", "0"),
    ("1W leaves the month", "time/cron/days.rs", "6 if day == 1 => 3,", "6 if day == 1 => 1,"),
    ("the search ends after four years", "time/cron/search.rs", "(year + YEARS_SEARCHED)", "(year + 4)"),
    ("either day field is enough in spring", "time/cron/parse.rs", "dialect == Dialect::Unix && !is_star", "!is_star"),
    (
        "a repeated local time is the second",
        "schedule/trigger.rs",
        "(Pass::Second, Some(second)) if",
        "(Pass::First, Some(second)) if",
    ),
];

/// Plants each bug in turn; fails if one survives.
pub(crate) fn plant() -> anyhow::Result<()> {
    let scratch = root().join("target/planted");
    let tree = scratch.join("tree");
    copy_workspace(&tree)?;
    println!("The tests must pass without a bug, then fail with each of {}.", BUGS.len());
    ensure!(tests_pass(&tree, &scratch)?, "the tests fail without any bug planted");
    let mut survivors = vec![];
    for (name, file, stands, planted) in BUGS {
        let path = tree.join("crates/core/src").join(file);
        let text = fs::read_to_string(&path).with_context(|| format!("reading {file}"))?;
        ensure!(text.contains(stands), "{name}: {file} no longer contains {stands:?}; plant the bug where it is now");
        fs::write(&path, text.replacen(stands, planted, 1))?;
        let survived = tests_pass(&tree, &scratch)?;
        fs::write(&path, text)?;
        println!("{} {name} ({file})", if survived { "SURVIVED" } else { "caught  " });
        survivors.extend(survived.then_some(*name));
    }
    println!("{} of {} planted bugs caught", BUGS.len() - survivors.len(), BUGS.len());
    if !survivors.is_empty() {
        bail!("no test catches: {}", survivors.join(", "));
    }
    Ok(())
}

/// Copies the files that git knows, as they are now.
fn copy_workspace(tree: &Path) -> anyhow::Result<()> {
    if tree.exists() {
        fs::remove_dir_all(tree)?;
    }
    let listed = command("git", &["ls-files"]).output().context("listing the files of the workspace")?;
    for file in String::from_utf8(listed.stdout)?.lines().map(PathBuf::from) {
        let to = tree.join(&file);
        fs::create_dir_all(to.parent().context("a file has a folder")?)?;
        fs::copy(root().join(&file), &to).with_context(|| format!("copying {}", file.display()))?;
    }
    Ok(())
}

/// Whether the tests of the core pass in the copy. A bug that does not compile counts as caught by nobody's test.
fn tests_pass(tree: &Path, scratch: &Path) -> anyhow::Result<bool> {
    let mut build = command("cargo", &["test", "--quiet", "-p", "punctual-core", "--lib", "--tests", "--no-run"]);
    let mut test = command("cargo", &["test", "--quiet", "-p", "punctual-core", "--lib", "--tests"]);
    for command in [&mut build, &mut test] {
        command.current_dir(tree).env("CARGO_TARGET_DIR", scratch.join("target"));
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    ensure!(build.status()?.success(), "the planted bug does not compile");
    Ok(test.status()?.success())
}
