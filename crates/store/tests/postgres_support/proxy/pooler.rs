//! A transaction pooler, as strict as one can be: whoever comes back from a transaction gets another session for the next.
//!
//! It lets clients in by itself, and has sessions of its own at the server. Requests that a client sends without waiting
//! are answered one after the other; after each that leaves no transaction open, the session goes to the end of a queue.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use super::{Door, Message, connect, server_of};

/// So many sessions wait at least, so that the next one is never the last one.
const WAITING_MIN: usize = 3;

/// A pooler in front of a server.
pub(crate) struct Pooler {
    door: Door,
}

/// Sessions that wait, by the first message of the clients they are for: user, database and options.
#[derive(Default)]
struct Sessions(Mutex<HashMap<Vec<u8>, VecDeque<Session>>>);

/// A session at the server.
struct Session {
    stream: BufReader<TcpStream>,
    /// What the server said when it let the pooler in: clients are told the same.
    greeting: Vec<u8>,
}

impl Pooler {
    /// A pooler in front of the server of an address.
    pub(crate) fn start(address: &str) -> Pooler {
        let (server, sessions) = (server_of(address), Arc::new(Sessions::default()));
        // Clients come and go without a word: an error is the end of one.
        Pooler { door: Door::open(move |client| drop(serve(client, &server, &sessions))) }
    }

    /// The address of the same database, through the pooler.
    pub(crate) fn address(&self, direct: &str) -> String {
        self.door.address(direct)
    }
}

impl Sessions {
    /// The session that has waited longest.
    fn take(&self, server: &str, startup: &[u8]) -> io::Result<Session> {
        {
            let mut waiting = self.0.lock().expect("nobody fails with it");
            let waiting = waiting.entry(startup.to_owned()).or_default();
            if WAITING_MIN < waiting.len() {
                return Ok(waiting.pop_front().expect("there are some"));
            }
        }
        Session::open(server, startup)
    }

    fn give_back(&self, startup: &[u8], session: Session) {
        self.0.lock().expect("nobody fails with it").entry(startup.to_owned()).or_default().push_back(session);
    }
}

impl Session {
    fn open(server: &str, startup: &[u8]) -> io::Result<Session> {
        let mut stream = BufReader::new(connect(server)?);
        stream.get_mut().write_all(startup)?;
        let mut greeting = vec![];
        loop {
            let message = Message::read(&mut stream)?;
            greeting.extend(&message.bytes);
            if message.ends_answer() {
                return Ok(Session { stream, greeting });
            }
        }
    }

    /// Has a request answered. Whether the session is in no transaction then.
    fn carry_out(&mut self, request: &[u8], client: &mut TcpStream) -> io::Result<bool> {
        self.stream.get_mut().write_all(request)?;
        let mut answer = vec![];
        loop {
            let message = Message::read(&mut self.stream)?;
            answer.extend(&message.bytes);
            if message.ends_answer() {
                client.write_all(&answer)?;
                return Ok(message.is_at_rest());
            }
        }
    }
}

/// Serves one client. A session that it leaves in a transaction is closed.
fn serve(mut client: TcpStream, server: &str, sessions: &Sessions) -> io::Result<()> {
    let mut requests = BufReader::new(client.try_clone()?);
    let startup = Message::read_startup(&mut requests)?.bytes;
    let session = sessions.take(server, &startup)?;
    client.write_all(&session.greeting)?;
    sessions.give_back(&startup, session);
    let (mut request, mut busy) = (vec![], None);
    loop {
        let message = Message::read(&mut requests)?;
        request.extend(&message.bytes);
        if !message.ends_request() {
            continue;
        }
        let mut session = match busy.take() {
            Some(session) => session,
            None => sessions.take(server, &startup)?,
        };
        if session.carry_out(&request, &mut client)? {
            sessions.give_back(&startup, session);
        } else {
            busy = Some(session);
        }
        request.clear();
    }
}
