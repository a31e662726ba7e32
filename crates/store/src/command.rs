//! Commands: what callers want written, and the way back to them.

use tokio::sync::oneshot;

use crate::error::{Result, StoreError};
use punctual_kernel::transaction::{Needs, Transaction};

/// Something to be written. It may be done more than once, if its transaction has to be repeated; the last time counts.
pub(crate) trait Command: Send {
    /// What is being done.
    fn doing(&self) -> &'static str;

    /// What has to be read before.
    fn needs(&self) -> &Needs;

    /// Does it.
    fn work(&mut self, writing: &mut Transaction<'_>);

    /// Tells the caller that it is written, or why not.
    fn answer(self: Box<Self>, written: Result<()>);
}

/// A command that answers with a value.
pub(crate) struct Asked<T, F> {
    pub(crate) doing: &'static str,
    pub(crate) needs: Needs,
    pub(crate) work: F,
    pub(crate) result: Option<Result<T>>,
    pub(crate) reply: oneshot::Sender<Result<T>>,
}

impl<T: Send, F: FnMut(&mut Transaction<'_>) -> punctual_kernel::Result<T> + Send> Command for Asked<T, F> {
    fn doing(&self) -> &'static str {
        self.doing
    }

    fn needs(&self) -> &Needs {
        &self.needs
    }

    fn work(&mut self, writing: &mut Transaction<'_>) {
        self.result = Some((self.work)(writing).map_err(StoreError::from));
    }

    fn answer(self: Box<Self>, written: Result<()>) {
        let Asked { doing, result, reply, .. } = *self;
        let never = || Err(StoreError::Unavailable { doing, source: "the store has stopped".into() });
        // Whoever has gone away does not want to know.
        drop(reply.send(written.and_then(|()| result.unwrap_or_else(never))));
    }
}
