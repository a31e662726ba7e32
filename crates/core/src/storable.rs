//! Storable values: what every store keeps exactly as it is given. Pure.
//!
//! In: values that come from agents, over the API or from the configuration. Out: the same, brought to what is kept, or what about
//! them cannot be. A text has no NUL character, which PostgreSQL does not take; an instant is a whole microsecond of the years
//! 1 to 9999; JSON is nested [`DEPTH_MAX`] levels deep at most, so that it can be read again inside of what it is stored in.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::time::zone::floor_microsecond;

/// What a NUL character is shown as.
pub const NUL_SHOWN: &str = "\u{2400}";

/// Lists and objects inside each other, at most.
pub const DEPTH_MAX: usize = 64;

/// The first instant that is kept: the beginning of the year 1 in UTC.
pub const EARLIEST: Timestamp = Timestamp::constant(-62_135_596_800, 0);

/// What stands in the place of JSON that is nested too deep.
const TOO_DEEP: &str = "… (nested too deep to be kept)";

/// Why a value cannot be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unstorable {
    /// A text, or the name of a field, has a NUL character.
    #[error("it holds a NUL character, which no text may")]
    Nul,
    /// Lists and objects lie too deep inside each other.
    #[error("it is nested deeper than {DEPTH_MAX} levels")]
    TooDeep,
}

/// A text with its NUL characters made visible.
pub fn text(text: String) -> String {
    if text.contains('\0') { text.replace('\0', NUL_SHOWN) } else { text }
}

/// JSON with its NUL characters made visible, cut off where it is nested too deep.
pub fn json(value: Value) -> Value {
    json_within(value, DEPTH_MAX)
}

/// An object with its NUL characters made visible, cut off where it is nested too deep.
pub fn object(fields: Map<String, Value>) -> Map<String, Value> {
    object_within(fields, DEPTH_MAX)
}

fn json_within(value: Value, depth: usize) -> Value {
    match value {
        Value::Array(_) | Value::Object(_) if depth == 0 => Value::String(TOO_DEEP.to_owned()),
        Value::String(given) => Value::String(text(given)),
        Value::Array(values) => Value::Array(values.into_iter().map(|value| json_within(value, depth - 1)).collect()),
        Value::Object(fields) => Value::Object(object_within(fields, depth)),
        other => other,
    }
}

fn object_within(fields: Map<String, Value>, depth: usize) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (text(name), json_within(value, depth.saturating_sub(1)))).collect()
}

/// An instant, to the microsecond and within the years that are kept: one outside becomes the nearest.
pub fn instant(at: Timestamp) -> Timestamp {
    floor_microsecond(at).max(EARLIEST)
}

/// Whether an instant lies in the years that are kept.
pub fn is_kept(at: Timestamp) -> bool {
    EARLIEST <= at
}

/// What is the first to be wrong with JSON, and where: a path like `inputs.list[3]`, empty for the value itself.
pub fn find_unstorable(value: &Value) -> Option<(String, Unstorable)> {
    find_within(value, DEPTH_MAX).map(|(path, problem)| (path.concat().trim_start_matches('.').to_owned(), problem))
}

fn find_within(value: &Value, depth: usize) -> Option<(Vec<String>, Unstorable)> {
    let inside = |(mut path, problem): (Vec<String>, Unstorable), step: String| {
        path.insert(0, step);
        (path, problem)
    };
    match value {
        Value::String(text) => text.contains('\0').then_some((vec![], Unstorable::Nul)),
        Value::Array(_) | Value::Object(_) if depth == 0 => Some((vec![], Unstorable::TooDeep)),
        Value::Array(values) => values
            .iter()
            .enumerate()
            .find_map(|(index, value)| find_within(value, depth - 1).map(|found| inside(found, format!("[{index}]")))),
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let step = format!(".{}", name.replace('\0', NUL_SHOWN));
            if name.contains('\0') {
                return Some((vec![step], Unstorable::Nul));
            }
            find_within(value, depth - 1).map(|found| inside(found, step))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(1), |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({ "a": inner }) })
    }

    #[test]
    fn nul_is_made_visible_wherever_it_hides() {
        assert_eq!(text("a\0b".to_owned()), "a\u{2400}b");
        assert_eq!(json(json!({"k\0": ["\0", {"x": "a\0"}], "n": 1.5})), json!({"k␀": ["␀", {"x": "a␀"}], "n": 1.5}));
    }

    #[test]
    fn what_is_nested_too_deep_is_cut_off_and_can_be_stored() {
        assert_eq!(json(nested(DEPTH_MAX)), nested(DEPTH_MAX));
        for levels in [DEPTH_MAX + 1, DEPTH_MAX + 2, 120] {
            let cut = json(nested(levels));
            assert_ne!(cut, nested(levels));
            assert!(cut.to_string().contains("too deep"), "{cut}");
            assert_eq!(find_unstorable(&cut), None);
        }
    }

    #[test]
    fn instants_are_whole_microseconds_of_the_years_that_are_kept() {
        for (given, kept) in [
            ("2027-01-01T00:00:00.123456789Z", "2027-01-01T00:00:00.123456Z"),
            ("1960-01-01T00:00:00.0000009Z", "1960-01-01T00:00:00Z"),
            ("-009999-06-01T00:00:00Z", "0001-01-01T00:00:00Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
            ("9999-12-30T21:59:59.9999999Z", "9999-12-30T21:59:59.999999Z"),
        ] {
            let given: Timestamp = given.parse().unwrap();
            assert_eq!(instant(given).to_string(), kept);
        }
        assert_eq!(instant(Timestamp::MAX).to_string(), "9999-12-30T22:00:00.999999Z");
    }

    #[test]
    fn what_cannot_be_kept_is_told_with_its_place() {
        let found = |value: Value| find_unstorable(&value);
        assert_eq!(found(json!({"a": [1, {"b": "x"}]})), None);
        assert_eq!(found(json!("a\0")), Some((String::new(), Unstorable::Nul)));
        assert_eq!(found(json!({"a": [1, {"b": "x\0"}]})), Some(("a[1].b".to_owned(), Unstorable::Nul)));
        assert_eq!(found(json!({"a": {"b\0": 1}})), Some(("a.b\u{2400}".to_owned(), Unstorable::Nul)));
        assert_eq!(found(nested(DEPTH_MAX + 1)).unwrap().1, Unstorable::TooDeep);
    }
}
