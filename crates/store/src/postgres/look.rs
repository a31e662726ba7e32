//! Looks: questions about the state as it is committed, and the way back to who asks.

use std::panic::{AssertUnwindSafe, catch_unwind};

use punctual_kernel::state::State;
use tokio::sync::oneshot;

use super::fault::Fault;
use crate::error::{Result, StoreError};
use crate::panics::panic_text;

/// What is asked of the state besides commands.
pub(super) enum Question {
    /// Somebody wants to look at it.
    Look(Box<dyn Look>),
    /// Somebody wants the snapshot to be as far as the journal is.
    Save(oneshot::Sender<()>),
}

/// A look at the state.
pub(super) trait Look: Send {
    /// Looks, and tells the caller what is there.
    fn look(self: Box<Self>, state: &State);

    /// Tells the caller why nothing can be seen.
    fn fail(self: Box<Self>, fault: Fault);
}

/// A look that answers with a value.
pub(super) struct AskedLook<T, F> {
    pub(super) doing: &'static str,
    pub(super) look: F,
    pub(super) reply: oneshot::Sender<Result<T>>,
}

impl<T: Send, F: FnMut(&State) -> T + Send> Look for AskedLook<T, F> {
    fn look(self: Box<Self>, state: &State) {
        let AskedLook { doing, mut look, reply } = *self;
        // Whoever has gone away does not want to know.
        if reply.is_closed() {
            return;
        }
        // It changes nothing: whatever it was at when it panicked is as it was.
        let seen = catch_unwind(AssertUnwindSafe(|| look(state))).map_err(|panic| {
            let why = format!("a panic: {}", panic_text(panic.as_ref()));
            StoreError::Database { doing, source: why.into() }
        });
        drop(reply.send(seen));
    }

    fn fail(self: Box<Self>, fault: Fault) {
        drop(self.reply.send(Err(fault.while_doing(self.doing))));
    }
}
