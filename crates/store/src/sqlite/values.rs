//! Values: times, ids and JSON as columns have them.

use jiff::Timestamp;
use punctual_core::time::zone::floor_microsecond;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::fault::{Done, Fault};

/// A time, in microseconds. The end of time is the one instant that is no whole microsecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At(pub(super) Timestamp);

impl ToSql for At {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        micros(self.0).map(ToSqlOutput::from).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
    }
}

impl FromSql for At {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<At> {
        let micros = value.as_i64()?;
        if micros == i64::MAX {
            return Ok(At(Timestamp::MAX));
        }
        Timestamp::from_microsecond(micros).map(At).map_err(FromSqlError::other)
    }
}

/// The microseconds of a time, if it is whole ones: a clock that tells finer ones would be read back as another.
pub(super) fn micros(at: Timestamp) -> Result<i64, String> {
    if at == Timestamp::MAX {
        return Ok(i64::MAX);
    }
    if at.subsec_nanosecond() % 1_000 != 0 {
        return Err(format!("{at} is finer than a microsecond"));
    }
    Ok(at.as_microsecond())
}

/// The last whole microsecond up to a time: what is compared with times of the store may be finer than they.
pub(super) fn micros_up_to(at: Timestamp) -> i64 {
    micros(floor_microsecond(at)).unwrap_or(i64::MAX)
}

/// The last whole microsecond before a time.
pub(super) fn micros_before(at: Timestamp) -> i64 {
    let is_whole = micros(at).is_ok();
    micros_up_to(at).saturating_sub(i64::from(is_whole))
}

/// An id, as 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Id(pub(super) Uuid);

impl ToSql for Id {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Blob(self.0.as_bytes())))
    }
}

impl FromSql for Id {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Id> {
        Uuid::from_slice(value.as_blob()?).map(Id).map_err(FromSqlError::other)
    }
}

/// A number without a sign, in a column that has one: the bits are the same.
pub(super) fn signed(number: u64) -> i64 {
    number.cast_signed()
}

/// A count or an epoch. None comes near the end of the numbers.
pub(super) fn count(number: i64) -> u64 {
    number.max(0).cast_unsigned()
}

pub(super) fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("what is stored is plain data")
}

pub(super) fn from_json<T: DeserializeOwned>(text: &str, what: &str) -> Done<T> {
    serde_json::from_str(text).map_err(|error| Fault::damaged(format!("{what} cannot be read: {error}")))
}

/// The one word that stands for a value, as JSON has it.
pub(super) fn to_word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => unreachable!("a word stands for it in JSON"),
    }
}

pub(super) fn from_word<T: DeserializeOwned>(word: &str, what: &str) -> Done<T> {
    let deserializer = serde::de::value::StrDeserializer::<serde::de::value::Error>::new(word);
    T::deserialize(deserializer).map_err(|error| Fault::damaged(format!("{what} cannot be read: {error}")))
}
