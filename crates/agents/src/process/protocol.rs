//! What server and supervisor say to each other.
//!
//! One socket per run, which is the supervisor's standard input. The server writes one line, a [`Start`], and then
//! orders, a line each; the supervisor writes one [`Told`] and ends. Both are the same program, of the same version.
//!
//! Between the stages of the supervisor: the first writes a [`Work`] and closes its side; the second answers
//! [`READY`] right before it becomes the work, and a [`Refusal`] if it cannot. Becoming the work closes the socket.

use std::ffi::OsString;
use std::io;

use serde::{Deserialize, Serialize};

use super::limits::Limits;

/// Order: ask the work to stop, and kill it when its grace is over.
pub(super) const TERM: &str = "term";
/// Order: kill it at once.
pub(super) const KILL: &str = "kill";

/// The longest [`Start`]: the context of a run, escaped, and everything around it.
pub(super) const START_MAX: usize = 64 * 1024 * 1024;
/// The longest [`Told`].
pub(super) const TOLD_MAX: u64 = 64 * 1024;
/// What the second stage says right before it becomes the work.
pub(super) const READY: &str = "ready\n";

/// What the supervisor is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Start {
    /// How long the work has between being asked to stop and being killed.
    pub(super) grace_ms: u64,
    pub(super) work: Work,
}

/// What the second stage is to become.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Work {
    /// The program and its arguments.
    pub(super) command: Vec<String>,
    pub(super) folder: Option<OsString>,
    /// The whole environment.
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) limits: Limits,
    /// The run context, as the work reads it.
    pub(super) context: String,
}

/// How it went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Told {
    /// The work never began.
    NotStarted(Refusal),
    /// It began, and is over.
    Ended(Ended),
}

/// Why the work never began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Refusal {
    /// What failed, to follow `could not`.
    pub(super) doing: String,
    /// Why, in the words of the operating system.
    pub(super) cause: String,
    /// The number of the system's error, if it was one.
    pub(super) errno: Option<i32>,
}

/// How the work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ended {
    /// How its first process ended.
    pub(super) exit: Exit,
    /// Whether that process had been told to end before it did.
    pub(super) was_stopped: bool,
    /// How many processes could not be ended, which only the kernel can be the reason for.
    pub(super) left: usize,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Exit {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Refusal {
    /// What could not be done, and why.
    pub(super) fn new(doing: impl Into<String>, error: impl Into<io::Error>) -> Refusal {
        let error = error.into();
        Refusal { doing: doing.into(), cause: error.to_string(), errno: error.raw_os_error() }
    }
}
