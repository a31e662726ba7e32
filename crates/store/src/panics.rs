//! Panics of what has to run as long as the process: its writers, its loops.
//!
//! A part that panics says why in an error that is fatal ([`StoreError::is_fatal`]), so that the process ends with that reason. A
//! panic in one command, one read or one request is that caller's own failure, and is caught where it is carried out.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt;

use crate::error::{Result, StoreError};

/// What a panic says.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("of no known kind").to_owned()
}

/// What a future comes to, or what it says when it panics. Whatever it was working on must not be used after a panic.
pub async fn catch_panic<T>(work: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|panic| panic_text(panic.as_ref()))
}

/// The first part of a store that has failed for good, shared by its parts and its callers.
#[derive(Debug, Clone, Default)]
pub(crate) struct FailedPart(Arc<OnceLock<(&'static str, String)>>);

impl FailedPart {
    /// Runs a part to its end, and remembers its panic.
    pub(crate) async fn watch(self, part: &'static str, work: impl Future<Output = ()>) {
        if let Err(why) = catch_panic(work).await {
            self.set(part, why);
        }
    }

    /// Remembers why a part cannot go on, unless another was first.
    pub(crate) fn set(&self, part: &'static str, why: String) {
        // Only the first reason counts: the others follow from it.
        drop(self.0.set((part, why)));
    }

    /// Fails if a part has.
    pub(crate) fn check(&self) -> Result<()> {
        match self.0.get() {
            None => Ok(()),
            Some((part, why)) => Err(StoreError::Panicked { part, why: why.clone() }),
        }
    }
}
