//! The configuration that schedules are added to. What is there stays as it is.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::fragment::Names;
use crate::config::{Config, RunnerConfig};

/// A configuration, or the place for one.
pub(super) struct Target {
    pub(super) path: PathBuf,
    /// What it holds; none, if it is not there.
    before: Option<(String, Config)>,
}

impl Target {
    /// Reads what is there, which has to be right.
    pub(super) fn read(path: &Path) -> anyhow::Result<Target> {
        let before = match std::fs::read_to_string(path) {
            Ok(text) => Some((text, Config::load(Some(path))?.0)),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
        };
        Ok(Target { path: path.to_owned(), before })
    }

    /// What it has already.
    pub(super) fn names(&self) -> Names {
        let Some((_, config)) = &self.before else { return Names::default() };
        let agents = config.agents.keys().cloned();
        let schedules = config.schedules.iter().map(|schedule| schedule.name.clone());
        let commands = config.agents.iter().map(|(name, agent)| {
            let RunnerConfig::Process(process) = &agent.runner;
            (process.command.clone(), name.clone())
        });
        Names { taken: agents.chain(schedules).collect(), commands: commands.collect() }
    }

    /// Whether it would be right with this behind what it has.
    pub(super) fn check(&self, text: &str) -> anyhow::Result<()> {
        Config::of_text(&self.whole(text), &self.path)
            .map(drop)
            .with_context(|| format!("{} would not be right any more, and is left as it is", self.path.display()))
    }

    fn whole(&self, text: &str) -> String {
        let before = self.before.as_ref().map(|(before, _)| before.as_str()).unwrap_or_default();
        format!("{before}{}", self.added(text))
    }

    /// What is written: a line that has no end gets one, and an empty line stands between.
    fn added(&self, text: &str) -> String {
        match &self.before {
            Some((before, _)) if !before.is_empty() => {
                let end = if before.ends_with('\n') { "\n" } else { "\n\n" };
                format!("{end}{text}")
            }
            _ => text.to_owned(),
        }
    }

    /// Adds it, in one write, so that a server that watches the file sees all of it or nothing. The variables of a crontab may be
    /// secrets: a file that is made is for its owner alone.
    pub(super) fn append(&self, text: &str) -> anyhow::Result<()> {
        let mut options = OpenOptions::new();
        match self.before {
            Some(_) => options.append(true),
            None => options.write(true).create_new(true).mode(0o600),
        };
        let written = options.open(&self.path).and_then(|mut file| {
            file.write_all(self.added(text).as_bytes())?;
            file.sync_all()
        });
        written.with_context(|| format!("adding to {}", self.path.display()))
    }
}
