//! Re-planning is a set difference on slot keys: what stays, what is withdrawn, what is new.

use punctual_core::plan::{Diff, PLAN_AHEAD_MAX, Standing, StandingState, plan, replan};
use punctual_core::schedule::Cursor;
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
    let diff = replan(&edited.planning(), &standing[1..], at("2026-01-05T10:30:00Z"));
    assert_eq!(stays(&diff), ["2026-01-05T17:00:00Z"]);
    assert_eq!(diff.withdrawn, [run_id(2)]);
    assert_eq!(show(&diff.new), ["2026-01-05T13:00:00Z"]);
    assert_eq!(diff.new.cursor.at, at("2026-01-06T00:15:00Z"));
    assert_eq!(diff.new.wake_at, Some(at("2026-01-06T00:00:00Z")));
}

#[test]
fn a_run_that_is_due_and_unclaimed_stays_while_its_slot_is_one() {
    let standing = stand(&times(&["09:00", "17:00"]), "2026-01-05T08:00:00Z");
    let diff = replan(&times(&["09:00", "18:00"]).planning(), &standing, at("2026-01-05T10:30:00Z"));
    assert_eq!(stays(&diff), ["2026-01-05T09:00:00Z"]);
    assert_eq!(diff.withdrawn, [run_id(2)]);
    // A past slot that the edit adds is not made up for.
    let diff = replan(&times(&["10:00", "17:00"]).planning(), &standing, at("2026-01-05T10:30:00Z"));
    assert_eq!(diff.withdrawn, [run_id(1)]);
    assert_eq!(show(&diff.new), [] as [String; 0]);
}

#[test]
fn off_and_on_again_brings_the_slot_back_and_a_cancelled_one_stays_away() {
    let mut standing = stand(&times(&["09:00", "17:00", "19:00"]), "2026-01-05T08:00:00Z");
    standing[2].state = StandingState::Answered; // Cancelled by a person.
    let off = json!({"paused": {"kind": "disabled", "at": "2026-01-05T10:00:00Z", "source": "api"}});
    let disabled = Subject::new(json!({"trigger": {"times": ["09:00", "17:00", "19:00"]}, "state": off}));
    let diff = replan(&disabled.planning(), &standing[1..], at("2026-01-05T10:00:00Z"));
    assert_eq!((diff.withdrawn, diff.new.answers), (vec![run_id(2)], vec![]));
    let diff = replan(&times(&["09:00", "17:00", "19:00"]).planning(), &standing[2..], at("2026-01-05T11:00:00Z"));
    assert_eq!(show(&diff.new), ["2026-01-05T17:00:00Z"]);
}

#[test]
fn a_zone_edit_makes_new_slots() {
    let standing = stand(&times(&["17:00"]), "2026-01-05T08:00:00Z");
    let edited = Subject::new(json!({"trigger": {"times": ["17:00"]}, "zone": "Europe/Paris"}));
    let diff = replan(&edited.planning(), &standing, at("2026-01-05T10:00:00Z"));
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
    let diff = replan(&after.planning(), &standing, at("2026-01-05T08:30:00Z"));
    assert_eq!(stays(&diff), ["2026-01-05T17:00:00Z"]);
    assert_eq!((standing[1].scheduled_at, diff.stay[0].0), (at("2026-01-05T16:00:00Z"), run_id(2)));
    assert_eq!((diff.withdrawn, show(&diff.new)), (vec![], vec![]));
}

#[test]
fn a_closed_calendar_withdraws_and_records() {
    let open = Subject::new(json!({"trigger": {"times": ["10:00", "20:00"]}}));
    let standing = stand(&open, "2026-01-05T08:00:00Z");
    let closed = Subject::new(json!({"trigger": {"times": ["10:00", "20:00", "21:00"]}, "calendar": "office"}));
    let diff = replan(&closed.planning(), &standing, at("2026-01-05T08:00:00Z"));
    assert_eq!((stays(&diff), diff.withdrawn), (vec!["2026-01-05T10:00:00Z".to_owned()], vec![run_id(2)]));
    assert_eq!(show(&diff.new), ["calendar×2"]); // The withdrawn slot gets its answer: a skip.
}

#[test]
fn nothing_changed_is_an_empty_diff() {
    let hourly = Subject::new(json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}, "zone": "Africa/Cairo"}));
    let standing = stand(&hourly, "2025-04-24T08:00:00Z");
    let diff = replan(&hourly.planning(), &standing, at("2025-04-24T08:00:00Z"));
    assert_eq!((diff.stay.len(), diff.withdrawn, diff.new.answers), (standing.len(), vec![], vec![]));
}

#[test]
fn a_second_pass_keeps_its_run() {
    let policy = json!({"dst": {"repeat": "both", "gap": "after"}});
    let fields = json!({"trigger": {"times": ["01:30"]}, "zone": "America/New_York", "policy": policy});
    let subject = Subject::new(fields);
    let standing = stand(&subject, "2026-11-01T04:00:00Z");
    assert_eq!(standing.len(), 2);
    let diff = replan(&subject.planning(), &standing, at("2026-11-01T06:00:00Z"));
    assert_eq!(stays(&diff), ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"]);
}

#[test]
fn a_rhythm_of_seconds_is_planned_to_the_limit_and_no_further() {
    let hourly = Subject::new(json!({"trigger": {"cron": [{"expression": "0 * * * *"}]}}));
    let standing = stand(&hourly, "2026-01-05T00:00:00Z");
    let edited = Subject::new(json!({"trigger": {"cron": [{"expression": "* * * * * *"}]}}));
    let diff = replan(&edited.planning(), &standing, at("2026-01-05T00:00:00Z"));
    assert_eq!((diff.stay.len(), diff.withdrawn.len()), (24, 0));
    assert_eq!(diff.new.runs().count(), PLAN_AHEAD_MAX - 24);
    assert_eq!(diff.new.wake_at, Some(diff.new.cursor.at + jiff::SignedDuration::from_nanos(1)));
}

#[test]
fn a_cancelled_slot_under_a_new_version_is_not_offered_again() {
    let mut standing = stand(&times(&["17:00"]), "2026-01-05T08:00:00Z");
    standing[0].state = StandingState::Answered;
    let diff = replan(&times(&["17:00", "18:00"]).planning(), &standing, at("2026-01-05T10:00:00Z"));
    assert_eq!(show(&diff.new), ["2026-01-05T18:00:00Z"]);
}
