//! Planning: every slot gets exactly one answer, whatever moments planning is called at.

use std::collections::BTreeSet;

use crate::support::{Subject, ZoneFolder, at, expand, show};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use punctual_core::plan::{Answer, Outage, PLAN_AHEAD_MAX, Planning, WORK_MAX, catch_up, horizon, plan, skip_until};
use punctual_core::run::SkipReason;
use punctual_core::schedule::Cursor;
use serde_json::json;

#[test]
fn a_day_is_planned_to_its_end_and_a_quarter_of_an_hour() {
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "0 */8 * * *"}]}, "zone": "America/Denver"}));
    let first = plan(&subject.planning(), &Cursor::starting(at("2026-01-05T10:00:00Z")), at("2026-01-05T10:00:00Z"));
    assert_eq!(show(&first), ["2026-01-05T15:00:00Z", "2026-01-05T23:00:00Z", "2026-01-06T07:00:00Z"]);
    assert_eq!(first.cursor.at, at("2026-01-06T07:15:00Z"));
    assert_eq!(first.wake_at, Some(at("2026-01-06T07:00:00Z"))); // The next local midnight.
    // Planning again has nothing to add until then.
    let again = plan(&subject.planning(), &first.cursor, at("2026-01-05T23:30:00Z"));
    assert_eq!((again.answers, again.cursor, again.wake_at), (vec![], first.cursor.clone(), first.wake_at));
    let tomorrow = plan(&subject.planning(), &first.cursor, at("2026-01-06T07:00:00Z"));
    assert_eq!(show(&tomorrow), ["2026-01-06T15:00:00Z", "2026-01-06T23:00:00Z", "2026-01-07T07:00:00Z"]);
}

#[test]
fn a_one_shot_wakes_planning_on_its_day_and_is_over_then() {
    let subject = Subject::new(json!({"trigger": {"at": "2026-03-10T18:00:00Z"}}));
    let first = plan(&subject.planning(), &subject.schedule.cursor, at("2026-01-05T00:00:00Z"));
    assert_eq!((show(&first), first.wake_at), (vec![], Some(at("2026-03-10T00:00:00Z"))));
    let second = plan(&subject.planning(), &first.cursor, at("2026-03-10T00:00:00Z"));
    assert_eq!(show(&second), ["2026-03-10T18:00:00Z"]);
    assert_eq!((second.is_over, second.wake_at), (true, None));
}

#[test]
fn an_immediate_schedule_runs_at_its_creation_and_once() {
    let now = "2026-01-05T09:30:00.25Z";
    let subject = Subject::new(json!({"trigger": {"immediate": {"at": now}}}));
    let cursor = punctual_core::schedule::Schedule::cursor_from(&subject.schedule.trigger, at(now));
    let first = plan(&subject.planning(), &cursor, at(now));
    assert_eq!((show(&first), first.is_over), (vec![now.to_owned()], true));
    assert_eq!(show(&plan(&subject.planning(), &first.cursor, at("2026-01-06T00:00:00Z"))), [] as [String; 0]);
}

#[test]
fn an_event_trigger_gives_time_nothing_to_plan() {
    let subject = Subject::new(json!({"trigger": {"on_event": {"event": "TicketCreated", "delay": "4h"}}}));
    let plan = plan(&subject.planning(), &subject.schedule.cursor, at("2026-01-05T00:00:00Z"));
    assert_eq!((show(&plan), plan.is_over, plan.wake_at), (vec![], true, None));
}

#[test]
fn at_most_so_many_runs_are_planned_ahead_and_topped_up_in_time() {
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "* * * * * *"}]}}));
    let now = at("2026-01-05T00:00:00Z");
    let first = plan(&subject.planning(), &subject.schedule.cursor, now);
    assert_eq!(first.runs().count(), PLAN_AHEAD_MAX);
    assert_eq!(first.wake_at, Some(at("2026-01-05T00:08:21Z"))); // Half of them are used by then.
    let later = plan(&subject.planning_with(500), &first.cursor, at("2026-01-05T00:08:20Z"));
    assert_eq!(later.runs().count(), PLAN_AHEAD_MAX - 500);
    assert_eq!(show(&later)[0], "2026-01-05T00:16:41Z");
    // With no room at all nothing is answered, and nothing is lost.
    let full = plan(&subject.planning_with(PLAN_AHEAD_MAX), &first.cursor, at("2026-01-05T00:08:20Z"));
    assert_eq!((full.answers, full.wake_at), (vec![], Some(at("2026-01-05T00:16:41Z"))));
    let overdue = plan(&subject.planning_with(PLAN_AHEAD_MAX), &first.cursor, at("2026-01-05T01:00:00Z"));
    assert_eq!(overdue.wake_at, Some(at("2026-01-05T01:01:00Z")));
}

#[test]
fn one_call_looks_at_a_bounded_number_of_slots() {
    let fields = json!({"trigger": {"cron": [{"expression": "* * * * * *"}]}, "calendar": "office"});
    let subject = Subject::new(fields);
    let sunday = at("2026-01-04T00:00:00Z");
    let first = plan(&subject.planning(), &Cursor::starting(sunday), sunday);
    assert_eq!(show(&first), [format!("calendar×{WORK_MAX}")]);
    assert_eq!(first.wake_at, Some(sunday)); // Ask again at once.
    let second = plan(&subject.planning(), &first.cursor, sunday);
    assert_eq!(show(&second), [format!("calendar×{WORK_MAX}")]);
    assert_eq!(second.cursor.at, at("2026-01-04T05:33:20Z"));
}

#[test]
fn skipped_slots_are_answered_in_ranges() {
    let fields = json!({"trigger": {"cron": [{"expression": "0 */6 * * *"}]}, "calendar": "office"});
    let subject = Subject::new(fields);
    let mut cursor = Cursor::starting(at("2026-01-04T23:00:00Z"));
    let mut shown = vec![];
    for day in ["2026-01-04T23:00:00Z", "2026-01-05T00:00:00Z", "2026-01-06T00:00:00Z", "2026-01-07T00:00:00Z"] {
        let plan = plan(&subject.planning(), &cursor, at(day));
        shown.extend(show(&plan));
        cursor = plan.cursor;
    }
    let expected = [
        "calendar×1", // Monday 00:00, planned on Sunday.
        "calendar×1",
        "2026-01-05T12:00:00Z",
        "calendar×2",
        "calendar×1",
        "2026-01-06T12:00:00Z",
        "calendar×2",
        "calendar×4",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn max_runs_counts_what_started_and_what_is_planned() {
    let fields =
        json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}, "bounds": {"max_runs": 5}, "runs_started": 2});
    let subject = Subject::new(fields);
    let plan_with =
        |waiting| plan(&subject.planning_with(waiting), &subject.schedule.cursor, at("2026-01-05T00:00:00Z"));
    assert_eq!(show(&plan_with(1)), ["2026-01-05T01:00:00Z", "2026-01-05T02:00:00Z"]);
    assert_eq!(plan_with(1).wake_at, None);
    assert_eq!(plan_with(3).answers, vec![]);
}

#[test]
fn bounds_are_inclusive() {
    let fields = json!({
        "trigger": {"cron": [{"expression": "0 * * * *"}]},
        "bounds": {"start_at": "2026-01-05T03:00:00Z", "end_at": "2026-01-05T05:00:00Z"},
    });
    let subject = Subject::new(fields);
    let plan = plan(&subject.planning(), &subject.schedule.cursor, at("2026-01-05T00:00:00Z"));
    assert_eq!(show(&plan), ["2026-01-05T03:00:00Z", "2026-01-05T04:00:00Z", "2026-01-05T05:00:00Z"]);
    assert!(plan.is_over);
}

#[test]
fn a_plan_that_stops_inside_a_gap_goes_on_there() {
    // 02:15 and 02:45 are lost, 03:00 runs at the same instant; there is room for nothing at first.
    let fields = json!({"trigger": {"cron": [{"expression": "15,45 2 * * *"}, {"expression": "0 3 * * *"}]}, "zone": "America/New_York"});
    let subject = Subject::new(fields);
    let now = at("2026-03-08T06:00:00Z");
    let full = plan(&subject.planning_with(PLAN_AHEAD_MAX), &Cursor::starting(now), now);
    assert_eq!(show(&full), ["dst_gap×2"]);
    assert_eq!(full.cursor.at, at("2026-03-08T06:59:59.999999Z"), "a store can keep it");
    let rest = plan(&subject.planning(), &full.cursor, now);
    assert_eq!(show(&rest), ["2026-03-08T07:00:00Z"]);
}

#[test]
fn a_paused_schedule_is_answered_when_it_goes_on() {
    let pause =
        json!({"paused": {"kind": "paused", "at": "2026-01-05T00:00:00Z", "source": "ada", "reason": "holiday"}});
    let fields = json!({"trigger": {"cron": [{"expression": "0 */6 * * *"}]}, "state": pause, "calendar": "office"});
    let subject = Subject::new(fields);
    assert_eq!(plan(&subject.planning(), &subject.schedule.cursor, at("2026-01-06T00:00:00Z")).answers, vec![]);
    let (cursor, until) = (&subject.schedule.cursor, at("2026-01-06T09:30:00Z"));
    let resumed = skip_until(&subject.planning(), cursor, until, SkipReason::Paused);
    assert_eq!(show(&resumed), ["paused×5"]); // One range, the calendar's days included.
    assert_eq!((resumed.cursor.at, resumed.wake_at), (at("2026-01-06T09:30:00Z"), None));
    let Answer::Skip(range) = &resumed.answers[0] else { panic!() };
    assert_eq!(range.first.key().as_str(), "2026-01-05T06:00:00/0@UTC");
    assert_eq!(range.last.key().as_str(), "2026-01-06T06:00:00/0@UTC");

    let off = json!({"paused": {"kind": "disabled", "at": "2026-01-05T00:00:00Z", "source": "api"}});
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "* * * * * *"}]}, "state": off}));
    let until = at("2026-01-05T03:00:00Z");
    let first = skip_until(&subject.planning(), &subject.schedule.cursor, until, SkipReason::Disabled);
    assert_eq!((show(&first), first.wake_at), (vec![format!("disabled×{WORK_MAX}")], Some(until)));
    let second = skip_until(&subject.planning(), &first.cursor, until, SkipReason::Disabled);
    assert_eq!((show(&second), second.wake_at), (vec!["disabled×800".to_owned()], None));
}

#[test]
fn nothing_is_lost_where_the_bound_of_one_call_lies_among_slots_of_one_instant() {
    // At 01:00 in UTC the clocks of London and Paris leave out an hour, and two slots each.
    let crons = [("15,45 1 * * *", "Europe/London"), ("15,45 2 * * *", "Europe/Paris"), ("* * * * * *", "UTC")];
    let gap = at("2026-03-29T01:00:00Z");
    let until = gap + SignedDuration::from_secs(30);
    for order in [[0, 1, 2], [1, 0, 2], [2, 0, 1]] {
        let crons = order.map(|place| json!({"expression": crons[place].0, "zone": crons[place].1}));
        let subject = Subject::new(json!({"trigger": {"cron": crons}}));
        for before in WORK_MAX as i64 - 5..=WORK_MAX as i64 {
            let from = gap - SignedDuration::from_secs(before + 1);
            let slots = subject.timetable.slots(from).take_while(|slot| slot.scheduled_at <= until).count();
            assert!(before as usize + 31 < slots, "{slots}");
            let first = skip_until(&subject.planning(), &Cursor::starting(from), until, SkipReason::Paused);
            let second = skip_until(&subject.planning(), &first.cursor, until, SkipReason::Paused);
            let answered = [&first, &second].map(|plan| plan.skips().map(|range| range.count).sum::<u64>() as usize);
            assert_eq!((answered[0], answered[0] + answered[1]), (WORK_MAX, slots), "{order:?} {before}");
        }
    }
}

#[test]
fn a_slot_that_was_called_off_ahead_of_its_time_has_its_answer() {
    let pause = json!({"paused": {"kind": "paused", "at": "2026-01-05T00:00:00Z", "source": "ada"}});
    let subject = Subject::new(json!({"trigger": {"cron": [{"expression": "0 */6 * * *"}]}, "state": pause}));
    let noon = subject.timetable.slots(at("2026-01-05T11:00:00Z")).next().unwrap();
    let answered = BTreeSet::from([noon.key()]);
    let planning = Planning { answered: &answered, ..subject.planning() };
    let until = at("2026-01-05T23:00:00Z");
    let resumed = skip_until(&planning, &subject.schedule.cursor, until, SkipReason::Paused);
    assert_eq!(show(&resumed), ["paused×1", "paused×1"], "06:00, and 18:00 behind what is answered");
    let active = Subject::new(json!({"trigger": {"cron": [{"expression": "0 */6 * * *"}]}}));
    let planning = Planning { answered: &answered, ..active.planning() };
    let planned = plan(&planning, &active.schedule.cursor, at("2026-01-05T07:00:00Z"));
    assert_eq!(show(&planned), ["2026-01-05T06:00:00Z", "2026-01-05T18:00:00Z", "2026-01-06T00:00:00Z"]);
    let outage = Outage { from: at("2026-01-05T01:00:00Z"), until: at("2026-01-05T13:00:00Z"), kept: None };
    let recovery = catch_up(&planning, &active.schedule.cursor, &outage, &[]);
    assert_eq!(show(&recovery.plan), ["2026-01-05T06:00:00Z"], "the latest that has no answer");
}

#[test]
fn an_update_of_the_zone_data_never_brings_a_nominal_time_back() {
    let folder = ZoneFolder::new("an_update");
    let trigger = json!({"cron": [{"expression": "0 9,17 * * *"}]});
    let fields = || json!({"trigger": trigger.clone(), "zone": "Test/Moving"});
    let before = Subject::with_zones(fields(), &folder.zones("Europe/Paris"));
    let now = at("2026-01-05T08:30:00Z");
    let planned = plan(&before.planning(), &Cursor::starting(at("2026-01-05T00:00:00Z")), now);
    assert_eq!(show(&planned), ["2026-01-05T08:00:00Z", "2026-01-05T16:00:00Z"]);
    // The zone moves an hour west: its clock will show 09:00 once more, at 09:00 UTC.
    let after = Subject::with_zones(fields(), &folder.zones("Europe/London"));
    let cursor = Cursor { at: now, ..planned.cursor };
    let again = plan(&after.planning(), &cursor, now);
    assert_eq!(show(&again), [] as [String; 0]);
    let tomorrow = plan(&after.planning(), &again.cursor, at("2026-01-06T00:00:00Z"));
    assert_eq!(show(&tomorrow), ["2026-01-06T09:00:00Z", "2026-01-06T17:00:00Z"]);
}

#[test]
fn a_bound_inside_a_long_gap_loses_nothing() {
    // Every second of the day that Apia left out, written as lists: 86,400 slots at one instant.
    let list = |until: u32| (0..until).map(|value| value.to_string()).collect::<Vec<_>>().join(",");
    let expression = format!("{} {} {} * * *", list(60), list(60), list(24));
    let fields = json!({"trigger": {"cron": [{"expression": expression}]}, "zone": "Pacific/Apia"});
    let subject = Subject::new(fields);
    let now = at("2011-12-30T09:59:59Z");
    let (mut cursor, mut lost, mut calls) = (Cursor::starting(now), 0, 0);
    loop {
        let plan = plan(&subject.planning_with(PLAN_AHEAD_MAX), &cursor, now);
        lost += plan.skips().map(|range| range.count).sum::<u64>();
        (cursor, calls) = (plan.cursor, calls + 1);
        assert!(calls < 100, "planning goes round in circles");
        if plan.wake_at != Some(now) {
            break;
        }
    }
    assert_eq!((lost, calls), (86_400, 9));
}

#[test]
fn planning_gets_past_a_day_that_the_zone_shows_again() {
    let folder = ZoneFolder::new("shown_again");
    let fields = || json!({"trigger": {"cron": [{"expression": "* * * * * *"}]}, "zone": "Test/Moving"});
    let before = Subject::with_zones(fields(), &folder.zones("Europe/Moscow"));
    let now = at("2026-01-05T12:00:00Z");
    let planned = plan(&before.planning(), &Cursor::starting(now), now);
    // The zone moves three hours west: 10,800 nominal times come again, and have their answers.
    let after = Subject::with_zones(fields(), &folder.zones("Atlantic/Reykjavik"));
    let later = plan(&after.planning(), &planned.cursor, at("2026-01-05T12:10:00Z"));
    assert_eq!(later.runs().count(), PLAN_AHEAD_MAX);
    assert_eq!(later.runs().next().unwrap().nominal().to_string(), "2026-01-05T15:16:41");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// However planning is interrupted, crowded and repeated, each slot is answered exactly once, in order.
    #[test]
    fn every_slot_is_answered_exactly_once(
        expression in prop::sample::select(vec![
            "*/20 * * * *", "0 9 * * MON-FRI", "30 2 * * *", "15,45 1,2,3 * * *", "0 0 * * *", "*/7 */3 1,8,29 * *",
            "0 */30 * * * *", "0 30 0-3 * * ?", "59 23 L * ?", "5 0 * * *",
        ]),
        second in prop::option::of("30 2|\\*/30 1|0 3".prop_map(|text| format!("{text} * * *"))),
        zone in prop::sample::select(vec![
            "UTC", "America/New_York", "Africa/Cairo", "America/Santiago", "Australia/Lord_Howe", "Pacific/Apia",
            "America/St_Johns", "Africa/Casablanca",
        ]),
        start in prop::sample::select(vec![
            "2026-03-06T00:00:00Z", "2026-10-30T05:30:00Z", "2025-04-23T11:00:00Z", "2011-12-28T00:00:00Z",
            "2010-11-05T00:00:00Z", "2026-02-13T00:00:00Z",
        ]),
        gap in prop::sample::select(vec!["after", "skip"]),
        repeat in prop::sample::select(vec!["once", "both"]),
        steps in prop::collection::vec((1_i64..3_000, 980_usize..=1_000), 1..12),
    ) {
        let mut crons = vec![json!({"expression": expression})];
        crons.extend(second.map(|expression| json!({"expression": expression, "zone": "Europe/London"})));
        let policy = json!({"dst": {"gap": gap, "repeat": repeat}});
        let subject = Subject::new(json!({"trigger": {"cron": crons}, "zone": zone, "policy": policy}));
        let start = at(start);
        let (mut now, mut cursor) = (start, Cursor::starting(start));
        let mut answered: Vec<(String, Option<_>)> = vec![];
        for (minutes, waiting) in steps {
            now += SignedDuration::from_mins(minutes);
            // Crowded: little room. Then with room, until there is nothing more to do at this moment.
            for waiting in [waiting, 0] {
                let plan = plan(&subject.planning_with(waiting), &cursor, now);
                answered.extend(expand(&plan.answers, &subject));
                prop_assert!(cursor.at <= plan.cursor.at, "the cursor never goes back");
                cursor = plan.cursor;
            }
        }
        let until = horizon(subject.timetable.zone(), now);
        let expected: Vec<_> = subject
            .timetable
            .slots(start)
            .take_while(|slot| slot.scheduled_at <= until)
            .map(|slot| (slot.key().to_string(), slot.skipped))
            .collect();
        prop_assert_eq!(answered, expected);
    }
}

#[test]
fn a_plan_is_the_same_however_often_it_is_asked_for() {
    let subject = Subject::new(json!({"jitter": "10m", "zone": "Europe/Paris"}));
    let now: Timestamp = at("2026-01-05T00:00:00Z");
    let once = plan(&subject.planning(), &subject.schedule.cursor, now);
    assert_eq!(once, plan(&subject.planning(), &subject.schedule.cursor, now));
}
