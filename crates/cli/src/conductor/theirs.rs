//! The Conductor server that schedules come from.

use std::path::PathBuf;

use clap::Args;
use punctual_agents::process::SecretSource;
use reqwest::{Method, StatusCode, Url};
use serde_json::{Value, json};

use crate::client::{ANSWER_MAX, Failure, Kind, connections};

/// Where the token goes.
const AUTHORIZATION: &str = "x-authorization";

/// Which server, and what lets us in.
#[derive(Debug, Args)]
pub(super) struct TheirArgs {
    /// The Conductor server, with its /api: http://host:8080/api
    #[arg(long, value_name = "URL")]
    from: String,

    /// The id of a key that it lets in
    #[arg(long, value_name = "ID", requires = "secret")]
    key_id: Option<String>,

    /// The variable that holds the secret of the key
    #[arg(long, value_name = "VARIABLE", group = "secret", requires = "key_id")]
    key_secret_env: Option<String>,

    /// The file that holds the secret of the key, readable by nobody else
    #[arg(long, value_name = "FILE", group = "secret", requires = "key_id")]
    key_secret_file: Option<PathBuf>,
}

impl TheirArgs {
    /// The key and its secret, if there are any.
    fn key(&self) -> Result<Option<(&str, String)>, Failure> {
        let Some(id) = self.key_id.as_deref() else { return Ok(None) };
        let secret = match (&self.key_secret_env, &self.key_secret_file) {
            (Some(name), _) => std::env::var(name)
                .map_err(|_| Failure::input(format!("--key-secret-env: there is no variable {name}; export it first"))),
            (None, Some(file)) => SecretSource::File(file.clone())
                .read()
                .map_err(|error| Failure::input(format!("--key-secret-file: {error}"))),
            (None, None) => Err(Failure::input("--key-id needs --key-secret-env or --key-secret-file")),
        };
        Ok(Some((id, secret?)))
    }
}

/// A Conductor server that has let us in.
pub(super) struct Theirs {
    base: Url,
    http: reqwest::Client,
    token: Option<String>,
}

/// What it answered.
struct Answer {
    status: StatusCode,
    body: Value,
}

impl Answer {
    /// What an answer that is no success says, in a line.
    fn said(&self) -> String {
        let message = self.body["message"].as_str().map(|message| format!(": {message}")).unwrap_or_default();
        format!("{}{message}", self.status)
    }
}

impl Theirs {
    /// Signs in, if there is a key.
    pub(super) async fn enter(args: &TheirArgs) -> Result<Theirs, Failure> {
        let base = address(&args.from)?;
        let mut theirs = Theirs { http: connections(&base)?, base, token: None };
        if let Some((id, secret)) = args.key()? {
            theirs.token = Some(theirs.token(id, &secret).await?);
        }
        Ok(theirs)
    }

    /// Its address, as people write it.
    pub(super) fn url(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// What its server says of it is not repeated: some say the secret, too.
    async fn token(&self, id: &str, secret: &str) -> Result<String, Failure> {
        let body = json!({"keyId": id, "keySecret": secret});
        let answer = self.send(Method::POST, self.at(&["token"]), Some(&body)).await?;
        let url = self.url();
        match (answer.status.as_u16(), answer.body["token"].as_str()) {
            (200..300, Some(token)) => Ok(token.to_owned()),
            (400 | 401 | 403, _) => Err(Failure::new(
                Kind::NotAllowed,
                format!("the Conductor at {url} does not take the key {id:?}: are its id and its secret right?"),
            )),
            (404 | 405, _) => Err(Failure::input(format!(
                "the Conductor at {url} gives no tokens: it needs no key, or --from is not the address of its /api"
            ))),
            (status, _) => Err(Failure::new(
                Kind::NoServer,
                format!("the Conductor at {url} gave no token, but status {status}; try again later"),
            )),
        }
    }

    /// All of its schedules.
    pub(super) async fn schedules(&self) -> Result<Vec<Value>, Failure> {
        let answer = self.send(Method::GET, self.at(&["scheduler", "schedules"]), None).await?;
        let (url, said) = (self.url(), answer.said());
        match (answer.status.as_u16(), answer.body) {
            (200..300, Value::Array(schedules)) => Ok(schedules),
            (401 | 403, _) => Err(Failure::new(
                Kind::NotAllowed,
                format!(
                    "the Conductor at {url} does not let us in ({said}): give --key-id with --key-secret-env or \
                     --key-secret-file, of a key that may read schedules"
                ),
            )),
            (200..300 | 404 | 405, _) => Err(Failure::not_found(format!(
                "there is no scheduler of Conductor at {url} (GET /scheduler/schedules: {said}): --from is the address of its \
                 API, as in http://host:8080/api, and its scheduler has to be on"
            ))),
            _ => Err(Failure::new(
                Kind::NoServer,
                format!("the Conductor at {url} could not list its schedules ({said}); try again later"),
            )),
        }
    }

    /// The next time of a schedule that its server tells of itself, where it has such a path. None if it has not.
    pub(super) async fn next_of(&self, name: &str) -> Option<Vec<i64>> {
        let mut url = self.at(&["scheduler", "schedules", name, "next-execution-times"]);
        url.query_pairs_mut().append_pair("count", "1");
        self.times(url).await
    }

    /// The next times of a cron. None if it does not tell.
    pub(super) async fn preview(&self, query: &[(&'static str, String)]) -> Option<Vec<i64>> {
        let mut url = self.at(&["scheduler", "nextFewSchedules"]);
        url.query_pairs_mut().extend_pairs(query);
        self.times(url).await
    }

    async fn times(&self, url: Url) -> Option<Vec<i64>> {
        let answer = self.send(Method::GET, url, None).await.ok().filter(|answer| answer.status.is_success())?;
        answer.body.as_array()?.iter().map(Value::as_i64).collect()
    }

    /// Pauses a schedule. Some servers do it by PUT, some by GET.
    pub(super) async fn pause(&self, name: &str, reason: &str) -> Result<(), Failure> {
        let mut url = self.at(&["scheduler", "schedules", name, "pause"]);
        url.query_pairs_mut().append_pair("reason", reason);
        let mut answer = self.send(Method::PUT, url.clone(), None).await?;
        if answer.status == StatusCode::METHOD_NOT_ALLOWED {
            answer = self.send(Method::GET, url, None).await?;
        }
        if answer.status.is_success() { Ok(()) } else { Err(Failure::new(Kind::Conflict, answer.said())) }
    }

    /// A place of its API. Names travel whole.
    fn at(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        url.path_segments_mut().expect("an address with a host has a path").pop_if_empty().extend(path);
        url
    }

    async fn send(&self, method: Method, url: Url, body: Option<&Value>) -> Result<Answer, Failure> {
        let mut request = self.http.request(method, url).timeout(ANSWER_MAX).header("accept", "application/json");
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let response = request.send().await.map_err(|error| self.lost(&error))?;
        let status = response.status();
        let bytes = response.bytes().await.map_err(|error| self.lost(&error))?;
        Ok(Answer { status, body: serde_json::from_slice(&bytes).unwrap_or_default() })
    }

    /// An answer that did not come.
    fn lost(&self, error: &reqwest::Error) -> Failure {
        let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
        let cause = causes.last().map(|cause| format!(" ({cause})")).unwrap_or_default();
        let text = format!("no Conductor answers at {}{cause}: is it up, and is --from its address?", self.url());
        Failure::new(Kind::NoServer, text)
    }
}

fn address(text: &str) -> Result<Url, Failure> {
    let wrong = |why: &str| Failure::input(format!("--from {why}; use an address like http://host:8080/api"));
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let url = url.ok_or_else(|| wrong("is no address of a server"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("holds a name or a password: --key-id lets us in"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("has something behind its path"));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_plain_or_refused() {
        for url in ["http://conductor.example:8080/api", "https://conductor.example/api/", "http://[::1]:8080"] {
            assert!(address(url).is_ok(), "{url}");
        }
        for url in ["", "host:8080", "ftp://x/api", "http://ann:hunter22@x/api", "http://x/api?a=b"] {
            let refused = address(url).unwrap_err().to_string();
            assert!(refused.contains("use an address like") && !refused.contains("hunter22"), "{refused}");
        }
    }

    #[test]
    fn names_travel_whole() {
        let base = address("http://x/api/").unwrap();
        let theirs = Theirs { http: connections(&base).unwrap(), base, token: None };
        assert_eq!(theirs.at(&["scheduler", "a/b?c%"]).as_str(), "http://x/api/scheduler/a%2Fb%3Fc%25");
    }
}
