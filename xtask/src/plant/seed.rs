//! Bugs in the rules that the seed of the executions face asks tests for; caught by those tests (`server/tests/seed`).

use super::Bug;

/// Files are below `crates`. The tests run on SQLite alone: a server would have to be started for the others.
pub(super) const BUGS: &[Bug] = &[
    ("steps of a cron are ignored", "core/src/time/cron/parse.rs", "step_by(span.step as usize)", "step_by(1)"),
    ("only two times of a day count", "core/src/time/times_of_day.rs", "seconds.dedup();", "seconds.truncate(2);"),
    (
        "an interval counts from when it was made",
        "core/src/time/interval.rs",
        "if divides_day { zone.day_start(zone.day_of(set_at)) } else { set_at }",
        "set_at",
    ),
    ("an edit withdraws nothing", "engine/src/replan.rs", "plan.withdrawn = diff.withdrawn;", "drop(diff.withdrawn);"),
    (
        "days begin at midnight in UTC",
        "engine/src/planner.rs",
        "let today = zone.day_of(now);",
        "let today = now.to_zoned(jiff::tz::TimeZone::UTC).date();",
    ),
    (
        "a day's runs may start for 24 hours",
        "core/src/plan/day.rs",
        "later(zone.day_end(zone.day_of(scheduled_at)), DAY_ENDED_AFTER)",
        "later(scheduled_at, SignedDuration::from_hours(24))",
    ),
    (
        "what stands is planned again",
        "engine/src/replan.rs",
        ".iter().map(standing).collect()",
        ".iter().take(0).map(standing).collect()",
    ),
    ("who has not claimed may start", "kernel/src/change.rs", "run.epoch() == settlement.epoch && ", ""),
    (
        "a report is lost",
        "engine/src/node.rs",
        "self.completed(finish.report.storable(), event)",
        "self.completed(Report::default(), event)",
    ),
    ("there is no rest before a retry", "core/src/run/retry.rs", "rest.saturating_add(jitter as i64)", "jitter as i64"),
    (
        "one try too many",
        "core/src/run/retry.rs",
        "self.max_attempts.get() <= attempt",
        "self.max_attempts.get() < attempt",
    ),
    ("a claim is no attempt", "core/src/run/state.rs", "tally.attempt + u32::from(!resumes)", "tally.attempt"),
    ("one more than the cap", "core/src/plan/lane.rs", "held < max_concurrent && ", "held <= max_concurrent && "),
    (
        "a lease is renewed too late",
        "engine/src/keeper.rs",
        "self.settings.lease.duration() / 3",
        "self.settings.lease.duration() / 2",
    ),
    (
        "what is called off goes on",
        "engine/src/keeper.rs",
        "self.holdings.stop(*called_off, StopLevel::Ask, WhyStopped::Cancelled);",
        "self.holdings.stop(*called_off, StopLevel::GoOn, WhyStopped::Cancelled);",
    ),
    (
        "a node looks once a minute",
        "engine/src/settings.rs",
        "poll: Elapsed::from_seconds(5)",
        "poll: Elapsed::from_seconds(60)",
    ),
    (
        "every schedule is in UTC",
        "server/src/api/schedule_fields.rs",
        "Schedule::draft(work, trigger, zone.name(), now)",
        "Schedule::draft(work, trigger, \"UTC\", now)",
    ),
    (
        "a time in a gap is always skipped",
        "core/src/time/timetable.rs",
        "self.gap == GapPolicy::Skip || ",
        "self.gap != GapPolicy::Skip || ",
    ),
    (
        "a repeated time always runs twice",
        "core/src/time/timetable.rs",
        "repeat == RepeatPolicy::Both",
        "true || repeat == RepeatPolicy::Both",
    ),
];
