//! What a server cannot go on without, beside its node. A part that ends before it is told to ends the process.

use anyhow::{Context, anyhow};
use punctual_store::catch_panic;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// The parts of a server that run beside its node.
#[derive(Default)]
pub(super) struct Watched {
    parts: JoinSet<anyhow::Result<()>>,
    endless: JoinSet<anyhow::Result<()>>,
}

impl Watched {
    /// Lets a part run. It ends when it is told to, by means of its own.
    pub(super) fn spawn(
        &mut self,
        name: &'static str,
        part: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) {
        self.parts.spawn(named(name, part));
    }

    /// The same on other threads.
    pub(super) fn spawn_on(
        &mut self,
        name: &'static str,
        threads: &Handle,
        part: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) {
        self.parts.spawn_on(named(name, part), threads);
    }

    /// Lets a part run as long as the process does.
    pub(super) fn spawn_endless(
        &mut self,
        name: &'static str,
        part: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) {
        self.endless.spawn(named(name, part));
    }

    /// Waits until a part fails.
    pub(super) async fn failed(&mut self) -> anyhow::Error {
        loop {
            let ended = tokio::select! {
                Some(ended) = self.parts.join_next() => ended,
                Some(ended) = self.endless.join_next() => ended,
                else => return std::future::pending().await,
            };
            if let Err(error) = ended.map_err(anyhow::Error::from).flatten() {
                return error;
            }
        }
    }

    /// Waits until all have ended that are told to. Fails with the first that has failed.
    pub(super) async fn ended(mut self) -> anyhow::Result<()> {
        while let Some(ended) = self.parts.join_next().await {
            ended??;
        }
        Ok(())
    }
}

/// A part that says who it is when it fails.
async fn named(name: &'static str, part: impl Future<Output = anyhow::Result<()>> + Send) -> anyhow::Result<()> {
    let panicked = |why| Err(anyhow!("it has panicked: {why}; this is a bug in Punctual"));
    let ended = catch_panic(part).await.unwrap_or_else(panicked);
    ended.with_context(|| format!("the {name} cannot go on"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_part_that_fails_says_why() {
        let mut watched = Watched::default();
        watched.spawn("part that ends", async { Ok(()) });
        watched.spawn("part that goes on", std::future::pending());
        watched.spawn("part that panics", async { panic!("the test wants it so") });
        let error = format!("{:#}", watched.failed().await);
        assert!(
            error.starts_with("the part that panics cannot go on: it has panicked: the test wants it so"),
            "{error}"
        );
    }
}
