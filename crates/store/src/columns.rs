//! Columns: numbers and JSON as tables have them, in every dialect.

use punctual_core::run::{Run, RunState};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What a row says cannot be read as what it stands for.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Damage(pub(crate) String);

/// Refuses what the life of a run does not come to.
pub(crate) fn check_run(run: &Run) -> Result<(), Damage> {
    let is_running = matches!(run.state, RunState::Running { .. });
    let contradiction = if run.started_at.is_some() != is_running {
        "the start of its attempt"
    } else if run.ended_at.is_some() != run.state.is_final() {
        "its end"
    } else if is_running && !run.has_started {
        "whether its work has begun"
    } else if run.owner().is_some() && run.state.tally().attempt == 0 {
        "its attempts"
    } else {
        return Ok(());
    };
    Err(Damage(format!("run {} is {}, which {contradiction} contradicts", run.id, run.state.name())))
}

/// A number without a sign, in a column that has one: the bits are the same.
pub(crate) fn signed(number: u64) -> i64 {
    number.cast_signed()
}

/// A count or an epoch. None comes near the end of the numbers.
pub(crate) fn count(number: i64) -> u64 {
    number.max(0).cast_unsigned()
}

pub(crate) fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("what is stored is plain data")
}

pub(crate) fn from_json<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, Damage> {
    serde_json::from_str(text).map_err(|error| Damage(format!("{what} cannot be read: {error}")))
}

/// The one word that stands for a value, as JSON has it.
pub(crate) fn to_word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => unreachable!("a word stands for it in JSON"),
    }
}

pub(crate) fn from_word<T: DeserializeOwned>(word: &str, what: &str) -> Result<T, Damage> {
    let deserializer = serde::de::value::StrDeserializer::<serde::de::value::Error>::new(word);
    T::deserialize(deserializer).map_err(|error| Damage(format!("{what} cannot be read: {error}")))
}
