//! What holds for any pattern, anywhere, from any instant on.

use std::collections::HashSet;
use std::sync::LazyLock;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use punctual_core::time::{Slot, Timetable, Zones};

use super::brute::Matches;
use super::clock::{Clocks, Window, timestamp};
use super::compare::{Question, row_of};
use super::generate::{Scene, scene};
use super::is_full;
use super::pattern::{Pattern, Reader};
use super::zones::{City, distinct, zone_named};

static CITIES: LazyLock<Vec<City>> = LazyLock::new(distinct);
static ZONES: LazyLock<Zones> = LazyLock::new(Zones::bundled);

/// The sample is the same every time; the full run looks elsewhere every time.
pub(super) fn config() -> Config {
    let (cases, rng_seed) = if is_full() { (50_000, RngSeed::Random) } else { (2_000, RngSeed::Fixed(2026)) };
    Config { cases, rng_seed, failure_persistence: None, ..Config::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_pattern_has_the_slots_of_the_rules(scene in scene()) {
        let stage = Stage::set(&scene)?;
        let mut clocks = Clocks::new(stage.window);
        for reader in &stage.readers {
            clocks.observe(reader.zone.as_deref().unwrap_or(stage.zone));
        }
        let expected = Matches::find(&stage.readers, stage.zone, &clocks).slots(scene.policy);
        let Stage { zone, window, after, until, .. } = stage;
        let question = Question { pattern: &stage.pattern, zone, policy: scene.policy, window };
        question.ask_between(&stage.timetable, &expected, after, until).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn slots_come_in_order_and_no_key_comes_twice(scene in scene()) {
        let slots = Stage::set(&scene)?.slots();
        let mut keys = HashSet::new();
        for slot in &slots {
            let key = slot.key();
            prop_assert_eq!(
                key.as_str(),
                format!("{}/{}@{}", slot.nominal(), slot.fold(), slot.zone())
            );
            prop_assert!(keys.insert(key), "{} comes twice", slot.key());
        }
        let is_one_zone = matches!(&scene.pattern, Pattern::Times(_))
            || matches!(&scene.pattern, Pattern::Crons(crons) if crons.len() == 1);
        for pair in slots.windows(2) {
            let [one, other] = [&pair[0], &pair[1]].map(row_of);
            let order = |row: &super::brute::Row| (row.scheduled_at, !row.is_in_gap, row.nominal);
            // Two zones may jump over the same local time at the same instant.
            let is_in_order = order(&one) < order(&other)
                || !is_one_zone && order(&one) == order(&other) && one.zone != other.zone;
            prop_assert!(is_in_order, "{one:?} is not before {other:?}");
            if is_one_zone {
                let [one, other] = [one, other].map(|row| (row.scheduled_at, row.nominal));
                prop_assert!(one < other, "{one:?} is not before {other:?}");
            }
        }
    }

    #[test]
    fn the_neighbours_of_a_slot_are_found_from_the_slot_itself(scene in scene()) {
        let stage = Stage::set(&scene)?;
        let slots = stage.slots();
        let stride = slots.len() / 50 + 1;
        for slot in slots.iter().step_by(stride) {
            let at = slot.scheduled_at;
            let just_before = at - SignedDuration::from_nanos(1);
            let just_behind = at + SignedDuration::from_nanos(1);
            let at_once: Vec<&Slot> = slots.iter().filter(|slot| slot.scheduled_at == at).collect();
            let again: Vec<Slot> = stage.timetable.slots(just_before).take(at_once.len()).collect();
            prop_assert_eq!(again.iter().collect::<Vec<_>>(), at_once.clone());
            let back: Vec<Slot> = stage.timetable.before(just_behind).take(at_once.len()).collect();
            prop_assert_eq!(back.iter().rev().collect::<Vec<_>>(), at_once);
            if let Some(earlier) = slots.iter().rfind(|slot| slot.scheduled_at < at) {
                prop_assert_eq!(stage.timetable.before(at).next(), Some(earlier.clone()));
            }
            if let Some(later) = slots.iter().find(|slot| at < slot.scheduled_at) {
                prop_assert_eq!(stage.timetable.slots(at).next(), Some(later.clone()));
            }
        }
    }
}

/// A scene with its zone, window and timetable.
pub(super) struct Stage {
    pattern: Pattern,
    zone: &'static str,
    pub(super) window: Window,
    pub(super) after: Timestamp,
    pub(super) until: Timestamp,
    pub(super) timetable: Timetable,
    readers: Vec<Reader>,
}

impl Stage {
    pub(super) fn set(scene: &Scene) -> Result<Stage, TestCaseError> {
        let city = scene.zone.get(&CITIES);
        let middle = scene.instant.get(&city.instants) + scene.days_off * 86_400;
        let pattern = scene.pattern_at(zone_named(&city.name).to_datetime(timestamp(middle)));
        let readers = pattern.readers();
        let is_by_the_minute = readers.iter().all(|reader| reader.matcher.is_by_the_minute());
        let window = if is_by_the_minute { Window::by_minutes(middle) } else { Window::by_seconds(middle) };
        let [after, until] = scene.ends.map(|thousandths| {
            let second = (window.until - window.after) * i64::from(thousandths) / 1000;
            let end = timestamp(window.after + second);
            (end + SignedDuration::from_nanos(scene.nanoseconds)).min(timestamp(window.until))
        });
        let trigger = pattern.trigger().map_err(TestCaseError::fail)?;
        let timetable = Timetable::new(&trigger, &city.name, scene.policy, &ZONES)
            .map_err(|error| TestCaseError::fail(error.to_string()))?;
        Ok(Stage { pattern, zone: &city.name, window, after, until, timetable, readers })
    }

    pub(super) fn slots(&self) -> Vec<Slot> {
        let slots = self.timetable.slots(timestamp(self.window.after));
        slots.take_while(|slot| slot.scheduled_at < timestamp(self.window.until)).collect()
    }
}
