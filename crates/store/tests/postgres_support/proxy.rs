//! A proxy between a store and its server, in the test's own process. It understands just enough of the protocol: where a
//! message ends, what a statement says, and whether the server is in a transaction.

pub(crate) mod passing;
pub(crate) mod pooler;

use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One message, as it is sent: a kind, a length, and the rest. The first of a client has no kind.
pub(crate) struct Message {
    bytes: Vec<u8>,
    begins_at: usize,
}

impl Message {
    /// The next message.
    fn read(stream: &mut impl Read) -> io::Result<Message> {
        let mut kind = [0];
        stream.read_exact(&mut kind)?;
        Message::read_behind(stream, &kind)
    }

    /// The first message of a client, which says who it is and what it wants.
    fn read_startup(stream: &mut impl Read) -> io::Result<Message> {
        Message::read_behind(stream, &[])
    }

    fn read_behind(stream: &mut impl Read, kind: &[u8]) -> io::Result<Message> {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let begins_at = kind.len() + 4;
        let mut bytes = [kind, &length].concat();
        let rest = (u32::from_be_bytes(length) as usize).checked_sub(4).ok_or(io::ErrorKind::InvalidData)?;
        bytes.resize(begins_at + rest, 0);
        stream.read_exact(&mut bytes[begins_at..])?;
        Ok(Message { bytes, begins_at })
    }

    fn kind(&self) -> u8 {
        self.bytes[0]
    }

    fn body(&self) -> &[u8] {
        &self.bytes[self.begins_at..]
    }

    /// Whether the server answers a client's messages up to this one before it waits for more.
    fn ends_request(&self) -> bool {
        matches!(self.kind(), b'Q' | b'S')
    }

    /// Whether this is the end of the server's answer to a request.
    fn ends_answer(&self) -> bool {
        self.kind() == b'Z'
    }

    /// Whether the server is in no transaction, when this ends an answer.
    fn is_at_rest(&self) -> bool {
        self.ends_answer() && self.body() == b"I"
    }

    /// What a client's message has the server do, if it is a statement.
    fn sql(&self) -> Option<String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut parts = self.body().split(|byte| *byte == 0);
        match self.kind() {
            b'Q' => parts.next().map(text),
            // The name of a prepared statement comes first.
            b'P' => parts.nth(1).map(text),
            _ => None,
        }
    }
}

/// Where a proxy listens, until it is dropped.
struct Door {
    port: u16,
    is_shut: Arc<AtomicBool>,
}

impl Door {
    /// Listens, and lets `serve` have whoever comes, each on a thread of its own.
    fn open(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Door {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
        let port = listener.local_addr().expect("a listener has an address").port();
        let is_shut = Arc::new(AtomicBool::new(false));
        let (shut, serve) = (Arc::clone(&is_shut), Arc::new(serve));
        std::thread::spawn(move || {
            while let Ok((client, _)) = listener.accept()
                && !shut.load(Ordering::Relaxed)
            {
                client.set_nodelay(true).ok();
                let serve = Arc::clone(&serve);
                std::thread::spawn(move || serve(client));
            }
        });
        Door { port, is_shut }
    }

    /// The address of the same database, through this door.
    fn address(&self, direct: &str) -> String {
        let server = server_of(direct);
        direct.replacen(&server, &format!("127.0.0.1:{}", self.port), 1)
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.is_shut.store(true, Ordering::Relaxed);
        // Whoever listens has to wake up to notice.
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)));
    }
}

/// The host and port in an address.
fn server_of(address: &str) -> String {
    let server =
        address.split_once('@').and_then(|(_, rest)| rest.split_once('/')).map(|(server, _)| server.to_owned());
    server.unwrap_or_else(|| panic!("{address} is no address of a test's server"))
}

/// A connection to the server.
fn connect(server: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(server)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
