//! The server that a command talks to, for as long as it talks: when it dies in between, another node goes on.

use std::sync::{Mutex, PoisonError};

use reqwest::{Method, Response};
use serde_json::Value;

use super::failure::{Failure, Kind};
use super::find_server;
use super::http::{Asked, Http};
use crate::database::DatabaseArgs;

/// A server, and how another one is found.
pub(crate) struct Reached {
    server: Mutex<Http>,
    given: Vec<String>,
    database: DatabaseArgs,
}

impl Reached {
    pub(super) fn new(server: Http, given: Vec<String>, database: DatabaseArgs) -> Reached {
        Reached { server: Mutex::new(server), given, database }
    }

    /// The one that is talked to now.
    pub(crate) fn server(&self) -> Http {
        self.server.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends a request and takes its answer.
    pub(super) async fn send(&self, asked: Asked<'_>) -> Result<Value, Failure> {
        match self.server().send(asked.clone()).await {
            Err(failure) if may_go_elsewhere(&asked, &failure) => match self.elsewhere().await {
                Some(other) => other.send(asked).await,
                None => Err(failure),
            },
            answered => answered,
        }
    }

    /// Opens a stream of events.
    pub(super) async fn open(&self, asked: Asked<'_>) -> Result<Response, Failure> {
        match self.server().open(asked.clone()).await {
            Err(failure) if may_go_elsewhere(&asked, &failure) => match self.elsewhere().await {
                Some(other) => other.open(asked).await,
                None => Err(failure),
            },
            opened => opened,
        }
    }

    /// Another server of the same database, if one answers.
    async fn elsewhere(&self) -> Option<Http> {
        let given: Vec<&str> = self.given.iter().map(String::as_str).collect();
        let other = find_server::find(&given, &self.database).await.ok()?;
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        let is_other = other.url() != server.url();
        is_other.then(|| {
            *server = other.clone();
            other
        })
    }
}

/// Whether the request can be made again without being carried out twice: nobody has heard it, it changes nothing, or it has a key
/// that all servers of a database know it by.
fn may_go_elsewhere(asked: &Asked<'_>, failure: &Failure) -> bool {
    let has_key = asked.headers.iter().any(|(name, _)| *name == "idempotency-key");
    failure.kind == Kind::NoServer && (failure.is_silence() || asked.method == Method::GET || has_key)
}
