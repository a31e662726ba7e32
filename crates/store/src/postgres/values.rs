//! Values: times as columns have them.

use bytes::{BufMut, BytesMut};
use jiff::{SignedDuration, Timestamp};
use punctual_core::storable::EARLIEST;
use punctual_core::time::zone::{at_microsecond, floor_microsecond};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

use crate::error::BoxError;

/// The instant that PostgreSQL counts microseconds from.
const EPOCH: i64 = 946_684_800_000_000;

/// A time, in microseconds. The end of time is the one instant that is no whole microsecond: `infinity`; its beginning, which
/// PostgreSQL cannot count to, is `-infinity`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct At(pub(super) Timestamp);

impl At {
    /// The last whole microsecond up to a time: what is compared with times of the store may be finer than they.
    pub(super) fn up_to(at: Timestamp) -> At {
        // Nothing that is kept lies before the earliest: whatever it is compared with, it is earlier.
        let earlier = (at < EARLIEST).then_some(Timestamp::MIN);
        At(earlier.unwrap_or_else(|| if at == Timestamp::MAX { at } else { floor_microsecond(at) }))
    }

    /// The last whole microsecond before a time.
    pub(super) fn before(at: Timestamp) -> At {
        let floor = At::up_to(at).0;
        let is_whole = floor == at && at != Timestamp::MAX && at != Timestamp::MIN;
        At(if is_whole { floor.checked_sub(SignedDuration::from_micros(1)).unwrap_or(Timestamp::MIN) } else { floor })
    }
}

impl ToSql for At {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, BoxError> {
        if self.0 == Timestamp::MAX {
            out.put_i64(i64::MAX);
            return Ok(IsNull::No);
        }
        if self.0 == Timestamp::MIN {
            out.put_i64(i64::MIN);
            return Ok(IsNull::No);
        }
        if self.0.subsec_nanosecond() % 1_000 != 0 {
            return Err(format!("{} is finer than a microsecond", self.0).into());
        }
        out.put_i64(self.0.as_microsecond() - EPOCH);
        Ok(IsNull::No)
    }

    accepts!(TIMESTAMPTZ);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for At {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<At, BoxError> {
        let micros = i64::from_be_bytes(raw.try_into()?);
        if micros == i64::MAX {
            return Ok(At(Timestamp::MAX));
        }
        if micros == i64::MIN {
            return Ok(At(Timestamp::MIN));
        }
        let at = at_microsecond(micros.saturating_add(EPOCH));
        at.map(At).ok_or_else(|| format!("{micros} microseconds since 2000 are no time").into())
    }

    accepts!(TIMESTAMPTZ);
}

/// As many rows as the caller can take in, in a column's own numbers.
pub(super) fn rows_max(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
