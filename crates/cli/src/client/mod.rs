//! The client of a running server: every command that asks or changes something goes through here.
//!
//! In: [`ClientArgs`]. Out: bodies of the API, as JSON. Where no server runs, commands that only look are answered by the
//! server's own routes over the database itself (`inside.rs`), so that there is one shape of everything.

mod events;
mod failure;
mod find;
mod http;
mod inside;
mod place;

pub(crate) use events::Events;
pub(crate) use failure::{EXIT_CODES, Failure, Kind, exit_code};
pub(crate) use find::{
    about_agent, every_face, is_agent, live_runs, meant, run, run_by_id, run_of_agent, schedule, token as find_token,
};
pub(crate) use http::{ANSWER_MAX, Alive, Http, connections};
pub(crate) use place::{ServerFile, reachable};

use clap::Args;
use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::database::{Database, DatabaseArgs};
use http::Asked;

/// The most items that a page of the API has.
pub(crate) const PAGE: usize = 1_000;

/// Which server a command talks to.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClientArgs {
    /// The server [default: the one that serves the database, else http://127.0.0.1:8470]
    #[arg(long, value_name = "URL", env = "PUNCTUAL_URL")]
    server: Option<String>,

    #[command(flatten)]
    pub(crate) database: DatabaseArgs,

    /// Print JSON, as the API has it
    #[arg(long)]
    pub(crate) json: bool,
}

/// Who answers.
pub(crate) enum Client {
    /// A running server.
    Server(Http),
    /// The database, which no server serves.
    Inside(Box<punctual_server::App>),
}

/// What stands behind the question mark.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(&'static str, String)>);

impl Query {
    /// Also asks for this, if there is anything to ask for.
    pub(crate) fn with(mut self, name: &'static str, value: Option<impl ToString>) -> Query {
        self.0.extend(value.map(|value| (name, value.to_string())));
        self
    }
}

impl ClientArgs {
    /// Who answers a command that only looks: a server, or the database itself if nobody serves it.
    pub(crate) async fn look(&self) -> anyhow::Result<Client> {
        let server = self.http()?;
        if self.server.is_some() {
            return Ok(Client::Server(server));
        }
        let is_told = place::left_url(&self.database).is_some();
        let has_file = matches!(&self.database.database, Database::Sqlite(path) if path.exists());
        // The usual address may be the server of another database: a file that is here is looked at itself.
        let alive = if is_told || !has_file { Some(server.alive().await) } else { None };
        match &alive {
            Some(Ok(_)) if is_told || server.has_token() => return Ok(Client::Server(server)),
            // Somebody is there whom we cannot talk to: that is worth more than what a file says.
            Some(Err(failure)) if is_told && !failure.is_silence() => return Err(failure.clone().into()),
            _ => {}
        }
        if let Database::Sqlite(path) = &self.database.database
            && !has_file
        {
            return Err(nobody(&server, path, matches!(alive, Some(Ok(_)))).into());
        }
        if !self.json {
            eprintln!("note: no server is running here; this is what {} says", self.database.database);
        }
        // A store may wait for its database, which nothing else may do here.
        let database = self.database.clone();
        let app = tokio::task::spawn_blocking(move || inside::open(&database)).await??;
        Ok(Client::Inside(Box::new(app)))
    }

    /// Who answers a command that changes something: a server.
    pub(crate) fn server(&self) -> anyhow::Result<Client> {
        Ok(Client::Server(self.http()?))
    }

    /// The server that is meant, whether it answers or not.
    pub(crate) fn http(&self) -> Result<Http, Failure> {
        let left = || place::left_url(&self.database);
        let url = self.server.clone().or_else(left).unwrap_or_else(|| place::DEFAULT_URL.to_owned());
        Http::new(&url, place::token(&self.database))
    }
}

/// There is no database here, and no server that lets us in.
fn nobody(server: &Http, path: &std::path::Path, is_alive: bool) -> Failure {
    let url = server.url();
    if is_alive {
        let text = format!(
            "a server answers at {url}, and there is no token for it here: work in the folder of its database, or set \
             PUNCTUAL_TOKEN to a token of its own"
        );
        return Failure::new(Kind::NotAllowed, text);
    }
    let text = format!(
        "no server answers at {url}, and {} does not exist: `punctual up` starts one and makes it; name another with --server URL \
         or --database ADDRESS",
        path.display()
    );
    Failure::new(Kind::NoServer, text)
}

impl Client {
    /// Asks for one thing.
    pub(crate) async fn get(&self, path: &str, query: &Query) -> Result<Value, Failure> {
        match self {
            Client::Server(server) => server.send(asked(Method::GET, path, &query.0)).await,
            Client::Inside(app) => inside::get(app, path, &query.0).await,
        }
    }

    /// Asks for a list, page by page, up to a number of items.
    pub(crate) async fn list(&self, path: &str, query: &Query, limit: usize) -> Result<Vec<Value>, Failure> {
        self.pages(path, query, limit, |page| page).await
    }

    /// The same for history, whose pages say more than what is on them.
    pub(crate) async fn history(&self, query: &Query, limit: usize) -> Result<Vec<Value>, Failure> {
        self.pages("/api/executions/past", query, limit, |mut page| page["content"].take()).await
    }

    async fn pages(
        &self,
        path: &str,
        query: &Query,
        limit: usize,
        items: impl Fn(Value) -> Value,
    ) -> Result<Vec<Value>, Failure> {
        let size = limit.clamp(1, PAGE);
        let mut all = vec![];
        for page in 0.. {
            let query = query.clone().with("page", Some(page)).with("size", Some(size));
            let Value::Array(found) = items(self.get(path, &query).await?) else { break };
            let is_last = found.len() < size;
            all.extend(found);
            if is_last || limit <= all.len() {
                break;
            }
        }
        all.truncate(limit);
        Ok(all)
    }

    /// Asks for something to be done, once, however often the request has to be sent.
    pub(crate) async fn post(&self, path: &str, query: &Query, body: &Value) -> Result<Value, Failure> {
        let key = uuid::Uuid::now_v7().to_string();
        let headers = vec![("idempotency-key", key)];
        self.change(Asked { headers, body: Some(body), ..asked(Method::POST, path, &query.0) }).await
    }

    /// Asks for a change of what has been seen in a version.
    pub(crate) async fn put(&self, path: &str, query: &Query, version: u64, body: &Value) -> Result<Value, Failure> {
        let headers = vec![("if-match", format!("\"{version}\""))];
        self.change(Asked { headers, body: Some(body), ..asked(Method::PUT, path, &query.0) }).await
    }

    /// Asks for something to be taken away.
    pub(crate) async fn delete(&self, path: &str, query: &Query) -> Result<Value, Failure> {
        self.change(asked(Method::DELETE, path, &query.0)).await
    }

    async fn change(&self, asked: Asked<'_>) -> Result<Value, Failure> {
        match self {
            Client::Server(server) => server.send(asked).await,
            Client::Inside(_) => Err(Failure::new(Kind::NoServer, "this needs a server: start one with `punctual up`")),
        }
    }

    /// Opens a stream of events behind the one with this id.
    pub(crate) async fn stream(&self, path: &str, after: Option<&str>) -> Result<Events, Failure> {
        match self {
            Client::Server(server) => {
                let headers = after.map(|id| ("last-event-id", id.to_owned())).into_iter().collect();
                Ok(Events::new(server.open(Asked { headers, ..asked(Method::GET, path, &[]) }).await?))
            }
            Client::Inside(_) => {
                Err(Failure::new(Kind::NoServer, "nothing more comes without a server: start one with `punctual up`"))
            }
        }
    }
}

fn asked<'a>(method: Method, path: &'a str, query: &'a [(&'static str, String)]) -> Asked<'a> {
    Asked { method, path, query, headers: vec![], body: None }
}

/// A body as a command needs it.
pub(crate) fn read<T: DeserializeOwned>(body: &Value) -> Result<T, Failure> {
    T::deserialize(body)
        .map_err(|error| Failure::input(format!("the server says something else than we know: {error}")))
}

/// A list of them.
pub(crate) fn read_all<T: DeserializeOwned>(bodies: &[Value]) -> Result<Vec<T>, Failure> {
    bodies.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_a_token_for_it_is_not_taken_for_none() {
        let token = place::Token { secret: None, found_in: String::new() };
        let server = Http::new("http://127.0.0.1:8470", token).unwrap();
        let path = std::path::Path::new("punctual.db");
        let alive = nobody(&server, path, true);
        assert_eq!(alive.kind, Kind::NotAllowed);
        assert!(
            alive.to_string().starts_with("a server answers at http://127.0.0.1:8470, and there is no token"),
            "{alive}"
        );
        let silent = nobody(&server, path, false);
        assert_eq!(silent.kind, Kind::NoServer);
        assert!(silent.to_string().contains("punctual.db does not exist"), "{silent}");
    }
}
