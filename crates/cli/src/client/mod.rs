//! The client of a running server: every command that asks or changes something goes through here.
//!
//! In: [`ClientArgs`]. Out: bodies of the API, as JSON. Where no server runs, commands that only look are answered by the
//! server's own routes over the database itself (`inside.rs`), so that there is one shape of everything.

mod events;
mod failure;
mod find;
mod find_server;
mod http;
mod inside;
mod own_file;
mod place;
mod reached;

pub(crate) use events::Events;
pub(crate) use failure::{EXIT_CODES, Failure, Kind, exit_code};
pub(crate) use find::{
    about_agent, every_face, live_runs, meant, run, run_by_id, run_of_agent, schedule, token as find_token,
};
pub(crate) use http::{ANSWER_MAX, Alive, Http, connections, is_loopback};
pub(crate) use place::{ServerFile, reachable};

use clap::Args;
use reqwest::Method;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::database::{Database, DatabaseArgs};
use http::Asked;
use reached::Reached;

/// The most items that a page of the API has.
pub(crate) const PAGE: usize = 1_000;

/// Which server a command talks to.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClientArgs {
    /// The server; the first that answers, if there are several [default: the one that serves the database]
    #[arg(long, value_name = "URL", env = "PUNCTUAL_URL", value_delimiter = ',')]
    server: Vec<String>,

    #[command(flatten)]
    pub(crate) database: DatabaseArgs,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Who answers.
pub(crate) enum Client {
    /// A running server.
    Server(Box<Reached>),
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
        let failure = match self.http().await {
            Ok(server) => return Ok(self.reached(server)),
            Err(failure) => failure,
        };
        let has_database = match &self.database.database {
            Database::Sqlite(path) => path.exists(),
            Database::Postgres(_) => true,
        };
        // Somebody is there whom we cannot talk to: that is worth more than what a file says.
        if !self.given().is_empty() || !failure.is_silence() || !has_database {
            return Err(failure.into());
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
    pub(crate) async fn server(&self) -> anyhow::Result<Client> {
        Ok(self.reached(self.http().await?))
    }

    /// The server that is meant. One that nobody named is asked whether it is there before anything else is sent to it.
    pub(crate) async fn http(&self) -> Result<Http, Failure> {
        find_server::find(&self.given(), &self.database).await
    }

    /// A client of a server that was found so.
    pub(crate) fn reached(&self, server: Http) -> Client {
        let given = self.given().into_iter().map(str::to_owned).collect();
        Client::Server(Box::new(Reached::new(server, given, self.database.clone())))
    }

    /// The token that would be used, whatever server there is.
    pub(crate) fn token_found_in(&self) -> String {
        place::token(&self.database).found_in
    }

    /// The servers that were named. A variable without a value names none.
    fn given(&self) -> Vec<&str> {
        self.server.iter().map(|url| url.trim()).filter(|url| !url.is_empty()).collect()
    }
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
