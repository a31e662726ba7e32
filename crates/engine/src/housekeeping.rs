//! Housekeeping: what is old enough is let go.
//!
//! A loop of its own, so that nothing waits for it: letting go of much takes long. It works on the node that plans. What fails is
//! told, tried again, and holds up neither the other chores nor anything else.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use punctual_core::Elapsed;
use punctual_store::{Result, Store};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::clock::Clock;
use crate::planner::later;
use crate::planner_lease::Term;
use crate::settings::Settings;

/// How often it is looked whether something is to be done.
const LOOK_EVERY: SignedDuration = SignedDuration::from_secs(5);

/// How often answers, output and old entries are let go.
const LET_GO_EVERY: SignedDuration = SignedDuration::from_mins(10);

/// When that is first done, and when it is tried again: a start, and a store that fails, have better things to do.
const LET_GO_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// How long a request that comes again is known.
const ANSWERS_KEPT: Elapsed = Elapsed::from_seconds(86_400);

/// Lets old things go.
pub(crate) struct Housekeeping {
    store: Arc<dyn Store>,
    settings: Arc<Settings>,
    let_go_at: Option<Timestamp>,
    /// How far the journal went when records were last looked at.
    archived_seq: u64,
}

impl Housekeeping {
    pub(crate) fn new(store: Arc<dyn Store>, settings: Arc<Settings>) -> Housekeeping {
        Housekeeping { store, settings, let_go_at: None, archived_seq: 0 }
    }

    /// Tidies up while this node plans, until it is told to stop.
    pub(crate) async fn run(mut self, term: Arc<Term>, clock: Arc<dyn Clock>, stop: CancellationToken) {
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = clock.sleep_until(later(clock.now(), LOOK_EVERY)) => {}
            }
            if !term.is_held() {
                self.let_go_at = None;
                continue;
            }
            // A chore is done in pieces that are whole: a node that stops waits for none of them.
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.tick(clock.now()) => {}
            }
        }
    }

    async fn tick(&mut self, now: Timestamp) {
        // A clock that was set back does not put it off.
        let let_go_at = *self.let_go_at.get_or_insert(later(now, LET_GO_AFTER));
        if let_go_at <= now || later(now, LET_GO_EVERY) < let_go_at {
            let is_done = self.let_go(now).await;
            self.let_go_at = Some(later(now, if is_done { LET_GO_EVERY } else { LET_GO_AFTER }));
        }
        told("archiving records", self.archive().await);
    }

    /// Lets everything go that is old enough. Whether nothing failed.
    async fn let_go(&self, now: Timestamp) -> bool {
        let before = |kept: Elapsed| now.checked_sub(kept.duration()).unwrap_or(Timestamp::MIN);
        let answers = self.store.forget_answers(before(ANSWERS_KEPT)).await;
        let output = self.store.forget_output(before(self.settings.output_kept)).await;
        let entries = self.store.prune(before(self.settings.journal_kept)).await;
        if let Some(count) = entries.as_ref().ok().filter(|count| 0 < **count) {
            info!("{count} old entries of the journal were let go");
        }
        let are_told = [
            told("forgetting answers", answers),
            told("forgetting output", output),
            told("letting go of old entries", entries),
        ];
        !are_told.contains(&true)
    }

    /// Lets go of records that are more than a schedule keeps.
    async fn archive(&mut self) -> Result<()> {
        let Some(keep) = self.settings.records_kept else { return Ok(()) };
        let seq = self.store.head().await?.seq;
        if seq != self.archived_seq {
            self.store.archive(None, keep).await?;
            self.archived_seq = seq;
        }
        Ok(())
    }
}

/// Tells of a chore that has failed. Whether it has.
fn told<T>(doing: &'static str, done: Result<T>) -> bool {
    if let Err(error) = &done {
        warn!(%error, cause = ?std::error::Error::source(error), "{doing} failed, and is tried again");
    }
    done.is_err()
}
