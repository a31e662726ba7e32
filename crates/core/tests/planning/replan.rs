//! Re-planning is a set difference on slot keys: what stays, what is withdrawn, what is new.

use jiff::Timestamp;
use punctual_core::plan::{self, Diff, PLAN_AHEAD_MAX, Standing, StandingState, ZoneData, plan, skip_until};
use punctual_core::run::SkipReason;
use punctual_core::schedule::{Cursor, Schedule};
use punctual_core::time::SlotKey;
use serde_json::json;

use crate::support::{Subject, ZoneFolder, at, run_id, show};

/// What a plan leaves in the store: one planned run for each of its runs.
fn stand(subject: &Subject, from: &str) -> Vec<Standing> {
    let plan = plan(&subject.planning(), &Cursor::starting(at(from)), at(from));
    (1..)
        .zip(plan.runs())
        .map(|(number, slot)| Standing {
            id: run_id(number),
            key: slot.key(),
            scheduled_at: slot.scheduled_at,
            state: StandingState::Planned,
        })
        .collect()
}

/// Re-plans as an edit does: the cursor goes to now.
fn edit(subject: &Subject, standing: &[Standing], now: Timestamp) -> Diff {
    let cursor = Schedule::cursor_from(&subject.schedule.trigger, now);
    plan::replan(&subject.planning_with(planned(standing)), &cursor, ZoneData::InForce, standing, now)
}

/// Re-plans as a reconcile does: the cursor stays where planning has left it.
fn reconcile(subject: &Subject, cursor: &Cursor, standing: &[Standing], now: Timestamp) -> Diff {
    plan::replan(&subject.planning_with(planned(standing)), cursor, ZoneData::InForce, standing, now)
}

fn planned(standing: &[Standing]) -> usize {
    standing.iter().filter(|run| run.state == StandingState::Planned).count()
}

fn times(times: &[&str]) -> Subject {
    Subject::new(json!({"trigger": {"times": times}}))
}

fn stays(diff: &Diff) -> Vec<String> {
    diff.stay.iter().map(|(_, slot)| slot.scheduled_at.to_string()).collect()
}

#[test]
fn an_edit_keeps_what_still_matches() {
    let standing = stand(&times(&["09:00", "15:00", "17:00"]), "2026-01-05T08:00:00Z");
    let edited = times(&["13:00", "17:00"]);
    let diff = edit(&edited, &standing[1..], at("2026-01-05T10:30:00Z"));
    assert_eq!(stays(&diff), ["2026-01-05T17:00:00Z"]);
    assert_eq!(diff.withdrawn, [run_id(2)]);
    assert_eq!(show(&diff.new), ["2026-01-05T13:00:00Z"]);
    assert_eq!(diff.new.cursor.at, at("2026-01-06T00:15:00Z"));
    assert_eq!(diff.new.wake_at, Some(at("2026-01-06T00:00:00Z")));
}

#[test]
fn a_run_that_is_due_and_unclaimed_stays_while_its_slot_is_one() {
    let standing = stand(&times(&["09:00", "17:00"]), "2026-01-05T08:00:00Z");
    let diff = edit(&times(&["09:00", "18:00"]), &standing, at("2026-01-05T10:30:00Z"));
    assert_eq!(stays(&diff), ["2026-01-05T09:00:00Z"]);
    assert_eq!(diff.withdrawn, [run_id(2)]);
    // A past slot that the edit adds is not made up for.
    let diff = edit(&times(&["10:00", "17:00"]), &standing, at("2026-01-05T10:30:00Z"));
    assert_eq!(diff.withdrawn, [run_id(1)]);
    assert_eq!(show(&diff.new), [] as [String; 0]);
}

#[test]
fn off_and_on_again_brings_the_slot_back_and_a_cancelled_one_stays_away() {
    let mut standing = stand(&times(&["09:00", "17:00", "19:00"]), "2026-01-05T08:00:00Z");
    standing[2].state = StandingState::Answered; // Cancelled by a person.
    let off = json!({"paused": {"kind": "disabled", "at": "2026-01-05T10:00:00Z", "source": "api"}});
    let disabled = Subject::new(json!({"trigger": {"times": ["09:00", "17:00", "19:00"]}, "state": off}));
    let diff = edit(&disabled, &standing[1..], at("2026-01-05T10:00:00Z"));
    assert_eq!((diff.withdrawn, diff.new.answers), (vec![run_id(2)], vec![]));
    let diff = edit(&times(&["09:00", "17:00", "19:00"]), &standing[2..], at("2026-01-05T11:00:00Z"));
    assert_eq!(show(&diff.new), ["2026-01-05T17:00:00Z"]);
}

#[test]
fn a_zone_edit_makes_new_slots() {
    let standing = stand(&times(&["17:00"]), "2026-01-05T08:00:00Z");
    let edited = Subject::new(json!({"trigger": {"times": ["17:00"]}, "zone": "Europe/Paris"}));
    let diff = edit(&edited, &standing, at("2026-01-05T10:00:00Z"));
    assert_eq!((diff.withdrawn, show(&diff.new)), (vec![run_id(1)], vec!["2026-01-05T16:00:00Z".to_owned()]));
}

#[test]
fn new_zone_data_moves_what_has_not_fired_and_repeats_nothing() {
    let folder = ZoneFolder::new("new_zone_data");
    let fields = || json!({"trigger": {"times": ["09:00", "17:00"]}, "zone": "Test/Moving"});
    let before = Subject::with_zones(fields(), &folder.zones("Europe/Paris"));
    let mut standing = stand(&before, "2026-01-05T00:00:00Z");
    standing[0].state = StandingState::Answered; // 09:00 has run, at 08:00 UTC.
    let after = Subject::with_zones(fields(), &folder.zones("Europe/London"));
    let cursor =
        plan(&before.planning(), &Cursor::starting(at("2026-01-05T00:00:00Z")), at("2026-01-05T00:00:00Z")).cursor;
    // Also when the row of what has run is gone.
    for standing in [&standing[..], &standing[1..]] {
        assert_eq!(show(&reconcile(&after, &cursor, standing, at("2026-01-05T08:30:00Z")).new), [] as [String; 0]);
    }
    let diff = reconcile(&after, &cursor, &standing, at("2026-01-05T08:30:00Z"));
    assert_eq!(stays(&diff), ["2026-01-05T17:00:00Z"]);
    assert_eq!((standing[1].scheduled_at, diff.stay[0].0), (at("2026-01-05T16:00:00Z"), run_id(2)));
    assert_eq!((diff.withdrawn, show(&diff.new)), (vec![], vec![]));
}

#[test]
fn new_zone_data_swallows_no_time_that_the_clock_had_not_shown() {
    let folder = ZoneFolder::new("swallows");
    let midnight = at("2026-01-05T00:00:00Z");
    for trigger in [json!({"cron": [{"expression": "30 * * * *"}]}), json!({"times": ["00:30"]})] {
        let fields = || json!({"trigger": trigger, "zone": "Test/Moving"});
        let before = Subject::with_zones(fields(), &folder.zones("Europe/London"));
        // London's day is planned up to 00:15 of the next. By Paris' clock that is 01:15, and 00:30 lies before it.
        let standing = stand(&before, "2026-01-05T00:40:00Z");
        let cursor = plan(&before.planning(), &Cursor::starting(at("2026-01-05T00:40:00Z")), midnight).cursor;
        assert_eq!(cursor.at, at("2026-01-06T00:15:00Z"));
        let after = Subject::with_zones(fields(), &folder.zones("Europe/Paris"));
        let diff = reconcile(&after, &cursor, &standing, at("2026-01-05T12:00:00Z"));
        let paris_midnight = plan(&after.planning(), &diff.new.cursor, at("2026-01-05T23:00:00Z"));
        assert_eq!([show(&diff.new), show(&paris_midnight)].concat()[0], "2026-01-05T23:30:00Z", "{trigger}");
        // The clock has moved over it: it is late, and not lost.
        let diff = reconcile(&after, &cursor, &standing, at("2026-01-05T23:50:00Z"));
        assert_eq!(show(&diff.new)[0], "2026-01-05T23:30:00Z", "{trigger}");
    }
}

#[test]
fn new_zone_data_swallows_no_time_that_it_repeats() {
    let folder = ZoneFolder::new("repeats");
    let fields = || json!({"trigger": {"cron": [{"expression": "30 * * * *"}]}, "zone": "Test/Moving"});
    let started_at = at("2026-11-01T05:00:30Z");
    let before = Subject::with_zones(fields(), &folder.zones("America/Panama"));
    let mut standing = stand(&before, "2026-11-01T05:00:30Z");
    let cursor = plan(&before.planning(), &Cursor::starting(started_at), started_at).cursor;
    // In New York the hour from one to two comes twice that night, from five o'clock UTC on and from six.
    let after = Subject::with_zones(fields(), &folder.zones("America/New_York"));
    let with_other = |standing: &[Standing], now| {
        plan::replan(&after.planning_with(planned(standing)), &cursor, ZoneData::Other, standing, at(now))
    };
    let diff = with_other(&standing, "2026-11-01T05:10:00Z");
    assert_eq!(show(&diff.new), ["2026-11-01T06:30:00Z"]);
    // It is planned once.
    let second_pass = diff.new.runs().next().unwrap();
    let (key, scheduled_at) = (second_pass.key(), second_pass.scheduled_at);
    standing.push(Standing { id: run_id(99), key, scheduled_at, state: StandingState::Planned });
    assert_eq!(show(&with_other(&standing, "2026-11-01T05:20:00Z").new), [] as [String; 0]);
    // By the clock that was in force it has never been: nothing to make up for.
    standing.pop();
    assert_eq!(show(&with_other(&standing, "2026-11-01T07:10:00Z").new), [] as [String; 0]);
}

#[test]
fn what_was_answered_before_a_pause_stays_so_when_zone_data_moves_it_into_the_pause() {
    let folder = ZoneFolder::new("into_the_pause");
    let pause = json!({"paused": {"kind": "disabled", "at": "2026-01-05T09:30:00Z", "source": "api"}});
    let fields = || json!({"trigger": {"times": ["10:00", "20:00"]}, "zone": "Test/Moving", "state": pause});
    // Paused at 10:30 by Paris' clock: 10:00 has its answer, also where London's clock shows it half an hour later.
    let before = Subject::with_zones(fields(), &folder.zones("Europe/Paris"));
    let paused = edit(&before, &[], at("2026-01-05T09:30:00Z"));
    let after = Subject::with_zones(fields(), &folder.zones("Europe/London"));
    let resumed = skip_until(&after.planning(), &paused.new.cursor, at("2026-01-05T21:00:00Z"), SkipReason::Disabled);
    assert_eq!(show(&resumed), ["disabled×1"]);
}

#[test]
fn a_closed_calendar_withdraws_and_records() {
    let open = Subject::new(json!({"trigger": {"times": ["10:00", "20:00"]}}));
    let standing = stand(&open, "2026-01-05T08:00:00Z");
    let closed = Subject::new(json!({"trigger": {"times": ["10:00", "20:00", "21:00"]}, "calendar": "office"}));
    let diff = edit(&closed, &standing, at("2026-01-05T08:00:00Z"));
    assert_eq!((stays(&diff), diff.withdrawn), (vec!["2026-01-05T10:00:00Z".to_owned()], vec![run_id(2)]));
    assert_eq!(show(&diff.new), ["calendar×2"]); // The withdrawn slot gets its answer: a skip.
}

#[test]
fn a_reconcile_records_what_is_closed_now_though_planning_had_passed_it() {
    let open = Subject::new(json!({"trigger": {"times": ["10:00", "20:00"]}}));
    let standing = stand(&open, "2026-01-05T08:00:00Z");
    let planned = plan(&open.planning(), &Cursor::starting(at("2026-01-05T08:00:00Z")), at("2026-01-05T08:00:00Z"));
    let closed = Subject::new(json!({"trigger": {"times": ["10:00", "20:00"]}, "calendar": "office"}));
    let diff = reconcile(&closed, &planned.cursor, &standing, at("2026-01-05T09:00:00Z"));
    assert_eq!((diff.withdrawn.clone(), show(&diff.new)), (vec![run_id(2)], vec!["calendar×1".to_owned()]));
}

#[test]
fn a_reconcile_that_finds_nothing_changed_is_an_empty_diff() {
    let gap = json!({"dst": {"gap": "skip"}});
    for (fields, from, later) in [
        (
            json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}, "zone": "Africa/Cairo"}),
            "2025-04-24T08:00:00Z",
            "2025-04-24T09:30:00Z",
        ),
        (
            json!({"trigger": {"times": ["10:00", "18:00", "20:00"]}, "calendar": "office"}),
            "2026-01-05T08:00:00Z",
            "2026-01-05T09:00:00Z",
        ),
        (
            json!({"trigger": {"times": ["02:30", "12:00"]}, "zone": "America/New_York", "policy": gap}),
            "2026-03-08T05:30:00Z",
            "2026-03-08T06:00:00Z",
        ),
        (json!({"trigger": {"cron": [{"expression": "* * * * * *"}]}}), "2026-01-05T08:00:00Z", "2026-01-05T08:10:00Z"),
    ] {
        let subject = Subject::new(fields);
        let first = plan(&subject.planning(), &Cursor::starting(at(from)), at(from));
        let standing = stand(&subject, from);
        let diff = reconcile(&subject, &first.cursor, &standing, at(later));
        assert_eq!((diff.stay.len(), diff.withdrawn, show(&diff.new)), (standing.len(), vec![], vec![]));
        assert_eq!(diff.new.cursor, first.cursor);
    }
}

#[test]
fn a_reconcile_goes_on_where_planning_has_stopped() {
    // A thousand runs wait and planning lags behind the clock: what lies between is not lost.
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "* * * * * *"}]}}));
    let first = plan(&subject.planning(), &Cursor::starting(at("2026-01-05T08:00:00Z")), at("2026-01-05T08:00:00Z"));
    let mut standing = stand(&subject, "2026-01-05T08:00:00Z");
    for run in &mut standing[..10] {
        run.state = StandingState::Answered;
    }
    let diff = reconcile(&subject, &first.cursor, &standing, at("2026-01-05T09:00:00Z"));
    assert_eq!((diff.stay.len(), diff.new.runs().count()), (990, 10));
    assert_eq!(show(&diff.new)[0], "2026-01-05T08:16:41Z");
}

#[test]
fn a_skip_range_is_only_over_slots_that_follow_each_other() {
    let subject = Subject::new(json!({"trigger": {"times": ["18:00", "19:00", "20:00"]}, "calendar": "office"}));
    let slot = subject.timetable.slots(at("2026-01-05T18:30:00Z")).next().unwrap();
    let standing =
        [Standing { id: run_id(1), key: slot.key(), scheduled_at: slot.scheduled_at, state: StandingState::Answered }];
    assert_eq!(show(&edit(&subject, &standing, at("2026-01-05T12:00:00Z")).new), ["calendar×1", "calendar×1"]);
}

#[test]
fn enabling_an_immediate_schedule_plans_its_run() {
    let now = at("2026-01-05T10:00:00Z");
    let subject = Subject::new(json!({"trigger": {"immediate": {"at": now.to_string()}}}));
    assert_eq!(show(&edit(&subject, &[], now).new), ["2026-01-05T10:00:00Z"]);
    let subject = Subject::new(json!({"trigger": {"after": {"delay": "0s", "from": now.to_string()}}}));
    assert_eq!(show(&edit(&subject, &[], now).new), ["2026-01-05T10:00:00Z"]);
}

#[test]
fn what_people_and_events_asked_for_is_left_alone() {
    let mut standing = stand(&times(&["17:00"]), "2026-01-05T08:00:00Z");
    standing[0].key = SlotKey::manual(run_id(1));
    let event = Standing { key: SlotKey::event("7"), ..standing[0].clone() };
    standing.push(event);
    for state in [json!("active"), json!({"paused": {"kind": "paused", "at": "2026-01-05T10:00:00Z", "source": "ada"}})]
    {
        let subject = Subject::new(json!({"trigger": {"times": ["09:00"]}, "state": state}));
        let diff = edit(&subject, &standing, at("2026-01-05T10:00:00Z"));
        assert_eq!((diff.stay, diff.withdrawn), (vec![], vec![]));
    }
}

#[test]
fn a_pause_leaves_what_is_due_to_admission() {
    let standing = stand(&times(&["09:00", "17:00"]), "2026-01-05T08:00:00Z");
    let pause = json!({"paused": {"kind": "paused", "at": "2026-01-05T09:05:00Z", "source": "ada"}});
    let paused = Subject::new(json!({"trigger": {"times": ["09:00", "17:00"]}, "state": pause}));
    assert_eq!(edit(&paused, &standing, at("2026-01-05T09:05:00Z")).withdrawn, [run_id(2)]);
    let ended = Subject::new(json!({"trigger": {"times": ["09:00", "17:00"]}, "state": {"ended": "cancelled"}}));
    assert_eq!(edit(&ended, &standing, at("2026-01-05T09:05:00Z")).withdrawn, [run_id(1), run_id(2)]);
}

#[test]
fn the_most_runs_hold_over_an_edit() {
    let standing = stand(&times(&["14:00", "15:00", "16:00"]), "2026-01-05T08:00:00Z");
    let with = |max_runs: u64| {
        let trigger = json!({"times": ["14:00", "15:00", "16:00", "17:00", "18:00", "19:00"]});
        Subject::new(json!({"trigger": trigger, "bounds": {"max_runs": max_runs}}))
    };
    let now = at("2026-01-05T10:00:00Z");
    let cursor = Cursor::starting(now);
    // Three planned and two claimed but not started: five wait.
    let diff = plan::replan(&with(5).planning_with(5), &cursor, ZoneData::InForce, &standing, now);
    assert_eq!((diff.stay.len(), show(&diff.new), diff.new.wake_at), (3, vec![], None));
    let diff = plan::replan(&with(6).planning_with(5), &cursor, ZoneData::InForce, &standing, now);
    assert_eq!((diff.stay.len(), show(&diff.new)), (3, vec!["2026-01-05T17:00:00Z".to_owned()]));
    // A lower maximum takes the last ones back.
    let diff = plan::replan(&with(3).planning_with(5), &cursor, ZoneData::InForce, &standing, now);
    assert_eq!((stays(&diff), diff.withdrawn), (vec!["2026-01-05T14:00:00Z".to_owned()], vec![run_id(3), run_id(2)]));
    // They have no answer: when another run is skipped, planning finds them again.
    assert!(diff.new.cursor.at < at("2026-01-05T15:00:00Z"), "{:?}", diff.new.cursor);
}

#[test]
fn a_second_pass_keeps_its_run() {
    let policy = json!({"dst": {"repeat": "both", "gap": "after"}});
    let fields = json!({"trigger": {"times": ["01:30"]}, "zone": "America/New_York", "policy": policy});
    let subject = Subject::new(fields);
    let standing = stand(&subject, "2026-11-01T04:00:00Z");
    assert_eq!(standing.len(), 2);
    let diff = edit(&subject, &standing, at("2026-11-01T06:00:00Z"));
    assert_eq!(stays(&diff), ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"]);
}

#[test]
fn a_rhythm_of_seconds_is_planned_to_the_limit_and_no_further() {
    let hourly = Subject::new(json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}}));
    let standing = stand(&hourly, "2026-01-05T00:00:00Z");
    let edited = Subject::new(json!({"trigger": {"cron": [{"expression": "* * * * * *"}]}}));
    let diff = edit(&edited, &standing, at("2026-01-05T00:00:00Z"));
    assert_eq!((diff.stay.len(), diff.withdrawn.len()), (24, 0));
    assert_eq!(diff.new.runs().count(), PLAN_AHEAD_MAX - 24);
    assert_eq!(diff.new.wake_at, Some(at("2026-01-05T00:08:09Z"))); // Half of the new ones are due.
}

#[test]
fn a_cancelled_slot_under_a_new_version_is_not_offered_again() {
    let mut standing = stand(&times(&["17:00"]), "2026-01-05T08:00:00Z");
    standing[0].state = StandingState::Answered;
    let diff = edit(&times(&["17:00", "18:00"]), &standing, at("2026-01-05T10:00:00Z"));
    assert_eq!(show(&diff.new), ["2026-01-05T18:00:00Z"]);
}

#[test]
fn what_stands_lies_behind_the_frontier_also_where_the_day_ends_earlier() {
    let every = json!({"every": {"interval": "1h", "anchor": "2026-01-05T00:00:00Z"}});
    let in_zone = |zone: &str| Subject::new(json!({"trigger": every, "zone": zone}));
    let standing = stand(&in_zone("America/New_York"), "2026-01-05T05:00:00Z");
    // In Kathmandu the day ends eleven hours before it does in New York.
    let diff = edit(&in_zone("Asia/Kathmandu"), &standing, at("2026-01-05T10:30:00Z"));
    assert_eq!((diff.stay.len(), show(&diff.new)), (standing.len(), vec![]));
    assert_eq!(diff.new.cursor.at, standing.last().unwrap().scheduled_at);
    // Also what was called off ahead of its time.
    let mut last = standing.last().unwrap().clone();
    last.state = StandingState::Answered;
    let diff = edit(&in_zone("Asia/Kathmandu"), &[last.clone()], at("2026-01-05T10:30:00Z"));
    assert_eq!(diff.new.cursor.at, last.scheduled_at);
    assert_eq!(diff.new.runs().count(), 18, "11:00 to 04:00 without 05:00");
}
