//! Which connections are open, and which give way: where all places are taken, a new client is more welcome than one that asks
//! nothing, so that silent sockets keep nobody out.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::ConnectionLimits;

/// So many connections may be about to close, beyond those that are counted.
const CLOSING_MAX: usize = 32;

/// The connections of a server.
#[derive(Clone)]
pub(super) struct Connections {
    shared: Arc<Shared>,
}

struct Shared {
    limits: ConnectionLimits,
    open: Mutex<Open>,
    has_closed: Notify,
}

#[derive(Default)]
struct Open {
    /// By number, in the order in which they came.
    connections: BTreeMap<u64, Connection>,
    /// Those that have to give way and are not gone yet.
    closing: usize,
    /// Counts connections, and the moments at which one begins to be idle.
    last: u64,
    /// Whether it was told that there is no place.
    is_full: bool,
}

struct Connection {
    from: IpAddr,
    /// How many requests are being answered.
    busy: u32,
    idle_since: u64,
    close: CancellationToken,
}

impl Connections {
    pub(super) fn new(limits: ConnectionLimits) -> Connections {
        Connections { shared: Arc::new(Shared { limits, open: Mutex::default(), has_closed: Notify::new() }) }
    }

    /// Waits while too many connections are about to close.
    pub(super) async fn room(&self) {
        while CLOSING_MAX <= self.open().closing {
            self.shared.has_closed.notified().await;
        }
    }

    /// A place for a connection. Where there is none, the one that has been idle for the longest gives way: one from the same
    /// address if that has too many, else any. None if all are busy.
    pub(super) fn admit(&self, from: IpAddr) -> Option<Place> {
        let from = origin(from);
        let limits = &self.shared.limits;
        let mut open = self.open();
        let same = open.connections.values().filter(|it| it.from == from).count();
        let only_from = limits.per_address.is_some_and(|most| most <= same).then_some(from);
        if only_from.is_some() || limits.connections <= open.connections.len() {
            open.tell_full(only_from, limits);
            open.close_idle(only_from)?;
        } else if open.connections.len() < limits.connections / 2 {
            open.is_full = false;
        }
        open.last += 1;
        let (number, close) = (open.last, CancellationToken::new());
        open.connections.insert(number, Connection { from, busy: 0, idle_since: number, close: close.clone() });
        drop(open);
        Some(Place { handle: Handle { connections: self.clone(), number }, close })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.shared.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn tell_full(&mut self, only_from: Option<IpAddr>, limits: &ConnectionLimits) {
        if std::mem::replace(&mut self.is_full, true) {
            return;
        }
        match only_from {
            Some(from) => warn!(
                "{from} has {} connections, as many as one address may have: idle ones give way, more are refused",
                limits.per_address.unwrap_or_default()
            ),
            None => warn!(
                "{} connections are open, as many as there may be: idle ones give way, more are refused",
                limits.connections
            ),
        }
    }

    /// Closes the connection that has been idle for the longest.
    fn close_idle(&mut self, only_from: Option<IpAddr>) -> Option<()> {
        let idle = self.connections.iter().filter(|(_, it)| it.busy == 0);
        let idle = idle.filter(|(_, it)| only_from.is_none_or(|from| it.from == from));
        let (number, _) = idle.min_by_key(|(_, it)| it.idle_since)?;
        let number = *number;
        let connection = self.connections.remove(&number)?;
        connection.close.cancel();
        self.closing += 1;
        Some(())
    }
}

/// Where a client is: one network of IPv6 is one client, who may use any address of it.
fn origin(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

/// The place of one connection, free when it is dropped.
pub(super) struct Place {
    handle: Handle,
    close: CancellationToken,
}

impl Place {
    /// Waits until the connection has to give way.
    pub(super) async fn closed(&self) {
        self.close.cancelled().await;
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.handle.connections.open();
        if open.connections.remove(&self.handle.number).is_none() {
            open.closing -= 1;
        }
        drop(open);
        self.handle.connections.shared.has_closed.notify_one();
    }
}

/// Tells of a connection whether it is busy.
#[derive(Clone)]
pub(super) struct Handle {
    connections: Connections,
    number: u64,
}

impl Handle {
    /// A request is being answered, until this is dropped.
    pub(super) fn busy(&self) -> Busy {
        if let Some(connection) = self.connections.open().connections.get_mut(&self.number) {
            connection.busy += 1;
        }
        Busy(self.clone())
    }
}

/// A request is being answered.
pub(super) struct Busy(Handle);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut open = self.0.connections.open();
        open.last += 1;
        let now = open.last;
        if let Some(connection) = open.connections.get_mut(&self.0.number) {
            connection.busy -= 1;
            connection.idle_since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(all: usize, per_address: Option<usize>) -> Connections {
        Connections::new(ConnectionLimits { connections: all, per_address, ..ConnectionLimits::default() })
    }

    fn counts(connections: &Connections) -> (usize, usize) {
        let open = connections.open();
        (open.closing, open.connections.len())
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_one_that_is_idle_for_the_longest_gives_way() {
        let connections = connections(3, None);
        let places: Vec<Place> = (0..3).map(|_| connections.admit(address("10.0.0.1")).unwrap()).collect();
        // The first has asked something since.
        drop(places[0].handle().busy());
        let next = connections.admit(address("10.0.0.2"));
        let closed: Vec<bool> = places.iter().map(|place| place.close.is_cancelled()).collect();
        assert!(next.is_some());
        assert_eq!(closed, [false, true, false]);
    }

    #[test]
    fn nobody_who_is_answered_gives_way() {
        let connections = connections(2, None);
        let places = [connections.admit(address("10.0.0.1")).unwrap(), connections.admit(address("10.0.0.1")).unwrap()];
        let busy: Vec<Busy> = places.iter().map(|place| place.handle().busy()).collect();
        assert!(connections.admit(address("10.0.0.2")).is_none());
        drop(busy);
        assert!(connections.admit(address("10.0.0.2")).is_some());
    }

    #[test]
    fn who_has_too_many_takes_from_nobody_else() {
        let connections = connections(10, Some(2));
        let other = connections.admit(address("10.0.0.9")).unwrap();
        let own =
            [connections.admit(address("2001:db8::1")).unwrap(), connections.admit(address("2001:db8::2")).unwrap()];
        let third = connections.admit(address("2001:db8::3"));
        assert!(third.is_some() && own[0].close.is_cancelled());
        assert!(!own[1].close.is_cancelled() && !other.close.is_cancelled());
        assert!(connections.admit(address("2001:db8:0:1::1")).is_some(), "another network");
    }

    #[test]
    fn a_place_is_free_again_however_it_ended() {
        let connections = connections(1, None);
        let first = connections.admit(address("10.0.0.1")).unwrap();
        let busy = first.handle().busy();
        drop(first);
        let second = connections.admit(address("10.0.0.1")).expect("it is free");
        drop(busy);
        let third = connections.admit(address("10.0.0.1")).expect("the second gives way");
        assert!(second.close.is_cancelled());
        assert_eq!(counts(&connections), (1, 1));
        drop((second, third));
        assert_eq!(counts(&connections), (0, 0));
    }
}
