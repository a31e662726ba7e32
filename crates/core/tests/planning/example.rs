//! The end-to-end example of the executions face: three schedules, two midnights, one edit.

use jiff::civil::date;
use punctual_core::plan::{Standing, StandingState, ZoneData, plan, replan};
use punctual_core::schedule::Cursor;
use serde_json::json;

use crate::support::{Subject, at, run_id, show};

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

    // Midnight in Denver is 07:00 UTC. What is due at that very minute was planned ahead, and so is the next midnight.
    let midnight = at("2026-01-05T07:00:00Z");
    let rebuilt = plan(&reconciler.planning(), &Cursor::starting(midnight), midnight);
    assert_eq!(rebuilt.runs().count(), 12);
    assert_eq!(show(&rebuilt)[0], "2026-01-05T09:00:00Z");
    assert_eq!(show(&rebuilt)[11], "2026-01-06T07:00:00Z");
    let planned = plan(&extractor.planning(), &Cursor::starting(midnight), midnight);
    assert_eq!(show(&planned), ["2026-01-05T16:00:00Z", "2026-01-06T00:00:00Z"]);

    // 10:30 in Denver: 13:00 is added. 09:00 has run, 17:00 is retained under its key.
    let edited = Subject::new(json!({"trigger": {"times": ["09:00", "13:00", "17:00"]}, "zone": "America/Denver"}));
    let states = [StandingState::Answered, StandingState::Planned];
    let standing: Vec<Standing> = (1..)
        .zip(planned.runs().zip(states))
        .map(|(number, (slot, state))| Standing {
            id: run_id(number),
            key: slot.key(),
            scheduled_at: slot.scheduled_at,
            state,
        })
        .collect();
    let diff = replan(
        &edited.planning_with(1),
        &Cursor::starting(at("2026-01-05T17:30:00Z")),
        ZoneData::InForce,
        &standing,
        at("2026-01-05T17:30:00Z"),
    );
    let retained: Vec<_> = diff.stay.iter().map(|(id, slot)| (*id, slot.key().to_string())).collect();
    assert_eq!(retained, [(run_id(2), "2026-01-05T17:00:00/0@America/Denver".to_owned())]);
    assert_eq!(diff.withdrawn, []);
    assert_eq!(show(&diff.new), ["2026-01-05T20:00:00Z"]);
}
