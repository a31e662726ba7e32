//! Tokens: got with the operator's key, kept for all attempts, and renewed when the server refuses them.

use std::sync::Arc;

use reqwest::Method;
use reqwest::header::HeaderValue;
use serde::Deserialize;
use tokio::sync::Mutex;

use super::connection::{Asked, Connection};
use super::notes::Notes;
use super::server::AccessKey;
use super::trouble::Trouble;
use crate::redact::Secrets;

/// A key, and the token that was got with it.
#[derive(Debug)]
pub(super) struct Keyring {
    key: AccessKey,
    /// Held while a token is asked for: whoever comes meanwhile waits for that one.
    token: Mutex<Option<Arc<Token>>>,
}

/// A token. It shows itself without what it is.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) value: HeaderValue,
    /// What must not be shown: the token, and the secret that it was got with.
    secrets: Secrets,
}

/// What a server answers to a key.
#[derive(Deserialize)]
struct Given {
    token: String,
}

impl Keyring {
    pub(super) fn new(key: AccessKey) -> Keyring {
        Keyring { key, token: Mutex::default() }
    }

    /// The token, or a new one if there is none or it is the one that was refused. The notes hide it from then on.
    pub(super) async fn token(
        &self,
        connection: &Connection,
        refused: Option<&Arc<Token>>,
        notes: &mut Notes,
    ) -> Result<Arc<Token>, Trouble> {
        let mut kept = self.token.lock().await;
        let is_refused = |token: &Arc<Token>| refused.is_some_and(|refused| Arc::ptr_eq(refused, token));
        if let Some(token) = kept.as_ref().filter(|token| !is_refused(token)) {
            notes.hide(&token.secrets);
            return Ok(Arc::clone(token));
        }
        let token = Arc::new(self.new_token(connection, notes).await?);
        *kept = Some(Arc::clone(&token));
        Ok(token)
    }

    async fn new_token(&self, connection: &Connection, notes: &mut Notes) -> Result<Token, Trouble> {
        let secret = self.key.secret.read().map_err(|error| {
            let message = format!("could not read the secret of the Conductor key {:?}: {error}", self.key.id);
            Trouble::passing("no_key", message).before_the_start()
        })?;
        let mut secrets = Secrets::default();
        secrets.hide("of the Conductor key", &secret);
        notes.hide(&secrets);
        let body = serde_json::json!({"keyId": self.key.id, "keySecret": secret}).to_string();
        let (url, body) = (connection.at(&["token"]), Some(body.into_bytes()));
        let asked = Asked { method: Method::POST, url, idempotency_key: None, body };
        let answer = connection.send(&asked, None).await?;
        if !answer.status.is_success() {
            return Err(asked.refused(&answer, notes));
        }
        let url = &asked.url;
        let given = serde_json::from_slice(&answer.body).ok().filter(|Given { token }| !token.is_empty());
        let mut value = given.as_ref().and_then(|Given { token }| HeaderValue::from_str(token).ok());
        let Some((Given { token }, value)) = given.as_ref().zip(value.as_mut()) else {
            let message = format!("POST {url} was answered with {}, and no token", answer.status);
            return Err(Trouble::passing("bad_answer", message));
        };
        secrets.hide("token of Conductor", token);
        notes.hide(&secrets);
        notes.print(&format!("POST {url}: {}", answer.status.as_u16()));
        value.set_sensitive(true);
        Ok(Token { value: value.clone(), secrets })
    }
}
