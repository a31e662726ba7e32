//! A way to a server that can be cut.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Passes everything on to a server, until it is cut.
pub struct Proxy {
    port: u16,
    way: Arc<Way>,
}

#[derive(Default)]
struct Way {
    is_cut: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// A way to a port of this machine. It is open.
    pub fn to(port: u16) -> io::Result<Proxy> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let own = listener.local_addr()?.port();
        let way = Arc::new(Way::default());
        let shared = Arc::clone(&way);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if !shared.is_cut.load(Ordering::SeqCst) {
                    // A server that is not there is the same as a way that is cut.
                    let _ = shared.connect(client, SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
                }
            }
        });
        Ok(Proxy { port: own, way })
    }

    /// Where it begins.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cuts everything that goes through it, and lets nothing more through.
    pub fn cut(&self) {
        self.way.is_cut.store(true, Ordering::SeqCst);
        for stream in self.way.streams().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Lets everything through again.
    pub fn heal(&self) {
        self.way.is_cut.store(false, Ordering::SeqCst);
    }
}

impl Way {
    fn connect(self: &Arc<Way>, client: TcpStream, to: SocketAddr) -> io::Result<()> {
        let server = TcpStream::connect(to)?;
        self.streams().extend([client.try_clone()?, server.try_clone()?]);
        let (back_from, back_to) = (server.try_clone()?, client.try_clone()?);
        std::thread::spawn(move || pass_on(client, server));
        std::thread::spawn(move || pass_on(back_from, back_to));
        Ok(())
    }

    fn streams(&self) -> std::sync::MutexGuard<'_, Vec<TcpStream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 16_384];
    while let Ok(read) = from.read(&mut buffer) {
        if read == 0 || to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
