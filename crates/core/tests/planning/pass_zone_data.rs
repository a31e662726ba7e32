//! Passing across updates of the zone data: what a clock has shown is never decided again, and nothing that it shows is lost.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jiff::SignedDuration;
use jiff::civil::DateTime;
use proptest::prelude::*;
use proptest::sample::select;
use punctual_core::plan::{UNSTARTED_MAX, pass};
use punctual_core::schedule::Cursor;
use punctual_core::time::Zones;
use serde_json::{Value, json};

use crate::support::{Subject, ZoneFolder, at, expand, next_at, show_decisions};

#[test]
fn new_zone_data_brings_no_nominal_time_back() {
    let folder = ZoneFolder::new("pass_back");
    let fields = || json!({"trigger": {"times": ["09:00", "17:00"]}, "zone": "Test/Moving"});
    let before = Subject::with_zones(fields(), &folder.zones("Europe/Paris"));
    let passed = pass(&before.planning(), &Cursor::starting(at("2026-01-05T00:00:00Z")), at("2026-01-05T08:30:00Z"));
    assert_eq!(show_decisions(&passed.decisions), ["2026-01-05T08:00:00Z"]);
    // The zone moves an hour west: its clock shows 09:00 once more, at 09:00 UTC.
    let after = Subject::with_zones(fields(), &folder.zones("Europe/London"));
    let next = pass(&after.planning(), &passed.cursor, at("2026-01-05T08:31:00Z")).upcoming.next;
    assert_eq!(next.open().unwrap().scheduled_at, at("2026-01-05T17:00:00Z"));
    let passed = pass(&after.planning(), &passed.cursor, at("2026-01-06T08:59:59Z"));
    assert_eq!(show_decisions(&passed.decisions), ["2026-01-05T17:00:00Z"]);
}

#[test]
fn a_time_that_new_zone_data_puts_into_the_past_is_late_and_not_lost() {
    let folder = ZoneFolder::new("pass_late");
    let fields = || json!({"trigger": {"times": ["09:00", "17:00"]}, "zone": "Test/Moving"});
    let before = Subject::with_zones(fields(), &folder.zones("Europe/London"));
    let passed = pass(&before.planning(), &Cursor::starting(at("2026-01-05T00:00:00Z")), at("2026-01-05T08:30:00Z"));
    assert_eq!(show_decisions(&passed.decisions), [] as [String; 0]);
    // The zone moves an hour east: its clock has jumped from 08:30 to 09:30.
    let after = Subject::with_zones(fields(), &folder.zones("Europe/Paris"));
    let passed = pass(&after.planning(), &passed.cursor, at("2026-01-05T08:31:00Z"));
    assert_eq!(show_decisions(&passed.decisions), ["2026-01-05T08:00:00Z"]);
    let again = pass(&after.planning(), &passed.cursor, at("2026-01-05T08:32:00Z"));
    assert_eq!(show_decisions(&again.decisions), [] as [String; 0]);
}

#[test]
fn a_time_that_new_zone_data_repeats_runs_both_times() {
    let folder = ZoneFolder::new("pass_repeats");
    let fields = || json!({"trigger": {"cron": [{"expression": "30 * * * *"}]}, "zone": "Test/Moving"});
    let before = Subject::with_zones(fields(), &folder.zones("America/Panama"));
    let passed = pass(&before.planning(), &Cursor::starting(at("2026-11-01T04:45:00Z")), at("2026-11-01T05:10:00Z"));
    assert_eq!(show_decisions(&passed.decisions), [] as [String; 0]);
    // In New York the hour from one to two comes twice that night, from five o'clock UTC on and from six; half past midnight was at
    // 04:30 there, and has not been shown yet by the clock in force.
    let after = Subject::with_zones(fields(), &folder.zones("America/New_York"));
    let passed = pass(&after.planning(), &passed.cursor, at("2026-11-01T07:10:00Z"));
    let expected = ["2026-11-01T04:30:00Z", "2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"];
    assert_eq!(show_decisions(&passed.decisions), expected);
}

#[test]
fn passing_gets_past_hours_that_the_zone_shows_again() {
    let folder = ZoneFolder::new("pass_shown_again");
    let fields = || json!({"trigger": {"cron": [{"expression": "* * * * * *"}]}, "zone": "Test/Moving"});
    let before = Subject::with_zones(fields(), &folder.zones("Europe/Moscow"));
    let passed = pass(&before.planning(), &Cursor::starting(at("2026-01-05T11:50:00Z")), at("2026-01-05T12:00:00Z"));
    assert_eq!(passed.decisions.len(), 600);
    // The zone moves three hours west: 10,800 nominal times come again and are decided, more than the work of one call.
    let after = Subject::with_zones(fields(), &folder.zones("Atlantic/Reykjavik"));
    let meanwhile = pass(&after.planning(), &passed.cursor, at("2026-01-05T12:10:00Z"));
    assert_eq!((meanwhile.decisions.len(), meanwhile.is_cut), (0, false));
    assert_eq!(next_at(&meanwhile), Some(at("2026-01-05T15:00:01Z")));
    let later = pass(&after.planning(), &meanwhile.cursor, at("2026-01-05T15:00:10Z"));
    assert_eq!(later.runs().count(), 10);
    assert_eq!(later.runs().next().unwrap().nominal().to_string(), "2026-01-05T15:00:01");
}

/// Zones that are far enough apart for hours to come again or to be left out, some with changes of their own in the window.
const LIKE: [&str; 7] = [
    "Europe/London",
    "Europe/Paris",
    "Europe/Moscow",
    "Africa/Cairo",
    "America/New_York",
    "Asia/Kathmandu",
    "Pacific/Auckland",
];

/// Their data, read once. The folder is needed no longer then.
static DATA: LazyLock<Vec<Zones>> = LazyLock::new(|| {
    let folder = ZoneFolder::new("pass_updates");
    let read = |like: &&str| {
        let zones = folder.zones_with(like, &["Europe/London"]);
        assert!(zones.get("Test/Moving").is_ok() && zones.get("Europe/London").is_ok());
        zones
    };
    LIKE.iter().map(read).collect()
});

/// Times of day; London's, at minutes that the zone which moves never has, lie beside them.
fn trigger() -> impl Strategy<Value = Value> {
    let moving = select(vec!["15,45 1,2,3 * * *", "0 * * * *", "30 0,2,9,17,23 * * *", "0,15,30,45 0,1,2,3,4 * * *"]);
    let london = proptest::option::of(select(vec!["7 1,2,12 * * *", "7,22 0-23 * * *", "7 0 1 1 *"]));
    let order = any::<bool>();
    (moving, london, order).prop_map(|(moving, london, is_first)| {
        let mut crons = vec![json!({"expression": with_fixed_hours(moving)})];
        crons.extend(london.map(|expression| json!({"expression": expression, "zone": "Europe/London"})));
        if is_first {
            crons.reverse();
        }
        json!({"cron": crons})
    })
}

/// Lists of hours make times of day, which lose nothing in gaps; a star makes a rhythm, which has no slots there.
fn with_fixed_hours(expression: &str) -> String {
    let hours = (0..24).map(|hour| hour.to_string()).collect::<Vec<_>>().join(",");
    expression.replace("0 * * * *", &format!("0 {hours} * * *"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each time that the clock has come to since the start is decided once, whatever data was in force meanwhile.
    #[test]
    fn each_nominal_time_is_decided_exactly_once_across_updates_of_the_zone_data(
        trigger in trigger(),
        repeat in select(vec!["once", "both"]),
        gap in select(vec!["after", "skip"]),
        start in select(vec!["2026-03-06T12:00:00Z", "2026-03-27T22:10:00Z", "2026-10-24T20:00:00Z", "2026-10-31T10:20:00Z"]),
        steps in prop::collection::vec((0_usize..LIKE.len(), 1_i64..900, 0_usize..5), 1..10),
    ) {
        let policy = json!({"dst": {"gap": gap, "repeat": repeat}});
        let fields = json!({"trigger": trigger, "zone": "Test/Moving", "policy": policy});
        let start = at(start);
        let (mut now, mut cursor) = (start, Cursor::starting(start));
        let mut decided = BTreeSet::new();
        let mut started_at: Option<DateTime> = None;
        for (like, minutes, room) in steps {
            let zones = &DATA[like];
            let subject = Subject::with_zones(fields.clone(), zones);
            if started_at.is_none() {
                cursor = pass(&subject.planning(), &cursor, start).cursor;
                started_at = cursor.reached.get("Test/Moving").copied();
            }
            now += SignedDuration::from_mins(minutes);
            // Once crowded, so that a call stops among the slots; once to the end.
            for waiting in [UNSTARTED_MAX - room, 0] {
                let passed = pass(&subject.planning_with(waiting), &cursor, now);
                for (key, _) in expand(&passed.decisions, &subject) {
                    prop_assert!(decided.insert(key.clone()), "{key} is decided twice");
                }
                prop_assert!(cursor.at <= passed.cursor.at);
                cursor = passed.cursor;
            }
            prop_assert_eq!(cursor.at, now);
            // The clock has come at least to what it shows now.
            let shows = (now + SignedDuration::from_secs(zones.get("Test/Moving").unwrap().offset_at(now).into())).to_string();
            let shows: DateTime = shows.trim_end_matches('Z').parse().unwrap();
            prop_assert!(shows <= *cursor.reached.get("Test/Moving").unwrap());
        }
        // A clock that never changes shows every time once.
        let reference = Subject::new(json!({"trigger": fields["trigger"].clone(), "zone": "UTC"}));
        let [first, last] = [started_at.unwrap(), *cursor.reached.get("Test/Moving").unwrap()];
        let expected: BTreeSet<String> = reference
            .timetable
            .slots(at(&format!("{first}Z")) - SignedDuration::from_hours(48))
            .take_while(|slot| slot.scheduled_at <= at(&format!("{last}Z")) + SignedDuration::from_hours(48))
            .filter(|slot| slot.zone() == "UTC" && first < slot.nominal() && slot.nominal() <= last)
            .map(|slot| format!("{}/0@Test/Moving", slot.nominal()))
            .collect();
        let moving: BTreeSet<String> = decided.iter().filter(|key| key.ends_with("/0@Test/Moving")).cloned().collect();
        prop_assert_eq!(moving, expected);
        // London's clock goes on undisturbed.
        let london = reference.timetable.slots(start).take_while(|slot| slot.scheduled_at <= now);
        let london: BTreeSet<_> = london.filter(|it| it.zone() != "UTC").map(|it| it.key().to_string()).collect();
        let first_passes = |keys: BTreeSet<String>| keys.into_iter().filter(|it| it.contains("/0@Europe")).collect::<Vec<_>>();
        prop_assert_eq!(first_passes(decided), first_passes(london));
    }
}

#[test]
fn a_clock_that_the_cursor_does_not_know_is_where_its_instant_is() {
    let folder = ZoneFolder::new("pass_unknown_clock");
    let crons = json!([{"expression": "30 10 * * *"}, {"expression": "52 9,10 * * *", "zone": "Europe/London"}]);
    let fields = json!({"trigger": {"cron": crons}, "zone": "Test/Moving"});
    let reached = [("Test/Moving", "2026-01-05T10:00:00".parse().unwrap())].into_iter().collect();
    let cursor = Cursor { at: at("2026-01-05T10:00:00Z"), reached };
    // The zone moves an hour east: half past ten was at 09:30, and there is no room for it at first.
    let after = Subject::with_zones(fields, &folder.zones_with("Europe/Paris", &["Europe/London"]));
    let now = at("2026-01-05T11:00:00Z");
    let full = pass(&after.planning_with(UNSTARTED_MAX), &cursor, now);
    assert_eq!(show_decisions(&full.decisions), [] as [String; 0]);
    let passed = pass(&after.planning(), &full.cursor, now);
    assert_eq!(show_decisions(&passed.decisions), ["2026-01-05T09:30:00Z", "2026-01-05T10:52:00Z"]);
}
