//! Connections: each is a task of the one thread, and all of them end with it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::BufReader;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;

use super::answers::answer;
use super::{Shared, http, locked};

/// How many connections may wait to be accepted: as many starts may come at once.
const BACKLOG: u32 = 4096;

/// Whether connections are taken from now on.
pub(super) struct Order {
    pub(super) is_open: bool,
    /// Told when it is so.
    pub(super) done: std::sync::mpsc::SyncSender<io::Result<()>>,
}

/// Serves until nobody can give orders any more.
pub(super) async fn serve(port: u16, state: Shared, mut orders: UnboundedReceiver<Order>) {
    let (mut listener, mut connections) = (None, JoinSet::new());
    loop {
        tokio::select! {
            order = orders.recv() => {
                let Some(Order { is_open, done }) = order else { return };
                let changed = if is_open {
                    listen(port, &mut listener)
                } else {
                    listener = None;
                    connections.shutdown().await;
                    Ok(())
                };
                done.send(changed).ok();
            }
            Ok(stream) = accepted(listener.as_ref()) => {
                connections.spawn(attend(stream, Shared::clone(&state)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// A socket on a port of this machine that others of ours may be bound to.
pub(super) fn socket(port: u16) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    Ok(socket)
}

fn listen(port: u16, listener: &mut Option<TcpListener>) -> io::Result<()> {
    if listener.is_none() {
        *listener = Some(socket(port)?.listen(BACKLOG)?);
    }
    Ok(())
}

async fn accepted(listener: Option<&TcpListener>) -> io::Result<TcpStream> {
    match listener {
        Some(listener) => Ok(listener.accept().await?.0),
        None => std::future::pending().await,
    }
}

/// Answers the requests of one connection, until it is closed or is to be lost.
async fn attend(stream: TcpStream, state: Shared) {
    stream.set_nodelay(true).ok();
    let mut stream = BufReader::new(stream);
    while let Ok(Some(seen)) = http::read(&mut stream).await {
        let (reply, delay) = {
            let mut state = locked(&state);
            (answer(&mut state, seen), state.delay)
        };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let Some(reply) = reply else { return };
        if http::write(&mut stream, &reply).await.is_err() {
            return;
        }
    }
}
