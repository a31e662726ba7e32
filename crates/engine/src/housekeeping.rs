//! Housekeeping: what is old enough is let go.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use punctual_store::{Result, Store};
use tracing::info;

use crate::planner::later;
use crate::settings::Settings;

/// How often final runs are let go.
const FORGET_EVERY: SignedDuration = SignedDuration::from_mins(10);

/// How often a checkpoint is written, and old entries are let go.
const PRUNE_EVERY: SignedDuration = SignedDuration::from_hours(24);

/// The first checkpoint of a process: a start has better things to do.
const FIRST_PRUNE: SignedDuration = SignedDuration::from_hours(1);

/// How long a request that comes again is known.
const ANSWERS_KEPT: SignedDuration = SignedDuration::from_hours(24);

/// How often schedules are looked at that may have too many records.
const ARCHIVE_EVERY: SignedDuration = SignedDuration::from_secs(5);

/// Lets old things go.
pub(crate) struct Housekeeping {
    store: Arc<dyn Store>,
    settings: Arc<Settings>,
    forget_at: Option<Timestamp>,
    prune_at: Option<Timestamp>,
    archive_at: Option<Timestamp>,
    /// How far the journal went when records were last looked at.
    archived_seq: u64,
}

impl Housekeeping {
    pub(crate) fn new(store: Arc<dyn Store>, settings: Arc<Settings>) -> Housekeeping {
        Housekeeping { store, settings, forget_at: None, prune_at: None, archive_at: None, archived_seq: 0 }
    }

    pub(crate) async fn tick(&mut self, now: Timestamp) -> Result<()> {
        let forget_at = *self.forget_at.get_or_insert(later(now, FORGET_EVERY));
        let prune_at = *self.prune_at.get_or_insert(later(now, FIRST_PRUNE));
        if forget_at <= now {
            self.forget_at = Some(later(now, FORGET_EVERY));
            let before = now.checked_sub(self.settings.runs_kept.duration()).unwrap_or(Timestamp::MIN);
            let count = self.store.forget_runs(now, before).await?;
            if 0 < count {
                info!("{count} final runs were let go");
            }
            let before = now.checked_sub(ANSWERS_KEPT).unwrap_or(Timestamp::MIN);
            self.store.forget_answers(before).await?;
            let before = now.checked_sub(self.settings.output_kept.duration()).unwrap_or(Timestamp::MIN);
            self.store.forget_output(before).await?;
        }
        if prune_at <= now {
            self.prune_at = Some(later(now, PRUNE_EVERY));
            let before = now.checked_sub(self.settings.journal_kept.duration()).unwrap_or(Timestamp::MIN);
            let count = self.store.prune(now, before).await?;
            info!("a checkpoint was written, {count} old entries were let go");
        }
        self.archive(now).await
    }

    /// Lets go of records that are more than a schedule keeps.
    async fn archive(&mut self, now: Timestamp) -> Result<()> {
        let Some(keep) = self.settings.records_kept else { return Ok(()) };
        // A clock that was set back does not put it off.
        let is_early = |at: Timestamp| now < at && at <= later(now, ARCHIVE_EVERY);
        if self.archive_at.is_some_and(is_early) {
            return Ok(());
        }
        self.archive_at = Some(later(now, ARCHIVE_EVERY));
        let seq = self.store.head().await?.seq;
        if seq != self.archived_seq {
            self.store.archive(None, keep).await?;
            self.archived_seq = seq;
        }
        Ok(())
    }
}
