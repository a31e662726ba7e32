//! Looking without a server: its own routes, over the database that nobody serves.

use std::path::Path;
use std::sync::Arc;

use punctual_engine::clock::StoreClock;
use punctual_engine::edit::Editor;
use punctual_engine::ids::RandomIds;
use punctual_engine::meters::Meters;
use punctual_engine::node::Nudges;
use punctual_server::auth::Doors;
use punctual_server::{App, Pulse};
use reqwest::Url;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::failure::Failure;
use crate::config::Config;
use crate::database::DatabaseArgs;
use crate::up::{house_rules, settings};

/// A configuration that says nothing has all the defaults.
const NOTHING: &str = "/dev/null";

/// No node has this name: nothing is carried out under it.
const NAME: &str = "inside";

/// What a server would answer with, over a database opened to look at.
pub(super) fn open(database: &DatabaseArgs) -> anyhow::Result<App> {
    let store = database.read()?;
    // Calendars and the default zone are the configuration's; a broken one does not keep the past from being read.
    let (config, zones) = Config::load(None).or_else(|error| {
        eprintln!("note: this goes on without the configuration: {error:#}");
        Config::load(Some(Path::new(NOTHING)))
    })?;
    let rules = house_rules(&config, &zones)?;
    let settings = Arc::new(settings(&config, zones, NAME));
    let ids = Arc::new(RandomIds);
    Ok(App {
        editor: Editor::new(Arc::clone(&store), ids.clone(), Arc::clone(&settings)),
        clock: Arc::new(StoreClock::new(Arc::clone(&store))),
        store,
        ids,
        settings,
        rules,
        nudges: Arc::new(Nudges::default()),
        meters: Arc::new(Meters::default()),
        doors: Arc::new(Doors::new(vec![])),
        pulse: Pulse::new(CancellationToken::new()),
        calculations: Default::default(),
    })
}

/// Asks the routes.
pub(super) async fn get(app: &App, path: &str, query: &[(&'static str, String)]) -> Result<Value, Failure> {
    let url = Url::parse_with_params(&format!("http://localhost{path}"), query)
        .map_err(|error| Failure::input(error.to_string()))?;
    let asked = match url.query().filter(|query| !query.is_empty()) {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let answer = punctual_server::look(app.clone(), &asked).await;
    let answer = answer.map_err(|error| Failure::input(format!("reading the database: {error}")))?;
    if !(200..300).contains(&answer.status) {
        return Err(Failure::of_answer(answer.status, &answer.body, "the database", "none"));
    }
    serde_json::from_slice(&answer.body).map_err(|error| Failure::input(format!("reading the database: {error}")))
}

#[cfg(test)]
mod tests {
    use punctual_store::sqlite::SqliteStore;

    use super::super::failure::Kind;
    use super::*;
    use crate::database::{Database, wait};

    #[test]
    fn whoever_has_the_database_may_look_at_it_and_at_no_token() {
        let folder = std::env::temp_dir().join(format!("punctual-inside-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.db");
        drop(SqliteStore::open(&path).unwrap());
        let app = open(&DatabaseArgs { database: Database::Sqlite(path) }).unwrap();
        wait(async {
            let found = get(&app, "/api/schedules", &[("name", "früh & spät".to_owned())]).await;
            assert_eq!(found.unwrap(), serde_json::json!([]));
            assert_eq!(get(&app, "/api/tokens", &[]).await.unwrap_err().kind, Kind::NotAllowed);
            assert_eq!(get(&app, "/api/nowhere", &[]).await.unwrap_err().kind, Kind::NotFound);
            let wrong = get(&app, "/api/executions/past", &[("size", "0".to_owned())]).await.unwrap_err();
            assert_eq!(wrong.kind, Kind::Input, "{wrong}");
        })
        .unwrap();
        std::fs::remove_dir_all(&folder).ok();
    }
}
