//! Commands: what callers want written, and the way back to them.

use tokio::sync::oneshot;

use crate::error::{Result, StoreError};
use crate::writing::{Needs, Writing};

/// Something to be written. It may be done more than once, if its transaction has to be repeated; the last time counts.
pub(super) trait Command: Send {
    /// What is being done.
    fn doing(&self) -> &'static str;

    /// What has to be read before.
    fn needs(&self) -> &Needs;

    /// Does it.
    fn work(&mut self, writing: &mut Writing<'_>);

    /// Tells the caller that it is written, or why not.
    fn answer(self: Box<Self>, written: Result<()>);
}

/// A command that answers with a value.
pub(super) struct Asked<T, F> {
    pub(super) doing: &'static str,
    pub(super) needs: Needs,
    pub(super) work: F,
    pub(super) result: Option<Result<T>>,
    pub(super) reply: oneshot::Sender<Result<T>>,
}

impl<T: Send, F: FnMut(&mut Writing<'_>) -> Result<T> + Send> Command for Asked<T, F> {
    fn doing(&self) -> &'static str {
        self.doing
    }

    fn needs(&self) -> &Needs {
        &self.needs
    }

    fn work(&mut self, writing: &mut Writing<'_>) {
        self.result = Some((self.work)(writing));
    }

    fn answer(self: Box<Self>, written: Result<()>) {
        let Asked { doing, result, reply, .. } = *self;
        let never = || Err(StoreError::Unavailable { doing, source: "the store has stopped".into() });
        // Whoever has gone away does not want to know.
        drop(reply.send(written.and_then(|()| result.unwrap_or_else(never))));
    }
}
