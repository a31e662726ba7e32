//! Golden tables: what people expect of clocks, to be read by people. `golden/*.txt`, one file a zone.
//!
//! A line without indent is a case, the indented lines below it are all that must come out: nominal time, offset,
//! instant, and what the clock did to it.

use jiff::Timestamp;
use punctual_core::schedule::{Crons, DstPolicy, GapPolicy, RepeatPolicy, Trigger};
use punctual_core::time::{Cron, Slot, TimesOfDay, Timetable, Zones};

const TABLES: [(&str, &str); 10] = [
    ("new_york", include_str!("golden/new_york.txt")),
    ("denver", include_str!("golden/denver.txt")),
    ("london", include_str!("golden/london.txt")),
    ("lord_howe", include_str!("golden/lord_howe.txt")),
    ("kathmandu", include_str!("golden/kathmandu.txt")),
    ("casablanca", include_str!("golden/casablanca.txt")),
    ("cairo", include_str!("golden/cairo.txt")),
    ("santiago", include_str!("golden/santiago.txt")),
    ("apia", include_str!("golden/apia.txt")),
    ("dublin", include_str!("golden/dublin.txt")),
];

#[test]
fn every_golden_table_comes_out_line_by_line() {
    let zones = Zones::bundled();
    for (name, table) in TABLES {
        let mut lines = table.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).peekable();
        let mut cases = 0;
        while let Some(case) = lines.next() {
            let mut expected = vec![];
            while let Some(line) = lines.next_if(|line| line.starts_with(' ')) {
                expected.push(line.trim().to_owned());
            }
            let (timetable, from) = read_case(case, &zones);
            let actual: Vec<String> = timetable.slots(from).take(expected.len()).map(|slot| show(&slot)).collect();
            assert_eq!(actual, expected, "golden/{name}.txt: {case}");
            assert!(!expected.is_empty(), "golden/{name}.txt: {case} expects nothing");
            cases += 1;
        }
        assert!(1 < cases, "golden/{name}.txt has {cases} cases");
    }
}

/// Reads `ZONE | PATTERN | gap G, repeat R | from INSTANT`.
fn read_case(case: &str, zones: &Zones) -> (Timetable, Timestamp) {
    let parts: Vec<&str> = case.split(" | ").collect();
    let [zone, pattern, policies, from] = parts[..] else { panic!("not a case: {case}") };
    let trigger = match pattern.strip_prefix("times ") {
        Some(times) => Trigger::Times(TimesOfDay::parse(&times.split(' ').collect::<Vec<_>>()).unwrap()),
        None => Trigger::Cron(Crons::one(Cron::parse(pattern, None).unwrap())),
    };
    let dst = match policies {
        "gap after, repeat once" => DstPolicy { gap: GapPolicy::After, repeat: RepeatPolicy::Once },
        "gap after, repeat both" => DstPolicy { gap: GapPolicy::After, repeat: RepeatPolicy::Both },
        "gap skip, repeat once" => DstPolicy { gap: GapPolicy::Skip, repeat: RepeatPolicy::Once },
        "gap skip, repeat both" => DstPolicy { gap: GapPolicy::Skip, repeat: RepeatPolicy::Both },
        _ => panic!("not policies: {policies}"),
    };
    let from = from.strip_prefix("from ").expect("a case ends with its start").parse().unwrap();
    (Timetable::new(&trigger, zone, dst, zones).unwrap(), from)
}

fn show(slot: &Slot) -> String {
    let seconds = slot.offset.seconds();
    let sign = if seconds < 0 { '-' } else { '+' };
    let (hours, minutes) = (seconds.abs() / 3_600, seconds.abs() / 60 % 60);
    let touched = match (slot.skipped, slot.is_in_gap, slot.is_second_pass) {
        (Some(reason), _, _) => format!("  skipped {reason}"),
        (None, true, _) => "  moved".to_owned(),
        (None, false, true) => "  second pass".to_owned(),
        (None, false, false) => String::new(),
    };
    format!("{} {sign}{hours:02}:{minutes:02}  {}{touched}", slot.nominal(), slot.scheduled_at)
}
