//! Catch-up: the policy is applied once per outage, and what is not run is recorded.

use punctual_core::plan::{Kept, Outage, Recovery, WORK_MAX, WaitingRun, catch_up};
use punctual_core::schedule::Cursor;
use serde_json::{Value, json};

use crate::support::{Subject, at, run_id, show};

/// An hourly schedule, planned to 03:00, that nobody looked after from 01:30 to 06:30.
fn recover(catch_up_policy: Value, waiting: &[&str]) -> Recovery {
    let subject = hourly(catch_up_policy);
    let waiting: Vec<WaitingRun> = (1..)
        .zip(waiting)
        .map(|(number, text)| WaitingRun { id: run_id(number), scheduled_at: at(text), due_at: at(text) })
        .collect();
    let cursor = Cursor::starting(at("2026-01-05T03:00:00Z"));
    catch_up(&subject.planning_with(waiting.len()), &cursor, &outage(), &waiting)
}

fn waiting(times: &[&str]) -> Vec<WaitingRun> {
    let one =
        |(number, text): (u128, &&str)| WaitingRun { id: run_id(number), scheduled_at: at(text), due_at: at(text) };
    (1..).zip(times).map(one).collect()
}

fn hourly(catch_up_policy: Value) -> Subject {
    let policy = json!({"catch_up": catch_up_policy});
    Subject::new(json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}, "policy": policy}))
}

fn outage() -> Outage {
    Outage { from: at("2026-01-05T01:30:00Z"), until: at("2026-01-05T06:30:00Z"), kept: None }
}

const WAITING: [&str; 2] = ["2026-01-05T02:00:00Z", "2026-01-05T03:00:00Z"];

#[test]
fn none_skips_all_that_was_missed() {
    let recovery = recover(json!({"mode": "none"}), &WAITING);
    assert_eq!((recovery.kept, recovery.skipped), (vec![], vec![run_id(1), run_id(2)]));
    assert_eq!(show(&recovery.plan), ["catch_up×3"]);
    assert_eq!(recovery.plan.cursor.at, at("2026-01-05T06:30:00Z"));
    assert_eq!(recovery.rest, None);
}

#[test]
fn first_keeps_the_earliest() {
    let recovery = recover(json!({"mode": "first"}), &WAITING);
    assert_eq!((recovery.kept, recovery.skipped), (vec![run_id(1)], vec![run_id(2)]));
    assert_eq!(show(&recovery.plan), ["catch_up×3"]);
    let recovery = recover(json!({"mode": "first"}), &[]);
    assert_eq!(show(&recovery.plan), ["2026-01-05T04:00:00Z", "catch_up×2"]);
}

#[test]
fn latest_keeps_the_last() {
    let recovery = recover(json!({"mode": "latest"}), &WAITING);
    assert_eq!((recovery.kept, recovery.skipped), (vec![], vec![run_id(1), run_id(2)]));
    assert_eq!(show(&recovery.plan), ["catch_up×2", "2026-01-05T06:00:00Z"]);
    assert!(!recovery.is_in_order);
}

#[test]
fn latest_keeps_a_waiting_run_when_nothing_came_after_it() {
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "0 2,3 * * *"}]}}));
    let waiting = waiting(&WAITING);
    let cursor = Cursor::starting(at("2026-01-05T03:00:00Z"));
    let recovery = catch_up(&subject.planning_with(2), &cursor, &outage(), &waiting);
    assert_eq!((recovery.kept, recovery.skipped), (vec![run_id(2)], vec![run_id(1)]));
    assert_eq!(show(&recovery.plan), [] as [String; 0]);
}

#[test]
fn all_keeps_everything_in_order() {
    let recovery = recover(json!({"mode": "all"}), &WAITING);
    assert_eq!((recovery.kept, recovery.skipped), (vec![run_id(1), run_id(2)], vec![]));
    assert_eq!(show(&recovery.plan), ["2026-01-05T04:00:00Z", "2026-01-05T05:00:00Z", "2026-01-05T06:00:00Z"]);
    assert!(recovery.is_in_order);
}

#[test]
fn all_keeps_at_most_so_many_and_those_the_latest() {
    let recovery = recover(json!({"mode": "all", "max": 4}), &WAITING);
    assert_eq!((recovery.kept, recovery.skipped), (vec![run_id(2)], vec![run_id(1)]));
    assert_eq!(recovery.plan.runs().count(), 3);
    let recovery = recover(json!({"mode": "all", "max": 2}), &WAITING);
    assert_eq!((recovery.kept, recovery.skipped), (vec![], vec![run_id(1), run_id(2)]));
    assert_eq!(show(&recovery.plan), ["catch_up×1", "2026-01-05T05:00:00Z", "2026-01-05T06:00:00Z"]);
    let recovery = recover(json!({"mode": "all", "max": 0}), &WAITING);
    assert_eq!((recovery.kept, show(&recovery.plan)), (vec![], vec!["catch_up×3".to_owned()]));
}

#[test]
fn the_window_leaves_out_what_is_too_old() {
    let recovery = recover(json!({"mode": "all", "window": "1h30m"}), &WAITING);
    assert_eq!(show(&recovery.plan), ["catch_up×1", "2026-01-05T05:00:00Z", "2026-01-05T06:00:00Z"]);
    let recovery = recover(json!({"mode": "first", "window": "1h30m"}), &WAITING);
    assert_eq!(show(&recovery.plan), ["catch_up×1", "2026-01-05T05:00:00Z", "catch_up×1"]);
    let recovery = recover(json!({"mode": "latest", "window": "10m"}), &WAITING);
    assert_eq!(show(&recovery.plan), ["catch_up×3"]);
}

#[test]
fn slots_that_would_not_have_run_keep_their_own_reason() {
    let policy = json!({"catch_up": {"mode": "latest"}, "dst": {"gap": "skip"}});
    let fields =
        json!({"trigger": {"times": ["01:30", "02:30", "03:30"]}, "zone": "America/New_York", "policy": policy});
    let subject = Subject::new(fields);
    let outage = Outage { from: at("2026-03-08T05:00:00Z"), until: at("2026-03-08T12:00:00Z"), kept: None };
    let recovery = catch_up(&subject.planning(), &Cursor::starting(outage.from), &outage, &[]);
    assert_eq!(show(&recovery.plan), ["catch_up×1", "dst_gap×1", "2026-03-08T07:30:00Z"]);
}

#[test]
fn max_runs_holds_for_catch_up_as_well() {
    let fields = json!({
        "trigger": {"cron": [{"expression": "0 * * * *"}]}, "policy": {"catch_up": {"mode": "all"}},
        "bounds": {"max_runs": 3}, "runs_started": 1,
    });
    let subject = Subject::new(fields);
    let recovery = catch_up(&subject.planning(), &Cursor::starting(at("2026-01-05T01:30:00Z")), &outage(), &[]);
    assert_eq!(show(&recovery.plan), ["catch_up×3", "2026-01-05T05:00:00Z", "2026-01-05T06:00:00Z"]);
}

#[test]
fn a_long_outage_is_answered_in_several_calls_with_one_decision() {
    for (mode, first_shown, runs) in [
        ("none", "catch_up×10000", 0),
        ("first", "2026-01-05T00:00:01Z", 1),
        ("latest", "catch_up×10000", 1),
        ("all", "catch_up×10000", 100),
    ] {
        let fields =
            json!({"trigger": {"cron": [{"expression": "* * * * * *"}]}, "policy": {"catch_up": {"mode": mode}}});
        let subject = Subject::new(fields);
        let start = at("2026-01-05T00:00:00Z");
        let mut rest = Some(Outage { from: start, until: at("2026-01-05T12:00:00Z"), kept: None });
        let (mut cursor, mut answered, mut ran, mut calls) = (Cursor::starting(start), 0, 0, 0);
        while let Some(outage) = rest {
            let recovery = catch_up(&subject.planning(), &cursor, &outage, &[]);
            if calls == 0 {
                assert_eq!(show(&recovery.plan)[0], first_shown, "{mode}");
                assert_ne!(recovery.rest.unwrap().kept, None, "{mode}");
            }
            let skipped: u64 = recovery.plan.skips().map(|range| range.count).sum();
            assert!(skipped <= WORK_MAX as u64);
            ran += recovery.plan.runs().count() as u64;
            answered += skipped + recovery.plan.runs().count() as u64;
            (cursor, rest, calls) = (recovery.plan.cursor, recovery.rest, calls + 1);
            assert!(calls < 100, "catching up goes round in circles");
        }
        assert_eq!((answered, ran, calls), (43_200, runs, 5), "{mode}");
        assert_eq!(cursor.at, at("2026-01-05T12:00:00Z"), "{mode}");
    }
}

#[test]
fn a_paused_schedule_catches_nothing_up() {
    let pause = json!({"paused": {"kind": "paused", "at": "2026-01-05T00:00:00Z", "source": "ada"}});
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}, "state": pause}));
    let recovery = catch_up(&subject.planning(), &Cursor::starting(at("2026-01-05T01:30:00Z")), &outage(), &[]);
    assert_eq!(show(&recovery.plan), [] as [String; 0]);
    assert_eq!(recovery.plan.cursor.at, at("2026-01-05T01:30:00Z")); // The end of the pause will answer them.
}

#[test]
fn a_run_that_waits_is_the_latest_although_its_schedule_was_paused_since() {
    let pause = json!({"paused": {"kind": "paused", "at": "2026-01-05T02:30:00Z", "source": "ada"}});
    let fields = json!({
        "trigger": {"cron": [{"expression": "0 * * * *"}]}, "policy": {"catch_up": {"mode": "latest"}}, "state": pause,
    });
    let waiting = waiting(&["2026-01-05T02:00:00Z"]);
    let cursor = Cursor::starting(at("2026-01-05T02:30:00Z"));
    let recovery = catch_up(&Subject::new(fields).planning(), &cursor, &outage(), &waiting);
    assert_eq!((recovery.kept, recovery.skipped), (vec![run_id(1)], vec![]), "admission will say that it is paused");
}

#[test]
fn what_was_decided_is_kept_to_whatever_the_policy_says_later() {
    let subject = hourly(json!({"mode": "none"}));
    let [from, until] = ["2026-01-05T04:00:00Z", "2026-01-05T05:00:00Z"].map(at);
    let outage = Outage { kept: Some(Kept { waiting_from: None, unplanned_from: Some(from), until }), ..outage() };
    let recovery = catch_up(&subject.planning(), &Cursor::starting(at("2026-01-05T03:00:00Z")), &outage, &[]);
    assert_eq!(show(&recovery.plan), ["2026-01-05T04:00:00Z", "2026-01-05T05:00:00Z", "catch_up×1"]);
}

#[test]
fn runs_that_were_due_before_the_outage_are_merely_waiting() {
    let recovery = recover(json!({"mode": "none"}), &["2026-01-05T01:00:00Z", "2026-01-05T02:00:00Z"]);
    assert_eq!((recovery.kept, recovery.skipped), (vec![], vec![run_id(2)]));
}

#[test]
fn waiting_runs_do_not_let_more_be_planned_than_may_ever_run() {
    let fields = json!({
        "trigger": {"cron": [{"expression": "0 * * * *"}]}, "policy": {"catch_up": {"mode": "all"}},
        "bounds": {"max_runs": 4},
    });
    let subject = Subject::new(fields);
    let cursor = Cursor::starting(at("2026-01-05T03:00:00Z"));
    let recovery = catch_up(&subject.planning_with(2), &cursor, &outage(), &waiting(&WAITING));
    assert_eq!(recovery.kept, [run_id(1), run_id(2)]);
    assert_eq!(show(&recovery.plan), ["catch_up×1", "2026-01-05T05:00:00Z", "2026-01-05T06:00:00Z"]);
}

#[test]
fn what_is_kept_is_found_behind_a_long_closed_stretch() {
    for (mode, runs) in [("first", 1), ("latest", 1), ("all", 100)] {
        // Open on Monday and Tuesday; the outage goes on to the next Sunday, so that 7,000 minutes are closed behind it.
        let policy = json!({"catch_up": {"mode": mode}});
        let fields =
            json!({"trigger": {"cron": [{"expression": "* * * * *"}]}, "policy": policy, "calendar": "office"});
        let subject = Subject::new(fields);
        let start = at("2026-01-06T12:00:00Z");
        let (mut cursor, mut ran) = (Cursor::starting(start), 0);
        let mut rest = Some(Outage { from: start, until: at("2026-01-18T00:00:00Z"), kept: None });
        while let Some(outage) = rest {
            let recovery = catch_up(&subject.planning(), &cursor, &outage, &[]);
            ran += recovery.plan.runs().count();
            assert!(ran <= 100 && cursor.at < outage.until, "catching up goes round in circles");
            (cursor, rest) = (recovery.plan.cursor, recovery.rest);
        }
        assert_eq!(ran, runs, "{mode}");
    }
}

#[test]
fn what_jitter_makes_due_behind_the_outage_was_not_missed() {
    let policy = json!({"catch_up": {"mode": "none"}});
    let fields = json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}, "policy": policy, "jitter": "59m"});
    let subject = Subject::new(fields);
    let slot = subject.timetable.slots(at("2026-01-05T05:30:00Z")).next().unwrap();
    let until = slot.due_at - jiff::SignedDuration::from_millis(1);
    let outage = Outage { from: at("2026-01-05T03:00:00Z"), until, kept: None };
    let recovery = catch_up(&subject.planning(), &Cursor::starting(outage.from), &outage, &[]);
    assert_eq!(show(&recovery.plan), ["catch_up×2", "2026-01-05T06:00:00Z"]);
}
