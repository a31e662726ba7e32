//! A client of the API: one request, one connection, nothing clever.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::described::check_answer;
use crate::support::Place;

/// A client with a token, or without one.
#[derive(Clone)]
pub(crate) struct Client {
    address: String,
    token: Option<String>,
}

/// What the server said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) text: String,
}

impl Client {
    /// A client of the server in a place that has come up, with the token of whoever started it.
    pub(crate) fn of(place: &Place) -> Client {
        place.until("the server says where it is", |place| place.read("log").contains("has joined"));
        let log = place.read("log");
        let address = log.lines().rev().find_map(|line| line.trim().strip_prefix("API        http://"));
        let file = if place.path("punctual.db.token").exists() { "punctual.db.token" } else { "punctual.token" };
        let token = Some(place.read(file).trim().to_owned());
        Client { address: address.expect("it says so").to_owned(), token }
    }

    pub(crate) fn with_token(&self, token: Option<&str>) -> Client {
        Client { address: self.address.clone(), token: token.map(str::to_owned) }
    }

    /// Where the server is.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], None)
    }

    pub(crate) fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, &[], Some(body))
    }

    pub(crate) fn put(&self, path: &str, body: Value) -> Answer {
        self.send("PUT", path, &[], Some(body))
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, &[], None)
    }

    /// Sends a request with more headers.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<Value>) -> Answer {
        self.try_send(method, path, headers, body).expect("the server listens")
    }

    /// The same, to a server that may not be there.
    pub(crate) fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> Option<Answer> {
        let body = body.map(|body| body.to_string());
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        let has = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        if !has("host") {
            request += &format!("Host: {}\r\n", self.address);
        }
        if let Some(token) = &self.token {
            request += &format!("Authorization: Bearer {token}\r\n");
        }
        if let Some(body) = &body {
            if !has("content-type") {
                request += "Content-Type: application/json\r\n";
            }
            request += &format!("Content-Length: {}\r\n", body.len());
        }
        headers.iter().for_each(|(name, value)| request += &format!("{name}: {value}\r\n"));
        request += "\r\n";
        request += &body.unwrap_or_default();
        let answer = self.try_raw(request.as_bytes())?;
        // An answer that was cut off is none.
        if answer.status != 0 {
            check_answer(method, path, answer.status, answer.header("content-type"), &answer.text);
        }
        Some(answer)
    }

    /// Opens a stream of events. What has come so far is read line by line.
    pub(crate) fn stream(&self, path: &str, headers: &[(&str, &str)]) -> BufReader<TcpStream> {
        let mut request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n", self.address);
        request += &format!("Authorization: Bearer {}\r\n", self.token.as_deref().unwrap_or_default());
        headers.iter().for_each(|(name, value)| request += &format!("{name}: {value}\r\n"));
        request += "\r\n";
        let mut stream = TcpStream::connect(&self.address).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        BufReader::new(stream)
    }

    /// Sends bytes as they are.
    pub(crate) fn raw(&self, request: &[u8]) -> Answer {
        self.try_raw(request).expect("the server listens")
    }

    fn try_raw(&self, request: &[u8]) -> Option<Answer> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // A server that has seen enough may close while we still write.
        stream.write_all(request).ok();
        let mut bytes = vec![];
        let mut piece = [0; 16 * 1024];
        // A stream of events has no end: its head is enough.
        while let Ok(count @ 1..) = stream.read(&mut piece) {
            bytes.extend_from_slice(&piece[..count]);
            if String::from_utf8_lossy(&bytes).contains("content-type: text/event-stream") {
                break;
            }
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let body = if is_chunked { unchunked(body) } else { body.to_owned() };
        Some(Answer { status, head: head.to_owned(), text: body })
    }
}

fn unchunked(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        text += &rest[..size.min(rest.len())];
        body = rest.get(size + 2..).unwrap_or_default();
    }
    text
}

impl Answer {
    /// The body, which must be JSON, of an answer with this status.
    pub(crate) fn json(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}\n{}", self.head, self.text);
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The code of a problem with this status.
    pub(crate) fn problem(&self, status: u16) -> String {
        let problem = self.json(status);
        assert_eq!(problem["status"], status);
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{}", self.head);
        problem["code"].as_str().expect("a problem has a code").to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}
