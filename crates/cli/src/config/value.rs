//! A value of the file, where it was given, and what it is read as.
//!
//! A value that cannot be read is reported and then treated as absent, so that one pass finds everything.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use punctual_core::{Elapsed, ParseError};
use toml::Spanned;
use toml::de::DeValue;

use super::error::{Place, Problems};
use super::keys::Keys;
use super::section::{Section, joined};
use super::size::Size;
use super::words::Word;
use crate::suggest::nearest;

/// Tables and lists inside each other, at most.
const NESTED_MAX: usize = 32;

/// A value, where it was given and under which key.
#[derive(Clone)]
pub(super) struct Value<'a> {
    pub(super) problems: &'a Problems<'a>,
    pub(super) place: Place,
    /// The key, like `schedules[2].cron`.
    pub(super) path: String,
    pub(super) raw: &'a DeValue<'a>,
}

impl<'a> Value<'a> {
    /// Reports a problem with this value.
    pub(super) fn refuse(&self, problem: impl Into<String>, fix: impl Into<String>) {
        self.problems.add(&self.place, &self.path, problem, fix);
    }

    /// Reports what is wrong with a text, at the character at fault where the file shows it as it is.
    pub(super) fn refuse_text(&self, text: &str, error: &ParseError, with_field: bool) {
        let field = if with_field { format!("{}: ", error.field) } else { String::new() };
        let (place, behind) = match (error.position, self.place_in(text, error.position)) {
            (_, Some(place)) => (place, String::new()),
            (Some(position), None) => (self.place.clone(), format!(" at position {position}")),
            (None, None) => (self.place.clone(), String::new()),
        };
        self.problems.add(&place, &self.path, format!("{field}{}{behind}", error.problem), &*error.fix);
    }

    /// The place of a character of this text in the file, unless escapes stand in between.
    fn place_in(&self, text: &str, position: Option<usize>) -> Option<Place> {
        let Place::File(span) = &self.place else { return None };
        let written = self.problems.text.get(span.clone())?;
        let is_plain = written.len() == text.len() + 2 && written.get(1..written.len() - 1) == Some(text);
        let (byte, _) = text.char_indices().chain([(text.len(), ' ')]).nth(position?)?;
        is_plain.then(|| Place::File(span.start + 1 + byte..span.end))
    }

    fn expected(&self, what: &str, example: &str) {
        let found = match self.raw {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) | DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date or time",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.refuse(format!("this is {found}"), format!("use {what}, like {example}"));
    }

    /// A text.
    pub(super) fn text(&self) -> Option<&'a str> {
        let text = self.raw.as_str();
        if text.is_none() {
            self.expected("a text", "\"…\"");
        }
        text
    }

    /// A name: a short text on one line.
    pub(super) fn name(&self) -> Option<&'a str> {
        self.text().filter(|name| self.is_name(name))
    }

    /// Whether a text will do as a name; reports if not.
    pub(super) fn is_name(&self, name: &str) -> bool {
        let problem = match () {
            () if name.trim().is_empty() => "the name is empty",
            () if name.trim().len() != name.len() => "the name begins or ends with a space",
            () if name.contains(char::is_control) => "the name holds a control character",
            () if 200 < name.chars().count() => "the name is too long",
            () => return true,
        };
        self.refuse(problem, "use up to 200 characters on one line, like morning-report");
        false
    }

    /// A text, or a date or time of TOML's own.
    pub(super) fn time_text(&self) -> Option<String> {
        match self.raw {
            DeValue::Datetime(datetime) => Some(datetime.to_string()),
            _ => self.text().map(str::to_owned),
        }
    }

    /// A whole number within bounds.
    pub(super) fn integer(&self, range: RangeInclusive<u64>) -> Option<u64> {
        let bounds = match *range.end() {
            u64::MAX => format!("{} or more", range.start()),
            end => format!("{} to {end}", range.start()),
        };
        let (number, radix) = match (self.raw, &self.place) {
            (DeValue::Integer(number), _) => (number.as_str(), number.radix()),
            // A variable has no types.
            (DeValue::String(text), Place::Variable(_)) if text.parse::<i128>().is_ok() => (text.as_ref(), 10),
            _ => {
                self.refuse("this is not a whole number", format!("use {bounds}, without quotes"));
                return None;
            }
        };
        let read = u64::from_str_radix(number, radix).ok().filter(|number| range.contains(number));
        if read.is_none() {
            self.refuse(format!("{} is out of range", cut(number)), format!("use {bounds}"));
        }
        read
    }

    /// A number that is not negative.
    pub(super) fn number(&self) -> Option<f64> {
        let text = match self.raw {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => "",
        };
        let number = text.parse::<f64>().ok().filter(|number| (0.0..=1e12).contains(number));
        if number.is_none() {
            self.refuse("this is not a number from 0 up", "use one like 2.5, without quotes");
        }
        number
    }

    /// True or false.
    pub(super) fn boolean(&self) -> Option<bool> {
        let boolean = self.raw.as_bool();
        if boolean.is_none() {
            self.refuse("this is neither true nor false", "use true or false, without quotes");
        }
        boolean
    }

    /// Elapsed time.
    pub(super) fn duration(&self) -> Option<Elapsed> {
        if !self.raw.is_str() {
            self.expected("a text with a unit", "\"90s\", \"1h30m\" or \"3d\"");
            return None;
        }
        let text = self.text()?;
        Elapsed::parse(text).map_err(|error| self.refuse_text(text, &error, false)).ok()
    }

    /// Elapsed time, but some.
    pub(super) fn some_duration(&self) -> Option<Elapsed> {
        let duration = self.duration()?;
        if duration.is_zero() {
            self.refuse("this is no time at all", "use more, like \"10m\"");
            return None;
        }
        Some(duration)
    }

    /// A number of bytes.
    pub(super) fn size(&self) -> Option<Size> {
        let size = self.raw.as_str().and_then(Size::parse);
        if size.is_none() {
            self.refuse("this is not a size", "use a whole number with a unit, like \"512MiB\" or \"1GiB\"");
        }
        size
    }

    /// One word out of a few.
    pub(super) fn word<T: Word>(&self) -> Option<T> {
        let text = self.text()?;
        let found = T::WORDS.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            let problem = format!("{} is not known here", short(text));
            self.refuse_name(text, problem, T::WORDS.iter().map(|(word, _)| *word));
        }
        found
    }

    /// Reports a word or a name that is none of those known, with the one that was probably meant.
    pub(super) fn refuse_name<'w>(
        &self,
        text: &str,
        problem: impl Into<String>,
        known: impl Iterator<Item = &'w str> + Clone,
    ) {
        let fix = match nearest(text, known.clone()) {
            Some(word) => format!("did you mean {word:?}?"),
            None => format!("use one of {}", known.map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ")),
        };
        self.refuse(problem, fix);
    }

    /// Whether the file gave it.
    pub(super) fn is_of_file(&self) -> bool {
        matches!(self.place, Place::File(_))
    }

    /// Whether it is anything but `false`.
    pub(super) fn is_set(&self) -> bool {
        self.raw.as_bool() != Some(false)
    }

    /// Whether it is a text.
    pub(super) fn is_text(&self) -> bool {
        self.raw.is_str()
    }

    /// Whether it is a list.
    pub(super) fn is_list(&self) -> bool {
        self.raw.is_array()
    }

    /// The values of a list.
    pub(super) fn list(&self) -> Option<Vec<Value<'a>>> {
        let Some(array) = self.raw.as_array() else {
            self.expected("a list", "[\"…\"]");
            return None;
        };
        let item = |(position, raw): (usize, &'a Spanned<DeValue<'a>>)| {
            let path = format!("{}[{position}]", self.path);
            Value { problems: self.problems, place: Place::File(raw.span()), path, raw: raw.get_ref() }
        };
        Some(array.iter().enumerate().map(item).collect())
    }

    /// The texts of a list, without those that are none.
    pub(super) fn texts(&self) -> Option<Vec<&'a str>> {
        Some(self.list()?.iter().filter_map(Value::text).collect())
    }

    /// The values of a table whose keys are names of the user's own.
    pub(super) fn named(&self) -> Option<Vec<(&'a str, Value<'a>)>> {
        let Some(table) = self.raw.as_table() else {
            self.expected("a table", "{ name = … }");
            return None;
        };
        let entry = |(key, raw): (&'a Spanned<Cow<'a, str>>, &'a Spanned<DeValue<'a>>)| {
            let path = joined(&self.path, key.get_ref());
            let value = Value { problems: self.problems, place: Place::File(raw.span()), path, raw: raw.get_ref() };
            (key.get_ref().as_ref(), value)
        };
        Some(table.iter().map(entry).collect())
    }

    /// A table whose keys are known.
    pub(super) fn section(&self, keys: &'static Keys) -> Option<Section<'a>> {
        let Some(table) = self.raw.as_table() else {
            self.expected("a table", "{ key = … }");
            return None;
        };
        Some(Section::of(self, table, keys))
    }

    /// The value as JSON; dates and times become texts.
    pub(super) fn json(&self) -> Option<serde_json::Value> {
        let json = json(self.raw, NESTED_MAX);
        if json.is_none() {
            let fix = format!("use whole numbers of 64 bits, no inf or nan, and at most {NESTED_MAX} levels");
            self.refuse("something in it cannot be written as JSON", fix);
        }
        json
    }
}

fn json(raw: &DeValue<'_>, levels: usize) -> Option<serde_json::Value> {
    let levels = levels.checked_sub(1)?;
    Some(match raw {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok()?.into(),
        DeValue::Float(number) => serde_json::Number::from_f64(number.as_str().parse().ok()?)?.into(),
        DeValue::Boolean(boolean) => (*boolean).into(),
        DeValue::Datetime(datetime) => datetime.to_string().into(),
        DeValue::Array(array) => array.iter().map(|item| json(item.get_ref(), levels)).collect::<Option<_>>()?,
        DeValue::Table(table) => {
            let entry = |(key, value): (&Spanned<Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
                Some((key.get_ref().to_string(), json(value.get_ref(), levels)?))
            };
            serde_json::Value::Object(table.iter().map(entry).collect::<Option<_>>()?)
        }
    })
}

/// A text of the user's in a message: quoted, on one line, and not long.
pub(super) fn short(text: &str) -> String {
    let cut = cut(text);
    format!("{cut:?}{}", if cut.len() < text.len() { "…" } else { "" })
}

fn cut(text: &str) -> &str {
    const SHOWN: usize = 40;
    text.char_indices().nth(SHOWN).map_or(text, |(end, _)| &text[..end])
}
