//! The queue in front of the writer: bounded, with a short lane for what must not wait.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use std::sync::Arc;

/// The most commands that wait for the writer; whoever comes next waits for a place in the queue.
const WAITING_MAX: usize = 1_024;

/// The most urgent commands that wait: renewals of leases, of which a node has one at a time.
const URGENT_MAX: usize = 64;

/// Commands that wait, urgent ones first.
pub(super) struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    changed: Condvar,
    places: Arc<Semaphore>,
    urgent_places: Arc<Semaphore>,
}

struct Waiting<T> {
    urgent: VecDeque<(T, OwnedSemaphorePermit)>,
    ordinary: VecDeque<(T, OwnedSemaphorePermit)>,
    is_closed: bool,
}

/// What the writer finds.
pub(super) enum Next<T> {
    Command {
        command: T,
        is_urgent: bool,
    },
    /// Nothing for a while.
    Idle,
    /// Nothing ever again.
    Closed,
}

/// The writer is gone.
#[derive(Debug, thiserror::Error)]
#[error("the writer has ended")]
pub(super) struct WriterEnded;

impl<T> Queue<T> {
    pub(super) fn new() -> Queue<T> {
        let waiting = Waiting { urgent: VecDeque::new(), ordinary: VecDeque::new(), is_closed: false };
        Queue {
            waiting: Mutex::new(waiting),
            changed: Condvar::new(),
            places: Arc::new(Semaphore::new(WAITING_MAX)),
            urgent_places: Arc::new(Semaphore::new(URGENT_MAX)),
        }
    }

    /// Puts a command into the queue, as soon as there is a place. If the caller goes away before, nothing happens.
    pub(super) async fn put(&self, command: T, is_urgent: bool) -> Result<(), WriterEnded> {
        let places = if is_urgent { &self.urgent_places } else { &self.places };
        let place = Arc::clone(places).acquire_owned().await.map_err(|_| WriterEnded)?;
        let mut waiting = self.waiting();
        if waiting.is_closed {
            return Err(WriterEnded);
        }
        let queue = if is_urgent { &mut waiting.urgent } else { &mut waiting.ordinary };
        queue.push_back((command, place));
        drop(waiting);
        self.changed.notify_one();
        Ok(())
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        let waiting = self.waiting();
        waiting.urgent.is_empty() && waiting.ordinary.is_empty()
    }

    /// The next command, at once or never.
    pub(super) fn next_now(&self) -> Option<(T, bool)> {
        let mut waiting = self.waiting();
        let urgent = waiting.urgent.pop_front().map(|(command, _)| (command, true));
        urgent.or_else(|| waiting.ordinary.pop_front().map(|(command, _)| (command, false)))
    }

    /// The next command. With `idle_after`, waits no longer than that.
    pub(super) fn next(&self, idle_after: Option<Duration>) -> Next<T> {
        loop {
            if let Some((command, is_urgent)) = self.next_now() {
                return Next::Command { command, is_urgent };
            }
            let waiting = self.waiting();
            let is_empty = waiting.urgent.is_empty() && waiting.ordinary.is_empty();
            match (is_empty, waiting.is_closed, idle_after) {
                (false, ..) => {}
                (true, true, _) => return Next::Closed,
                (true, false, None) => drop(self.changed.wait(waiting)),
                (true, false, Some(idle_after)) => {
                    let waited = self.changed.wait_timeout(waiting, idle_after);
                    if waited.is_ok_and(|(_, waited)| waited.timed_out()) {
                        return Next::Idle;
                    }
                }
            }
        }
    }

    /// Takes in nothing more. What waits is still there for the writer.
    pub(super) fn close(&self) {
        self.waiting().is_closed = true;
        self.places.close();
        self.urgent_places.close();
        self.changed.notify_all();
    }

    /// Nobody is there to carry out what waits: whoever asked for it is told so by its end.
    pub(super) fn abandon(&self) {
        self.close();
        let mut waiting = self.waiting();
        let left = (std::mem::take(&mut waiting.urgent), std::mem::take(&mut waiting.ordinary));
        drop(waiting);
        drop(left);
    }

    /// No command runs under the lock, so a panic elsewhere leaves the queue whole.
    fn waiting(&self) -> MutexGuard<'_, Waiting<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
