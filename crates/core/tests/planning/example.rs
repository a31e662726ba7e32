//! The end-to-end example of the executions face: three schedules, two midnights, one edit.

use jiff::civil::date;
use punctual_core::RunId;
use punctual_core::plan::{SlotsAhead, Standing, StandingState, pass, replan};
use punctual_core::schedule::Cursor;
use serde_json::json;

use crate::support::{Subject, at, next_at, run_id, show};

#[test]
fn the_executions_example_comes_out_as_written() {
    let reconciler =
        Subject::new(json!({"trigger": {"cron": [{"expression": "0 0 */2 * * *"}]}, "zone": "America/Denver"}));
    let extractor = Subject::new(json!({"trigger": {"times": ["09:00", "17:00"]}, "zone": "America/Denver"}));
    let every = json!({"every": {"interval": "30m", "anchor": "2026-01-05T00:00:00Z"}});
    let distiller = Subject::new(json!({"trigger": every}));

    let day = date(2026, 1, 5);
    assert_eq!(reconciler.timetable.count_on(day), 12);
    assert_eq!(extractor.timetable.count_on(day), 2);
    assert_eq!(distiller.timetable.count_on(day), 48);

    // Midnight in Denver is 07:00 UTC. What is due at that very minute belongs to the day that begins.
    let [midnight, next_midnight] = ["2026-01-05T07:00:00Z", "2026-01-06T07:00:00Z"].map(at);
    let before = Cursor::starting(at("2026-01-05T06:59:59Z"));
    let passed = pass(&reconciler.planning(), &before, at("2026-01-06T06:59:59Z"));
    assert_eq!(passed.runs().count(), 12);
    assert_eq!(
        (show(&passed)[0].as_str(), show(&passed)[11].as_str()),
        ("2026-01-05T07:00:00Z", "2026-01-06T05:00:00Z")
    );
    assert_eq!(next_at(&passed), Some(next_midnight));

    // The extractor's day, as someone sees it who looks at midnight. Nothing of it is stored.
    let of_day = |subject: &Subject| -> Vec<(String, RunId)> {
        let ahead = SlotsAhead::new(&subject.schedule, &subject.timetable, (midnight, next_midnight));
        ahead
            .map(|slot| (slot.key().to_string(), RunId::of(subject.schedule.id, slot.scheduled_at, &slot.key())))
            .collect()
    };
    let keys = |viewed: &[(String, RunId)]| viewed.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
    let at_midnight = of_day(&extractor);
    assert_eq!(keys(&at_midnight), ["2026-01-05T09:00:00/0@America/Denver", "2026-01-05T17:00:00/0@America/Denver"]);

    // 10:30 in Denver: 13:00 is added. 09:00 has run, 17:00 is retained under its key and id.
    let now = at("2026-01-05T17:30:00Z");
    let passed = pass(&extractor.planning(), &Cursor::starting(midnight), now);
    assert_eq!(show(&passed), ["2026-01-05T16:00:00Z"]);
    let slot = passed.runs().next().unwrap();
    let standing =
        [Standing { id: run_id(1), key: slot.key(), scheduled_at: slot.scheduled_at, state: StandingState::Answered }];
    let edited = Subject::new(json!({"trigger": {"times": ["09:00", "13:00", "17:00"]}, "zone": "America/Denver"}));
    let diff = replan(&edited.planning(), &passed.cursor, &standing, now);
    assert_eq!((diff.stay, diff.withdrawn, show(&diff.new)), (vec![], vec![], vec![]));
    assert_eq!(next_at(&diff.new), Some(at("2026-01-05T20:00:00Z")));
    let after_edit = of_day(&edited);
    assert_eq!((&after_edit[0], &after_edit[2]), (&at_midnight[0], &at_midnight[1]));
    let evening = pass(&edited.planning(), &diff.new.cursor, next_midnight);
    assert_eq!(show(&evening), ["2026-01-05T20:00:00Z", "2026-01-06T00:00:00Z"]);
}
