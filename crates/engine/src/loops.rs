//! The loops beside a node's own: spawned, watched, waited for. One that fails ends the node.

use tokio::sync::mpsc;

use crate::node::{Ended, NodeError, Parts};
use crate::spawn::Task;
use punctual_store::catch_panic;

/// Loops that run until they are told to stop by means of their own.
pub(crate) struct Loops {
    running: usize,
    ends: (mpsc::UnboundedSender<Ended>, mpsc::UnboundedReceiver<Ended>),
}

impl Default for Loops {
    fn default() -> Loops {
        Loops { running: 0, ends: mpsc::unbounded_channel() }
    }
}

impl Loops {
    /// Lets a loop run. Its panic is a failure like any other.
    pub(crate) fn spawn(
        &mut self,
        parts: &Parts,
        part: &'static str,
        a_loop: impl Future<Output = Ended> + Send + 'static,
    ) {
        let task = self.watched(part, a_loop);
        parts.spawn.spawn(task);
    }

    /// The same on a thread of its own, which no other work can hold up.
    pub(crate) fn spawn_alone(
        &mut self,
        parts: &Parts,
        part: &'static str,
        a_loop: impl Future<Output = Ended> + Send + 'static,
    ) {
        let task = self.watched(part, a_loop);
        parts.spawn.spawn_alone(part, task);
    }

    fn watched(&mut self, part: &'static str, a_loop: impl Future<Output = Ended> + Send + 'static) -> Task {
        let ends = self.ends.0.clone();
        self.running += 1;
        Box::pin(async move {
            let panicked = |why| Err(NodeError::Panicked { part, why });
            // Whoever is gone does not ask any more.
            ends.send(catch_panic(a_loop).await.unwrap_or_else(panicked)).ok();
        })
    }

    /// Waits until a loop fails.
    pub(crate) async fn failed(&mut self) -> NodeError {
        while 0 < self.running {
            if let Err(error) = self.next().await {
                return error;
            }
        }
        std::future::pending().await
    }

    /// Waits until all have ended. Fails with the first that has failed.
    pub(crate) async fn ended(&mut self) -> Ended {
        let mut all = Ok(());
        while 0 < self.running {
            all = all.and(self.next().await);
        }
        all
    }

    async fn next(&mut self) -> Ended {
        let ended = self.ends.1.recv().await;
        self.running -= 1;
        ended.unwrap_or(Ok(()))
    }
}
