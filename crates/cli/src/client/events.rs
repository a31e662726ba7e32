//! A stream of server-sent events, read as it comes.

use std::collections::VecDeque;

use reqwest::Response;

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// What kind it is.
    pub(crate) kind: String,
    /// What to come again with.
    pub(crate) id: Option<String>,
    /// What it says.
    pub(crate) data: String,
}

/// Events as they come.
pub(crate) struct Events {
    response: Response,
    reader: Reader,
}

impl Events {
    pub(super) fn new(response: Response) -> Events {
        Events { response, reader: Reader::default() }
    }

    /// The next event; none when the stream has ended, be it by its server or by the way to it.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.reader.ready.pop_front() {
                return Some(event);
            }
            let chunk = self.response.chunk().await.ok()??;
            self.reader.take(&chunk);
        }
    }
}

/// Puts events together from pieces that end anywhere.
#[derive(Debug, Default)]
struct Reader {
    rest: Vec<u8>,
    event: Event,
    ready: VecDeque<Event>,
}

impl Reader {
    fn take(&mut self, chunk: &[u8]) {
        self.rest.extend_from_slice(chunk);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            self.line(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']));
        }
    }

    fn line(&mut self, line: &str) {
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            if !event.data.is_empty() || !event.kind.is_empty() {
                self.ready.push_back(event);
            }
            return;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => self.event.kind = value.to_owned(),
            "id" => self.event.id = Some(value.to_owned()),
            "data" => {
                if !self.event.data.is_empty() {
                    self.event.data.push('\n');
                }
                self.event.data += value;
            }
            // A comment keeps the connection alive and says nothing.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_whole_however_the_pieces_end() {
        let text =
            ": hello\n\nevent: output\r\nid: 7\r\ndata: {\"text\":\"grün\"}\r\n\r\nevent:over\n\ndata: a\ndata: b\n\n";
        let event = |kind: &str, id: Option<&str>, data: &str| Event {
            kind: kind.to_owned(),
            id: id.map(str::to_owned),
            data: data.to_owned(),
        };
        let all = [event("output", Some("7"), "{\"text\":\"grün\"}"), event("over", None, ""), event("", None, "a\nb")];
        for size in 1..text.len() {
            let mut reader = Reader::default();
            text.as_bytes().chunks(size).for_each(|chunk| reader.take(chunk));
            assert_eq!(Vec::from(reader.ready), all, "pieces of {size}");
        }
    }
}
