//! What is wrong with a text, where, and what would be right.

use std::fmt;

/// A text that could not be read as what it should be.
///
/// Every text form of this crate (cron, duration, time of day, zone, calendar window) fails with this one type, so that
/// an API, a command line and a page can all point at the same character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The field at fault, in the words of the form: `hour`, `day-of-week`, `times[2]`.
    pub field: String,
    /// Where the trouble starts: a 0-based character of the text, not a byte. `None` where no place in a text is at fault.
    pub position: Option<usize>,
    /// What is wrong there.
    pub problem: String,
    /// What would be right instead.
    pub fix: String,
}

impl ParseError {
    /// An error at byte `at` of `text`.
    pub(crate) fn at_byte(
        text: &str,
        at: usize,
        field: impl Into<String>,
        problem: impl Into<String>,
        fix: impl Into<String>,
    ) -> ParseError {
        let position = Some(text.char_indices().take_while(|(byte, _)| *byte < at).count());
        ParseError { field: field.into(), position, problem: problem.into(), fix: fix.into() }
    }

    /// An error in a value as a whole.
    pub(crate) fn value(field: impl Into<String>, problem: impl Into<String>, fix: impl Into<String>) -> ParseError {
        ParseError { field: field.into(), position: None, problem: problem.into(), fix: fix.into() }
    }

    /// The same error, seen from outside: the field gets the name of what the text was given for.
    #[must_use]
    pub fn within(self, field: impl Into<String>) -> ParseError {
        ParseError { field: field.into(), ..self }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)?;
        if let Some(position) = self.position {
            write!(f, " at position {position}")?;
        }
        write!(f, "; {}", self.fix)
    }
}

impl std::error::Error for ParseError {}

/// Shows a text inside an error: quoted, escaped and cut, so that a hostile megabyte stays one short line.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN: usize = 40;
    let short: String = text.chars().take(SHOWN).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{short:?}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_not_bytes() {
        let error = ParseError::at_byte("é x", 3, "f", "p", "fix");
        assert_eq!(error.position, Some(2));
        assert_eq!(error.to_string(), "f: p at position 2; fix");
        assert_eq!(ParseError::value("f", "p", "fix").to_string(), "f: p; fix");
    }

    #[test]
    fn quoted_text_is_short_and_on_one_line() {
        assert_eq!(quoted("a\nb"), r#""a\nb""#);
        assert!(quoted(&"x".repeat(1_000_000)).len() < 60);
    }
}
