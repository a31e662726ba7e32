//! What can go wrong in a store.

use punctual_core::RunId;
use punctual_core::journal::JournalError;
use punctual_kernel::KernelError;

use crate::requests::Answered;

/// A cause, whatever it is.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The result of asking a store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// A variant for each thing that a caller can act on, and one for the rest.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// What was asked for is not there.
    #[error("{what} {id} does not exist")]
    NotFound {
        /// The kind of thing.
        what: &'static str,
        /// Its id.
        id: String,
    },
    /// The run belongs to somebody else now.
    #[error("run {0} has moved on to a newer epoch")]
    StaleEpoch(RunId),
    /// The node's lease has ended and its runs have been taken away: it has to join again, as another one.
    #[error("this node's lease has ended")]
    LeaseEnded,
    /// Somebody else has changed it in the meantime: read again, decide again.
    #[error("{what} {id} has changed in the meantime")]
    Conflict {
        /// The kind of thing.
        what: &'static str,
        /// Its id.
        id: String,
    },
    /// The same request was carried out before, under the same key: nothing was written.
    #[error("this request was carried out at {}", .0.at)]
    Answered(Answered),
    /// The disk is full. Nothing was written; the same call may work later.
    #[error("the disk is full: free some space, writing goes on by itself")]
    DiskFull,
    /// Another server has the file.
    #[error("{file} is in use by another Punctual server{holder}; stop it first, or use another --database")]
    InUse {
        /// The file.
        file: String,
        /// Which one, if it says so.
        holder: String,
    },
    /// The address of the database cannot be used.
    #[error("the address of the database cannot be used: {why}")]
    BadAddress {
        /// What is wrong with it, or with what it leads to.
        why: String,
    },
    /// The file was written by a newer release.
    #[error("the database has schema {found}, this binary knows up to {known}: use the newer binary")]
    NewerSchema {
        /// What the file says.
        found: u32,
        /// What this binary knows.
        known: u32,
    },
    /// Nodes of an older release are at work on the database that is to be brought to a newer schema.
    #[error(
        "the schema is to be brought up to date, and nodes of an older release are at work: {names}; stop them first"
    )]
    OlderNodes {
        /// What they are called.
        names: String,
    },
    /// The file is not what it should be. Restore a backup.
    #[error("the database is damaged: {what}; keep a copy of it and restore a backup with `punctual restore`")]
    Damaged {
        /// What is wrong.
        what: String,
    },
    /// A write failed in a way that leaves unclear what is on the disk: nothing more is acknowledged, the process has to end.
    #[error("the disk failed while {doing}; nothing more is written until a restart")]
    Broken {
        /// What was being done.
        doing: &'static str,
    },
    /// A part of the store that has to run as long as the process has panicked: the process has to end.
    #[error("the {part} has panicked: {why}; this is a bug in Punctual")]
    Panicked {
        /// Which part.
        part: &'static str,
        /// What the panic says.
        why: String,
    },
    /// The database cannot be reached, or has no time. The same call may work later.
    #[error("the database does not answer while {doing}")]
    Unavailable {
        /// What was being done.
        doing: &'static str,
        /// Why.
        source: BoxError,
    },
    /// A read for the API found no place, or took longer than it may. Nothing is wrong: the same call may work later, and one
    /// that asks for less may work now.
    #[error("{doing} was given up: {why}")]
    Overloaded {
        /// What was being done.
        doing: &'static str,
        /// Why.
        why: &'static str,
    },
    /// An entry that cannot have happened.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Anything else.
    #[error("the database failed while {doing}")]
    Database {
        /// What was being done.
        doing: &'static str,
        /// Why.
        source: BoxError,
    },
}

impl StoreError {
    /// Whether the process has to end: what is on the disk is unclear, or belongs to another, or a part of the store is gone.
    pub fn is_fatal(&self) -> bool {
        matches!(self, StoreError::Broken { .. } | StoreError::Damaged { .. } | StoreError::Panicked { .. })
    }

    /// Whether the same call may work later, without anybody changing anything but the moment.
    pub fn is_passing(&self) -> bool {
        matches!(self, StoreError::Unavailable { .. } | StoreError::DiskFull | StoreError::Conflict { .. })
    }

    /// Whether the same call is refused again however often it is made: what it is to write is to blame, not the moment, the disk or
    /// the node's lease.
    pub fn is_lasting(&self) -> bool {
        match self {
            StoreError::NotFound { .. }
            | StoreError::StaleEpoch(_)
            | StoreError::Conflict { .. }
            | StoreError::Answered(_)
            | StoreError::Journal(_)
            | StoreError::Database { .. } => true,
            StoreError::LeaseEnded
            | StoreError::DiskFull
            | StoreError::InUse { .. }
            | StoreError::BadAddress { .. }
            | StoreError::NewerSchema { .. }
            | StoreError::OlderNodes { .. }
            | StoreError::Damaged { .. }
            | StoreError::Broken { .. }
            | StoreError::Panicked { .. }
            | StoreError::Overloaded { .. }
            | StoreError::Unavailable { .. } => false,
        }
    }
}

impl From<KernelError> for StoreError {
    fn from(refused: KernelError) -> StoreError {
        match refused {
            KernelError::NotFound { what, id } => StoreError::NotFound { what, id },
            KernelError::LeaseEnded => StoreError::LeaseEnded,
            KernelError::Answered(answered) => StoreError::Answered(answered),
            KernelError::Journal(error) => StoreError::from(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_to_be_written_is_to_blame_for_long() {
        let database = StoreError::Database { doing: "testing", source: "no such value".into() };
        let unavailable = StoreError::Unavailable { doing: "testing", source: "no connection".into() };
        let broken = StoreError::Broken { doing: "testing" };
        for (error, is_lasting) in [
            (database, true),
            (unavailable, false),
            (broken, false),
            (StoreError::DiskFull, false),
            (StoreError::LeaseEnded, false),
        ] {
            assert_eq!(error.is_lasting(), is_lasting, "{error}");
        }
    }
}
