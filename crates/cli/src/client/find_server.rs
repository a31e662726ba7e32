//! Which server a command talks to.
//!
//! In: what was named, and the database. Out: a server that may be given a token. In this order: those that were named; the one
//! whose record lies beside the database; the living nodes that a PostgreSQL database knows of. Nothing else is asked.
//! Invariant: a token goes to no address that somebody else than the user, the server of the database or the database itself
//! could have written.

use std::sync::Arc;

use punctual_engine::clock::{Clock, StoreClock};
use punctual_store::NodeRecord;
use reqwest::Url;

use super::failure::{Failure, Kind};
use super::http::{Http, is_loopback};
use super::place;
use crate::database::{Database, DatabaseArgs};

pub(super) async fn find(given: &[&str], database: &DatabaseArgs) -> Result<Http, Failure> {
    let token = || place::token(database);
    match given {
        [] => {}
        [one] => return Http::new(one, token()),
        several => {
            let servers = several.iter().map(|url| Http::new(url, token())).collect::<Result<_, _>>()?;
            return first_alive(servers).await;
        }
    }
    let left = match place::left_url(database)? {
        Some(url) => first_alive(vec![Http::new(&url, token())?]).await,
        None => Err(none_here(database)),
    };
    match (&database.database, left) {
        (Database::Postgres(_), Err(failure)) => {
            let nodes = living(database).await?;
            let here = crate::machine::id();
            let (servers, unreachable) = reachable(&nodes, &here);
            let servers = servers.iter().map(|url| Http::new(url, token())).collect::<Result<Vec<_>, _>>()?;
            match servers.is_empty() {
                true if unreachable.is_empty() => Err(failure),
                true => {
                    Err(Failure::none_here(format!("no node can be reached from here: {}", unreachable.join("; "))))
                }
                false => first_alive(servers).await,
            }
        }
        (_, left) => left,
    }
}

/// The first that answers, else what is wrong with all of them. Several that are dead cost a few seconds each at most.
async fn first_alive(servers: Vec<Http>) -> Result<Http, Failure> {
    let mut failures: Vec<Failure> = vec![];
    for server in servers {
        match server.alive().await {
            Ok(_) => return Ok(server),
            Err(failure) => failures.push(failure),
        }
    }
    // Silence of one is no word about another that somebody answers for.
    let is_silence = failures.iter().all(Failure::is_silence);
    match (<[Failure; 1]>::try_from(failures), is_silence) {
        (Ok([failure]), _) => Err(failure),
        (Err(failures), is_silence) => {
            let text = failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  ");
            Err(if is_silence { Failure::none_here(text) } else { Failure::new(Kind::NoServer, text) })
        }
    }
}

/// No record of a server lies here.
fn none_here(database: &DatabaseArgs) -> Failure {
    let record = database.server_file();
    Failure::none_here(match &database.database {
        Database::Sqlite(path) if !path.exists() => format!(
            "no server is running here, and {} does not exist: `punctual up` starts one and makes it; name another with \
             --server URL or --database ADDRESS",
            path.display()
        ),
        shown => format!(
            "no server is running here: {shown} has none ({} does not exist); `punctual up` starts one, or name another with \
             --server URL",
            record.display()
        ),
    })
}

/// The nodes of the database whose leases have not ended. Whoever knows its password may read them, and whoever could write
/// them there could make tokens, too.
async fn living(database: &DatabaseArgs) -> Result<Vec<NodeRecord>, Failure> {
    let opened = database.clone();
    // A store may wait for its database, which nothing else may do here.
    let store = tokio::task::spawn_blocking(move || opened.read()).await;
    let store = store.map_err(|error| Failure::new(Kind::NoServer, error.to_string()))?;
    let store = store.map_err(|error| Failure::new(Kind::NoServer, format!("{error:#}")))?;
    let now = StoreClock::new(Arc::clone(&store)).now();
    let nodes = store.nodes().await;
    let nodes =
        nodes.map_err(|error| Failure::new(Kind::NoServer, format!("reading {}: {error}", database.database)))?;
    Ok(nodes.into_iter().filter(|node| now < node.lease_until).collect())
}

/// The addresses under which nodes can be reached from this machine, and a word about the others.
fn reachable(nodes: &[NodeRecord], here: &str) -> (Vec<String>, Vec<String>) {
    let (mut urls, mut others) = (vec![], vec![]);
    for node in nodes {
        let parsed = node.about.url.as_deref().and_then(|url| Url::parse(url).ok());
        match (&node.about.url, parsed) {
            // A loopback address is another server's on another machine, and it would get the token.
            (Some(url), Some(parsed)) if is_loopback(&parsed) && node.about.machine.as_deref() != Some(here) => {
                others.push(format!(
                    "node {} is at {url} of another machine (`up --advertise URL` tells another address)",
                    node.name
                ));
            }
            (Some(url), Some(parsed)) if parsed.scheme() == "https" || is_loopback(&parsed) => urls.push(url.clone()),
            _ => others.push(format!("node {} does not say where it is (`up --advertise URL` does)", node.name)),
        }
    }
    (urls, others)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use punctual_core::{Elapsed, NodeId};
    use punctual_store::About;

    use super::*;

    fn node(url: Option<&str>, machine: Option<&str>) -> NodeRecord {
        NodeRecord {
            id: NodeId(uuid::Uuid::nil()),
            name: "blue".to_owned(),
            joined_at: Timestamp::UNIX_EPOCH,
            lease_until: Timestamp::UNIX_EPOCH,
            lease: Elapsed::from_seconds(30),
            agents: [].into(),
            about: About { url: url.map(str::to_owned), machine: machine.map(str::to_owned), ..About::default() },
        }
    }

    #[test]
    fn a_token_goes_to_no_node_that_is_another_server_when_seen_from_here() {
        let check = |url, machine, is_good: bool| {
            let (urls, others) = reachable(&[node(url, machine)], "here");
            assert_eq!((urls.len(), others.len()), if is_good { (1, 0) } else { (0, 1) }, "{url:?} {machine:?}");
        };
        check(Some("http://127.0.0.1:8470"), Some("here"), true);
        check(Some("http://127.0.0.1:8470"), Some("there"), false);
        check(Some("http://localhost:8470"), None, false);
        check(Some("https://[::1]:8470"), Some("there"), false);
        check(Some("https://blue.example:8470"), Some("there"), true);
        check(Some("http://blue.example:8470"), Some("there"), false);
        check(Some("ftp://blue.example"), Some("here"), false);
        check(None, Some("here"), false);
    }
}
