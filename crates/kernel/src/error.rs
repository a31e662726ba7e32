//! Why the kernel refuses a command.

use punctual_core::journal::JournalError;

use crate::types::Answered;

/// The result of a command.
pub type Result<T, E = KernelError> = std::result::Result<T, E>;

/// Why a command was refused. Nothing of it was written.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// What the command is about does not exist.
    #[error("{what} {id} does not exist")]
    NotFound {
        /// The kind of thing.
        what: &'static str,
        /// Its id.
        id: String,
    },
    /// The node's lease has ended: it has to join again, as another one.
    #[error("this node's lease has ended")]
    LeaseEnded,
    /// The same request was carried out before, under the same key.
    #[error("this request was carried out at {}", .0.at)]
    Answered(Answered),
    /// An entry cannot have happened in this state.
    #[error(transparent)]
    Journal(#[from] JournalError),
}
