//! The supervisor's side of the socket to the server.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use super::super::protocol::{KILL, START_MAX, Start, TERM, Told};

/// What is read at once.
const CHUNK: usize = 64 * 1024;

/// The socket, and what has been read of it but not been understood.
#[derive(Debug)]
pub(super) struct Control {
    stream: UnixStream,
    unread: Vec<u8>,
    /// How much of it is known to hold no end of a line: a long line comes in many pieces.
    searched: usize,
}

/// What the server wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Ask the work to stop.
    Term,
    /// Kill it.
    Kill,
    /// Nothing any more: the server is gone, or has let go of the run.
    Gone,
}

impl Control {
    /// Takes over standard input.
    pub(super) fn from_stdin() -> io::Result<Control> {
        let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        Ok(Control { stream, unread: Vec::new(), searched: 0 })
    }

    /// Waits for the first line. After it, nothing waits any more.
    pub(super) fn start(&mut self) -> io::Result<Start> {
        let line = loop {
            if let Some(line) = self.line() {
                break line;
            }
            if START_MAX < self.unread.len() {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too long"));
            }
            if self.read()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        self.stream.set_nonblocking(true)?;
        Ok(serde_json::from_slice(&line)?)
    }

    /// The next order, or `None` when there is none yet.
    pub(super) fn order(&mut self) -> Option<Order> {
        loop {
            match self.line() {
                Some(line) if line == TERM.as_bytes() => return Some(Order::Term),
                Some(line) if line == KILL.as_bytes() => return Some(Order::Kill),
                Some(_) => continue,
                None if CHUNK < self.unread.len() => return Some(Order::Gone),
                None => {}
            }
            match self.read() {
                Ok(0) => return Some(Order::Gone),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(_) => return Some(Order::Gone),
            }
        }
    }

    /// Says how it went. A server that is gone does not hear it, and does not need to.
    pub(super) fn tell(&mut self, told: &Told) {
        if let Ok(text) = serde_json::to_vec(told) {
            drop(self.stream.write_all(&text));
        }
    }

    /// Takes the first whole line out of what has been read.
    fn line(&mut self) -> Option<Vec<u8>> {
        let Some(end) = self.unread[self.searched..].iter().position(|byte| *byte == b'\n') else {
            self.searched = self.unread.len();
            return None;
        };
        let mut line: Vec<u8> = self.unread.drain(..=self.searched + end).collect();
        self.searched = 0;
        line.pop();
        Some(line)
    }

    fn read(&mut self) -> io::Result<usize> {
        let mut chunk = [0; CHUNK];
        loop {
            match self.stream.read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => {
                    self.unread.extend_from_slice(&chunk[..*result.as_ref().unwrap_or(&0)]);
                    return result;
                }
            }
        }
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
