//! What the configuration names and this machine does not have: programs, folders, secrets.
//!
//! Nothing of it makes a configuration wrong: it may be meant for another machine, and programs come and go.

use punctual_agents::process::{Need, SecretSource};
use serde::Serialize;
use toml::de::{DeTable, DeValue};

use super::error::{Position, position};
use super::{Config, RunnerConfig};
use crate::up::process_agent;

/// Something that is not here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Missing {
    /// Where the file names it.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) position: Option<Position>,
    /// The key that names it.
    pub(crate) key: String,
    /// What is wrong.
    pub(crate) problem: String,
    /// What to do about it.
    pub(crate) fix: String,
    /// Whether a server that is started elsewhere on this machine would lack it, too: not so for its variables.
    #[serde(rename = "certain")]
    pub(crate) is_certain: bool,
    #[serde(skip)]
    path: Vec<String>,
}

impl Config {
    /// What is not here, as far as this user and this environment can tell.
    pub(crate) fn missing(&self) -> Vec<Missing> {
        let mut all = vec![];
        let mut add = |path: Vec<String>, problem: String, fix: &str, is_certain: bool| {
            let (key, fix) = (path.join("."), fix.to_owned());
            all.push(Missing { position: None, key, problem, fix, is_certain, path });
        };
        for (name, agent) in &self.agents {
            let RunnerConfig::Process(process) = &agent.runner;
            for lack in process_agent(process).lacks(|name| std::env::var_os(name)) {
                let mut path = vec!["agents".to_owned(), name.clone()];
                match lack.need {
                    Need::Folder => path.push("folder".to_owned()),
                    Need::Program => path.push("command".to_owned()),
                    Need::Secret(secret) => path.extend(["secrets".to_owned(), secret]),
                }
                add(path, lack.problem, lack.fix, lack.is_certain);
            }
        }
        if let Some(source) = &self.conductor.key_secret
            && let Err(error) = source.read()
        {
            let path = vec!["conductor".to_owned(), "key_secret".to_owned()];
            let is_certain = matches!(source, SecretSource::File(_));
            let problem = match source {
                SecretSource::Env(name) => format!("the variable {name} is not set here"),
                SecretSource::File(_) => error.to_string(),
            };
            add(path, problem, "give it to the server's user alone", is_certain);
        }
        all
    }
}

/// Finds the places in the text that name what is missing.
pub(super) fn placed(missing: Vec<Missing>, text: &str) -> Vec<Missing> {
    let Ok(table) = DeTable::parse(text) else { return missing };
    let find = |path: &[String]| {
        let (mut table, mut at) = (table.get_ref(), None);
        for name in path {
            let (key, value) = table.iter().find(|(key, _)| key.get_ref() == name.as_str())?;
            at = Some(key.span().start);
            match value.get_ref() {
                DeValue::Table(inner) => table = inner,
                // The rest of the path lies in a value.
                _ => break,
            }
        }
        at.map(|at| position(text, at))
    };
    missing.into_iter().map(|it| Missing { position: find(&it.path), ..it }).collect()
}
