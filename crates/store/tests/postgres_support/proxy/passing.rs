//! A proxy that lets everything pass, until it is told not to.
//!
//! Answers are lost, requests do not arrive, nobody is let in, or everything stands still: each at a statement that the
//! test names, or at once. Statements of transactions that only read are never meant, and commits only of those with the pen.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{self, BufReader, BufWriter, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use super::{Door, Message, connect, server_of};
use crate::postgres_support::patience::wait_until;

/// How the last statement of a transaction ends, whatever else is sent with it.
const COMMIT: &str = "COMMIT";

/// What a transaction does first that is to have the pen.
const TAKE_PEN: &str = "take_pen(";

/// What becomes of a connection at a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// The server carries it out, and the connection breaks before its answer comes back.
    LoseAnswer,
    /// The same, and nobody is let in until the test says so.
    LoseAnswerAndRefuse,
    /// The connection breaks before it arrives.
    LoseRequest,
    /// It does not arrive, and the connection stands still: to both sides it looks as if the other were busy.
    FreezeBefore,
    /// The server carries it out, and the connection stands still before its answer comes back.
    FreezeBehind,
}

/// The proxy.
pub(crate) struct Passing {
    door: Door,
    control: Arc<Control>,
}

#[derive(Default)]
struct Control {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// What to do at which statement, one after the other.
    traps: VecDeque<(&'static str, Then)>,
    refuses: bool,
    freezes: bool,
    frozen: HashSet<usize>,
    /// Who is connected, with both ends.
    connected: HashMap<usize, [TcpStream; 2]>,
    count: usize,
}

/// One connection: a thread for each direction.
struct Connection {
    id: usize,
    control: Arc<Control>,
    /// The answer that is lost, by its number.
    lost: Mutex<Option<u64>>,
}

impl Passing {
    /// A proxy in front of the server of an address.
    pub(crate) fn start(address: &str) -> Passing {
        let (server, control) = (server_of(address), Arc::new(Control::default()));
        let shared = Arc::clone(&control);
        // Connections break without a word: an error is the end of one.
        Passing { door: Door::open(move |client| drop(serve(client, &server, &shared))), control }
    }

    /// The address of the same database, through the proxy.
    pub(crate) fn address(&self, direct: &str) -> String {
        self.door.address(direct)
    }

    /// Does something when the next transaction commits that has the pen, after what it was told before.
    pub(crate) fn at_commit(&self, then: Then) {
        self.control.lock().traps.push_back((COMMIT, then));
    }

    /// Does something at the next statement that contains a text, after what it was told before.
    pub(crate) fn at(&self, text: &'static str, then: Then) {
        self.control.lock().traps.push_back((text, then));
    }

    /// Whether everything has been done that it was told to do at a statement.
    pub(crate) fn is_done(&self) -> bool {
        self.control.lock().traps.is_empty()
    }

    pub(crate) fn wait_until_done(&self) {
        wait_until("a statement comes at which something is to be done", || self.is_done());
    }

    /// Lets nobody in from now on.
    pub(crate) fn refuse(&self) {
        self.control.lock().refuses = true;
    }

    /// Breaks every connection.
    pub(crate) fn cut(&self) {
        let state = self.control.lock();
        state.connected.values().flatten().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
    }

    /// Has everything stand still: nothing arrives, nothing breaks. Whoever connects waits, too.
    pub(crate) fn freeze(&self) {
        let mut state = self.control.lock();
        state.freezes = true;
        let all: Vec<usize> = state.connected.keys().copied().collect();
        state.frozen.extend(all);
    }

    /// Lets new connections in. What stands still goes on standing still.
    pub(crate) fn let_in(&self) {
        let mut state = self.control.lock();
        (state.refuses, state.freezes) = (false, false);
    }

    /// Lets new connections in, and everything go on that stands still.
    pub(crate) fn thaw(&self) {
        self.let_in();
        self.control.lock().frozen.clear();
        self.control.changed.notify_all();
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.thaw();
        self.cut();
    }
}

impl Control {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody fails with it")
    }

    /// What is to be done at a statement.
    fn springs(&self, sql: &str, has_pen: bool) -> Option<Then> {
        let mut state = self.lock();
        let is_meant = |text| if text == COMMIT { has_pen && sql.ends_with(COMMIT) } else { sql.contains(text) };
        if !state.traps.front().is_some_and(|(text, _)| is_meant(*text)) {
            return None;
        }
        let (_, then) = state.traps.pop_front()?;
        state.refuses |= then == Then::LoseAnswerAndRefuse;
        Some(then)
    }
}

fn serve(client: TcpStream, server: &str, control: &Arc<Control>) -> io::Result<()> {
    if control.lock().refuses {
        return Ok(());
    }
    let server = connect(server)?;
    let id = {
        let mut state = control.lock();
        state.count += 1;
        let id = state.count;
        state.connected.insert(id, [client.try_clone()?, server.try_clone()?]);
        if state.freezes {
            state.frozen.insert(id);
        }
        id
    };
    let connection = Arc::new(Connection { id, control: Arc::clone(control), lost: Mutex::default() });
    let (down, from, to) = (Arc::clone(&connection), server.try_clone()?, client.try_clone()?);
    let answers = std::thread::spawn(move || {
        drop(down.pass_answers(&from, &to));
        down.end();
    });
    drop(connection.pass_requests(&client, &server));
    connection.end();
    drop(answers.join());
    Ok(())
}

impl Connection {
    fn pass_requests(&self, client: &TcpStream, mut server: &TcpStream) -> io::Result<()> {
        let mut messages = BufReader::new(client);
        let startup = Message::read_startup(&mut messages)?;
        self.wait_while_frozen();
        server.write_all(&startup.bytes)?;
        let (mut count, mut only_reads, mut has_pen) = (0, false, false);
        loop {
            let message = Message::read(&mut messages)?;
            count += u64::from(message.ends_request());
            if let Some(sql) = message.sql() {
                if sql.starts_with("BEGIN") {
                    (only_reads, has_pen) = (sql.contains("READ ONLY"), false);
                }
                has_pen |= sql.contains(TAKE_PEN);
                let then = if only_reads { None } else { self.control.springs(&sql, has_pen) };
                only_reads &= !is_end(&sql);
                match then {
                    None => {}
                    Some(Then::LoseAnswer | Then::LoseAnswerAndRefuse) => {
                        // A statement with parameters is answered at the end of its request.
                        let end = count + u64::from(!message.ends_request());
                        *self.lost.lock().expect("nobody fails with it") = Some(end);
                    }
                    Some(Then::LoseRequest) => return Ok(()),
                    Some(Then::FreezeBefore) => drop(self.control.lock().frozen.insert(self.id)),
                    Some(Then::FreezeBehind) => {
                        self.control.lock().frozen.insert(self.id);
                        server.write_all(&message.bytes)?;
                        self.wait_while_frozen();
                        continue;
                    }
                }
            }
            self.wait_while_frozen();
            server.write_all(&message.bytes)?;
        }
    }

    fn pass_answers(&self, server: &TcpStream, client: &TcpStream) -> io::Result<()> {
        let (mut messages, mut client) = (BufReader::new(server), BufWriter::new(client));
        // The greeting is the answer to no request.
        let mut answer = 0;
        loop {
            let message = Message::read(&mut messages)?;
            self.wait_while_frozen();
            let is_lost = *self.lost.lock().expect("nobody fails with it") == Some(answer);
            if !is_lost {
                client.write_all(&message.bytes)?;
            }
            if message.ends_answer() {
                if is_lost {
                    return Ok(());
                }
                answer += 1;
            }
            if messages.buffer().is_empty() {
                client.flush()?;
            }
        }
    }

    fn wait_while_frozen(&self) {
        let is_frozen = |state: &mut State| state.frozen.contains(&self.id);
        drop(self.control.changed.wait_while(self.control.lock(), is_frozen).expect("nobody fails with it"));
    }

    /// Breaks both ends.
    fn end(&self) {
        let streams = self.control.lock().connected.remove(&self.id);
        streams.iter().flatten().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
    }
}

/// Whether a statement ends a transaction.
fn is_end(sql: &str) -> bool {
    sql.ends_with(COMMIT) || sql.starts_with("ROLLBACK")
}
