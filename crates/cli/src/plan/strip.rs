//! The strip: a day from midnight to midnight, a row for each schedule, with a line where now is.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::line::{Line, Mark};
use crate::output::clean;
use crate::screen::{Paint, Screen};
use crate::times::Wall;

/// The most rows.
const ROWS_MAX: usize = 20;

/// How wide names may be.
const NAME_MAX: usize = 24;

/// How many cells a day may have: a whole part of an hour each, or whole hours.
const CELLS: [usize; 6] = [96, 72, 48, 24, 12, 8];

/// Which letters it is drawn with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Unicode,
    Ascii,
}

impl Look {
    fn mark(self, mark: Mark) -> char {
        let (unicode, ascii) = match mark {
            Mark::Planned => ('○', 'o'),
            Mark::Done => ('●', '*'),
            Mark::Skipped => ('–', '-'),
            Mark::Waiting => ('?', '?'),
            Mark::Running => ('▶', '>'),
            Mark::Failed => ('✗', 'x'),
        };
        if self == Look::Unicode { unicode } else { ascii }
    }

    fn empty(self) -> char {
        if self == Look::Unicode { '·' } else { '.' }
    }

    fn now(self) -> char {
        if self == Look::Unicode { '│' } else { '|' }
    }

    fn cut(self) -> &'static str {
        if self == Look::Unicode { "…" } else { "~" }
    }
}

/// How a day is drawn.
pub(super) struct Strip<'a> {
    pub(super) from: Timestamp,
    pub(super) until: Timestamp,
    pub(super) wall: &'a Wall,
    pub(super) look: Look,
    pub(super) width: usize,
    pub(super) screen: Screen,
}

impl Strip<'_> {
    /// Hours, rows with their marks, and what the marks mean.
    pub(super) fn draw(&self, lines: &[Line]) -> String {
        let rows = self.rows(lines);
        let widest = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let cells = CELLS.into_iter().find(|cells| cells + 9 < self.width).unwrap_or(8);
        let label = widest.min(NAME_MAX).min(self.width.saturating_sub(cells + 1)).max(1);
        let now = self.column(self.wall.now, cells);
        let mut text = self.heading(label, cells, now);
        for (name, marks) in rows.iter().take(ROWS_MAX) {
            let mut row: Vec<String> = vec![self.look.empty().to_string(); cells];
            if let Some(now) = now {
                row[now] = self.look.now().to_string();
            }
            for (at, mark) in marks {
                if let Some(column) = self.column(*at, cells) {
                    row[self.beside_now(*at, column, now, cells)] = self.painted(*mark);
                }
            }
            text += &format!("{} {}\n", self.fitted(name, label), row.concat());
        }
        if ROWS_MAX < rows.len() {
            text += &format!("and {} more\n", rows.len() - ROWS_MAX);
        }
        text + &self.legend(lines)
    }

    /// A mark in the colour of what it means.
    fn painted(&self, mark: Mark) -> String {
        let paint = match mark {
            Mark::Planned => Paint::Plain,
            Mark::Done => Paint::Good,
            Mark::Skipped => Paint::Quiet,
            Mark::Waiting => Paint::Waiting,
            Mark::Running => Paint::Busy,
            Mark::Failed => Paint::Bad,
        };
        paint.on(&self.look.mark(mark).to_string(), self.screen)
    }

    /// The marks of each row, the most telling last, and rows by their first mark.
    fn rows(&self, lines: &[Line]) -> Vec<(String, Vec<(Timestamp, Mark)>)> {
        let mut rows: BTreeMap<&str, Vec<(Timestamp, Mark)>> = BTreeMap::new();
        for line in lines {
            rows.entry(line.row()).or_default().push((line.at, line.mark));
        }
        let mut rows: Vec<_> = rows.into_iter().map(|(name, marks)| (clean(name), marks)).collect();
        rows.sort_by_key(|(name, marks)| (marks.iter().map(|(at, _)| *at).min(), name.clone()));
        rows.iter_mut().for_each(|(_, marks)| marks.sort_by_key(|(_, mark)| *mark));
        rows
    }

    /// The cell of an instant. Days on which the clock changes are longer or shorter, and drawn as wide as others.
    fn column(&self, at: Timestamp, cells: usize) -> Option<usize> {
        let whole = self.until.duration_since(self.from).as_secs().max(1);
        let part = at.duration_since(self.from).as_secs();
        (self.from <= at && at < self.until).then(|| (part * cells as i64 / whole) as usize)
    }

    /// The cell of a mark that would cover the line where now is: beside it, on the side that it belongs to.
    fn beside_now(&self, at: Timestamp, column: usize, now: Option<usize>, cells: usize) -> usize {
        match now {
            Some(now) if now == column && at <= self.wall.now => column.saturating_sub(1),
            Some(now) if now == column => (column + 1).min(cells - 1),
            _ => column,
        }
    }

    /// Where the hours are, and where now is.
    fn heading(&self, label: usize, cells: usize, now: Option<usize>) -> String {
        let mut hours = vec![' '; cells];
        // Every third hour has place for its two digits and a gap, or every sixth.
        let step = if cells < 24 { 12 } else { 3 };
        let mut at = self.from;
        while at < self.until {
            if let Some(column) = self.column(at, cells) {
                let digits = self.wall.hour(at);
                for (place, digit) in hours[column..].iter_mut().zip(digits.chars()) {
                    *place = digit;
                }
            }
            at += jiff::SignedDuration::from_hours(step);
        }
        let hours: String = hours.into_iter().collect();
        let mut text = String::new();
        if let Some(now) = now {
            let word = "NOW";
            // The word ends where it would leave the strip.
            let column = now.min(cells.saturating_sub(word.len()));
            text += &format!("{} {}{word}\n", " ".repeat(label), " ".repeat(column));
        }
        text + format!("{} {hours}", " ".repeat(label)).trim_end() + "\n"
    }

    fn fitted(&self, name: &str, label: usize) -> String {
        let count = name.chars().count();
        if count <= label {
            return format!("{name}{}", " ".repeat(label - count));
        }
        name.chars().take(label.saturating_sub(1)).collect::<String>() + self.look.cut()
    }

    /// The marks that were used.
    fn legend(&self, lines: &[Line]) -> String {
        let words = [
            (Mark::Done, "done"),
            (Mark::Failed, "failed"),
            (Mark::Skipped, "skipped or cancelled"),
            (Mark::Running, "running"),
            (Mark::Waiting, "waiting"),
            (Mark::Planned, "planned"),
        ];
        let used = words.into_iter().filter(|(mark, _)| lines.iter().any(|line| line.mark == *mark));
        used.map(|(mark, word)| format!("{} {word}", self.painted(mark))).collect::<Vec<_>>().join("   ") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::time::Zones;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn line(name: &str, time: &str, mark: Mark) -> Line {
        let (name, agent, state, note) = (name.to_owned(), "agent".to_owned(), String::new(), String::new());
        Line { at: at(time), name, agent, mark, state, note, run: None }
    }

    fn wall(zone: &str, now: &str) -> Wall {
        Wall { zone: Zones::bundled().get(zone).unwrap(), now: at(now) }
    }

    #[test]
    fn a_day_has_a_row_for_each_schedule_and_a_line_for_now() {
        let wall = wall("UTC", "2026-11-16T12:10:00Z");
        let strip = Strip {
            from: at("2026-11-16T00:00:00Z"),
            until: at("2026-11-17T00:00:00Z"),
            wall: &wall,
            look: Look::Ascii,
            width: 40,
            screen: Screen::default(),
        };
        let lines = [
            line("backup", "2026-11-16T02:00:00Z", Mark::Done),
            line("report", "2026-11-16T09:00:00Z", Mark::Failed),
            line("report", "2026-11-16T09:30:00Z", Mark::Done),
            line("report", "2026-11-16T18:00:00Z", Mark::Planned),
            line("-", "2026-11-16T12:00:00Z", Mark::Running),
        ];
        let drawn = strip.draw(&lines);
        let expected = "                   NOW\n       00 03 06 09 12 15 18 21\nbackup ..*.........|...........\nreport .........x..|.....o.....\nagent  ...........>|...........\n* done   x failed   > running   o planned\n";
        assert_eq!(drawn, expected, "\n{drawn}\n{expected}");
    }

    #[test]
    fn a_strip_fits_every_width() {
        let wall = wall("Europe/Paris", "2026-03-29T21:59:59Z");
        let (from, until) = (at("2026-03-28T23:00:00Z"), at("2026-03-29T22:00:00Z"));
        let long = line("ein sehr langer Name für den Frühbericht", "2026-03-29T01:00:00Z", Mark::Waiting);
        for width in 20..200 {
            for look in [Look::Ascii, Look::Unicode] {
                let drawn = Strip { from, until, wall: &wall, look, width, screen: Screen::default() }
                    .draw(std::slice::from_ref(&long));
                let rows: Vec<&str> = drawn.lines().take(3).collect();
                for row in rows {
                    assert!(row.chars().count() <= width, "{width}: {row}");
                }
                assert!(look == Look::Unicode || drawn.replace('ü', "").is_ascii(), "{drawn}");
            }
        }
    }

    #[test]
    fn hours_are_those_of_the_clock_also_when_it_changes() {
        let wall = wall("Europe/Paris", "2026-01-01T00:00:00Z");
        let (from, until) = (at("2026-03-28T23:00:00Z"), at("2026-03-29T22:00:00Z"));
        let screen = Screen::default();
        let strip = Strip { from, until, wall: &wall, look: Look::Ascii, width: 90, screen };
        let heading = strip.heading(1, 72, None);
        let hours: Vec<&str> = heading.split_whitespace().collect();
        assert_eq!(hours, ["00", "04", "07", "10", "13", "16", "19", "22"]);
        assert!(!strip.draw(&[]).contains("NOW"), "now is another day");
    }
}
