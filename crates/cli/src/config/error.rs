//! What is wrong with a configuration: every problem at once, each with its place and its remedy.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;

use serde::Serialize;

/// More problems than this are counted, not told.
const TOLD_MAX: usize = 50;

/// A configuration that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ConfigError {
    /// The file's name, as it was given.
    pub(crate) file: String,
    /// What is wrong, in the order of the file; what the environment says comes last.
    pub(crate) problems: Vec<Problem>,
    /// How many problems more there are.
    pub(crate) untold: usize,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Problem {
    /// Where in the file; `None` where no place in it is at fault.
    #[serde(flatten)]
    pub(crate) position: Option<Position>,
    /// The environment variable at fault, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) variable: Option<String>,
    /// The key at fault, like `schedules[2].cron`; empty for the file as a whole.
    pub(crate) key: String,
    /// What is wrong.
    pub(crate) problem: String,
    /// What to do about it.
    pub(crate) fix: String,
}

/// A place in a text, both numbers counted from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Position {
    /// The line.
    pub(crate) line: usize,
    /// The character in the line.
    pub(crate) column: usize,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.problems.len() + self.untold;
        write!(f, "{} has {count} problem{}:", self.file, if count == 1 { "" } else { "s" })?;
        for Problem { position, variable, key, problem, fix } in &self.problems {
            f.write_str("\n")?;
            match (position, variable) {
                (Some(Position { line, column }), _) => write!(f, "{}:{line}:{column}: ", self.file)?,
                (None, Some(variable)) => write!(f, "{variable}: ")?,
                (None, None) => write!(f, "{}: ", self.file)?,
            }
            if !key.is_empty() {
                write!(f, "{key}: ")?;
            }
            write!(f, "{problem}; {fix}")?;
        }
        if self.untold != 0 {
            write!(f, "\nand {} more", self.untold)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// Where a value was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// Bytes of the file.
    File(Range<usize>),
    /// An environment variable.
    Variable(String),
    /// Nowhere in particular.
    Nowhere,
}

/// The problems found so far in one text.
pub(super) struct Problems<'t> {
    pub(super) text: &'t str,
    found: RefCell<Vec<(Place, Problem)>>,
}

impl<'t> Problems<'t> {
    pub(super) fn of(text: &'t str) -> Problems<'t> {
        Problems { text, found: RefCell::default() }
    }

    pub(super) fn add(&self, place: &Place, key: &str, problem: impl Into<String>, fix: impl Into<String>) {
        let variable = match place {
            Place::Variable(name) => Some(name.clone()),
            Place::File(_) | Place::Nowhere => None,
        };
        let (problem, fix) = (problem.into(), fix.into());
        let problem = Problem { position: None, variable, key: key.to_owned(), problem, fix };
        self.found.borrow_mut().push((place.clone(), problem));
    }

    /// All problems as an error, or nothing if there are none.
    pub(super) fn into_result(self, file: &str) -> Result<(), ConfigError> {
        let mut found = self.found.into_inner();
        if found.is_empty() {
            return Ok(());
        }
        // A stable order, so that what was found first at one place stays first.
        found.sort_by_key(|(place, _)| match place {
            Place::File(span) => (0, span.start, String::new()),
            Place::Nowhere => (1, 0, String::new()),
            // An environment has no order of its own.
            Place::Variable(name) => (2, 0, name.clone()),
        });
        let untold = found.len().saturating_sub(TOLD_MAX);
        found.truncate(TOLD_MAX);
        let placed = found.into_iter().map(|(place, problem)| match place {
            Place::File(span) => Problem { position: Some(position(self.text, span.start)), ..problem },
            Place::Variable(_) | Place::Nowhere => problem,
        });
        Err(ConfigError { file: file.to_owned(), problems: placed.collect(), untold })
    }
}

pub(super) fn position(text: &str, byte: usize) -> Position {
    let before = || text.char_indices().take_while(|(at, _)| *at < byte).map(|(_, next)| next);
    let line = before().filter(|next| *next == '\n').count() + 1;
    let column = before().fold(1, |column, next| if next == '\n' { 1 } else { column + 1 });
    Position { line, column }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        for (byte, line, column) in [(0, 1, 1), (3, 1, 3), (4, 2, 1), (5, 2, 2), (99, 2, 2)] {
            assert_eq!(position("aé\nb", byte), Position { line, column }, "{byte}");
        }
    }
}
