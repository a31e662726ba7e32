//! Tasks: where they run. A simulation runs them in an order of its own.

use std::pin::Pin;

/// Something that runs beside others until it ends.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where tasks run. Whoever spawns one stops it and waits for it by means of its own.
pub trait Spawn: Send + Sync {
    /// Lets a task run.
    fn spawn(&self, task: Task);

    /// Lets a task run on a thread of its own, so that no other task can hold it up. It may wait for time and for the store,
    /// and for nothing else. Where there are no threads, as in a simulation, it is a task like others.
    fn spawn_alone(&self, name: &'static str, task: Task) {
        let _ = name;
        self.spawn(task);
    }
}

/// Tasks of the Tokio runtime in which a node runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokioSpawn;

impl Spawn for TokioSpawn {
    fn spawn(&self, task: Task) {
        drop(tokio::spawn(task));
    }

    fn spawn_alone(&self, name: &'static str, task: Task) {
        // A node without it must not work: nothing would stop its work in time.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.expect("a timer can be made");
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || runtime.block_on(task));
        thread.expect("a thread can be started");
    }
}
