//! As much of HTTP/1.1 as clients of Conductor speak: one request after the other, bodies of a known length.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::Seen;

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) content_type: &'static str,
    pub(super) body: String,
}

/// The next request; none when the client has closed the connection.
pub(super) async fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Seen>> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (method, target) = words.next().zip(words.next()).ok_or(io::ErrorKind::InvalidData)?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (method, path, query) = (method.to_owned(), path.to_owned(), query.to_owned());
    let mut headers = vec![];
    loop {
        line.clear();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut seen = Seen { method, path, query, headers, body: Value::Null };
    let length = seen.header("content-length").map_or(Ok(0), str::parse).map_err(|_| io::ErrorKind::InvalidData)?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    seen.body = serde_json::from_slice(&body).unwrap_or_default();
    Ok(Some(seen))
}

/// Answers a request.
pub(super) async fn write(stream: &mut BufReader<TcpStream>, reply: &Reply) -> io::Result<()> {
    let Reply { status, headers, content_type, body } = reply;
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let text =
        format!("HTTP/1.1 {status} \r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n{more}\r\n{body}");
    // In one piece, so that it is one packet.
    stream.write_all(text.as_bytes()).await?;
    stream.flush().await
}
