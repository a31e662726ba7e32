//! A node of the world, with the hall in which its tasks run.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use punctual_engine::node::{self, Parts};
use punctual_engine::spawn::{Spawn, Task};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::clock::VirtualClock;

/// A node at work.
pub(super) struct Node {
    hall: Arc<Hall>,
    stop: CancellationToken,
}

/// Where the tasks of one node run: they are counted, and end together when the node is killed.
pub(super) struct Hall {
    clock: Arc<VirtualClock>,
    alive: Arc<AtomicUsize>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

/// Counts a task for as long as it lives, however it ends.
struct Alive {
    clock: Arc<VirtualClock>,
    count: Arc<AtomicUsize>,
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::SeqCst);
        self.clock.changed.notify_one();
    }
}

impl Hall {
    pub(super) fn new(clock: Arc<VirtualClock>) -> Arc<Hall> {
        Arc::new(Hall { clock, alive: Arc::default(), tasks: Mutex::default() })
    }
}

impl Spawn for Hall {
    fn spawn(&self, task: Task) {
        self.alive.fetch_add(1, Ordering::SeqCst);
        let alive = Alive { clock: Arc::clone(&self.clock), count: Arc::clone(&self.alive) };
        let handle = tokio::spawn(async move {
            let _alive = alive;
            task.await;
        });
        self.tasks.lock().expect("nobody panics with it").push(handle);
    }
}

impl Node {
    /// Starts a node whose parts spawn in this hall.
    pub(super) fn start(parts: Parts, hall: Arc<Hall>) -> Node {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        hall.spawn(Box::pin(
            async move { node::run(parts, stopped).await.expect("a node goes on until it is stopped") },
        ));
        Node { hall, stop }
    }

    /// How many of its tasks wait for the clock when it has nothing to do: all but the one that takes what is
    /// printed. One that has not all its loops yet, or not any more, is coming or going.
    pub(super) fn resting_when_idle(&self) -> usize {
        const WITH_ALL_LOOPS: usize = 5;
        let alive = self.alive();
        if alive < WITH_ALL_LOOPS { alive } else { alive - 1 }
    }

    pub(super) fn alive(&self) -> usize {
        self.hall.alive.load(Ordering::SeqCst)
    }

    /// Asks it to stop, and to say so.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// It is gone in the middle of everything, and nobody was told.
    pub(super) async fn kill(self) {
        let tasks = std::mem::take(&mut *self.hall.tasks.lock().expect("nobody panics with it"));
        tasks.iter().for_each(JoinHandle::abort);
        for task in tasks {
            task.await.ok();
        }
    }
}
