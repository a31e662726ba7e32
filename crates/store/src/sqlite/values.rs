//! Values: times, ids and JSON as columns have them.

use jiff::Timestamp;
use punctual_core::time::zone::{at_microsecond, floor_microsecond};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use uuid::Uuid;

pub(super) use crate::columns::{count, from_json, from_word, signed, to_json};

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
        at_microsecond(micros).map(At).ok_or(FromSqlError::OutOfRange(micros))
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

/// As many rows as the caller can take in, in a column's own numbers.
pub(super) fn rows_max(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
