//! The world in which the engine is tested: a store in memory, a clock that only the test moves, and nodes whose ticks the
//! test drives. Nothing sleeps and nothing runs by itself, so the same test gives the same history every time.

mod door;
mod node;
mod slots;
mod words;
mod world;

pub(crate) use door::{Door, Fault, Refused};
pub(crate) use node::{Node, Way};
pub(crate) use words::{HOUR, MINUTE, SECOND, at, clock_time, days, hours, minutes, seconds};
pub(crate) use world::World;

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Runs a future that waits for nothing but the store in memory: it is ready when it is first asked.
pub(crate) fn now_or_never<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a tick waits only for its store, and this store never makes it wait"),
    }
}
