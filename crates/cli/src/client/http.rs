//! Requests to a server.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response, Url, header, redirect};
use serde_json::Value;

use super::failure::Failure;
use super::place::Token;

/// Whoever listens takes a connection at once.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// The longest that an answer takes.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(60);

/// A server, and what lets us in.
#[derive(Clone)]
pub(crate) struct Http {
    base: Url,
    token: Token,
    client: reqwest::Client,
}

/// Names the file with the certificate of an authority that is trusted besides those of this system.
const AUTHORITY_VARIABLE: &str = "PUNCTUAL_CA";

fn authority() -> Result<Option<reqwest::Certificate>, Failure> {
    let Some(file) = std::env::var_os(AUTHORITY_VARIABLE).filter(|file| !file.is_empty()) else { return Ok(None) };
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::input(format!("{AUTHORITY_VARIABLE}: {}: {error}", std::path::Path::new(&file).display()))
    };
    let pem = std::fs::read(&file).map_err(|error| wrong(&error))?;
    reqwest::Certificate::from_pem(&pem).map(Some).map_err(|error| wrong(&error))
}

/// What connections to a server are made with.
pub(crate) fn connections(base: &Url) -> Result<reqwest::Client, Failure> {
    let builder = reqwest::Client::builder().connect_timeout(CONNECT_MAX).redirect(redirect::Policy::none());
    // No proxy knows what is on this machine.
    let builder = if is_loopback(base) { builder.no_proxy() } else { builder };
    let builder = match authority()? {
        Some(authority) => builder.add_root_certificate(authority),
        None => builder,
    };
    builder.build().map_err(|error| Failure::input(format!("preparing for {base}: {error}")))
}

/// A request that is about to be sent.
#[derive(Clone)]
pub(super) struct Asked<'a> {
    pub(super) method: Method,
    pub(super) path: &'a str,
    pub(super) query: &'a [(&'static str, String)],
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Option<&'a Value>,
}

/// What a server says of itself to everybody.
#[derive(Debug, Clone)]
pub(crate) struct Alive {
    /// Its release.
    pub(crate) version: String,
    /// Its time, to the second.
    pub(crate) date: Option<String>,
}

impl Http {
    /// A server by its address. A token goes over the network encrypted, or not at all.
    pub(crate) fn new(url: &str, token: Token) -> Result<Http, Failure> {
        let base = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let base = base.ok_or_else(|| {
            Failure::input(format!("--server: {url:?} is no address of a server; use one like http://127.0.0.1:8470"))
        })?;
        if base.scheme() == "http" && !is_loopback(&base) {
            let text =
                format!("--server: {url} is another machine, and the token would travel in the clear; use https://");
            return Err(Failure::input(text));
        }
        let client = connections(&base)?;
        Ok(Http { base, token, client })
    }

    /// Its address, as people write it.
    pub(crate) fn url(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Where the token came from.
    pub(crate) fn token_found_in(&self) -> &str {
        &self.token.found_in
    }

    /// Which server answers there, or why none does.
    pub(crate) async fn alive(&self) -> Result<Alive, Failure> {
        let request = self.client.get(self.at("/health/live", &[])).timeout(CONNECT_MAX);
        let response = request.send().await.map_err(|error| match error.is_timeout() {
            true => Failure::no_server(self.url()),
            false => self.lost(&error),
        })?;
        let stranger = || Failure::new(super::Kind::NoServer, format!("what answers at {} is no Punctual", self.url()));
        if !response.status().is_success() {
            return Err(stranger());
        }
        let date = response.headers().get(header::DATE).and_then(|date| Some(date.to_str().ok()?.to_owned()));
        let health: Value =
            serde_json::from_slice(&response.bytes().await.map_err(|_| stranger())?).unwrap_or_default();
        let version = health["version"].as_str().ok_or_else(stranger)?.to_owned();
        Ok(Alive { version, date })
    }

    /// Sends a request and takes its answer. One that is lost on the way is asked for again: it has a key that the server
    /// knows it by.
    pub(super) async fn send(&self, asked: Asked<'_>) -> Result<Value, Failure> {
        let is_safe = asked.method != Method::PUT && asked.method != Method::DELETE;
        let text = asked.body.map(Value::to_string);
        let request = || self.request(&asked, text.as_deref()).timeout(ANSWER_MAX);
        let response = match request().send().await {
            Err(lost) if is_safe && !lost.is_connect() && !lost.is_timeout() => request().send().await,
            sent => sent,
        };
        let response = self.checked(response).await?;
        let bytes = response.bytes().await.map_err(|error| self.lost(&error))?;
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&bytes).map_err(|_| Failure::input(format!("{} is no Punctual server", self.url())))
    }

    /// Opens a stream of events, which may be silent for a long time.
    pub(super) async fn open(&self, asked: Asked<'_>) -> Result<Response, Failure> {
        let request = self.request(&asked, None).header(header::ACCEPT, "text/event-stream");
        self.checked(request.send().await).await
    }

    fn request(&self, asked: &Asked<'_>, body: Option<&str>) -> RequestBuilder {
        let mut request = self.client.request(asked.method.clone(), self.at(asked.path, asked.query));
        if let Some(secret) = &self.token.secret {
            request = request.bearer_auth(secret);
        }
        for (name, value) in &asked.headers {
            request = request.header(*name, value);
        }
        match body {
            Some(body) => request.header(header::CONTENT_TYPE, "application/json").body(body.to_owned()),
            None => request,
        }
    }

    async fn checked(&self, response: reqwest::Result<Response>) -> Result<Response, Failure> {
        let response = response.map_err(|error| self.lost(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = response.bytes().await.unwrap_or_default();
        Err(Failure::of_answer(status.as_u16(), &body, &format!("the server at {}", self.url()), &self.token.found_in))
    }

    /// An answer that did not come.
    pub(super) fn lost(&self, error: &reqwest::Error) -> Failure {
        let chain = std::iter::successors(std::error::Error::source(error), |error| error.source());
        let cause = chain.last().map(ToString::to_string).unwrap_or_default();
        if error.is_connect() {
            if cause.contains("CaUsedAsEndEntity") {
                let text = format!(
                    "the server at {} is not trusted: its certificate is that of an authority, as `openssl req -x509` makes it; make \
                     one with `-addext basicConstraints=critical,CA:FALSE` and a subjectAltName (docs/running.md has the whole line)",
                    self.url()
                );
                return Failure::new(super::Kind::NoServer, text);
            }
            // Somebody listens, but is not believed to be who we look for.
            if cause.contains("certificate") {
                let text = format!(
                    "the server at {} is not trusted: {cause}; {AUTHORITY_VARIABLE} names the file with the certificate of an \
                     authority to trust",
                    self.url()
                );
                return Failure::new(super::Kind::NoServer, text);
            }
            return Failure::no_server(self.url());
        }
        // What an encrypted port says to a request in the clear is no HTTP.
        if self.base.scheme() == "http" && cause.contains("invalid HTTP") {
            let text = format!("the server at {0} does not speak http; try {1}", self.url(), self.encrypted());
            return Failure::new(super::Kind::NoServer, text);
        }
        if error.is_timeout() {
            let seconds = ANSWER_MAX.as_secs();
            let text = format!(
                "the server at {} has not answered within {seconds} s; what it was asked may be done",
                self.url()
            );
            return Failure::new(super::Kind::NoServer, text);
        }
        let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
        let text = format!("the answer of the server at {} was lost{cause}; what it was asked may be done", self.url());
        Failure::new(super::Kind::NoServer, text)
    }

    fn encrypted(&self) -> String {
        self.url().replacen("http://", "https://", 1)
    }

    fn at(&self, path: &str, query: &[(&'static str, String)]) -> Url {
        let mut url = self.base.clone();
        // A server behind a proxy may live under a path of its own.
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }
}

/// Whether it is this machine's own, whatever network it is in.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http(url: &str) -> Result<Http, Failure> {
        Http::new(url, Token { secret: None, found_in: String::new() })
    }

    #[test]
    fn a_token_never_travels_in_the_clear() {
        for here in ["http://127.0.0.1:8470", "http://localhost:1/", "http://[::1]:8470", "https://punctual.example"] {
            assert!(http(here).is_ok(), "{here}");
        }
        let refused = http("http://punctual.example").err().unwrap();
        assert!(refused.to_string().contains("use https://"), "{refused}");
        for wrong in ["", "127.0.0.1:8470", "ftp://x", "http://"] {
            assert!(http(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_travel_whole_and_a_path_of_the_proxy_stays() {
        let server = http("https://x.example/punctual/").unwrap();
        let url = server.at("/api/schedules", &[("name", "früh & spät?".to_owned())]);
        assert_eq!(url.as_str(), "https://x.example/punctual/api/schedules?name=fr%C3%BCh+%26+sp%C3%A4t%3F");
    }
}
