//! Timetables: the vectors of other schedulers, several crons at once, calendars, bounds, jitter, one-shots,
//! words.

use std::collections::BTreeSet;

use jiff::civil::date;
use jiff::{SignedDuration, Timestamp};
use punctual_core::schedule::{
    After, At, Bounds, Crons, DstPolicy, GapPolicy, Immediate, OnEvent, Pass, RepeatPolicy, Trigger, ZonedCron,
};
use punctual_core::time::{Calendar, Cron, Dialect, Every, Slot, TimesOfDay, Timetable, Zones};
use punctual_core::{Elapsed, ScheduleId};

const NATIVE: DstPolicy = DstPolicy { gap: GapPolicy::After, repeat: RepeatPolicy::Once };
const CONDUCTOR: DstPolicy = DstPolicy { gap: GapPolicy::Skip, repeat: RepeatPolicy::Both };

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn cron(text: &str) -> Trigger {
    Trigger::Cron(Crons::one(Cron::parse(text, None).unwrap()))
}

fn crons(entries: &[(&str, &str)]) -> Trigger {
    let one = |(text, zone): &(&str, &str)| ZonedCron {
        cron: Cron::parse(text, None).unwrap(),
        zone: Some((*zone).to_owned()),
    };
    Trigger::Cron(Crons::new(entries.iter().map(one).collect()).unwrap())
}

fn timetable(trigger: &Trigger, zone: &str, dst: DstPolicy) -> Timetable {
    Timetable::new(trigger, zone, dst, &Zones::bundled()).unwrap()
}

/// The runs that come next; skipped slots are not runs.
fn check(expression: &str, zone: &str, dst: DstPolicy, after: &str, expected: &[&str]) {
    let timetable = timetable(&cron(expression), zone, dst);
    let runs = timetable.slots(at(after)).filter(|slot| slot.skipped.is_none());
    let actual: Vec<String> = runs.take(expected.len()).map(|slot| slot.scheduled_at.to_string()).collect();
    assert_eq!(actual, expected, "{expression} in {zone} after {after}");
}

fn keys(slots: impl Iterator<Item = Slot>) -> Vec<String> {
    slots.map(|slot| slot.key().to_string()).collect()
}

#[test]
fn conductor_vectors() {
    let new_york = "America/New_York";
    check("0 30 2 * * *", new_york, CONDUCTOR, "2024-03-10T06:00:00Z", &["2024-03-11T06:30:00Z"]);
    let repeated = ["2024-11-03T05:30:00Z", "2024-11-03T06:30:00Z", "2024-11-04T06:30:00Z"];
    check("0 30 1 * * *", new_york, CONDUCTOR, "2024-11-03T05:00:00Z", &repeated);
    let six = ["2024-03-09T11:00:00Z", "2024-03-10T10:00:00Z"]; // From 1709976626000.
    check("0 0 6 * * ?", new_york, CONDUCTOR, "2024-03-09T09:30:26Z", &six);
}

#[test]
fn bugs_that_spring_had() {
    let amsterdam = "Europe/Amsterdam";
    check("0 9 * * *", amsterdam, CONDUCTOR, "2021-03-27T12:00:00Z", &["2021-03-28T07:00:00Z"]);
    check("0 10 2 * * *", "CET", CONDUCTOR, "2021-03-27T12:00:00Z", &["2021-03-29T00:10:00Z"]);
    check("0 5 0 * * *", amsterdam, CONDUCTOR, "2021-03-28T00:00:00Z", &["2021-03-28T22:05:00Z"]);
    check("0 5 0 * * *", "Europe/Paris", CONDUCTOR, "2019-10-26T23:05:00Z", &["2019-10-27T23:05:00Z"]);
    let cairo = timetable(&cron("0 0 */2 * * ?"), "Africa/Cairo", CONDUCTOR);
    assert_eq!(cairo.count_on(date(2025, 4, 25)), 11); // 00:00 does not exist.
}

#[test]
fn intent_vectors() {
    let new_york = "America/New_York";
    check("30 2 * * *", new_york, CONDUCTOR, "2026-03-08T06:59:00Z", &["2026-03-09T06:30:00Z"]);
    check("30 1 * * *", new_york, CONDUCTOR, "2026-11-01T05:00:00Z", &["2026-11-01T05:30:00Z"]);
    check("30 1 * * *", new_york, CONDUCTOR, "2026-11-01T05:40:00Z", &["2026-11-01T06:30:00Z"]);
}

#[test]
fn bugs_that_other_crates_have() {
    // Runs at 01:59 and again at 03:00; never again behind Apia's lost day; loops in Lord Howe; goes backwards in
    // Denver.
    check(
        "59 1 * * *",
        "America/New_York",
        NATIVE,
        "2026-03-08T00:00:00Z",
        &["2026-03-08T06:59:00Z", "2026-03-09T05:59:00Z"],
    );
    check("0 12 * * *", "Pacific/Apia", NATIVE, "2011-12-30T00:00:00Z", &["2011-12-30T22:00:00Z"]);
    check("0 9 * * *", "Australia/Lord_Howe", NATIVE, "2026-04-04T12:00:00Z", &["2026-04-04T22:30:00Z"]);
    check("0 */6 * * *", "America/New_York", NATIVE, "2026-11-01T05:00:00Z", &["2026-11-01T11:00:00Z"]);
    check("0 0 L 12 *", "UTC", NATIVE, "2026-01-01T00:00:00Z", &["2026-12-31T00:00:00Z"]);
    check("0 0 * 12 5L", "UTC", NATIVE, "2026-01-01T00:00:00Z", &["2026-12-25T00:00:00Z"]);
    check("1 1 * * 7L", "UTC", NATIVE, "2026-01-01T00:00:00Z", &["2026-01-25T01:01:00Z"]);
    check("0 0 29 2 *", "UTC", NATIVE, "2096-03-01T00:00:00Z", &["2104-02-29T00:00:00Z"]);
}

#[test]
fn days_that_cron_can_name() {
    for (expression, dates) in [
        ("0 0 L * *", ["2026-01-31", "2026-02-28", "2026-03-31"]),
        ("0 0 L-30 * *", ["2026-03-01", "2026-05-01", "2026-07-01"]),
        ("0 0 LW * *", ["2026-01-30", "2026-02-27", "2026-03-31"]),
        ("0 0 1W * *", ["2026-02-02", "2026-03-02", "2026-04-01"]),
        ("0 0 15W * *", ["2026-01-15", "2026-02-16", "2026-03-16"]),
        ("0 0 31W * *", ["2026-01-30", "2026-03-31", "2026-05-29"]),
        ("0 0 L-2W * *", ["2026-01-29", "2026-02-26", "2026-03-30"]),
        ("0 0 * * 5#5", ["2026-01-30", "2026-05-29", "2026-07-31"]),
        ("0 0 13 * FRI", ["2026-01-02", "2026-01-09", "2026-01-13"]), // Either, in unix.
        ("0 0 0 13 * FRI", ["2026-02-13", "2026-03-13", "2026-11-13"]), // Both, in spring.
        ("0 0 */10 * MON", ["2026-05-11", "2026-06-01", "2026-08-31"]), // A star: both, in unix too.
        ("0 0 0 29 2 ? 2027-2040", ["2028-02-29", "2032-02-29", "2036-02-29"]),
    ] {
        let timetable = timetable(&cron(expression), "UTC", NATIVE);
        let slots = timetable.slots(at("2026-01-01T00:00:00Z"));
        let actual: Vec<String> = slots.take(3).map(|slot| slot.nominal().date().to_string()).collect();
        assert_eq!(actual, dates, "{expression}");
    }
}

#[test]
fn what_never_matches_says_so() {
    for expression in
        ["0 0 30 2 *", "0 0 0 31 4,6,9,11 ?", "0 0 0 29 2 ? 2027", "0 0 0 1 1 ? 2020", "0 0 0 31 12 ? 9999"]
    {
        let timetable = timetable(&cron(expression), "America/New_York", NATIVE);
        assert_eq!(timetable.slots(at("2026-01-01T00:00:00Z")).next(), None, "{expression}");
    }
    let never = timetable(&cron("0 0 30 2 *"), "UTC", NATIVE);
    assert_eq!(never.before(at("2026-01-01T00:00:00Z")).next(), None);
    let last = timetable(&cron("* * * * * *"), "Pacific/Apia", NATIVE);
    assert_eq!(last.slots(Timestamp::MAX).next(), None);
    assert_eq!(last.before(Timestamp::MIN).next(), None);
}

#[test]
fn the_same_instant_from_two_crons_is_one_slot_of_the_first_listed() {
    let trigger = crons(&[("0 9 * * *", "Europe/Paris"), ("0 8 * * *", "Europe/London"), ("0 9 * * *", "Asia/Tokyo")]);
    let timetable = timetable(&trigger, "UTC", NATIVE);
    let expected = [
        "2026-01-02T09:00:00/0@Asia/Tokyo",
        "2026-01-02T09:00:00/0@Europe/Paris",
        "2026-01-03T09:00:00/0@Asia/Tokyo",
        "2026-01-03T09:00:00/0@Europe/Paris",
    ];
    assert_eq!(keys(timetable.slots(at("2026-01-01T12:00:00Z")).take(4)), expected);
    let mut backwards = keys(timetable.before(at("2026-01-04T00:00:00Z")).take(4));
    backwards.reverse();
    assert_eq!(backwards, expected);
}

#[test]
fn of_all_times_lost_in_a_gap_only_the_schedules_earliest_runs() {
    let show = |trigger: &Trigger| -> Vec<String> {
        let timetable = timetable(trigger, "America/New_York", NATIVE);
        let slots = timetable
            .slots(at("2026-03-08T06:30:00Z"))
            .take_while(|slot| slot.scheduled_at <= at("2026-03-08T07:00:00Z"));
        slots.map(|slot| format!("{} {}", slot.key(), slot.skipped.map_or("runs", |reason| reason.as_str()))).collect()
    };
    let new_york = "America/New_York";
    assert_eq!(
        show(&crons(&[("45 2 * * *", new_york), ("15 2 * * *", new_york)])),
        ["2026-03-08T02:15:00/0@America/New_York runs", "2026-03-08T02:45:00/0@America/New_York dst_gap"]
    );
    // The end of the gap is a slot of another cron, even of a rhythm in another zone: that one runs.
    assert_eq!(
        show(&crons(&[("30 2 * * *", new_york), ("0 * * * *", "UTC")])),
        ["2026-03-08T02:30:00/0@America/New_York dst_gap", "2026-03-08T07:00:00/0@UTC runs"]
    );
    // Two zones lose the same hour: one instant is one run, that of the first listed.
    assert_eq!(
        show(&crons(&[("30 2 * * *", "America/Toronto"), ("15 2 * * *", new_york)])),
        ["2026-03-08T02:15:00/0@America/New_York dst_gap", "2026-03-08T02:30:00/0@America/Toronto runs"]
    );
    // The same lost time twice is one slot.
    assert_eq!(
        show(&crons(&[("30 2 * * *", new_york), ("30 2 8 3 *", new_york)])),
        ["2026-03-08T02:30:00/0@America/New_York runs"]
    );
}

#[test]
fn a_slot_is_found_by_its_key() {
    let trigger = crons(&[("30 1,2 * * *", "America/New_York"), ("15 * * * *", "Europe/London")]);
    let civil = timetable(&trigger, "UTC", DstPolicy { gap: GapPolicy::Skip, repeat: RepeatPolicy::Both });
    let every = Every::from_anchor(Elapsed::parse("1h30m").unwrap(), at("2026-01-01T00:00:00.5Z")).unwrap();
    let every = timetable(&Trigger::Every(every), "Europe/Paris", NATIVE);
    for start in ["2026-03-07T00:00:00Z", "2026-10-31T12:00:00Z"] {
        for timetable in [&civil, &every] {
            for slot in timetable.slots(at(start)).take(60) {
                assert_eq!(timetable.slot(&slot.key()), Some(slot));
            }
        }
    }
    let other = timetable(&cron("0 9 * * *"), "Europe/Paris", NATIVE);
    let slot = other.slots(at("2026-01-01T00:00:00Z")).next().unwrap();
    assert_eq!(civil.slot(&slot.key()), None);
    assert_eq!(civil.slot(&punctual_core::time::SlotKey::event("7")), None);
}

#[test]
fn a_calendar_skips_and_says_so() {
    let office = r#"{"name":"office","zone":"Europe/Paris","weekly":{"mon":["09:00-17:00"]},"closed":["2026-01-12"]}"#;
    let office: Calendar = serde_json::from_str(office).unwrap();
    let zones = Zones::bundled();
    let timetable = timetable(&cron("0 8 * * MON"), "UTC", NATIVE).with_calendar(&office, &zones).unwrap();
    let slots: Vec<_> = timetable.slots(at("2026-01-01T00:00:00Z")).take(3).collect();
    let skipped: Vec<Option<&str>> = slots.iter().map(|slot| slot.skipped.map(|reason| reason.as_str())).collect();
    assert_eq!(skipped, [None, Some("calendar"), None]); // 08:00 UTC is 09:00 in Paris.
    assert_eq!((timetable.count_on(date(2026, 1, 12)), timetable.day_plan(date(2026, 1, 12)).len()), (0, 1));
}

#[test]
fn bounds_include_both_ends_in_both_directions() {
    let bounds = Bounds::new(Some(at("2026-01-05T03:00:00Z")), Some(at("2026-01-05T05:00:00Z")), None).unwrap();
    let timetable = timetable(&cron("0 * * * *"), "UTC", NATIVE).with_bounds(bounds);
    let forwards: Vec<_> = timetable.slots(at("2026-01-01T00:00:00Z")).collect();
    assert_eq!(forwards.len(), 3);
    let mut backwards: Vec<_> = timetable.before(at("2026-02-01T00:00:00Z")).collect();
    backwards.reverse();
    assert_eq!(backwards, forwards);
}

#[test]
fn jitter_follows_from_schedule_and_slot_and_never_passes_the_next() {
    let max = Elapsed::parse("10m").unwrap();
    let with = |id: u128, max| {
        timetable(&cron("*/5 * * * *"), "UTC", NATIVE).with_jitter(ScheduleId(uuid::Uuid::from_u128(id)), max)
    };
    let delays = |timetable: &Timetable| -> Vec<SignedDuration> {
        let slots: Vec<Slot> = timetable.slots(at("2026-01-01T00:00:00Z")).take(500).collect();
        for pair in slots.windows(2) {
            assert!(pair[0].scheduled_at <= pair[0].due_at && pair[0].due_at < pair[1].scheduled_at);
        }
        slots.iter().map(|slot| slot.due_at.duration_since(slot.scheduled_at)).collect()
    };
    let one = delays(&with(1, max));
    assert_eq!(one, delays(&with(1, max)));
    assert_ne!(one, delays(&with(2, max)));
    let spread: BTreeSet<i64> = one.iter().map(|delay| delay.as_secs() / 30).collect();
    assert_eq!(spread.len(), 10, "the five minutes are used: {spread:?}");
    // With a thousand milliseconds between two slots, some draw the last of them.
    let crowded = timetable(&cron("* * * * * *"), "UTC", NATIVE).with_jitter(ScheduleId(uuid::Uuid::from_u128(3)), max);
    let slots: Vec<Slot> = crowded.slots(at("2026-01-01T00:00:00Z")).take(5_000).collect();
    assert!(slots.windows(2).all(|pair| pair[0].due_at < pair[1].scheduled_at));
    let longest = slots.iter().map(|slot| slot.due_at.duration_since(slot.scheduled_at)).max();
    assert_eq!(longest, Some(SignedDuration::from_millis(999)));
    // Backwards gives the same, and a short maximum holds.
    let backwards = with(1, max).before(at("2026-01-01T00:05:01Z")).next().unwrap();
    assert_eq!(backwards.due_at.duration_since(backwards.scheduled_at), one[0]);
    let short = delays(&with(1, Elapsed::from_seconds(2)));
    assert!(short.iter().all(|delay| *delay <= SignedDuration::from_secs(2)));
    assert!(short.iter().any(|delay| SignedDuration::from_millis(1_900) < *delay));
}

#[test]
fn the_shortest_time_between_two_runs_is_known() {
    for (expression, seconds) in [
        ("* * * * * *", Some(1)),
        ("*/5 * * * *", Some(300)),
        ("0,1 9 1 * *", Some(60)),
        ("0 9,17 * * *", Some(8 * 3_600)),
        ("0 0 23,0 * * *", Some(3_600)),
        ("0 9 * * *", Some(23 * 3_600)), // The clock goes forward once.
        ("0 0 0 1 1 ? 2030", None),
    ] {
        let shortest =
            timetable(&cron(expression), "America/New_York", NATIVE).shortest_interval(at("2026-01-01T00:00:00Z"));
        assert_eq!(shortest.map(|shortest| shortest.as_secs()), seconds, "{expression}");
    }
}

#[test]
fn a_local_time_is_one_instant_or_refused_with_its_neighbours() {
    let zones = Zones::bundled();
    let read = |text: &str, zone: &str, pass| {
        At::parse(text, &zones.get(zone).unwrap(), pass).map(|at| at.0.to_string()).map_err(|error| error.to_string())
    };
    let new_york = "America/New_York";
    for (text, pass, expected) in [
        ("2026-03-08T09:00:00Z", Pass::First, "2026-03-08T09:00:00Z"),
        ("2026-03-08T02:30:00-05:00", Pass::First, "2026-03-08T07:30:00Z"),
        ("2026-03-08T09:00:00", Pass::First, "2026-03-08T13:00:00Z"),
        ("2026-03-08 09:00", Pass::First, "2026-03-08T13:00:00Z"),
        ("2026-03-08T09:00:00.25", Pass::First, "2026-03-08T13:00:00.25Z"),
        ("2026-11-01T01:30:00", Pass::First, "2026-11-01T05:30:00Z"),
        ("2026-11-01T01:30:00", Pass::Second, "2026-11-01T06:30:00Z"),
        ("2026-11-01T03:30:00", Pass::Second, "2026-11-01T08:30:00Z"),
    ] {
        assert_eq!(read(text, new_york, pass).as_deref(), Ok(expected), "{text}");
    }
    for (text, zone, message) in [
        (
            "2026-03-08T02:30:00",
            new_york,
            "at: 2026-03-08T02:30:00 does not exist in America/New_York, where the clock jumps over it; \
             use 2026-03-08T01:59:59 or 2026-03-08T03:00:00",
        ),
        (
            "2011-12-30T12:00:00",
            "Pacific/Apia",
            "at: 2011-12-30T12:00:00 does not exist in Pacific/Apia, where the clock jumps over it; \
             use 2011-12-29T23:59:59 or 2011-12-31T00:00:00",
        ),
    ] {
        assert_eq!(read(text, zone, Pass::First).as_deref().unwrap_err(), message);
    }
    // Before the beginning of time there is no clock that could jump.
    assert!(read("-009999-01-02T00:00:00", "UTC", Pass::First).unwrap_err().contains("is not an instant"));
    for text in [
        "",
        "tomorrow",
        "2026-03-08",
        "2026-02-30T00:00:00",
        "2026-03-08T09:00:00[Europe/Paris]",
        "2026-03-08T09:00:00Z[Mars/X]",
        "25:00",
    ] {
        let error = read(text, new_york, Pass::First).unwrap_err();
        assert!(error.contains("is not an instant") && error.contains("use 2026-03-08T09:00:00Z"), "{text}: {error}");
    }
}

#[test]
fn one_shots_have_one_slot() {
    let from = at("2026-01-01T00:00:00Z");
    for (trigger, expected) in [
        (Trigger::At(At(at("2026-01-01T09:00:00Z"))), "i:1767258000"),
        (Trigger::After(After { delay: Elapsed::from_seconds(90), from }), "i:1767225690"),
        (Trigger::Immediate(Immediate { at: at("2026-01-01T00:00:01.5Z") }), "i:1767225601"),
    ] {
        let timetable = timetable(&trigger, "Europe/Paris", NATIVE);
        assert_eq!(keys(timetable.slots(from)), [expected]);
        assert_eq!(keys(timetable.before(at("2027-01-01T00:00:00Z"))), [expected]);
    }
    let event = Trigger::OnEvent(OnEvent::new("TicketCreated", Elapsed::ZERO).unwrap());
    assert_eq!(timetable(&event, "UTC", NATIVE).slots(from).next(), None);
}

#[test]
fn every_trigger_form_has_its_words() {
    let quartz = Cron::parse("0 15 10 ? * 6L", Some(Dialect::Quartz)).unwrap();
    let zoned = Crons::new(vec![
        ZonedCron { cron: Cron::parse("0 9 * * MON-FRI", None).unwrap(), zone: None },
        ZonedCron { cron: quartz, zone: Some("Asia/Tokyo".to_owned()) },
    ]);
    let every = Every::from_anchor(Elapsed::parse("90m").unwrap(), at("2026-01-01T00:00:00Z")).unwrap();
    let event = |delay| Trigger::OnEvent(OnEvent::new("TicketCreated", delay).unwrap());
    for (trigger, expected) in [
        (cron("0 9 * * MON-FRI"), "At 09:00, Monday to Friday, America/New_York"),
        (
            Trigger::Cron(zoned.unwrap()),
            "At 09:00, Monday to Friday, America/New_York; and At 10:15, the last Friday of the month, Asia/Tokyo",
        ),
        (
            Trigger::Times(TimesOfDay::parse(&["17:30:15", "09:00"]).unwrap()),
            "At 09:00 and 17:30:15, every day, America/New_York",
        ),
        (Trigger::Every(every), "Every 1 hour 30 minutes from 2026-01-01T00:00:00Z, America/New_York"),
        (Trigger::At(At(at("2026-01-01T09:00:00Z"))), "Once at 2026-01-01T09:00:00Z, America/New_York"),
        (
            Trigger::After(After { delay: Elapsed::from_seconds(90), from: at("2026-01-01T00:00:00Z") }),
            "Once, 1 minute 30 seconds after 2026-01-01T00:00:00Z, America/New_York",
        ),
        (Trigger::Immediate(Immediate { at: at("2026-01-01T00:00:00Z") }), "Once, at once, America/New_York"),
        (event(Elapsed::ZERO), "On each event \"TicketCreated\", America/New_York"),
        (event(Elapsed::from_seconds(14_400)), "4 hours after each event \"TicketCreated\", America/New_York"),
    ] {
        assert_eq!(trigger.describe("America/New_York"), expected);
    }
}
