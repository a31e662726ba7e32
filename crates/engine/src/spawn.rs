//! Tasks: where they run. A simulation runs them in an order of its own.

use std::pin::Pin;

/// Something that runs beside others until it ends.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where tasks run. Whoever spawns one stops it and waits for it by means of its own.
pub trait Spawn: Send + Sync {
    /// Lets a task run.
    fn spawn(&self, task: Task);
}

/// Tasks of the Tokio runtime in which a node runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokioSpawn;

impl Spawn for TokioSpawn {
    fn spawn(&self, task: Task) {
        drop(tokio::spawn(task));
    }
}
