//! The survey: chosen patterns, at chosen moments, in chosen zones, on two threads.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use punctual_core::schedule::Trigger;
use punctual_core::time::{Timetable, Zones};

use super::brute::Matches;
use super::clock::{Clocks, Window};
use super::compare::Question;
use super::pattern::{POLICIES, Pattern, Reader};
use super::zones::City;

/// A pattern as both sides read it.
pub(crate) struct Entry {
    pattern: Pattern,
    trigger: Trigger,
    readers: Vec<Reader>,
    is_by_the_minute: bool,
}

impl Entry {
    /// Both sides read the pattern; the library must accept it.
    pub(crate) fn new(pattern: Pattern) -> Entry {
        let trigger = pattern.trigger().unwrap_or_else(|error| panic!("{pattern}: {error}"));
        let readers = pattern.readers();
        let is_by_the_minute = readers.iter().all(|reader| reader.matcher.is_by_the_minute());
        Entry { pattern, trigger, readers, is_by_the_minute }
    }
}

/// A zone with the moments to look at, and the patterns to look for.
pub(crate) struct Task<'a> {
    pub(crate) city: &'a City,
    pub(crate) instants: Vec<i64>,
    pub(crate) entries: Vec<&'a Entry>,
}

/// What was looked at, and what was wrong.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) comparisons: usize,
    pub(crate) slots: usize,
    pub(crate) failures: usize,
    /// One failure for each pattern that fails: enough to see whether there is one cause or several.
    examples: BTreeMap<String, String>,
}

/// Does all tasks.
pub(crate) fn survey(tasks: &[Task], zones: &Zones) -> Tally {
    let next = AtomicUsize::new(0);
    let total = Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let tally = task.work(zones);
                    total.lock().expect("no thread panicked").add(tally);
                }
            });
        }
    });
    total.into_inner().expect("no thread panicked")
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.comparisons += other.comparisons;
        self.slots += other.slots;
        self.failures += other.failures;
        self.examples.extend(other.examples);
    }

    /// The failures in words, not too many.
    pub(crate) fn report(&self) -> String {
        let examples: Vec<&str> = self.examples.values().map(String::as_str).take(20).collect();
        let (failures, patterns) = (self.failures, self.examples.len());
        format!("{failures} failures of {patterns} patterns, such as\n{}", examples.join("\n"))
    }
}

impl Task<'_> {
    fn work(&self, zones: &Zones) -> Tally {
        let mut tally = Tally::default();
        let timetables: Vec<[Timetable; 4]> = self.entries.iter().map(|entry| self.timetables(entry, zones)).collect();
        for &instant in &self.instants {
            for window in [Window::by_minutes(instant), Window::by_seconds(instant)] {
                let mut clocks = Clocks::new(window);
                for (entry, timetables) in self.entries.iter().zip(&timetables) {
                    if entry.is_by_the_minute == (window.step == 60) {
                        self.look(entry, timetables, window, &mut clocks, &mut tally);
                    }
                }
            }
        }
        tally
    }

    fn timetables(&self, entry: &Entry, zones: &Zones) -> [Timetable; 4] {
        POLICIES.map(|policy| {
            Timetable::new(&entry.trigger, &self.city.name, policy, zones)
                .unwrap_or_else(|error| panic!("{} in {}: {error}", entry.pattern, self.city.name))
        })
    }

    fn look(&self, entry: &Entry, timetables: &[Timetable; 4], window: Window, clocks: &mut Clocks, tally: &mut Tally) {
        let zone = self.city.name.as_str();
        for reader in &entry.readers {
            clocks.observe(reader.zone.as_deref().unwrap_or(zone));
        }
        let matches = Matches::find(&entry.readers, zone, clocks);
        for (policy, timetable) in POLICIES.into_iter().zip(timetables) {
            let expected = matches.slots(policy);
            let question = Question { pattern: &entry.pattern, zone, policy, window };
            tally.comparisons += 1;
            tally.slots += expected.len();
            if let Err(message) = question.ask(timetable, &expected) {
                tally.failures += 1;
                tally.examples.entry(entry.pattern.to_string()).or_insert(message);
            }
        }
    }
}
