//! A server that says what a test wants it to say: for what a real one says only under rare circumstances.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// Method and path.
    pub(crate) line: String,
    /// The headers, in small letters.
    pub(crate) head: String,
    pub(crate) body: String,
}

/// What it says to a request: a content type and a body, after which the connection is closed.
pub(crate) type Says = fn(&Asked) -> Option<(&'static str, String)>;

/// A server that lives as long as the test.
pub(crate) struct StandIn {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl StandIn {
    pub(crate) fn new(says: Says) -> StandIn {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(vec![]));
        let heard = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let Some(request) = read(&stream) else { continue };
                heard.lock().unwrap().push(request.clone());
                let answer = match says(&request) {
                    Some((kind, body)) => {
                        format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n{body}")
                    }
                    None => "HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n{\"code\":\"no_route\"}".to_owned(),
                };
                stream.write_all(answer.as_bytes()).ok();
            }
        });
        StandIn { url, asked }
    }

    /// What it was asked whose line begins so.
    pub(crate) fn asked(&self, line: &str) -> Vec<Asked> {
        self.asked.lock().unwrap().iter().filter(|it| it.line.starts_with(line)).cloned().collect()
    }
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut head = String::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        if header.trim().is_empty() {
            break;
        }
        head += &header.to_ascii_lowercase();
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    Some(Asked { line, head, body: String::from_utf8(body).ok()? })
}
