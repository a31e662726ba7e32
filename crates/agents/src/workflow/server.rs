//! The server that workflows are started at.

use std::time::Duration;

use reqwest::Url;

use crate::secrets::SecretSource;

/// How long a server may take for one answer, unless it is said otherwise.
pub const ANSWER_DEFAULT: Duration = Duration::from_secs(60);

/// A Conductor server, as the operator names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConductorServer {
    /// The base of its API: `http://host:8080/api`. A slash at the end does not matter.
    pub url: String,
    /// What lets us in, if it asks for something.
    pub key: Option<AccessKey>,
    /// How long it may take for one answer.
    pub answer_max: Duration,
}

/// An access key of a Conductor server. Tokens are got with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessKey {
    /// Its id, which is no secret.
    pub id: String,
    /// Where its secret is. It is read whenever a token is asked for.
    pub secret: SecretSource,
}

/// Why workflows cannot be started at a server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Its address is none. The address is not repeated, as it may hold a password.
    #[error("the address of the Conductor server {0}; use one like http://127.0.0.1:8080/api")]
    Address(&'static str),
    /// There is no way to make connections.
    #[error("preparing connections to the Conductor server")]
    Connections(#[source] reqwest::Error),
}

impl ConductorServer {
    /// A server that lets everybody in.
    pub fn new(url: impl Into<String>) -> ConductorServer {
        ConductorServer { url: url.into(), key: None, answer_max: ANSWER_DEFAULT }
    }

    /// The same, with a key.
    #[must_use]
    pub fn with_key(self, id: impl Into<String>, secret: SecretSource) -> ConductorServer {
        ConductorServer { key: Some(AccessKey { id: id.into(), secret }), ..self }
    }

    /// The address, checked.
    pub(super) fn address(&self) -> Result<Url, ServerError> {
        let url = Url::parse(&self.url).map_err(|_| ServerError::Address("is not an address"))?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(ServerError::Address("is neither http:// nor https://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ServerError::Address("holds a name or a password; a key lets us in"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(ServerError::Address("has something behind its path"));
        }
        Ok(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_plain_or_refused() {
        for url in ["http://127.0.0.1:8080/api", "https://conductor.example/api/", "http://[::1]:8080"] {
            assert!(ConductorServer::new(url).address().is_ok(), "{url}");
        }
        for url in ["", "conductor:8080", "ftp://x/api", "http://ann:hunter22@x/api", "http://x/api?a=b", "http://x/#a"]
        {
            let error = ConductorServer::new(url).address().unwrap_err().to_string();
            assert!(!error.contains("hunter22"), "{error}");
        }
    }
}
