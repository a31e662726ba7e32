//! A Conductor server, and what lets us in.

use super::answer::Answer;
use super::connection::{Asked, Connection};
use super::keyring::Keyring;
use super::notes::Notes;
use super::server::{ConductorServer, ServerError};
use super::trouble::Trouble;

/// A server that is asked with the operator's key, if it has one.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) connection: Connection,
    keyring: Option<Keyring>,
}

impl Client {
    pub(super) fn new(server: ConductorServer) -> Result<Client, ServerError> {
        let connection = Connection::new(&server)?;
        Ok(Client { connection, keyring: server.key.map(Keyring::new) })
    }

    /// Sends a request and takes its answer. If the server refuses the token, once more with a new one.
    pub(super) async fn ask(&self, asked: &Asked, notes: &mut Notes) -> Result<Answer, Trouble> {
        let connection = &self.connection;
        let Some(keyring) = &self.keyring else { return connection.send(asked, None).await };
        let token = keyring.token(connection, None, notes).await?;
        let answer = connection.send(asked, Some(&token.value)).await?;
        if !answer.wants_token() {
            return Ok(answer);
        }
        notes.print(&format!("{} {}: {}, the token is renewed", asked.method, asked.url, answer.status.as_u16()));
        let token = keyring.token(connection, Some(&token), notes).await?;
        connection.send(asked, Some(&token.value)).await
    }
}
