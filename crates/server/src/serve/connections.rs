//! Which connections are open, and which give way: where all places are taken, a new client is more welcome than one that has asked
//! nothing for a while, so that silent sockets keep nobody out. Of many who come at once and ask, the last wait for the first.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::ConnectionLimits;

/// So many connections may be about to close, beyond those that are counted.
const CLOSING_MAX: usize = 32;

/// So long a connection has to ask something before it may have to give way: its request may be on its way.
const GRACE: Duration = Duration::from_secs(1);

/// So long the next client waits for a place while all who are there are being answered.
const FULL_WAIT: Duration = Duration::from_secs(5);

/// The connections of a server.
#[derive(Clone)]
pub(super) struct Connections {
    shared: Arc<Shared>,
}

struct Shared {
    limits: ConnectionLimits,
    open: Mutex<Open>,
    /// A connection has ended, or has been answered.
    has_changed: Notify,
}

#[derive(Default)]
struct Open {
    /// By number, in the order in which they came.
    connections: BTreeMap<u64, Connection>,
    /// Those that have to give way and are not gone yet.
    closing: usize,
    /// Counts connections.
    last: u64,
    /// Whether it was told that there is no place.
    is_full: bool,
    /// Since when the next client waits for a place.
    full_since: Option<Instant>,
}

struct Connection {
    from: IpAddr,
    /// How many requests are being answered.
    busy: u32,
    idle_since: Instant,
    close: CancellationToken,
}

impl Connections {
    pub(super) fn new(limits: ConnectionLimits) -> Connections {
        Connections { shared: Arc::new(Shared { limits, open: Mutex::default(), has_changed: Notify::new() }) }
    }

    /// Waits for a place for the next connection, for a while: there is one, or an idle connection can give way.
    pub(super) async fn room(&self) {
        loop {
            let now = Instant::now();
            // Whatever changes from here on is heard.
            let has_changed = self.shared.has_changed.notified();
            let (look_again_at, deadline) = {
                let mut open = self.open();
                let next_at = open.next_place(&self.shared.limits, now);
                if next_at.is_some_and(|at| at <= now) {
                    open.full_since = None;
                    return;
                }
                // They do not wait one after another: as long as there is no place, all wait from the same moment.
                let deadline = *open.full_since.get_or_insert(now) + FULL_WAIT;
                (next_at.unwrap_or(deadline), deadline)
            };
            if deadline <= now {
                return;
            }
            tokio::time::timeout_at(look_again_at.min(deadline), has_changed).await.ok();
        }
    }

    /// A place for a connection. Where there is none, the one that has been idle for the longest gives way: one from the same
    /// address if that has too many, else any. None if none has been idle for a while.
    pub(super) fn admit(&self, from: IpAddr, now: Instant) -> Option<Place> {
        let from = origin(from);
        let limits = &self.shared.limits;
        let mut open = self.open();
        let same = open.connections.values().filter(|it| it.from == from).count();
        let per_address = limits.per_address.filter(|_| !(limits.spares_loopback && from.is_loopback()));
        let only_from = per_address.is_some_and(|most| most <= same).then_some(from);
        if only_from.is_some() || limits.connections <= open.connections.len() {
            open.tell_full(only_from, limits);
            open.close_idle(only_from, now)?;
        } else if open.connections.len() < limits.connections / 2 {
            open.is_full = false;
        }
        open.last += 1;
        let (number, close) = (open.last, CancellationToken::new());
        open.connections.insert(number, Connection { from, busy: 0, idle_since: now, close: close.clone() });
        drop(open);
        Some(Place { handle: Handle { connections: self.clone(), number }, close })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.shared.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// From when on there is a place for another connection, if nothing changes.
    fn next_place(&self, limits: &ConnectionLimits, now: Instant) -> Option<Instant> {
        if CLOSING_MAX <= self.closing {
            return None;
        }
        if self.connections.len() < limits.connections {
            return Some(now);
        }
        let idle = self.connections.values().filter(|it| it.busy == 0);
        idle.map(|it| it.idle_since + GRACE).min()
    }

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
    fn close_idle(&mut self, only_from: Option<IpAddr>, now: Instant) -> Option<()> {
        let idle = self.connections.iter().filter(|(_, it)| it.busy == 0 && it.idle_since + GRACE <= now);
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
        self.handle.connections.shared.has_changed.notify_one();
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
        if let Some(connection) = open.connections.get_mut(&self.0.number) {
            connection.busy -= 1;
            connection.idle_since = Instant::now();
        }
        drop(open);
        self.0.connections.shared.has_changed.notify_one();
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

    fn admit(connections: &Connections, address: &str) -> Option<Place> {
        connections.admit(address.parse().unwrap(), Instant::now())
    }

    async fn pass(time: Duration) {
        tokio::time::sleep(time).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_one_that_is_idle_for_the_longest_gives_way() {
        let connections = connections(3, None);
        let places: Vec<Place> = (0..3).map(|_| admit(&connections, "10.0.0.1").unwrap()).collect();
        pass(GRACE).await;
        // The first has asked something since.
        drop(places[0].handle().busy());
        let next = admit(&connections, "10.0.0.2");
        let closed: Vec<bool> = places.iter().map(|place| place.close.is_cancelled()).collect();
        assert!(next.is_some());
        assert_eq!(closed, [false, true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_who_is_answered_or_has_just_come_gives_way() {
        let connections = connections(2, None);
        let places = [admit(&connections, "10.0.0.1").unwrap(), admit(&connections, "10.0.0.1").unwrap()];
        assert!(admit(&connections, "10.0.0.2").is_none(), "their requests may be on their way");
        let busy: Vec<Busy> = places.iter().map(|place| place.handle().busy()).collect();
        pass(GRACE).await;
        assert!(admit(&connections, "10.0.0.2").is_none());
        drop(busy);
        pass(GRACE).await;
        assert!(admit(&connections, "10.0.0.2").is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_too_many_takes_from_nobody_else() {
        let connections = connections(10, Some(2));
        let other = admit(&connections, "10.0.0.9").unwrap();
        let own = [admit(&connections, "2001:db8::1").unwrap(), admit(&connections, "2001:db8::2").unwrap()];
        assert!(admit(&connections, "2001:db8::3").is_none());
        pass(GRACE).await;
        let third = admit(&connections, "2001:db8::3");
        assert!(third.is_some() && own[0].close.is_cancelled());
        assert!(!own[1].close.is_cancelled() && !other.close.is_cancelled());
        assert!(admit(&connections, "2001:db8:0:1::1").is_some(), "another network");
        let here: Vec<Place> = (0..4).map(|_| admit(&connections, "127.0.0.1").unwrap()).collect();
        assert_eq!(here.len(), 4, "this machine has as many as there are");
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_waited_for_and_not_for_ever() {
        let connections = connections(2, None);
        let places = [admit(&connections, "10.0.0.1").unwrap(), admit(&connections, "10.0.0.1").unwrap()];
        let began = Instant::now();
        connections.room().await;
        assert_eq!(began.elapsed(), GRACE, "the first may give way then");
        let _busy: Vec<Busy> = places.iter().map(|place| place.handle().busy()).collect();
        let began = Instant::now();
        connections.room().await;
        assert_eq!(began.elapsed(), FULL_WAIT, "all are being answered");
        connections.room().await;
        assert_eq!(began.elapsed(), FULL_WAIT, "the next one is told at once");
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_hears_of_a_free_place() {
        let connections = connections(1, None);
        let place = admit(&connections, "10.0.0.1").unwrap();
        let busy = place.handle().busy();
        let waiting = tokio::spawn({
            let connections = connections.clone();
            async move { connections.room().await }
        });
        pass(Duration::from_millis(1)).await;
        let began = Instant::now();
        drop((busy, place));
        waiting.await.unwrap();
        assert_eq!(began.elapsed(), Duration::ZERO, "a place is free");
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_free_again_however_it_ended() {
        let connections = connections(1, None);
        let first = admit(&connections, "10.0.0.1").unwrap();
        let busy = first.handle().busy();
        drop(first);
        let second = admit(&connections, "10.0.0.1").expect("it is free");
        drop(busy);
        pass(GRACE).await;
        let third = admit(&connections, "10.0.0.1").expect("the second gives way");
        assert!(second.close.is_cancelled());
        assert_eq!(counts(&connections), (1, 1));
        drop((second, third));
        assert_eq!(counts(&connections), (0, 0));
    }
}
