//! What went wrong in an attempt, and whether another one may help.

use std::time::Duration;

use punctual_core::Elapsed;
use punctual_core::run::FailureCode;

/// A failure of an attempt, before it is told to the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    /// A short word for programs.
    pub(super) word: &'static str,
    pub(super) message: String,
    pub(super) code: FailureCode,
    pub(super) is_retryable: bool,
    pub(super) retry_after: Option<Elapsed>,
}

impl Trouble {
    /// Trouble that another try may get over.
    pub(super) fn passing(word: &'static str, message: impl Into<String>) -> Trouble {
        Trouble { word, message: message.into(), code: FailureCode::Error, is_retryable: true, retry_after: None }
    }

    /// Trouble that stays until somebody does something.
    pub(super) fn lasting(word: &'static str, message: impl Into<String>) -> Trouble {
        Trouble { is_retryable: false, ..Trouble::passing(word, message) }
    }

    /// The same, when nothing was asked of the server at all.
    pub(super) fn before_the_start(self) -> Trouble {
        Trouble { code: FailureCode::NotStarted, ..self }
    }

    /// An answer that did not come.
    pub(super) fn lost(error: &reqwest::Error, url: &reqwest::Url, answer_max: Duration) -> Trouble {
        let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
        let cause = causes.last().map(|cause| format!(": {cause}")).unwrap_or_default();
        if error.is_connect() {
            return Trouble::passing("unreachable", format!("no connection to {url}{cause}"));
        }
        if error.is_timeout() {
            let message = format!("no answer of {url} within {answer_max:?}; what it was asked may be done");
            return Trouble::passing("no_answer", message);
        }
        Trouble::passing("answer_lost", format!("the answer of {url} was lost{cause}; what it was asked may be done"))
    }
}
