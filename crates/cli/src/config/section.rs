//! Reading a table of the file: every key is known, and no problem stops the reading.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::error::{Place, Problems};
use super::keys::Keys;
use super::value::{Value, short};
use crate::suggest::nearest;

/// A table whose keys are all known.
pub(super) struct Section<'a> {
    problems: &'a Problems<'a>,
    place: Place,
    path: String,
    keys: &'static Keys,
    values: BTreeMap<&'static str, Value<'a>>,
}

impl<'a> Section<'a> {
    /// The outermost table.
    pub(super) fn top(problems: &'a Problems<'a>, table: &'a DeTable<'a>, keys: &'static Keys) -> Section<'a> {
        let mut section = Section::absent(problems, "", keys);
        section.fill(table);
        section
    }

    /// A table below the outermost.
    pub(super) fn of(value: &Value<'a>, table: &'a DeTable<'a>, keys: &'static Keys) -> Section<'a> {
        let mut section = Section::absent(value.problems, &value.path, keys);
        section.place = value.place.clone();
        section.fill(table);
        section
    }

    /// A table that is not there: all defaults.
    pub(super) fn absent(problems: &'a Problems<'a>, path: &str, keys: &'static Keys) -> Section<'a> {
        Section { problems, place: Place::Nowhere, path: path.to_owned(), keys, values: BTreeMap::new() }
    }

    fn fill(&mut self, table: &'a DeTable<'a>) {
        for (key, raw) in table {
            let given = key.get_ref();
            let known = self.keys.get(&snake_case(given)).map(|key| key.name);
            let path = joined(&self.path, known.unwrap_or(given));
            let place = Place::File(key.span());
            let Some(name) = known else {
                self.problems.add(&place, &path, "this key is unknown", self.instead_of(given));
                continue;
            };
            let value = Value { problems: self.problems, place: Place::File(raw.span()), path, raw: raw.get_ref() };
            if let Some(other) = self.values.insert(name, value) {
                let problem = "this key is given twice, in two spellings";
                self.problems.add(&place, &other.path, problem, format!("keep {name} alone"));
            }
        }
    }

    fn instead_of(&self, given: &str) -> String {
        let names = self.keys.keys.iter().map(|key| key.name);
        match nearest(&snake_case(given), names.clone()) {
            Some(name) => format!("did you mean {name}?"),
            None => format!("use one of {}", names.collect::<Vec<_>>().join(", ")),
        }
    }

    /// Puts the value of an environment variable in the place of the file's.
    pub(super) fn overrule(&mut self, name: &'static str, variable: &str, raw: &'a DeValue<'a>) {
        let (place, path) = (Place::Variable(variable.to_owned()), joined(&self.path, name));
        self.values.insert(name, Value { problems: self.problems, place, path, raw });
    }

    /// The value of a key, if it was given.
    pub(super) fn get(&self, name: &str) -> Option<&Value<'a>> {
        debug_assert!(self.keys.get(name).is_some(), "{name} is not a key of {}", self.path);
        self.values.get(name)
    }

    /// The value of a key that must be given.
    pub(super) fn require(&self, name: &str, example: &str) -> Option<&Value<'a>> {
        let value = self.get(name);
        if value.is_none() {
            self.refuse(format!("{name} is missing"), format!("add {name}, like {name} = {example}"));
        }
        value
    }

    /// Reports a problem with the table as a whole.
    pub(super) fn refuse(&self, problem: impl Into<String>, fix: impl Into<String>) {
        self.problems.add(&self.place, &self.path, problem, fix);
    }

    /// Has a type read the table by itself, with `more` in place of what it does not say.
    pub(super) fn deserialize<T: DeserializeOwned>(&self, more: &[(&'static str, &str)]) -> Option<T> {
        let span = |place: &Place| match place {
            Place::File(span) => span.clone(),
            Place::Variable(_) | Place::Nowhere => 0..0,
        };
        let mut table = DeTable::new();
        for (name, text) in more {
            let text = DeValue::String((*text).into());
            table.insert(Spanned::new(span(&self.place), (*name).into()), Spanned::new(span(&self.place), text));
        }
        for (name, value) in &self.values {
            let span = span(&value.place);
            table.remove(*name);
            table.insert(Spanned::new(span.clone(), (*name).into()), Spanned::new(span, times_as_texts(value.raw)));
        }
        let whole = Spanned::new(span(&self.place), DeValue::Table(table));
        T::deserialize(ValueDeserializer::from(whole)).map_err(|error| self.refuse_toml(&error)).ok()
    }

    fn refuse_toml(&self, error: &toml::de::Error) {
        let place = error.span().map_or_else(|| self.place.clone(), Place::File);
        // Our own types bring the remedy with them.
        let (problem, fix) = error.message().split_once("; ").unwrap_or((error.message(), "see docs/configuration.md"));
        self.problems.add(&place, &self.path, problem, fix);
    }
}

/// Dates and times of TOML's own as texts, which is how our types read them.
fn times_as_texts<'a>(raw: &DeValue<'a>) -> DeValue<'a> {
    let spanned = |raw: &Spanned<DeValue<'a>>| Spanned::new(raw.span(), times_as_texts(raw.get_ref()));
    match raw {
        DeValue::Datetime(datetime) => DeValue::String(datetime.to_string().into()),
        DeValue::Array(array) => DeValue::Array(array.iter().map(spanned).collect()),
        DeValue::Table(table) => {
            DeValue::Table(table.iter().map(|(key, value)| (key.clone(), spanned(value))).collect())
        }
        other => other.clone(),
    }
}

/// `leaseDurationSeconds` and `lease-duration-seconds` as `lease_duration_seconds`.
pub(super) fn snake_case(key: &str) -> String {
    let mut snake = String::new();
    for next in key.chars() {
        match next {
            '-' => snake.push('_'),
            next if next.is_ascii_uppercase() => {
                if !snake.is_empty() && !snake.ends_with('_') {
                    snake.push('_');
                }
                snake.push(next.to_ascii_lowercase());
            }
            next => snake.push(next),
        }
    }
    snake
}

/// A key below a path, quoted where it could be read as more than one.
pub(super) fn joined(path: &str, key: &str) -> String {
    let is_plain = !key.is_empty() && key.chars().all(|next| next.is_alphanumeric() || "_-".contains(next));
    let key = if is_plain { Cow::Borrowed(key) } else { Cow::Owned(short(key)) };
    if path.is_empty() { key.into_owned() } else { format!("{path}.{key}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_all_spellings_are_one() {
        for spelling in ["lease_duration_seconds", "lease-duration-seconds", "leaseDurationSeconds"] {
            assert_eq!(snake_case(spelling), "lease_duration_seconds");
        }
        assert_eq!(snake_case("TZDB"), "t_z_d_b");
    }
}
