//! Reading the configuration again while the server runs: when the file changes, or on SIGHUP.
//!
//! Agents, limits, prices and the schedules of the file are taken over; what is at work goes on as it began. A file that is wrong
//! changes nothing, and is told; so does one that is empty or gone, since that is how a file looks while it is being replaced.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use punctual_engine::clock::Clock;
use punctual_engine::edit::Editor;
use punctual_engine::node::Nudges;
use punctual_engine::runner::Runners;
use punctual_engine::settings::Settings;
use punctual_store::Store;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::{build, sync};
use crate::config::{Config, DEFAULT_FILE};

/// How often the file is looked at. It is read when it has been the same for two looks: nobody is writing it then.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long the store may take to hear which agents this node has now.
const HEARD_AFTER: Duration = Duration::from_secs(1);

/// The largest file that is read again.
const FILE_MAX: u64 = 16 * 1024 * 1024;

/// What a new configuration is taken over into.
pub(super) struct Reloader {
    pub(super) file: Option<PathBuf>,
    /// What the file was when it was read: whoever writes it while the server starts is heard too.
    pub(super) read_at: Stamp,
    pub(super) config: Config,
    pub(super) store: Arc<dyn Store>,
    pub(super) editor: Editor,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) settings: Arc<Settings>,
    pub(super) runners: Arc<Runners>,
    pub(super) nudges: Arc<Nudges>,
}

/// What tells one state of a file from another.
pub(super) type Stamp = Option<(SystemTime, u64)>;

impl Reloader {
    /// Watches the file until `stop`.
    pub(super) async fn watch(mut self, stop: CancellationToken) -> anyhow::Result<()> {
        let mut asked = signal(SignalKind::hangup()).context("watching for SIGHUP")?;
        let path = self.file.clone().unwrap_or_else(|| DEFAULT_FILE.into());
        let (mut taken, mut seen) = (self.read_at, self.read_at);
        loop {
            let is_asked = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                _ = asked.recv() => true,
                () = tokio::time::sleep(LOOK_EVERY) => false,
            };
            let found = stamp(&path);
            let is_written = found == std::mem::replace(&mut seen, found) && found != taken;
            if is_asked || is_written {
                taken = found;
                match self.read_again().await {
                    Ok(()) => {}
                    Err(error) => error!("the configuration is not taken over, the old one stays in force: {error:#}"),
                }
            }
        }
    }

    /// What is wrong with a file that says nothing.
    fn blank(&self) -> String {
        let path = self.file.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
        let what = if path.exists() { "is empty" } else { "is gone" };
        format!(
            "{} {what}; take out the [[schedules]] and leave the [agents] to delete schedules, and stop the server to end it",
            path.display()
        )
    }

    /// A pipe would be waited for, on a thread that the engine needs.
    fn refuse_what_may_block(&self) -> anyhow::Result<()> {
        let path = self.file.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
        let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
        anyhow::ensure!(metadata.is_file(), "{} is no regular file; the configuration stays as it is", path.display());
        anyhow::ensure!(
            metadata.len() <= FILE_MAX,
            "{} has {} bytes, and {FILE_MAX} are read at most; the configuration stays as it is",
            path.display(),
            metadata.len()
        );
        Ok(())
    }

    async fn read_again(&mut self) -> anyhow::Result<()> {
        self.refuse_what_may_block()?;
        let (config, _) = Config::load(self.file.as_deref())?;
        anyhow::ensure!(!config.is_blank, "{}", self.blank());
        let runners = build::runners(&config)?;
        // The roster first: what is to be asked about an agent is known before anything can carry it out.
        self.settings.roster.exchange(build::agents(&config));
        self.runners.exchange(runners);
        let others = config.without_what_is_reloaded() != self.config.without_what_is_reloaded();
        self.config = config;
        // Other nodes see at once which agents this one has, and so does the comparison below.
        self.nudges.run_cancelled();
        tokio::time::sleep(HEARD_AFTER).await;
        let synced = sync::schedules(&*self.store, &self.editor, &self.config, self.clock.now()).await?;
        let workflows = self.settings.roster.now().workflows;
        sync::workflows(&*self.store, &self.editor, &workflows, self.clock.now()).await?;
        self.nudges.schedules_changed();
        info!("the configuration was read again: agents: {}, schedules: {synced}", self.config.agents.len());
        if others {
            warn!(
                "what has changed in [engine], calendars, default_timezone and tzdb comes into force with the next start"
            );
        }
        Ok(())
    }
}

/// What the file that is named, or the usual one, is now.
pub(super) fn stamp_of(file: Option<&Path>) -> Stamp {
    stamp(file.unwrap_or(Path::new(DEFAULT_FILE)))
}

fn stamp(path: &Path) -> Stamp {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
