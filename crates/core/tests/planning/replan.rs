//! Re-planning is a set difference on slot keys: what stays, what is withdrawn, what is new.
//!
//! What stands are runs whose slots are scheduled up to now: they wait to start. Nothing is stored about slots ahead.

use jiff::Timestamp;
use proptest::prelude::*;
use punctual_core::plan::{
    Diff, EarlyDecisions, NextSlot, Pass, Planning, Standing, StandingState, UNSTARTED_MAX, pass, replan, skip_until,
};
use punctual_core::run::SkipReason;
use punctual_core::schedule::{Cursor, Schedule};
use punctual_core::time::SlotKey;
use serde_json::{Value, json};

use crate::support::{Generated, Subject, ZoneFolder, at, generated, next_at, run_id, show, show_skips};

fn decide(subject: &Subject, from: &str, now: &str) -> Pass {
    pass(&subject.planning(), &Cursor::starting(at(from)), at(now))
}

/// What a pass leaves in the store where no run can start: one planned run for each of its runs.
fn standing_of(passed: &Pass) -> Vec<Standing> {
    (1..)
        .zip(passed.runs())
        .map(|(number, slot)| Standing {
            id: run_id(number),
            key: slot.key(),
            scheduled_at: slot.scheduled_at,
            state: StandingState::Planned,
        })
        .collect()
}

fn stand(subject: &Subject, from: &str, now: &str) -> Vec<Standing> {
    standing_of(&decide(subject, from, now))
}

/// Re-plans as an edit does: the cursor goes to now.
fn edit(subject: &Subject, standing: &[Standing], now: &str) -> Diff {
    let cursor = Schedule::cursor_from(&subject.schedule.trigger, at(now));
    reconcile(subject, &cursor, standing, at(now))
}

/// Re-plans as new zone data does: the cursor stays where it is.
fn reconcile(subject: &Subject, cursor: &Cursor, standing: &[Standing], now: Timestamp) -> Diff {
    replan(&subject.planning_with(planned(standing)), cursor, standing, now)
}

fn planned(standing: &[Standing]) -> usize {
    standing.iter().filter(|run| run.state == StandingState::Planned).count()
}

fn times(times: &[&str]) -> Subject {
    Subject::new(json!({"trigger": {"times": times}}))
}

fn with_state(times: &[&str], state: &Value) -> Subject {
    Subject::new(json!({"trigger": {"times": times}, "state": state}))
}

fn stays(diff: &Diff) -> Vec<String> {
    diff.stay.iter().map(|(_, slot)| slot.scheduled_at.to_string()).collect()
}

#[test]
fn an_edit_keeps_what_still_matches_and_stores_nothing_ahead() {
    let standing = stand(&times(&["09:00", "10:00", "17:00"]), "2026-01-05T08:00:00Z", "2026-01-05T10:30:00Z");
    let diff = edit(&times(&["10:00", "13:00"]), &standing, "2026-01-05T10:30:00Z");
    assert_eq!(stays(&diff), ["2026-01-05T10:00:00Z"]);
    assert_eq!(diff.withdrawn, [run_id(1)]);
    assert_eq!((show(&diff.new), next_at(&diff.new)), (vec![], Some(at("2026-01-05T13:00:00Z"))));
    assert_eq!(diff.new.cursor.at, at("2026-01-05T10:30:00Z"));
}

#[test]
fn a_past_slot_that_an_edit_adds_is_not_made_up_for() {
    let standing = stand(&times(&["09:00"]), "2026-01-05T08:00:00Z", "2026-01-05T10:30:00Z");
    let diff = edit(&times(&["10:00"]), &standing, "2026-01-05T10:30:00Z");
    assert_eq!((diff.withdrawn, show(&diff.new)), (vec![run_id(1)], vec![]));
    assert_eq!(next_at(&diff.new), Some(at("2026-01-06T10:00:00Z")));
    let later = pass(&times(&["10:00"]).planning(), &diff.new.cursor, at("2026-01-06T09:00:00Z"));
    assert_eq!(show(&later), [] as [String; 0]);
}

#[test]
fn a_run_that_jitter_makes_due_later_stays_with_the_jitter_of_the_edit() {
    let with = |jitter: &str| Subject::new(json!({"trigger": {"times": ["10:00"]}, "jitter": jitter}));
    let before = with("59m");
    let passed = decide(&before, "2026-01-05T09:00:00Z", "2026-01-05T10:00:00Z");
    let slot = passed.runs().next().unwrap().clone();
    assert!(at("2026-01-05T10:00:00Z") < slot.due_at);
    let standing = standing_of(&passed);
    assert_eq!(edit(&before, &standing, "2026-01-05T10:00:00Z").stay, [(run_id(1), slot)]);
    let diff = edit(&with("0s"), &standing, "2026-01-05T10:00:00Z");
    assert_eq!((diff.stay[0].0, diff.stay[0].1.due_at), (run_id(1), at("2026-01-05T10:00:00Z")));
    assert_eq!((show(&diff.new), next_at(&diff.new)), (vec![], Some(at("2026-01-06T10:00:00Z"))));
}

#[test]
fn off_and_on_again_leaves_the_slots_ahead_and_a_cancelled_one_stays_away() {
    let times = ["09:00", "17:00", "19:00"];
    let off = json!({"paused": {"kind": "disabled", "at": "2026-01-05T10:00:00Z", "source": "api"}});
    let (enabled, disabled) = (with_state(&times, &json!("active")), with_state(&times, &off));
    let mut early = EarlyDecisions::default();
    early.decide(enabled.timetable.slots(at("2026-01-05T18:00:00Z")).next().unwrap().key()).unwrap();
    let standing = stand(&enabled, "2026-01-05T08:00:00Z", "2026-01-05T10:00:00Z");
    let replan_at = |subject: &Subject, now: &str| {
        let planning = Planning { answered: early.keys(), ..subject.planning_with(1) };
        replan(&planning, &Cursor::starting(at(now)), &standing, at(now))
    };
    let diff = replan_at(&disabled, "2026-01-05T10:00:00Z");
    assert_eq!((diff.withdrawn, show(&diff.new)), (vec![], vec![]), "admission says that 09:00 is disabled");
    assert_eq!(diff.new.upcoming.next, NextSlot::Inactive);
    let diff = replan_at(&enabled, "2026-01-05T11:00:00Z");
    assert_eq!((stays(&diff), show(&diff.new)), (vec!["2026-01-05T09:00:00Z".to_owned()], vec![]));
    assert_eq!(next_at(&diff.new), Some(at("2026-01-05T17:00:00Z")));
    let planning = Planning { answered: early.keys(), ..enabled.planning() };
    assert_eq!(show(&pass(&planning, &diff.new.cursor, at("2026-01-05T20:00:00Z"))), ["2026-01-05T17:00:00Z"]);
}

#[test]
fn a_zone_edit_makes_other_slots() {
    let standing = stand(&times(&["09:00", "17:00"]), "2026-01-05T08:00:00Z", "2026-01-05T10:00:00Z");
    let edited = Subject::new(json!({"trigger": {"times": ["09:00", "17:00"]}, "zone": "Europe/Paris"}));
    let diff = edit(&edited, &standing, "2026-01-05T10:00:00Z");
    assert_eq!((diff.withdrawn, show(&diff.new)), (vec![run_id(1)], vec![]));
    assert_eq!(next_at(&diff.new), Some(at("2026-01-05T16:00:00Z")));
}

#[test]
fn new_zone_data_moves_what_has_not_started_and_repeats_nothing() {
    let folder = ZoneFolder::new("new_zone_data");
    let fields = || json!({"trigger": {"times": ["09:00", "17:00"]}, "zone": "Test/Moving"});
    let before = Subject::with_zones(fields(), &folder.zones("Europe/Paris"));
    let after = Subject::with_zones(fields(), &folder.zones("Europe/London"));
    // 09:00 is due at 08:00 UTC and waits. With the new data, the clock shows 09:00 an hour later.
    let passed = decide(&before, "2026-01-05T00:00:00Z", "2026-01-05T08:30:00Z");
    let mut standing = standing_of(&passed);
    let diff = reconcile(&after, &passed.cursor, &standing, at("2026-01-05T08:30:00Z"));
    assert_eq!((stays(&diff), diff.stay[0].0), (vec!["2026-01-05T09:00:00Z".to_owned()], run_id(1)));
    assert_eq!((diff.withdrawn, show(&diff.new)), (vec![], vec![]));
    assert_eq!(next_at(&diff.new), Some(at("2026-01-05T17:00:00Z")));
    // It has run at 08:00 UTC: it does not run again, also when its row is gone.
    standing[0].state = StandingState::Answered;
    for standing in [&standing[..], &[]] {
        let diff = reconcile(&after, &passed.cursor, standing, at("2026-01-05T09:30:00Z"));
        assert_eq!((diff.stay.len(), show(&diff.new)), (0, vec![]));
        assert_eq!(next_at(&diff.new), Some(at("2026-01-05T17:00:00Z")));
    }
}

#[test]
fn new_zone_data_swallows_no_time_that_the_clock_had_not_shown() {
    let folder = ZoneFolder::new("swallows");
    for trigger in [json!({"cron": [{"expression": "30 * * * *"}]}), json!({"times": ["00:30"]})] {
        let fields = || json!({"trigger": trigger, "zone": "Test/Moving"});
        let before = Subject::with_zones(fields(), &folder.zones("Europe/London"));
        // London's clock shows 23:50, Paris' 00:50: half past midnight is late, and not lost.
        let passed = decide(&before, "2026-01-05T00:40:00Z", "2026-01-05T23:50:00Z");
        let after = Subject::with_zones(fields(), &folder.zones("Europe/Paris"));
        let standing = standing_of(&passed);
        let diff = reconcile(&after, &passed.cursor, &standing, at("2026-01-05T23:51:00Z"));
        assert_eq!((diff.stay.len(), diff.withdrawn), (standing.len(), vec![]), "{trigger}");
        assert_eq!(show(&diff.new), ["2026-01-05T23:30:00Z"], "{trigger}");
    }
}

#[test]
fn what_was_decided_before_a_pause_stays_so_when_zone_data_moves_it_into_the_pause() {
    let folder = ZoneFolder::new("into_the_pause");
    let pause = json!({"paused": {"kind": "disabled", "at": "2026-01-05T09:30:00Z", "source": "api"}});
    let fields = || json!({"trigger": {"times": ["10:00", "20:00"]}, "zone": "Test/Moving", "state": pause});
    // Paused at 10:30 by Paris' clock: 10:00 is decided, also where London's clock shows it half an hour later.
    let before = Subject::with_zones(fields(), &folder.zones("Europe/Paris"));
    let paused = edit(&before, &[], "2026-01-05T09:30:00Z");
    let after = Subject::with_zones(fields(), &folder.zones("Europe/London"));
    let resumed = skip_until(&after.planning(), &paused.new.cursor, at("2026-01-05T21:00:00Z"), SkipReason::Disabled);
    assert_eq!(show_skips(&resumed.skips), ["disabled×1"]);
}

#[test]
fn a_closed_calendar_withdraws_what_has_not_started() {
    let standing = stand(&times(&["10:00", "20:00"]), "2026-01-05T08:00:00Z", "2026-01-05T20:30:00Z");
    let closed = Subject::new(json!({"trigger": {"times": ["10:00", "20:00", "21:00"]}, "calendar": "office"}));
    let diff = edit(&closed, &standing, "2026-01-05T20:30:00Z");
    assert_eq!((stays(&diff), diff.withdrawn), (vec!["2026-01-05T10:00:00Z".to_owned()], vec![run_id(2)]));
    // 21:00 is closed as well, but its time has not come.
    assert_eq!((show(&diff.new), show_skips(&diff.new.upcoming.closed)), (vec![], vec!["calendar×1".to_owned()]));
}

#[test]
fn re_planning_that_finds_nothing_changed_is_an_empty_diff() {
    let gap = json!({"dst": {"gap": "skip"}});
    for (fields, from, now) in [
        (
            json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}, "zone": "Africa/Cairo"}),
            "2025-04-24T08:00:00Z",
            "2025-04-25T01:30:00Z",
        ),
        (
            json!({"trigger": {"times": ["10:00", "18:00", "20:00"]}, "calendar": "office"}),
            "2026-01-05T08:00:00Z",
            "2026-01-05T19:00:00Z",
        ),
        (
            json!({"trigger": {"times": ["02:30", "12:00"]}, "zone": "America/New_York", "policy": gap}),
            "2026-03-08T05:30:00Z",
            "2026-03-08T18:00:00Z",
        ),
        (json!({"trigger": {"cron": [{"expression": "* * * * * *"}]}}), "2026-01-05T08:00:00Z", "2026-01-05T08:10:00Z"),
        (json!({"trigger": {"cron": [{"expression": "* * * * * *"}]}}), "2026-01-05T08:00:00Z", "2026-01-05T09:10:00Z"),
    ] {
        let subject = Subject::new(fields);
        let passed = decide(&subject, from, now);
        let standing = standing_of(&passed);
        let diff = reconcile(&subject, &passed.cursor, &standing, at(now));
        assert_eq!((diff.stay.len(), diff.withdrawn), (standing.len(), vec![]), "{subject:?}");
        assert_eq!(diff.new, Pass { decisions: vec![], ..passed }, "{subject:?}");
    }
}

#[test]
fn re_planning_goes_on_where_the_cursor_has_stopped() {
    // A thousand runs wait and the cursor lies before now: what lies between is not lost.
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "* * * * * *"}]}}));
    let passed = decide(&subject, "2026-01-05T08:00:00Z", "2026-01-05T09:00:00Z");
    let mut standing = standing_of(&passed);
    assert_eq!(standing.len(), UNSTARTED_MAX);
    for run in &mut standing[..10] {
        run.state = StandingState::Answered;
    }
    let diff = reconcile(&subject, &passed.cursor, &standing, at("2026-01-05T09:00:00Z"));
    assert_eq!((diff.stay.len(), diff.new.runs().count()), (990, 10));
    assert_eq!(show(&diff.new)[0], "2026-01-05T08:16:41Z");
    assert!(matches!(diff.new.upcoming.next, NextSlot::Full(_)), "{:?}", diff.new.upcoming.next);
}

#[test]
fn withdrawn_runs_make_room() {
    let every_second = Subject::new(json!({"trigger": {"cron": [{"expression": "* * * * * *"}]}}));
    let standing = stand(&every_second, "2026-01-05T08:00:00Z", "2026-01-05T09:00:00Z");
    let edited = Subject::new(json!({"trigger": {"cron": [{"expression": "0 * * * * *"}]}}));
    let diff = edit(&edited, &standing, "2026-01-05T09:00:00Z");
    assert_eq!((diff.stay.len(), diff.withdrawn.len()), (16, UNSTARTED_MAX - 16));
    assert_eq!((show(&diff.new), next_at(&diff.new)), (vec![], Some(at("2026-01-05T09:01:00Z"))));
}

#[test]
fn a_skip_range_is_only_over_slots_that_follow_each_other() {
    let subject = Subject::new(json!({"trigger": {"times": ["18:00", "19:00", "20:00"]}, "calendar": "office"}));
    let slot = subject.timetable.slots(at("2026-01-05T18:30:00Z")).next().unwrap();
    let standing =
        [Standing { id: run_id(1), key: slot.key(), scheduled_at: slot.scheduled_at, state: StandingState::Answered }];
    let cursor = Cursor::starting(at("2026-01-05T12:00:00Z"));
    let diff = reconcile(&subject, &cursor, &standing, at("2026-01-05T21:00:00Z"));
    assert_eq!(show(&diff.new), ["calendar×1", "calendar×1"]);
}

#[test]
fn enabling_an_immediate_schedule_decides_its_slot() {
    let now = "2026-01-05T10:00:00Z";
    for trigger in [json!({"immediate": {"at": now}}), json!({"after": {"delay": "0s", "from": now}})] {
        let diff = edit(&Subject::new(json!({"trigger": trigger})), &[], now);
        assert_eq!((show(&diff.new), diff.new.is_over()), (vec![now.to_owned()], true), "{trigger}");
    }
}

#[test]
fn what_people_and_events_asked_for_is_left_alone() {
    let mut standing = stand(&times(&["09:00"]), "2026-01-05T08:00:00Z", "2026-01-05T10:00:00Z");
    standing[0].key = SlotKey::manual(run_id(1));
    let event = Standing { key: SlotKey::event("7"), ..standing[0].clone() };
    standing.push(event);
    let pause = json!({"paused": {"kind": "paused", "at": "2026-01-05T10:00:00Z", "source": "ada"}});
    for state in [json!("active"), pause, json!({"ended": "cancelled"})] {
        let diff = edit(&with_state(&["17:00"], &state), &standing, "2026-01-05T10:00:00Z");
        assert_eq!((diff.stay, diff.withdrawn), (vec![], vec![]), "{state}");
    }
}

#[test]
fn a_pause_leaves_what_is_due_to_admission() {
    let mut standing = stand(&times(&["08:30", "09:00"]), "2026-01-05T08:00:00Z", "2026-01-05T09:05:00Z");
    // Zone data has moved the second one ahead of now.
    standing[1].scheduled_at = at("2026-01-05T10:00:00Z");
    let pause = json!({"paused": {"kind": "paused", "at": "2026-01-05T09:05:00Z", "source": "ada"}});
    let mut paused = with_state(&["08:30", "09:00"], &pause);
    assert_eq!(edit(&paused, &standing, "2026-01-05T09:05:00Z").withdrawn, [run_id(2)]);
    // What is made up for when the pause ends is not decided by it.
    paused.schedule.policy.catch_up.covers_pauses = true;
    let made_up_from = |from: &str| {
        let now = at("2026-01-05T09:05:00Z");
        reconcile(&paused, &Cursor::starting(at(from)), &standing, now).withdrawn
    };
    assert_eq!(made_up_from("2026-01-05T08:29:59Z"), [run_id(1), run_id(2)]);
    // What the pause does not go back to stays.
    assert_eq!(made_up_from("2026-01-05T09:05:00Z"), [run_id(2)]);
    let ended = with_state(&["08:30", "09:00"], &json!({"ended": "cancelled"}));
    assert_eq!(edit(&ended, &standing, "2026-01-05T09:05:00Z").withdrawn, [run_id(1), run_id(2)]);
}

#[test]
fn the_most_runs_hold_over_an_edit() {
    let standing = stand(&times(&["06:00", "07:00", "08:00"]), "2026-01-05T05:00:00Z", "2026-01-05T10:00:00Z");
    let with = |max_runs: u64| {
        let trigger = json!({"times": ["06:00", "07:00", "08:00", "17:00"]});
        Subject::new(json!({"trigger": trigger, "bounds": {"max_runs": max_runs}}))
    };
    let now = at("2026-01-05T10:00:00Z");
    let cursor = Cursor::starting(now);
    // Three planned and two claimed but not started: five wait.
    let diff = replan(&with(6).planning_with(5), &cursor, &standing, now);
    assert_eq!((diff.stay.len(), next_at(&diff.new)), (3, Some(at("2026-01-05T17:00:00Z"))));
    let diff = replan(&with(5).planning_with(5), &cursor, &standing, now);
    assert_eq!((diff.stay.len(), diff.withdrawn), (3, vec![]));
    assert!(matches!(diff.new.upcoming.next, NextSlot::Exhausted(_)), "{:?}", diff.new.upcoming.next);
    // A lower maximum takes the last ones back, and none more than that.
    let diff = replan(&with(3).planning_with(5), &cursor, &standing, now);
    assert_eq!((stays(&diff), diff.withdrawn), (vec!["2026-01-05T06:00:00Z".to_owned()], vec![run_id(3), run_id(2)]));
    assert!(matches!(diff.new.upcoming.next, NextSlot::Exhausted(_)), "{:?}", diff.new.upcoming.next);
    // Those that are claimed are not taken back.
    let diff = replan(&with(1).planning_with(5), &cursor, &standing, now);
    assert_eq!((diff.stay.len(), diff.withdrawn.len(), show(&diff.new)), (0, 3, vec![]));
}

#[test]
fn a_second_pass_keeps_its_run() {
    let policy = json!({"dst": {"repeat": "both", "gap": "after"}});
    let fields = json!({"trigger": {"times": ["01:30"]}, "zone": "America/New_York", "policy": policy});
    let subject = Subject::new(fields);
    let standing = stand(&subject, "2026-11-01T04:00:00Z", "2026-11-01T07:00:00Z");
    assert_eq!(standing.len(), 2);
    let diff = edit(&subject, &standing, "2026-11-01T07:00:00Z");
    assert_eq!(stays(&diff), ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"]);
    // Between the two passes the second one lies ahead.
    let diff = edit(&subject, &standing[..1], "2026-11-01T06:00:00Z");
    assert_eq!((show(&diff.new), next_at(&diff.new)), (vec![], Some(at("2026-11-01T06:30:00Z"))));
}

#[test]
fn a_cancelled_slot_under_a_new_version_is_not_offered_again() {
    // 17:00 was cancelled before its time, and has its record.
    let slot = times(&["17:00"]).timetable.slots(at("2026-01-05T08:00:00Z")).next().unwrap();
    let standing =
        [Standing { id: run_id(1), key: slot.key(), scheduled_at: slot.scheduled_at, state: StandingState::Answered }];
    let edited = times(&["17:00", "18:00"]);
    let diff = edit(&edited, &standing, "2026-01-05T10:00:00Z");
    assert_eq!(next_at(&diff.new), Some(at("2026-01-05T18:00:00Z")));
    // Also where the record is gone and only the early decision is left.
    let mut early = EarlyDecisions::default();
    early.decide(slot.key()).unwrap();
    let now = at("2026-01-05T10:00:00Z");
    let planning = Planning { answered: early.keys(), ..edited.planning() };
    let diff = replan(&planning, &Cursor::starting(now), &[], now);
    assert_eq!(next_at(&diff.new), Some(at("2026-01-05T18:00:00Z")));
}

#[test]
fn an_edit_takes_effect_from_the_cursor_where_the_clock_was_set_back() {
    let before = times(&["09:00", "10:00"]);
    let passed = decide(&before, "2026-01-05T08:00:00Z", "2026-01-05T10:30:00Z");
    let standing = standing_of(&passed);
    // It is 09:30 once more.
    let edited = times(&["10:00", "10:15", "11:00"]);
    let diff = reconcile(&edited, &passed.cursor, &standing, at("2026-01-05T09:30:00Z"));
    assert_eq!((stays(&diff), diff.withdrawn), (vec!["2026-01-05T10:00:00Z".to_owned()], vec![run_id(1)]));
    assert_eq!((show(&diff.new), next_at(&diff.new)), (vec![], Some(at("2026-01-05T11:00:00Z"))));
    assert_eq!(diff.new.cursor.at, passed.cursor.at);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a schedule becomes, each run that waits stays or is withdrawn, and no slot gets a second decision.
    #[test]
    fn an_edit_decides_nothing_twice(before in generated(), after in generated(), minutes in 1_i64..6_000) {
        let (start, now) = (before.start, before.start + jiff::SignedDuration::from_mins(minutes));
        let passed = pass(&before.subject.planning(), &Cursor::starting(start), now);
        let standing = standing_of(&passed);
        let same = reconcile(&before.subject, &passed.cursor, &standing, now);
        prop_assert_eq!((same.stay.len(), same.withdrawn), (standing.len(), vec![]));
        prop_assert_eq!((same.new.decisions, &same.new.cursor), (vec![], &passed.cursor));
        prop_assert_eq!((same.new.is_cut, &same.new.upcoming.next), (false, &passed.upcoming.next));

        let Generated { subject, .. } = after;
        let diff = reconcile(&subject, &Cursor::starting(passed.cursor.at), &standing, now);
        let stay = |run: &Standing| diff.stay.iter().any(|(id, slot)| *id == run.id && slot.key() == run.key);
        for run in &standing {
            prop_assert!(stay(run) != diff.withdrawn.contains(&run.id));
            let is_open = subject.timetable.slot(&run.key).is_some_and(|slot| slot.skipped.is_none());
            prop_assert_eq!(stay(run), is_open);
        }
        prop_assert_eq!(diff.stay.len() + diff.withdrawn.len(), standing.len());
        prop_assert!(diff.new.decisions.is_empty() || passed.cursor.at < now);
        prop_assert!(diff.new.upcoming.next.open().is_none_or(|slot| now < slot.scheduled_at));
    }
}
