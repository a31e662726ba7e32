//! The library's slots against the oracle's, both ways through a window.

use std::fmt::Write;

use jiff::Timestamp;
use punctual_core::schedule::{DstPolicy, GapPolicy, RepeatPolicy};
use punctual_core::time::{Slot, Timetable};

use super::brute::Row;
use super::clock::{Window, timestamp};
use super::pattern::Pattern;
use super::zones::text_of;

/// What is compared, as far as a reader of a failure needs to know it.
pub(crate) struct Question<'a> {
    pub(crate) pattern: &'a Pattern,
    pub(crate) zone: &'a str,
    pub(crate) policy: DstPolicy,
    pub(crate) window: Window,
}

impl Question<'_> {
    /// Compares forwards and backwards; says what differs first.
    pub(crate) fn ask(&self, timetable: &Timetable, expected: &[Row]) -> Result<(), String> {
        self.ask_between(timetable, expected, timestamp(self.window.after), timestamp(self.window.until))
    }

    /// The same with ends of one's own within the window. Both are exclusive.
    pub(crate) fn ask_between(
        &self,
        timetable: &Timetable,
        expected: &[Row],
        after: Timestamp,
        until: Timestamp,
    ) -> Result<(), String> {
        let is_within = |row: &&Row| after < row.scheduled_at && row.scheduled_at < until;
        let forwards = timetable.slots(after).take_while(|slot| slot.scheduled_at < until);
        self.compare("forwards", expected.iter().filter(is_within), forwards)?;
        let backwards = timetable.before(until).take_while(|slot| after < slot.scheduled_at);
        self.compare("backwards", expected.iter().rev().filter(is_within), backwards)
    }

    fn compare<'e>(
        &self,
        direction: &str,
        mut expected: impl Iterator<Item = &'e Row<'e>>,
        mut slots: impl Iterator<Item = Slot>,
    ) -> Result<(), String> {
        let mut agreed: Option<Row> = None;
        for place in 0.. {
            let (row, slot) = (expected.next(), slots.next());
            if row == slot.as_ref().map(row_of).as_ref() {
                if row.is_none() {
                    break;
                }
                agreed = row.copied();
                continue;
            }
            let mut message = format!("slot {place}, {direction}:\n{self}");
            let mut line = |name: &str, row: Option<&Row>| {
                let row = row.map_or_else(|| "none".to_owned(), text_of_row);
                writeln!(message, "  {name:<12} {row}").expect("text takes more text");
            };
            line("both agree", agreed.as_ref());
            line("the rules", row);
            line("the library", slot.as_ref().map(row_of).as_ref());
            line("rules, then", expected.next());
            line("library, then", slots.next().as_ref().map(row_of).as_ref());
            return Err(message);
        }
        Ok(())
    }
}

impl std::fmt::Display for Question<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let gap = match self.policy.gap {
            GapPolicy::After => "after",
            GapPolicy::Skip => "skip",
        };
        let repeat = match self.policy.repeat {
            RepeatPolicy::Once => "once",
            RepeatPolicy::Both => "both",
        };
        writeln!(f, "  pattern      {}", self.pattern)?;
        writeln!(f, "  zone         {}", self.zone)?;
        writeln!(f, "  policy       gap {gap}, repeat {repeat}")?;
        writeln!(f, "  window       {} to {}", text_of(self.window.after), text_of(self.window.until))
    }
}

/// What is compared of a slot.
pub(crate) fn row_of(slot: &Slot) -> Row<'_> {
    Row {
        scheduled_at: slot.scheduled_at,
        offset: slot.offset,
        nominal: slot.nominal(),
        fold: slot.fold(),
        skipped: slot.skipped,
        is_in_gap: slot.is_in_gap,
        zone: slot.zone(),
    }
}

fn text_of_row(row: &Row) -> String {
    let Row { scheduled_at, offset, nominal, fold, skipped, is_in_gap, zone } = row;
    let skipped = skipped.map_or_else(|| "runs".to_owned(), |reason| format!("skipped: {reason}"));
    let gap = if *is_in_gap { ", in a gap" } else { "" };
    format!("{scheduled_at} = {nominal} in {zone} at {offset}, fold {fold}{gap}, {skipped}")
}
