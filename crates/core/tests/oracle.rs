//! The slots of the library against those of a naive oracle that shares no code and no idea with it.
//!
//! The oracle looks at the clock minute by minute (second by second where seconds matter) around every change of every
//! clock from 2000 to 2037. By default a fixed sample is checked; `PUNCTUAL_ORACLE=full` checks everything.

use std::collections::HashSet;

use punctual_core::time::Zones;

use oracle::survey::{Entry, Task, survey};
use oracle::{is_full, patterns, zones};

mod oracle {
    pub(crate) mod brute;
    pub(crate) mod clock;
    pub(crate) mod compare;
    pub(crate) mod generate;
    pub(crate) mod matcher;
    pub(crate) mod numbers;
    pub(crate) mod pattern;
    pub(crate) mod patterns;
    mod properties;
    mod slots;
    pub(crate) mod survey;
    pub(crate) mod zones;

    /// Whether everything is to be checked.
    pub(crate) fn is_full() -> bool {
        std::env::var("PUNCTUAL_ORACLE").is_ok_and(|value| value == "full")
    }
}

#[test]
fn no_pattern_of_the_survey_is_listed_twice() {
    let patterns = patterns::all();
    let mut seen = HashSet::new();
    for pattern in &patterns {
        assert!(seen.insert(pattern), "{pattern} is listed twice");
    }
    assert!(500 <= patterns.len() * 4, "{} patterns", patterns.len());
}

#[test]
fn around_every_change_of_a_clock_the_slots_are_those_of_the_rules() {
    let entries: Vec<Entry> = patterns::all().into_iter().map(Entry::new).collect();
    let cities = zones::distinct();
    let tasks: Vec<Task> = if is_full() {
        let all = |city| Task { city, instants: city.instants.clone(), entries: entries.iter().collect() };
        cities.iter().map(all).collect()
    } else {
        cities.iter().enumerate().map(|(place, city)| sample(place, city, &entries)).collect()
    };
    let instants: usize = tasks.iter().map(|task| task.instants.len()).sum();
    let changes: usize = tasks.iter().filter(|task| !task.city.is_quiet).map(|task| task.instants.len()).sum();
    let tally = survey(&tasks, &Zones::bundled());
    println!(
        "oracle: {} zones, {changes} transitions and {} quiet moments, {} patterns (x4 policies), {} comparisons, \
         {} slots each way, {} failures",
        tasks.len(),
        instants - changes,
        entries.len(),
        tally.comparisons,
        tally.slots,
        tally.failures
    );
    assert!(tally.failures == 0, "{}", tally.report());
}

/// All patterns in unusual years of unusual zones; elsewhere three moments and every fifth pattern.
fn sample<'a>(place: usize, city: &'a zones::City, entries: &'a [Entry]) -> Task<'a> {
    if let Some(instants) = city.unusual_instants() {
        return Task { city, instants, entries: entries.iter().collect() };
    }
    let instants = (0..3).map(|turn| city.instants[(place * 7 + turn * 31) % city.instants.len()]).collect();
    let entries = entries.iter().skip(place % 5).step_by(5).collect();
    Task { city, instants, entries }
}
