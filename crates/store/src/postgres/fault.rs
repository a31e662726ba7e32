//! Faults: what PostgreSQL says, as what a caller can act on.

use punctual_core::journal::JournalError;
use tokio_postgres::error::SqlState;

use crate::columns::Damage;
use crate::error::{BoxError, StoreError};

/// What went wrong inside, before it is said what was being done.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("{}", in_words(.0))]
    Sql(#[from] tokio_postgres::Error),
    #[error("no connection: {}", pool_in_words(.0))]
    Pool(#[from] deadpool_postgres::PoolError),
    #[error("no answer within {0} seconds")]
    Slow(u64),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A row that cannot be read as what it stands for.
    #[error("{0}")]
    Damaged(String),
    /// An entry that this node has read is not there any more, or is another one.
    #[error("entry {0} of the journal is not what it was")]
    Lost(u64),
    /// Retention has let go of an entry behind which this node was to go on.
    #[error("entry {0} of the journal is not kept any more")]
    Behind(u64),
    /// Others have written more than is read while they wait for the pen: this node goes on without it.
    #[error("too much was written after entry {0} of the journal to be read while others wait")]
    Lags(u64),
    /// What another command of the same transaction was told, when the moment was to blame.
    #[error("{0}")]
    Shared(String),
    /// A command has panicked: the failure is its own, and what it has changed in memory is thrown away.
    #[error("a panic: {0}")]
    Panicked(String),
    /// The rows are not what the mirror says: somebody else has written them.
    #[error("the rows have changed under this node's hands: {0}")]
    Differs(String),
}

pub(super) type Done<T> = std::result::Result<T, Fault>;

impl From<Damage> for Fault {
    fn from(damage: Damage) -> Fault {
        Fault::Damaged(damage.0)
    }
}

impl Fault {
    /// Whether what this process knows is in doubt: it has to be read again.
    pub(super) fn is_about_state(&self) -> bool {
        match self {
            Fault::Journal(_) | Fault::Damaged(_) | Fault::Panicked(_) | Fault::Differs(_) => true,
            Fault::Lost(_) | Fault::Behind(_) => true,
            // Rows that are there already.
            Fault::Sql(error) => error.code().is_some_and(|code| matches!(&code.code()[..2], "23" | "40")),
            Fault::Pool(_) | Fault::Slow(_) | Fault::Store(_) | Fault::Shared(_) | Fault::Lags(_) => false,
        }
    }

    /// Whether the same again may work, soon: nobody is to blame but the moment.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Fault::Sql(error) => error.code().map_or_else(|| is_lost(error), is_passing),
            Fault::Pool(_) | Fault::Slow(_) | Fault::Shared(_) | Fault::Differs(_) => true,
            Fault::Lost(_) | Fault::Behind(_) | Fault::Lags(_) => true,
            Fault::Store(_) | Fault::Journal(_) | Fault::Damaged(_) | Fault::Panicked(_) => false,
        }
    }

    /// Whether a statement took longer than it may, or found no connection in time.
    pub(super) fn is_cut_off(&self) -> bool {
        match self {
            Fault::Sql(error) => error.code() == Some(&SqlState::QUERY_CANCELED),
            Fault::Pool(deadpool_postgres::PoolError::Timeout(deadpool_postgres::TimeoutType::Wait)) => true,
            _ => false,
        }
    }

    /// Whether it is not known what the server made of what it was sent last.
    pub(super) fn is_unclear(&self) -> bool {
        match self {
            Fault::Sql(error) => error.code().is_none_or(|code| code.code().starts_with("57P")),
            Fault::Slow(_) => true,
            _ => false,
        }
    }

    /// The same, for one more who is told.
    pub(super) fn again(&self) -> Fault {
        match self {
            Fault::Damaged(what) => Fault::Damaged(what.clone()),
            fault if fault.is_passing() => Fault::Shared(fault.to_string()),
            fault => StoreError::Database { doing: "looking", source: fault.to_string().into() }.into(),
        }
    }

    /// The error for a caller who wanted something done.
    pub(super) fn while_doing(self, doing: &'static str) -> StoreError {
        let is_passing = self.is_passing();
        match self {
            Fault::Store(error) => error,
            Fault::Journal(error) => StoreError::Journal(error),
            Fault::Damaged(what) => StoreError::Damaged { what },
            Fault::Sql(error) if error.code() == Some(&SqlState::DISK_FULL) => StoreError::DiskFull,
            // In words, and without the error that has the same words again: a chain of causes tells each once.
            fault if is_passing => StoreError::Unavailable { doing, source: fault.to_string().into() },
            fault => StoreError::Database { doing, source: fault.to_string().into() },
        }
    }
}

/// Whether the connection is gone, or never was.
fn is_lost(error: &tokio_postgres::Error) -> bool {
    use std::error::Error;
    error.is_closed() || error.source().is_none_or(|source| source.is::<std::io::Error>())
}

/// Codes that a moment explains.
fn is_passing(code: &SqlState) -> bool {
    // Connections that fail, rollbacks, a server short of something, an operator at work, a standby, a disk of the server.
    let class = &code.code()[..2];
    matches!(class, "08" | "40" | "53" | "57" | "58") && *code != SqlState::DISK_FULL
        || matches!(
            *code,
            SqlState::LOCK_NOT_AVAILABLE
                | SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
                | SqlState::READ_ONLY_SQL_TRANSACTION
                | SqlState::IN_FAILED_SQL_TRANSACTION
                | SqlState::INVALID_SQL_STATEMENT_NAME
        )
}

/// Why there is no connection.
fn pool_in_words(error: &deadpool_postgres::PoolError) -> BoxError {
    match error {
        deadpool_postgres::PoolError::Backend(error) => in_words(error),
        other => other.to_string().into(),
    }
}

/// What the server said, or what the connection came to.
fn in_words(error: &tokio_postgres::Error) -> BoxError {
    match error.as_db_error() {
        Some(said) => format!("{} ({})", said.message(), said.code().code()).into(),
        None => {
            let cause = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
            format!("{error}{cause}").into()
        }
    }
}
