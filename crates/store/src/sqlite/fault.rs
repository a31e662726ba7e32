//! Faults: what SQLite says, as what a caller can act on.

use punctual_core::journal::JournalError;
use rusqlite::ErrorCode;
use rusqlite::ffi;

use crate::columns::Damage;
use crate::error::{BoxError, StoreError};

/// What went wrong inside, before it is said what was being done.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A row that cannot be read as what it stands for.
    #[error("{0}")]
    Damaged(String),
    #[error("{0}")]
    Other(BoxError),
}

/// What follows from a fault for everything that comes behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    /// It concerns one command.
    Ordinary,
    /// There is no space: nothing was written, a later try may work.
    DiskFull,
    /// What is on the disk is unclear, or wrong: nothing more may be acknowledged.
    Fatal,
}

impl From<Damage> for Fault {
    fn from(damage: Damage) -> Fault {
        Fault::Damaged(damage.0)
    }
}

pub(super) type Done<T> = std::result::Result<T, Fault>;

impl Fault {
    pub(super) fn damaged(what: impl std::fmt::Display) -> Fault {
        Fault::Damaged(what.to_string())
    }

    pub(super) fn other(cause: impl Into<BoxError>) -> Fault {
        Fault::Other(cause.into())
    }

    pub(super) fn severity(&self) -> Severity {
        match self {
            Fault::Sql(error) => severity(error),
            Fault::Store(StoreError::DiskFull) => Severity::DiskFull,
            Fault::Store(error) if error.is_fatal() => Severity::Fatal,
            Fault::Damaged(_) => Severity::Fatal,
            Fault::Store(_) | Fault::Journal(_) | Fault::Other(_) => Severity::Ordinary,
        }
    }

    /// Whether the same again may work: somebody else has the file for a moment, or there is no memory left.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, Fault::Sql(error) if is_passing(error))
    }

    /// The error for a caller who wanted something done.
    pub(super) fn while_doing(self, doing: &'static str) -> StoreError {
        match self {
            Fault::Store(error) => error,
            Fault::Journal(error) => StoreError::Journal(error),
            Fault::Damaged(what) => StoreError::Damaged { what },
            Fault::Other(source) => StoreError::Database { doing, source },
            Fault::Sql(error) => sql_error(error, doing),
        }
    }
}

fn sql_error(error: rusqlite::Error, doing: &'static str) -> StoreError {
    match error.sqlite_error_code() {
        _ if severity(&error) == Severity::DiskFull => StoreError::DiskFull,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Damaged { what: error.to_string() },
        Some(ErrorCode::SystemIoFailure) => StoreError::Broken { doing },
        _ if is_unreadable(&error) => StoreError::Damaged { what: error.to_string() },
        _ if is_passing(&error) => StoreError::Unavailable { doing, source: Box::new(error) },
        _ => StoreError::Database { doing, source: Box::new(error) },
    }
}

fn is_passing(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::OutOfMemory))
}

/// Whether a column has something else than the schema lets it have.
fn is_unreadable(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..)
    )
}

fn severity(error: &rusqlite::Error) -> Severity {
    let Some(cause) = error.sqlite_error() else {
        return if is_unreadable(error) { Severity::Fatal } else { Severity::Ordinary };
    };
    match (cause.code, cause.extended_code) {
        (ErrorCode::DiskFull, _) => Severity::DiskFull,
        // The index of the write-ahead log could not grow: that, too, is only space.
        (ErrorCode::SystemIoFailure, ffi::SQLITE_IOERR_SHMSIZE) => Severity::DiskFull,
        (ErrorCode::SystemIoFailure | ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase, _) => Severity::Fatal,
        _ => Severity::Ordinary,
    }
}
