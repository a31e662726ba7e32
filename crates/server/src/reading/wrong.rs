//! What is wrong with a value that was sent: where it is, what was found, and what to give instead.

use std::fmt;

use punctual_core::nearest;
use serde::de::{self, Expected, Unexpected};

use crate::error::ApiError;

/// As much of a text as a person recognises it by.
const SHOWN: usize = 40;

/// So many names are listed for whoever gave an unknown one.
const LISTED: usize = 12;

/// What is wrong with a value.
#[derive(Debug)]
pub(super) struct Wrong {
    /// From the value outwards.
    path: Vec<String>,
    problem: String,
    /// What to do; nothing where the problem says it.
    fix: String,
    /// Whether the words are those of the type that refused the text.
    is_foreign: bool,
    /// Where the names of a body are fields, those of a query are parameters.
    is_unknown: bool,
}

impl Wrong {
    fn new(problem: impl Into<String>, fix: impl Into<String>) -> Wrong {
        Wrong { path: vec![], problem: problem.into(), fix: fix.into(), is_foreign: false, is_unknown: false }
    }

    /// The same, seen from outside of a field or an item.
    pub(super) fn within(mut self, step: String) -> Wrong {
        self.path.push(step);
        self
    }

    /// The same, where the type that refused a text says what it wants: ids and times have no words of ours otherwise.
    pub(super) fn of_text(self, text: &str, wanted: &str) -> Wrong {
        match example(wanted) {
            Some(example) if self.is_foreign => {
                Wrong::new(format!("{:?} cannot be used", shown(text)), format!("give {example}"))
            }
            _ => self,
        }
    }

    pub(super) fn in_body(self) -> ApiError {
        self.into_error("the body", "field")
    }

    pub(super) fn in_query(self) -> ApiError {
        self.into_error("the query", "parameter")
    }

    fn into_error(self, whole: &str, name: &str) -> ApiError {
        let mut field = String::new();
        for step in self.path.iter().rev() {
            let is_first = field.is_empty() || step.starts_with('[');
            field.push_str(if is_first { "" } else { "." });
            field.push_str(step);
        }
        let problem = if self.is_unknown { format!("there is no such {name}") } else { self.problem };
        let place = if field.is_empty() { whole } else { &field };
        let field = Some(field.clone()).filter(|field| !field.is_empty());
        ApiError::unread(place, field, &problem, &self.fix)
    }
}

/// The words of a list, with `or` before the last.
pub(super) fn listed(words: &[&str]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [only] => (*only).to_owned(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
    }
}

fn shown(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() { shown + "…" } else { shown }
}

/// What was found, as people call it.
fn found(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(value) => value.to_string(),
        Unexpected::Signed(value) => value.to_string(),
        Unexpected::Float(value) => value.to_string(),
        Unexpected::Str(text) => format!("the text {:?}", shown(text)),
        Unexpected::Unit | Unexpected::Option => "null".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "an object".to_owned(),
        _ => "something else".to_owned(),
    }
}

/// What is wanted, as people call it; types say it in the words of Rust.
fn wanted(wanted: &str) -> String {
    let words = match wanted {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number, 0 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" => "a text",
        "a sequence" => "a list",
        "a map" => "an object",
        other if other.starts_with("struct ") => "an object",
        other => return example(other).unwrap_or_else(|| other.to_owned()),
    };
    words.to_owned()
}

/// An example of what the types of others want.
fn example(wanted: &str) -> Option<String> {
    let example = match wanted {
        "a timestamp string" => "a time like 2026-03-09T15:00:00Z",
        "a date string" => "a day like 2026-03-09",
        other if other.contains("UUID") => "an id like 0198f0c1-6f3a-7c44-9d1b-2f6c0e5a9b10",
        _ => return None,
    };
    Some(example.to_owned())
}

/// What to do about a name that is none: the one that was probably meant, or all that there are.
fn instead(given: &str, known: &'static [&'static str]) -> String {
    match nearest(given, known.iter().copied()) {
        Some(name) => format!("did you mean {name}?"),
        None if known.is_empty() => "leave it out".to_owned(),
        None if known.len() <= LISTED => format!("use {}", listed(known)),
        None => "leave it out; /api/docs lists those that there are".to_owned(),
    }
}

impl de::Error for Wrong {
    fn custom<T: fmt::Display>(message: T) -> Wrong {
        Wrong { is_foreign: true, ..Wrong::new(message.to_string(), "") }
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Wrong {
        Wrong::new(format!("it is {}", found(unexpected)), format!("give {}", wanted(&expected.to_string())))
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Wrong {
        let problem = match unexpected {
            Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => {
                format!("{} is out of range", found(unexpected))
            }
            _ => format!("{} cannot be used", found(unexpected)),
        };
        Wrong::new(problem, format!("give {}", wanted(&expected.to_string())))
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Wrong {
        Wrong::new(format!("it has {length} items"), format!("give {}", wanted(&expected.to_string())))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Wrong {
        Wrong::new(format!("{:?} is no word of it", shown(variant)), format!("use {}", listed(expected)))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Wrong {
        let wrong = Wrong { is_unknown: true, ..Wrong::new("", instead(field, expected)) };
        wrong.within(shown(field))
    }

    fn missing_field(field: &'static str) -> Wrong {
        Wrong::new("it is missing", "give it").within(field.to_owned())
    }

    fn duplicate_field(field: &'static str) -> Wrong {
        Wrong::new("it is given twice", "give it once").within(field.to_owned())
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.problem, self.fix)
    }
}

impl std::error::Error for Wrong {}
