//! A future that goes on step by step: one call of the store, and no further until it is told.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// What waits for a store alone can be polled by hand: it is pending exactly once for each call.
pub(crate) struct Stepped<'a, T> {
    future: Pin<Box<dyn Future<Output = T> + Send + 'a>>,
    output: Option<T>,
}

struct Woken {
    is_woken: AtomicBool,
    thread: Thread,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl<'a, T> Stepped<'a, T> {
    pub(crate) fn new(future: impl Future<Output = T> + Send + 'a) -> Stepped<'a, T> {
        Stepped { future: Box::pin(future), output: None }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.output.is_some()
    }

    /// Goes on with its next call of the store, and returns when that is answered: nothing of it is under way then.
    pub(crate) fn step(&mut self) {
        if self.is_done() {
            return;
        }
        let woken = Arc::new(Woken { is_woken: AtomicBool::new(false), thread: thread::current() });
        let waker = Waker::from(Arc::clone(&woken));
        match self.future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => self.output = Some(output),
            Poll::Pending => {
                while !woken.is_woken.load(Ordering::Acquire) {
                    thread::park();
                }
            }
        }
    }

    /// Goes on to its end.
    pub(crate) fn finish(mut self) -> T {
        loop {
            if let Some(output) = self.output {
                return output;
            }
            self.step();
        }
    }
}
