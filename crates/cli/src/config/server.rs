//! `[server]`: what clients of the API may take.

use serde_json::{Map, Value as Json, json};

use super::print::object;
use super::section::Section;

/// How many connections may come from one other machine, unless the operator says otherwise.
const PER_ADDRESS: u32 = 128;

/// What clients of the API may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerConfig {
    /// How many connections may be open.
    pub(crate) max_connections: u32,
    /// How many of them may come from one address, if the operator says so.
    pub(crate) max_connections_per_address: Option<u32>,
    /// How long a connection may be open without the whole head of a request.
    pub(crate) idle_timeout_seconds: u32,
    /// How long a client may leave what was sent to it unread.
    pub(crate) write_timeout_seconds: u32,
}

impl ServerConfig {
    pub(super) fn read(section: &Section<'_>) -> ServerConfig {
        let given = |key, range| section.get(key).and_then(|value| value.integer(range)).map(|number| number as u32);
        let number = |key, range, default| given(key, range).unwrap_or(default);
        ServerConfig {
            max_connections: number("max_connections", 16..=100_000, 512),
            max_connections_per_address: given("max_connections_per_address", 1..=100_000),
            idle_timeout_seconds: number("idle_timeout_seconds", 1..=3_600, 30),
            write_timeout_seconds: number("write_timeout_seconds", 1..=3_600, 30),
        }
    }

    /// How many connections may come from one address that is not this machine's own.
    pub(crate) fn connections_per_address(&self) -> u32 {
        self.max_connections_per_address.unwrap_or(PER_ADDRESS)
    }

    /// Every key and its value.
    pub(super) fn settings(&self) -> Map<String, Json> {
        object(json!({
            "max_connections": self.max_connections,
            "max_connections_per_address": self.max_connections_per_address,
            "idle_timeout_seconds": self.idle_timeout_seconds,
            "write_timeout_seconds": self.write_timeout_seconds,
        }))
    }
}
